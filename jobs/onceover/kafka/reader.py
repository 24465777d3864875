r"""The records of one offset range, all of them or an error: from a Kafka partition's log to Arrow batches.

A range ends by offset: by a record at or beyond its end, or by the end-of-partition event at or beyond it, since the
last offsets of a range may have no record (transaction markers, aborted and compacted records). Silence ends a read
only with an error, so a range is never short. No default decides where a read starts: an offset that the broker does
not have is an error too. The topic ID is checked before the first and after the last record, because a
recreated topic has the same offsets and other records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import cast

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from onceover.config.kafka_properties import build_client_properties
from onceover.errors import (
    OffsetRangeError,
    TerminalError,
    TransientError,
    UnreachableError,
    UnreadableRecordError,
)
from onceover.kafka.client import HARMLESS, Admin, LastComplaint, translate_refusal
from onceover.kafka.record_batch import build_batch
from onceover.kafka.rights import Right
from onceover.kafka.traffic import MAX_SECONDS, Traffic
from onceover.model.offsets import OffsetRange

BAD_BATCH = (KafkaError._BAD_MSG, KafkaError._BAD_COMPRESSION, KafkaError.INVALID_MSG)
"""Errors about a batch of records that was fetched, with its first offset."""
BATCH_RECORDS = 10_000
BATCH_BYTES = 8 << 20
READ_AHEAD = 200_000
"""Offsets that a client may read beyond a range: twice what it keeps, by `queued.min.messages`."""
END_GRACE_SECONDS = 5.0  # a new leader's log may seem short for a moment
_POLL_SECONDS = 0.5

_OWN_PROPERTIES = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    "allow.auto.create.topics": "false",
    "check.crcs": "true",
    "group.id": "onceover-reader",  # required by the client, which neither joins nor commits
}
_TUNED_PROPERTIES = {  # a pipeline's [kafka] wins
    "fetch.wait.max.ms": "50",  # how long the broker may wait before it reports the end of a partition
    "fetch.message.max.bytes": str(4 << 20),
    "fetch.queue.backoff.ms": "1",  # its default, 1000, is a second's pause whenever the queue was full
    "queued.min.messages": str(READ_AHEAD // 2),
    "queued.max.messages.kbytes": str(16 << 10),  # bounds the memory of read-ahead, plus one fetch
    "socket.timeout.ms": "300000",  # the most there is: over a slow link, one fetch takes longer than its default, 60 s
}

_ONE_BATCH = {"fetch.message.max.bytes": "1", "queued.min.messages": "1"}


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """The topic to read ranges from, as plain values that travel to Spark's Python workers.

    A read waits `stall_seconds` for a broker before it fails. `one_batch_a_fetch`: nothing is read ahead of a batch,
    for the next may be one that no reader gets. `unreadable`: the offsets that are known as such, of this incarnation.
    """

    bootstrap: str
    topic: str
    topic_id: str
    isolation: str = "read_committed"
    properties: Mapping[str, str] = field(default_factory=dict)
    stall_seconds: float = 30.0
    one_batch_a_fetch: bool = False
    unreadable: tuple[OffsetRange, ...] = ()


class LogReader:
    """Reads ranges one after another by the same clients, for to connect takes longer than to read a thousand records.
    Close it after an error. Where offsets are known that no reader gets, `guarded_read.read_with_care` reads by it."""

    def __init__(self, source: KafkaSource, note_arrival: Callable[[int], None] = lambda _: None) -> None:
        """Connects with the first range. `note_arrival` takes the offsets of records once they are here, before the
        client can die of the next: some are never yielded."""
        self.source, self.note_arrival = source, note_arrival
        self.complaint, self.traffic = LastComplaint(), Traffic()
        self._admin: Admin | None = None
        self._consumer: Consumer | None = None

    def read(self, kafka_partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yield every record in [start, end) that the isolation level shows, in offset order, in batches of SCHEMA.

        `headers` is the escaped field of the window file, `leader_epoch` null where the broker gives none. Raise
        OffsetRangeError if the log does not hold the range (expired, truncated) or the topic is not the incarnation
        `source.topic_id`; UnreachableError if no byte arrives for `stall_seconds`, or UnreadableRecordError if whole
        answers do, and no record comes of them. Discard the batches yielded before an error.
        """
        if start < end:
            yield from self.hold_last(self.read_at_once(kafka_partition, start, end))

    def hold_last(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches, the last one after another check that the topic is the same."""
        last: pa.RecordBatch | None = None
        for batch in batches:
            if last is not None:
                yield last
            last = batch
        self._check_incarnation()
        if last is not None:
            yield last

    def read_at_once(self, kafka_partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yield each batch as it arrives, the last one without checking again that the topic is the same."""
        self._check_incarnation()
        self.complaint.clear()
        yield from self._read_on(kafka_partition, start, end)

    def _check_incarnation(self) -> None:
        source = self.source
        self._admin = self._admin or Admin(source.bootstrap, source.properties)
        topic_id = str(self._admin.describe(source.topic).topic_id)
        if topic_id != source.topic_id:
            raise OffsetRangeError(
                f"topic {source.topic!r} was recreated: its ID is {topic_id}, the batch was planned under "
                f"{source.topic_id}; plan again"
            )

    def _read_on(self, kafka_partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yield the records, by a new client if the kept one speaks of what it read ahead of another range."""
        is_kept = self._consumer is not None
        self._consumer = self._consumer or self._connect()
        reader = _Reader(self, self._consumer, kafka_partition, start, end)
        try:
            yield from reader.batches()
        except _OtherOffsetError:
            if not is_kept:
                raise
            self.close()
            yield from self._read_on(kafka_partition, reader.yielded, end)

    def _connect(self) -> Consumer:
        source = self.source
        try:
            return Consumer(
                {
                    **_TUNED_PROPERTIES,
                    **build_client_properties(source.bootstrap, source.properties),
                    **(_ONE_BATCH if source.one_batch_a_fetch else {}),
                    **_OWN_PROPERTIES,
                    **self.traffic.configure(),
                    "isolation.level": source.isolation,
                    "error_cb": self.complaint,
                }
            )
        except KafkaException as error:
            raise translate_refusal(error) from error

    def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()


class _OtherOffsetError(OffsetRangeError):
    """The log does not hold an offset that is not the next one: a client may say so of what it read ahead of a range,
    even after it was assigned another one."""


class _Reader:
    """The read of one range; every offset below `_position` is delivered or has no record, and those below `yielded`
    were yielded."""

    def __init__(self, log: LogReader, consumer: Consumer, kafka_partition: int, start: int, end: int) -> None:
        source = log.source
        self._where = f"topic {source.topic!r}, Kafka partition {kafka_partition}, offset range [{start}, {end})"
        self._kafka_partition, self._end = kafka_partition, end
        self._position = self.yielded = start
        self._stall_seconds = source.stall_seconds
        self._advice = Right("Read", source.topic).advise(source.bootstrap, source.properties)
        self._most_records = 1 if source.one_batch_a_fetch else BATCH_RECORDS
        self._seen_end: int | None = None
        self._complaint, self._traffic, self._consumer = log.complaint, log.traffic, consumer
        self._note_arrival = log.note_arrival
        self._traffic.begin(source.topic, kafka_partition)
        consumer.assign([TopicPartition(source.topic, kafka_partition, start)])

    def batches(self) -> Iterator[pa.RecordBatch]:
        waiting: list[Message] = []
        size = 0
        while self._position < self._end:
            # consume() alone would wait its whole timeout although records are there: wait for one, then take the rest.
            first = self._consumer.poll(_POLL_SECONDS)
            if first is not None and first.error() is None:
                self._note_arrival(_get_offset(first))
            wanted = min(BATCH_RECORDS, self._end - self._position)
            messages = [] if first is None else [first, *self._consumer.consume(wanted, 0)]
            for is_record, group in groupby(messages, lambda message: message.error() is None):
                if self._position >= self._end:
                    break  # what was read ahead, and what the client says of it, is not of this range
                if is_record:
                    self._traffic.note_progress()
                    self._seen_end = None
                    records = self._clip(list(group))
                    waiting += records
                    size += sum(map(len, records))
                else:
                    self._take_events(group)
            self._check_stall()
            if self._position >= self._end:
                self._consumer.unassign()  # the client would read ahead, and may die of what comes next
            if len(waiting) >= self._most_records or size >= BATCH_BYTES:
                yield build_batch(waiting, self._kafka_partition, self._where)
                waiting, size, self.yielded = [], 0, self._position
                self._traffic.note_progress()  # the caller may have taken long over the batch
        if waiting:
            yield build_batch(waiting, self._kafka_partition, self._where)

    def _clip(self, records: list[Message]) -> list[Message]:
        """Move the position over these records and drop what lies beyond the range."""
        first, last = _get_offset(records[0]), _get_offset(records[-1])
        if first < self._position:
            raise TransientError(f"{self._where}: offset {first} came after {self._position}; read again")
        self._position = last + 1
        if self._position <= self._end:
            return records
        return [record for record in records if _get_offset(record) < self._end]

    def _take_events(self, events: Iterable[Message]) -> None:
        for event in events:
            error = cast(KafkaError, event.error())
            if error.code() == KafkaError._PARTITION_EOF:
                self._position = max(self._position, _get_offset(event))
                self._traffic.note_progress()
                self._seen_end = _get_offset(event)
            elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                raise (OffsetRangeError if event.offset() == self._position else _OtherOffsetError)(
                    f"{self._where}: the log does not hold offset {event.offset()}: expired or truncated; plan again"
                )
            elif error.code() in HARMLESS:
                self._complaint(error)
            elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise TerminalError(f"{self._where}: {error.str()}; {self._advice}")
            elif error.code() in BAD_BATCH and _get_offset(event) >= self._end:
                self._position = self._end  # read ahead: all that lies before it came before it
            elif error.code() in BAD_BATCH:
                at = max(self._position, _get_offset(event))
                raise UnreadableRecordError(
                    f"{self._where}: offset {at} cannot be read: {error.str()}", at, _get_offset(event)
                )
            else:
                raise TransientError(f"{self._where}: {error.str()}")

    def _check_stall(self) -> None:
        if self._position >= self._end:
            return
        traffic, stuck = self._traffic, self._traffic.stuck_seconds
        if self._seen_end is not None and stuck > min(END_GRACE_SECONDS, self._stall_seconds):
            raise OffsetRangeError(
                f"{self._where}: the log ends at offset {self._seen_end}: truncated, or planned at another isolation "
                "level; plan again"
            )
        if traffic.is_without_end(self._stall_seconds):
            raise UnreadableRecordError(
                f"{self._where}: offset {self._position} cannot be read: its batch arrived {traffic.refetched} times "
                f"within {stuck:.0f} s, and the client got no record of it",
                self._position,
            )
        if traffic.silent_seconds > self._stall_seconds:
            raise UnreachableError(
                f"{self._where}: nothing arrived for {self._stall_seconds:g} s at offset {self._position}"
                f"{self._complaint}; check that the Kafka partition's leader runs"
            )
        if stuck > MAX_SECONDS:
            raise TransientError(f"{self._where}: {traffic.explain_slowness()} at offset {self._position}")


def _get_offset(message: Message) -> int:
    return cast(int, message.offset())
