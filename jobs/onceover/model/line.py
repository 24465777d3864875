r"""The line of a window file, byte for byte: the reference for tests of Spark's expressions.

    GGGGGGGG-PPPPP-OOOOOOOOOOOOOOOOOOO CCCCCCCC TTTTTTTTTTTTT KKKKKKKKKKKKKKKKKKKK<TAB>KEY<TAB>HEADERS<TAB>VALUE

Each field up to the first TAB has a fixed position, so a line is parsed by slicing and sorts by its ID. `\\ \t \n`
and `\r` are escaped, null is `\N`, headers are `NAME\=VALUE` joined by `\;`: decoding returns any bytes unchanged. A
quarantined record has 13 dashes for its event time and its reason as a fifth field.

Two lines with the same content (from KAFKA_TS to VALUE) hold the same record: the encoding is injective.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import xxhash

from onceover.errors import TerminalError, UsageError
from onceover.model.digest import EMPTY, SEEDS, Digest
from onceover.model.offsets import LARGEST_END, KafkaPartition

ID = slice(0, 34)
GENERATION = slice(0, 8)
KAFKA_PARTITION = slice(9, 14)
OFFSET = slice(15, 34)
CRC = slice(35, 43)
EVENT_TIME = slice(44, 57)
KAFKA_TIMESTAMP = slice(58, 78)
CONTENT = slice(58, None)
PREFIX_BYTES = 79  # with the TAB before the key

MAX_EVENT_MS = 10**13 - 1  # 13 digits: up to the year 2286
NO_EVENT_TIME = b"-" * 13
NULL = rb"\N"
LONGEST_LINE = 256 * 1024 * 1024  # bytes without a newline that a reader collects at most

Header = tuple[str | bytes, bytes | None]

_ID = re.compile(rb"[0-9a-f]{8}-[0-9]{5}-[0-9]{19}")
_PREFIX = re.compile(_ID.pattern + rb" [0-9a-f]{8} (?:[0-9]{13}|-{13}) [0-9-][0-9]{19}\t")
_STARTS = [xxhash.xxh64_intdigest(struct.pack("<i", seed), 42) for seed in SEEDS]  # 42: where Spark starts
_SPECIAL = re.compile(rb"[\\\t\n\r]")


class CorruptLineError(TerminalError):
    """Bytes that `encode` did not write: torn, damaged or foreign. `problem` names the first difference."""

    def __init__(self, problem: str, size: int) -> None:
        super().__init__(f"a line of {size} bytes is corrupt: {problem}; repair the window, which reads around it")
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Record:
    """One Kafka record. `kafka_timestamp` is in ms; a header's name is bytes only where it is not valid UTF-8."""

    source: KafkaPartition
    offset: int
    kafka_timestamp: int
    key: bytes | None
    headers: tuple[Header, ...]
    value: bytes | None

    def __post_init__(self) -> None:
        if not 0 <= self.offset < LARGEST_END:
            raise UsageError(f"offset {self.offset} of {self.source} is not in 0..2^63-2")
        if not -(1 << 63) <= self.kafka_timestamp < 1 << 63:
            raise UsageError(f"Kafka timestamp {self.kafka_timestamp} of {self.source} is not a 64-bit integer")


@dataclass(frozen=True, slots=True)
class Line:
    """A record with its event time in ms, or with the reason for its quarantine."""

    record: Record
    event_ms: int | None
    reason: str | None = None

    def __post_init__(self) -> None:
        if (self.event_ms is None) == (self.reason is None):
            raise UsageError("a line has either an event time or a reason for quarantine")
        if self.event_ms is not None and not 0 <= self.event_ms <= MAX_EVENT_MS:
            raise UsageError(f"event time {self.event_ms} ms is not in 0..{MAX_EVENT_MS}; quarantine the record")


@dataclass(frozen=True, slots=True)
class PlacedLine:
    """An intact line and the byte position in its file where it starts."""

    position: int
    line: Line


@dataclass(frozen=True, slots=True)
class CorruptLine:
    """A stretch of a file that is not an intact line."""

    position: int
    size: int
    problem: str


def encode(line: Line) -> bytes:
    """Return the line's bytes without a newline."""
    record = line.record
    event_time = NO_EVENT_TIME if line.event_ms is None else b"%013d" % line.event_ms
    reason = b"" if line.reason is None else b"\t" + _escape(line.reason.encode("utf-8", "surrogateescape"))
    record_id = encode_id(record.source, record.offset)
    rest = event_time + b" " + _encode_content(record) + reason
    return b"%b %b %b" % (record_id, _crc(record_id + b" ", rest), rest)


def compute_digest(records: Iterable[Record]) -> Digest:
    """Return the digest of these records, as Spark sums it: two chained XXH64 of each ID and content."""
    total = EMPTY
    for record in records:
        parts = encode_id(record.source, record.offset), _encode_content(record)
        hashes = [reduce(lambda seed, part: xxhash.xxh64_intdigest(part, seed), parts, start) for start in _STARTS]
        total = total + Digest(1, *(half for each in hashes for half in (each >> 32, each & 0xFFFFFFFF)))
    return total


def decode(data: bytes) -> Line:
    """Return the line that `encode` wrote as exactly these bytes. Raise CorruptLineError for any others."""
    if not _PREFIX.match(data):
        raise CorruptLineError("it does not start with an ID, a CRC, an event time and a Kafka timestamp", len(data))
    crc = _crc(data[: CRC.start], data[EVENT_TIME.start :])
    if crc != data[CRC]:
        raise CorruptLineError(f"its CRC is {data[CRC].decode()}, its bytes give {crc.decode()}", len(data))
    event_time = data[EVENT_TIME]
    fields = data[PREFIX_BYTES:].split(b"\t")
    if len(fields) != (4 if event_time == NO_EVENT_TIME else 3):
        raise CorruptLineError(f"it has {len(fields)} fields after its Kafka timestamp", len(data))
    key, headers, value, *reason = fields
    try:
        source, offset = parse_id(data[ID])
        record = Record(
            source, offset, int(data[KAFKA_TIMESTAMP]), _nullable(key), unescape_headers(headers), _nullable(value)
        )
        if reason:
            line = Line(record, None, _unescape(reason[0]).decode("utf-8", "surrogateescape"))
        else:
            line = Line(record, int(event_time))
    except UsageError as error:
        raise CorruptLineError(str(error), len(data)) from None
    if encode(line) != data:
        raise CorruptLineError("its escapes are not the ones that Onceover writes", len(data))
    return line


def encode_id(source: KafkaPartition, offset: int) -> bytes:
    """Return the 34 bytes that identify a record."""
    return b"%b-%05d-%019d" % (source.generation.encode(), source.kafka_partition, offset)


def parse_id(data: bytes) -> tuple[KafkaPartition, int]:
    """Return Kafka partition and offset of an ID of 34 bytes. Raise UsageError for other bytes."""
    if not _ID.fullmatch(data):
        raise UsageError(f"{data[:60]!r} is not an ID; one looks like 00c0ffee-00003-0000000000000000042")
    return KafkaPartition(data[GENERATION].decode(), int(data[KAFKA_PARTITION])), int(data[OFFSET])


def escape_headers(headers: Sequence[Header] | None) -> bytes:
    r"""Return the HEADERS field, in Kafka's order: `NAME\=VALUE` joined by `\;`; empty when there are none."""
    if not headers:
        return b""
    return rb"\;".join(_escape(_name_bytes(name)) + rb"\=" + _escape_nullable(value) for name, value in headers)


def unescape_headers(field: bytes) -> tuple[Header, ...]:
    """Return the headers that `escape_headers` wrote. Raise CorruptLineError for a header without a value."""
    if not field:
        return ()
    headers: list[Header] = []
    for header in field.replace(rb"\\", rb"\x").split(rb"\;"):
        name, separator, value = header.partition(rb"\=")
        if not separator:
            raise CorruptLineError("a header has no value", len(field))
        headers.append((_name(_unescape(name)), _nullable(value)))
    return tuple(headers)


def frame(lines: Iterable[bytes]) -> bytes:
    """Return the bytes of one append. They begin and end with a newline, so that a torn tail never joins the next
    record.

    Without lines there are no bytes: no append is empty.
    """
    text = b"\n".join(lines)
    return b"\n" + text + b"\n" if text else b""


def decode_file(chunks: Iterable[bytes], longest: int = LONGEST_LINE) -> Iterator[PlacedLine | CorruptLine]:
    """Yield every line of a file, read in chunks of any size, in order; skip empty lines.

    Memory holds one line and one chunk at a time. A stretch of more than `longest` bytes without a newline is reported
    as one corrupt line and skipped.
    """
    position = 0  # in the file, of the first byte in `pieces`
    pieces: list[bytes] = []
    size = 0
    for chunk in chunks:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            yield from _placed(position, size + end - start, [*pieces, chunk[start:end]], longest)
            position += size + end - start + 1
            pieces, size, start = [], 0, end + 1
        size += len(chunk) - start
        if size > longest:
            pieces = []
        else:
            pieces.append(chunk[start:])
    yield from _placed(position, size, pieces, longest)


def split_at_lines(chunks: Iterable[bytes], longest: int = LONGEST_LINE) -> Iterator[bytes]:
    """Yield the same bytes in blocks of whole lines, each block and line with its newline; add one to a last line that
    has none.

    Memory holds one line and one chunk. Skips the beginning of a line of more than `longest` bytes, and marks its end
    as corrupt.
    """
    pieces: list[bytes] = []
    size = 0
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield b"".join((*pieces, memoryview(chunk)[:cut]))
            pieces, size = [], 0
        pieces.append(chunk[cut:])
        size += len(chunk) - cut
        if size > longest:
            pieces, size = [b"?"], 1
    if size:
        yield b"".join((*pieces, b"\n"))


def _placed(position: int, size: int, pieces: list[bytes], longest: int) -> Iterator[PlacedLine | CorruptLine]:
    if size > longest:
        yield CorruptLine(position, size, f"there is no newline in {size} bytes")
    elif size:
        try:
            yield PlacedLine(position, decode(b"".join(pieces)))
        except CorruptLineError as error:
            yield CorruptLine(position, size, error.problem)


def _encode_content(record: Record) -> bytes:
    key, value = _escape_nullable(record.key), _escape_nullable(record.value)
    return b"\t".join((b"%020d" % record.kafka_timestamp, key, escape_headers(record.headers), value))


def _crc(before: bytes, after: bytes) -> bytes:
    return b"%08x" % zlib.crc32(after, zlib.crc32(before))


def _escape(data: bytes) -> bytes:
    if not _SPECIAL.search(data):
        return data
    escaped = data.replace(b"\\", rb"\\")
    return escaped.replace(b"\t", rb"\t").replace(b"\n", rb"\n").replace(b"\r", rb"\r")


def _escape_nullable(data: bytes | None) -> bytes:
    return NULL if data is None else _escape(data)


def _unescape(field: bytes) -> bytes:
    r"""Undo `_escape`. Escaped backslashes become `\x` first, which no escape uses, so that `\\t` does not become a
    TAB."""
    if b"\\" not in field:
        return field
    text = field.replace(rb"\\", rb"\x")
    text = text.replace(rb"\t", b"\t").replace(rb"\n", b"\n").replace(rb"\r", b"\r")
    return text.replace(rb"\x", b"\\")


def _nullable(field: bytes) -> bytes | None:
    return None if field == NULL else _unescape(field)


def _name_bytes(name: str | bytes) -> bytes:
    return name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape")


def _name(data: bytes) -> str | bytes:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data
