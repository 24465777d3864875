"""A replayed pipeline's topic, by clients of its own: what its log holds, and its expiry."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from onceover.config.endpoints import address


def read_log(topic: str, kafka_partition: int) -> list[bytes]:
    """Return the values of a Kafka partition from its start to its end."""
    consumer = Consumer({"bootstrap.servers": address("kafka"), "group.id": "held", "enable.auto.commit": False})
    try:
        start, end = consumer.get_watermark_offsets(TopicPartition(topic, kafka_partition), timeout=30)
        consumer.assign([TopicPartition(topic, kafka_partition, start)])
        values = []
        for _ in range(start, end):
            message = consumer.poll(30)
            assert message is not None, "the broker has gone quiet"
            assert message.error() is None
            values.append(message.value() or b"")
        return values
    finally:
        consumer.close()


def expire_log(topic: str, kafka_partition: int, below: int) -> None:
    """Delete a Kafka partition's log below that offset, as Kafka's retention does."""
    admin = AdminClient({"bootstrap.servers": address("kafka")})
    for future in admin.delete_records([TopicPartition(topic, kafka_partition, below)]).values():
        future.result(30)
