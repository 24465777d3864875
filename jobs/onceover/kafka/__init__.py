"""Onceover's reads of a Kafka cluster: a topic's facts, and the records of a range."""

from onceover.kafka.topic import Topic, TopicFacts, derive_generation

__all__ = ["Topic", "TopicFacts", "derive_generation"]
