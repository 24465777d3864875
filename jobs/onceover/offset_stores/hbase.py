"""Offsets in HBase, a row a batch: the newest row is the state, the older ones are its history, for 30 days."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from onceover.offset_stores.store import CorruptOffsetsError, OffsetStore, StoredOffsets, parse_offset
from onceover.raw.hbase_table import FAILURES, HBaseTable

TABLE = "stream_kafka_offsets"
FAMILY = "offsets"
LIVES_SECONDS = 30 * 24 * 3600
TIMEOUT_SECONDS = 30.0
"""Half of what HBase's own clients wait for an answer by default (`hbase.rpc.timeout`)."""
_AHEAD_MS = 5 * 60_000  # a row dated later than this would hide every batch until then
_DIGITS = 13  # of milliseconds since 1970, until the year 2286: so rows sort by time


class HBaseOffsetStore(OffsetStore):
    """The store `hbase`. Row key `TOPIC:GROUP:EPOCH_MS`, a column a Kafka partition, `offsets:PARTITION`, with the
    offset in decimal digits. A row is written whole or not at all. The format has no field for a topic ID.
    """

    def __init__(self, thrift: str, group: str, topic: str, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self._prefix = f"{topic}:{group}:"
        self.place = f"{TABLE} {self._prefix}"
        self._table = HBaseTable(thrift, TABLE, {FAMILY: {"time_to_live": LIVES_SECONDS}}, timeout)
        self._newest = 0
        self._refused: bytes | None = None  # the key of the damaged row that the last load refused

    def load(self, kafka_partitions: Iterable[int]) -> StoredOffsets:
        """See OffsetStore."""
        with self._translate_errors("read"):
            # Backwards from beyond the last key: the first one is the newest.
            scan = self._table.open().scan(
                row_start=f"{self._prefix};".encode(), row_stop=self._prefix.encode(), reverse=True, limit=1
            )
            row = next(scan, None)
            scan.close()
        if row is None:
            self._newest = 0
            return StoredOffsets()
        key, columns = row[0].decode("ascii", "backslashreplace"), row[1]
        where = f"row {key[:200]!r} of table {TABLE} in HBase"
        self._refused = row[0]
        newest = parse_offset(key.removeprefix(self._prefix), where)
        if newest > _now() + _AHEAD_MS:
            raise CorruptOffsetsError(f"{where} is dated in the future, and hides later saves")
        named = {c.decode("ascii", "backslashreplace").partition(":")[2]: value for c, value in columns.items()}
        stored = StoredOffsets({parse_offset(p, where): parse_offset(value, where) for p, value in named.items()})
        self._newest, self._refused = newest, None
        return stored

    def save(self, offsets: Mapping[int, int], topic_id: str) -> None:
        """See OffsetStore."""
        at = max(_now(), self._newest + 1)  # a clock that went back must not hide the row behind an older one
        with self._translate_errors("write"):
            columns = {f"{FAMILY}:{p}".encode(): str(offset).encode() for p, offset in offsets.items()}
            if self._refused is not None:  # the damaged row may be dated later than this one
                self._table.open().delete(self._refused)
            self._table.open().put(f"{self._prefix}{at:0{_DIGITS}d}".encode(), columns)
        self._newest, self._refused = at, None

    def close(self) -> None:
        """See OffsetStore."""
        self._table.close()

    @contextmanager
    def _translate_errors(self, verb: str) -> Iterator[None]:
        try:
            yield
        except FAILURES as error:
            raise self._table.give_up(error, f"{verb} {self.place}") from error


def _now() -> int:
    return time.time_ns() // 1_000_000
