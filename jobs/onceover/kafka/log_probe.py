"""The leader epoch of a log's records, found by reading one of them: the client library has no request for it."""

from __future__ import annotations

from contextlib import closing

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from onceover.config.kafka_properties import build_client_properties
from onceover.errors import TransientError, UnreachableError
from onceover.kafka.client import HARMLESS, LastComplaint, translate_refusal
from onceover.kafka.guarded_read import read_guarded
from onceover.kafka.reader import BAD_BATCH, READ_AHEAD, KafkaSource
from onceover.kafka.traffic import MAX_SECONDS, Traffic
from onceover.model.offsets import OffsetRange

_POLL_SECONDS = 0.5


class _BadBatchError(TransientError):
    """A batch that arrives and cannot be read."""


class LogProbe:
    """Reads single records of one Kafka partition's log, at the source's isolation level; remembers what it read."""

    def __init__(self, source: KafkaSource, kafka_partition: int) -> None:
        self._source, self._kafka_partition = source, kafka_partition
        self._seen: dict[int, tuple[int, int] | None] = {}
        self._complaint, self._traffic = LastComplaint(), Traffic()
        try:
            self._consumer = Consumer(
                {
                    "fetch.wait.max.ms": "50",
                    "fetch.message.max.bytes": "1024",  # the broker sends at least one batch
                    "queued.min.messages": "1",
                    "socket.timeout.ms": "300000",  # as in LogReader
                    **build_client_properties(source.bootstrap, source.properties),
                    "enable.auto.commit": "false",
                    "enable.auto.offset.store": "false",
                    "auto.offset.reset": "error",
                    "enable.partition.eof": "true",
                    "allow.auto.create.topics": "false",
                    "group.id": "onceover-probe",  # required by the client, which neither joins nor commits
                    **self._traffic.configure(),
                    "isolation.level": source.isolation,
                    "error_cb": self._complaint,
                }
            )
        except KafkaException as error:
            raise translate_refusal(error) from error

    def find_epoch(self, offset: int) -> tuple[int, int] | None:
        """Return offset and leader epoch of the first record at this offset or beyond it that can be read.

        None if the log has no such record, or its records carry no epochs. Raises TransientError if the log no
        longer holds the offset, UnreachableError if nothing arrives for the source's `stall_seconds`.
        """
        if offset not in self._seen:
            try:
                self._seen[offset] = self._read(offset)
            except _BadBatchError:
                self._seen[offset] = self._read_beyond(offset)
        return self._seen[offset]

    def close(self) -> None:
        self._consumer.close()

    def _read_beyond(self, offset: int) -> tuple[int, int] | None:
        """Find the end of the batch that cannot be read, by bisection, and read there."""
        log = TopicPartition(self._source.topic, self._kafka_partition)
        try:
            bounds = self._consumer.get_watermark_offsets(log, timeout=self._source.stall_seconds)
        except KafkaException as error:
            raise UnreachableError(f"topic {self._source.topic!r}: {error.args[0].str()}") from error
        if bounds is None:
            raise UnreachableError(f"topic {self._source.topic!r}: no answer about the end of its log")
        bad, good, found = offset, bounds[1], None
        while good - bad > 1:
            middle = (bad + good) // 2
            try:
                good, found = middle, self._read(middle)
            except _BadBatchError:
                bad = middle
        return found

    def _read(self, offset: int) -> tuple[int, int] | None:
        for bad in self._source.unreadable:
            if bad.source.kafka_partition == self._kafka_partition and bad.start - READ_AHEAD <= offset < bad.end:
                return self._read_before(offset, bad)
        return self._read_plainly(offset)

    def _read_before(self, offset: int, bad: OffsetRange) -> tuple[int, int] | None:
        """Read a record near offsets that no reader gets, in a process of its own; if none lies before, one behind."""
        if offset < bad.start:
            with closing(read_guarded(self._source, self._kafka_partition, offset, bad.start)) as records:
                first = next(records, None)
            if first is not None:
                at, epoch = first.column("offset")[0].as_py(), first.column("leader_epoch")[0].as_py()
                return None if epoch is None else (at, epoch)
        return self.find_epoch(bad.end)

    def _read_plainly(self, offset: int) -> tuple[int, int] | None:
        where = f"topic {self._source.topic!r}, Kafka partition {self._kafka_partition}, offset {offset}"
        self._consumer.assign([TopicPartition(self._source.topic, self._kafka_partition, offset)])
        traffic = self._traffic
        traffic.begin(self._source.topic, self._kafka_partition)
        while True:
            message = self._consumer.poll(_POLL_SECONDS)
            if message is not None:
                error = message.error()
                if error is None:
                    at, epoch = message.offset(), message.leader_epoch()
                    return None if at is None or epoch is None or epoch < 0 else (at, epoch)
                if error.code() == KafkaError._PARTITION_EOF:
                    return None
                if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                    raise TransientError(f"{where}: the log does not hold it: expired or truncated; plan again")
                if error.code() not in HARMLESS:
                    raise (_BadBatchError if error.code() in BAD_BATCH else TransientError)(f"{where}: {error.str()}")
                self._complaint(error)
            if traffic.is_without_end(self._source.stall_seconds):
                raise _BadBatchError(f"{where}: its batch arrives again and again, and no record comes of it")
            if traffic.stuck_seconds > MAX_SECONDS:
                raise TransientError(f"{where}: {traffic.explain_slowness()}")
            if traffic.silent_seconds > self._source.stall_seconds:
                raise UnreachableError(
                    f"{where}: nothing arrived for {self._source.stall_seconds:g} s{self._complaint}; check that the "
                    "Kafka partition's leader runs"
                )
