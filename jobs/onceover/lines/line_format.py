r"""The line of a window file, byte for byte, one record at a time: for few lines, and to test the kernels against.

    GGGGGGGG-PPPPP-OOOOOOOOOOOOOOOOOOO TTTTTTTTTTTTTTTTTTTT<TAB>KEY<TAB>HEADERS<TAB>VALUE<TAB>
    EVENT_TIME<TAB>EPOCH<TAB>CONTRACT<TAB>COLUMN<TAB>...<TAB>HASH

The ID and Kafka's timestamp have fixed positions, so a line sorts by its ID. From the ID to the end of VALUE the line
holds what Kafka had, whatever a contract says: the digest covers these bytes. EVENT_TIME (13 digits, ms), EPOCH (10
digits: the leader epoch under which Kafka's log held the record) and CONTRACT (`V` or, on a released line, `R`, the
version, and the first 16 hex digits of the contract's fingerprint) follow, then the text of a column for each key and
measure of that contract. A quarantined record has 13 dashes for its event time and its reason as the only column; 10
dashes are the epoch of a record that a broker gave without one. HASH is the XXH3-64 of all before its TAB, in 16 hex
digits.

`\\ \t \n` and `\r` are escaped, null is `\N`, headers are `NAME\=VALUE` joined by `\;`. Columns that together are
longer than 1 MiB are left out: one field `\E` replaces them. Decoding returns any bytes unchanged, and the encoding is
injective.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from onceover.errors import UsageError
from onceover.lines.escapes import (
    CorruptLineError,
    escape_headers,
    escape_nullable,
    unescape_headers,
    unescape_nullable,
)
from onceover.lines.hashes import CONTENT_HASH, LINE_HASH
from onceover.model.digest import Digest
from onceover.model.record import LARGEST_RECORD, Record, encode_id, parse_id

ID = slice(0, 34)
KAFKA_TIMESTAMP = slice(35, 55)
PREFIX_BYTES = 55  # up to the TAB before KEY

MAX_EPOCH = 2**31 - 1
NO_LINE_EPOCH = b"-" * 10
MAX_EVENT_MS = 10**13 - 1  # 13 digits: up to the year 2286
NO_EVENT_TIME = b"-" * 13
LEFT_OUT = rb"\E"
LONGEST_LINE = 2 * LARGEST_RECORD  # a record of which each byte is escaped
LONGEST_COLUMNS = 1024 * 1024  # bytes of all columns of a line; beyond it they are left out
FIELDS_BEFORE_COLUMNS = 7  # prefix, key, headers, value, event time, epoch, contract

_PREFIX = re.compile(rb"[0-9a-f]{8}-[0-9]{5}-[0-9]{19} (?:[0-9]{20}|-[0-9]{19})\Z")
CONTRACT = re.compile(rb"[VR][1-9][0-9]{0,8}-[0-9a-f]{16}")
_HASH = re.compile(rb"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Line:
    """A record, its event time in ms (None in quarantine), and what its contract made of it. `leader_epoch` is None if
    the broker gave none.

    `columns` hold the text of each column, null as None; they are None themselves where they were left out as too
    long. In quarantine the reason is the only column.
    """

    record: Record
    event_ms: int | None
    contract: str
    columns: tuple[bytes | None, ...] | None = ()
    leader_epoch: int | None = None

    def __post_init__(self) -> None:
        if self.leader_epoch is not None and not 0 <= self.leader_epoch <= MAX_EPOCH:
            raise UsageError(f"leader epoch {self.leader_epoch} is not in 0..{MAX_EPOCH}")
        if self.event_ms is not None and not 0 <= self.event_ms <= MAX_EVENT_MS:
            raise UsageError(f"event time {self.event_ms} ms is not in 0..{MAX_EVENT_MS}; quarantine the record")
        if self.event_ms is None and (self.columns is None or len(self.columns) != 1 or self.columns[0] is None):
            raise UsageError("a line has either an event time or a reason for quarantine")
        if not CONTRACT.fullmatch(self.contract.encode()):
            raise UsageError(f"{self.contract!r} does not name a contract; one looks like V1-00c0ffee00c0ffee")

    @property
    def reason(self) -> str | None:
        """The reason for its quarantine; None for a line with an event time."""
        if self.event_ms is not None or not self.columns or self.columns[0] is None:
            return None
        return self.columns[0].decode("utf-8", "replace")


def encode(line: Line) -> bytes:
    """Return the line's bytes without a newline."""
    event_time = NO_EVENT_TIME if line.event_ms is None else b"%013d" % line.event_ms
    columns = [LEFT_OUT] if line.columns is None else [escape_nullable(column) for column in line.columns]
    if sum(map(len, columns)) > LONGEST_COLUMNS:
        columns = [LEFT_OUT]
    epoch = NO_LINE_EPOCH if line.leader_epoch is None else b"%010d" % line.leader_epoch
    body = b"\t".join((encode_content(line.record), event_time, epoch, line.contract.encode(), *columns))
    return b"%b\t%016x" % (body, LINE_HASH(body))


def encode_content(record: Record) -> bytes:
    """Return the bytes that the digest covers: ID, Kafka's timestamp, key, headers and value."""
    prefix = b"%b %020d" % (encode_id(record.source, record.offset), record.kafka_timestamp)
    return b"\t".join(
        (prefix, escape_nullable(record.key), escape_headers(record.headers), escape_nullable(record.value))
    )


def compute_digest(records: Iterable[Record]) -> Digest:
    """Return the digest of these records: of each XXH3-128, its four 32-bit parts summed each on its own."""
    hashes = [CONTENT_HASH(encode_content(record)) for record in records]
    parts = [[int.from_bytes(h[i : i + 4]) for i in range(0, 16, 4)] for h in hashes]
    return Digest(len(hashes), *(sum(column) for column in zip(*parts, strict=True))) if hashes else Digest()


def decode(data: bytes) -> Line:
    """Return the line that `encode` wrote as exactly these bytes. Raise CorruptLineError for any others."""
    body, tab, written = data.rpartition(b"\t")
    if not tab or not _HASH.fullmatch(written):
        raise CorruptLineError("it does not end with a hash of 16 hex digits", len(data))
    if (computed := b"%016x" % LINE_HASH(body)) != written:
        raise CorruptLineError(f"its hash is {written.decode()}, its bytes give {computed.decode()}", len(data))
    fields = body.split(b"\t")
    if len(fields) < FIELDS_BEFORE_COLUMNS or not _PREFIX.match(fields[0]):
        raise CorruptLineError("it does not start with an ID and a Kafka timestamp, or lacks fields", len(data))
    prefix, key, headers, value, event_time, epoch, contract, *columns = fields
    try:
        source, offset = parse_id(prefix[ID])
        timestamp = int(prefix[KAFKA_TIMESTAMP])
        record = Record(
            source, offset, timestamp, unescape_nullable(key), unescape_headers(headers), unescape_nullable(value)
        )
        line = Line(
            record,
            None if event_time == NO_EVENT_TIME else _parse_digits(event_time, 13, "an event time"),
            contract.decode("ascii", "replace"),
            None if columns == [LEFT_OUT] else tuple(map(unescape_nullable, columns)),
            None if epoch == NO_LINE_EPOCH else _parse_digits(epoch, 10, "a leader epoch"),
        )
    except UsageError as error:
        raise CorruptLineError(str(error), len(data)) from None
    if encode(line) != data:
        raise CorruptLineError("its escapes are not the ones that Onceover writes", len(data))
    return line


def _parse_digits(field: bytes, width: int, what: str) -> int:
    if len(field) != width or not field.isdigit():
        raise UsageError(f"{field[:20]!r} is not {what} of {width} digits")
    return int(field)
