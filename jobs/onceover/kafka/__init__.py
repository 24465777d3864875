"""All that Onceover asks of a Kafka cluster: a topic's facts, committed offsets, the records of a range."""

from onceover.kafka.group import KafkaOffsetStore
from onceover.kafka.topic import Topic, TopicFacts, generation_of

__all__ = ["KafkaOffsetStore", "Topic", "TopicFacts", "generation_of"]
