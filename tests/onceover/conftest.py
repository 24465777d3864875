"""A real broker, topics of one test each, producers that fill them (plain, transactional, aborted), and Spark."""

from __future__ import annotations

import ctypes
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from tests.frozen import frozen

from onceover.config import endpoints
from onceover.kafka import Topic, TopicFacts
from onceover.kafka.reader import KafkaSource
from onceover.ledger.database import Connection, connect, upgrade_schema
from onceover_local.stack import Stack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Value = bytes | None


class Broker:
    """A test's actions on the broker it reads from."""

    def __init__(self, stack: Stack, address: str) -> None:
        self.address = address
        self._stack = stack
        self.admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        self._producer = Producer({"bootstrap.servers": address, "message.max.bytes": 8 << 20, "log_level": 0})

    def create(self, kafka_partitions: int = 1, *, name: str | None = None) -> str:
        topic = name or f"t-{uuid.uuid4().hex[:12]}"
        self._retry(lambda: self.admin.create_topics([NewTopic(topic, kafka_partitions, 1)])[topic].result())
        self._retry(lambda: self.facts(topic))
        return topic

    def recreate(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result()
        self.create(name=topic)

    def produce(self, topic: str, values: Iterable[Value], kafka_partition: int = 0, **record: Any) -> None:
        for value in values:
            self._producer.produce(topic, value, partition=kafka_partition, **record)
        assert self._producer.flush(30) == 0

    def transact(self, topic: str, values: Iterable[Value], *, abort: bool = False) -> None:
        """Produce one transaction: its records, then a marker that takes one offset. Wait for the marker."""
        values = list(values)
        after = self.facts(topic).end[0] + len(values) + 1
        with self.transaction(topic, values) as producer:
            if abort:
                producer.abort_transaction(30)
            else:
                producer.commit_transaction(30)
        self.wait_for_end(topic, after)

    def wait_for_end(self, topic: str, end: int) -> None:
        """Wait until the log ends there: a coordinator reports a commit before its markers are written."""
        deadline = time.monotonic() + 20
        while (last := self.facts(topic).end[0]) != end:
            assert time.monotonic() < deadline, f"{topic} ends at {last}, not at {end}"
            time.sleep(0.02)

    @contextmanager
    def transaction(self, topic: str, values: Iterable[Value]) -> Iterator[Producer]:
        """Yield the producer of an open transaction whose records the broker already has."""
        producer = Producer({"bootstrap.servers": self.address, "transactional.id": uuid.uuid4().hex, "log_level": 0})
        producer.init_transactions(30)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        assert producer.flush(30) == 0
        yield producer

    def expire(self, topic: str, before: int) -> None:
        """Cut the log's start, as retention does."""
        partition = TopicPartition(topic, 0, before)
        next(iter(self.admin.delete_records([partition]).values())).result()

    def produce_header_name(self, topic: str, name: bytes, value: bytes) -> None:
        """Produce a record whose header name need not be UTF-8, which no client for Python or Java can send."""
        librdkafka = ctypes.CDLL(_librdkafka())
        for make in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_headers_new"):
            getattr(librdkafka, make).restype = ctypes.c_void_p
        problem = ctypes.create_string_buffer(512)
        settings = ctypes.c_void_p(librdkafka.rd_kafka_conf_new())
        librdkafka.rd_kafka_conf_set(settings, b"bootstrap.servers", self.address.encode(), problem, 512)
        producer = ctypes.c_void_p(librdkafka.rd_kafka_new(0, settings, problem, 512))
        headers = ctypes.c_void_p(librdkafka.rd_kafka_headers_new(1))
        size = ctypes.c_ssize_t
        librdkafka.rd_kafka_header_add(headers, name, size(len(name)), value, size(len(value)))
        end, of_topic, of_partition, of_value, of_headers = map(ctypes.c_int, (0, 1, 3, 4, 10))
        failed = librdkafka.rd_kafka_producev(
            producer,
            *(of_topic, ctypes.c_char_p(topic.encode())),
            *(of_partition, ctypes.c_int(0)),
            *(of_value, ctypes.c_char_p(b"v"), ctypes.c_size_t(1)),
            *(of_headers, headers),
            end,
        )
        assert failed == 0
        assert librdkafka.rd_kafka_flush(producer, 10_000) == 0
        librdkafka.rd_kafka_destroy(producer)

    def facts(self, topic: str, isolation: str = "read_committed") -> TopicFacts:
        return Topic(self.address, topic, isolation, {}).facts()

    def source(self, topic: str, **changed: Any) -> KafkaSource:
        return KafkaSource(self.address, topic, self.facts(topic).topic_id, **changed)

    def frozen(self) -> AbstractContextManager[None]:
        return frozen(self._stack.find_pid("kafka"))

    def restart(self) -> None:
        self._stack.stop_part("kafka")
        self._stack.start_part("kafka")

    def _retry(self, attempt: Callable[[], Any], seconds: float = 20) -> None:
        """Retry for a while: a deleted topic may still be there, a new one not yet on every broker."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                attempt()
                return
            except Exception:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


def _librdkafka() -> str:
    return next(
        line.split(maxsplit=5)[-1]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if re.search("librdkafka.*[.]so", line)
    )


@pytest.fixture(scope="session")
def broker(stack: Stack) -> Broker:
    return Broker(stack, endpoints.address("kafka"))


@pytest.fixture
def topic(broker: Broker) -> str:
    """Create a topic of one Kafka partition."""
    return broker.create()


@pytest.fixture
def connection(stack: Stack) -> Iterator[Connection]:
    """Connect a test to the session's ledger."""
    upgrade_schema(endpoints.address("postgres"))
    with connect(endpoints.address("postgres"), "test") as connection:
        yield connection


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Start one local Spark session for all tests of a run, as the jobs start theirs, on two cores."""
    from onceover.spark.session import build  # a second, which the quick tier need not wait

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYSPARK_SUBMIT_ARGS", "--master local[2] pyspark-shell")
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = build("tests")
        try:
            yield session
        finally:
            session.stop()
