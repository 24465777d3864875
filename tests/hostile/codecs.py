"""Batches as hostile or foreign producers make them: each with a name, the records that its producer meant, and the
number of records for which the broker takes it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

import pyarrow as pa
import xxhash
import zstandard
from tests.integration.events import event
from tests.kafka_batches import CODECS, NOON_MS, RawRecord, compress, encode_records, frame, make_batch

Family = Callable[[Random], list[RawRecord]]
FAR: Final = 2**63 - 1
EVENT: Final = event(0)
_FATAL: Final = "gzip after nothing"
_SKIPPED: Final = struct.pack("<II", 0x184D2A50, 4) + b"skip"
"""A frame that lz4's and zstd's readers must pass over."""


@dataclass(frozen=True, slots=True)
class Try:
    """One batch for the broker, and its records. `is_readable` says whether the client library reads it, by which the
    product reads; it dies of a batch that `is_fatal`. The broker takes no batch that `is_on_disk_only`."""

    name: str
    codec: str
    batch: bytes
    records: Sequence[RawRecord]
    is_readable: bool = True
    is_fatal: bool = False
    is_on_disk_only: bool = False


def _of_size(size: int, *, is_random: bool = False) -> Family:
    return lambda random: [RawRecord(None, random.randbytes(size) if is_random else b"\0" * size)]


def _with_headers(*headers: tuple[bytes, bytes | None]) -> Family:
    return lambda _: [RawRecord(b"k", EVENT, headers)]


def _at(*stamps: int) -> Family:
    return lambda _: [RawRecord(b"k", EVENT, timestamp=stamp) for stamp in stamps]


def _draw_anything(random: Random) -> list[RawRecord]:
    """Return records with all that raw escapes, anywhere."""

    def draw() -> bytes | None:
        return None if random.random() < 0.2 else bytes(random.choices(b"\\\t\n\r\0;=N\xff{", k=random.randrange(40)))

    return [RawRecord(draw(), draw(), ((b"h\\=\n", draw()),), random.randrange(-FAR, FAR)) for _ in range(200)]


FAMILIES: Final[dict[str, Family]] = {
    "value of 0 bytes": _of_size(0),
    "value of 1 byte": _of_size(1, is_random=True),
    "value of 1 KiB": _of_size(1 << 10),
    "value of 1 KiB at random": _of_size(1 << 10, is_random=True),
    "value of 1 MiB": _of_size(1 << 20),
    "value of 1 MiB at random": _of_size(1 << 20, is_random=True),
    "nulls": lambda _: [RawRecord(), RawRecord(b"", None), RawRecord(None, b""), RawRecord(None, EVENT)],
    "key of 300 KiB": lambda random: [RawRecord(random.randbytes(300 << 10), EVENT)],
    "10,000 records": lambda _: [RawRecord(b"%d" % n, EVENT, timestamp=NOON_MS + n) for n in range(10_000)],
    "anything": _draw_anything,
    "one header": _with_headers((b"a", b"1")),
    "1,000 headers": _with_headers(*((b"n%d" % n, b"\t" * (n % 7)) for n in range(1_000))),
    "one name twice": _with_headers((b"a", b"1"), (b"a", None), (b"a", b"")),
    "empty names": _with_headers((b"", None), (b"", b""), (b"", b"\n\t\\;\\=\\N")),
    "header of 300 KiB": _with_headers((b"a", b"\\" * (300 << 10))),
    "name of 100 KiB": _with_headers((b"n\xc3\xa9" * 33_000, b"1")),
    "name that is no UTF-8": _with_headers((b"caf\xe9", b"1"), (b"ok", b"2")),
    "header that is no UTF-8": _with_headers((b"a", b"\xff\xfe\xc0\x80")),
    "timestamp of none": _at(-1),
    "timestamp of 0": _at(0, 1),
    "negative timestamp": _at(-2, -5, -(1 << 62)),
    "timestamp at the end of time": _at(FAR, FAR - 1),
    "timestamps that overflow": _at(-2, FAR, 0, -FAR - 1),
}


def make_families(*, is_small: bool) -> Iterator[Try]:
    """Yield each family of records under every codec, or under one each."""
    for number, (name, make) in enumerate(FAMILIES.items()):
        for codec in (CODECS[number % len(CODECS)],) if is_small else CODECS:
            records = make(Random(f"{name} {codec}"))
            yield Try(name, codec, make_batch(records, codec), records)


def make_bodies() -> Iterator[Try]:
    """Yield compressed bodies that no producer of ours writes, all of which the broker takes."""
    random = Random(9)
    records = [RawRecord(b"k%d" % n, random.randbytes(40) + bytes(400)) for n in range(2)]
    plain = encode_records(records)
    for name, (codec, packed, is_readable) in _list_bodies(plain).items():
        yield Try(name, codec, frame(packed, codec, len(records)), records, is_readable, name == _FATAL)


def _list_bodies(plain: bytes) -> dict[str, tuple[str, bytes, bool]]:
    packed = {codec: compress(codec, plain) for codec in CODECS}
    gzip, zstd, cut = packed["gzip"], packed["zstd"], 100
    extra = gzip[:3] + b"\x1c" + gzip[4:10] + struct.pack("<H", 3) + b"abc" + b"name\0comment\0" + gzip[10:]
    sizeless = zstandard.ZstdCompressor(write_content_size=False).compress(plain)
    wide = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
    sized = struct.pack("<Q", len(plain))
    return {
        "gzip with each field of its head": ("gzip", extra, True),
        "gzip with a tail": ("gzip", gzip + random_tail(), True),
        "snappy in blocks": ("snappy", pack_xerial(plain), True),
        "snappy in small blocks": ("snappy", pack_xerial(plain, 7), True),
        "lz4 with sums of blocks": ("lz4", pack_lz4(0x70, plain), True),
        "lz4 with a sum": ("lz4", pack_lz4(0x64, plain), True),
        "lz4 with its size": ("lz4", pack_lz4(0x68, plain, sized), True),
        "zstd without its size": ("zstd", sizeless, True),
        "zstd with a sum": ("zstd", zstandard.ZstdCompressor(write_checksum=True).compress(plain), True),
        "zstd in two frames": ("zstd", compress("zstd", plain[:cut]) + compress("zstd", plain[cut:]), True),
        "zstd after nothing": ("zstd", compress("zstd", b"") + zstd, True),
        "zstd before nothing": ("zstd", zstd + compress("zstd", b""), True),
        "zstd after what is skipped": ("zstd", _SKIPPED + zstd, True),
        "zstd before what is skipped": ("zstd", zstd + _SKIPPED, True),
        "zstd with a wide window": ("zstd", zstandard.ZstdCompressor(compression_params=wide).compress(plain), True),
        "gzip before nothing": ("gzip", gzip + compress("gzip", b""), True),
        _FATAL: ("gzip", compress("gzip", b"") + gzip, False),
        "snappy with a tail": ("snappy", pack_xerial(plain) + b"\0\0", False),
        "snappy twice": ("snappy", pack_xerial(plain[:cut]) + pack_xerial(plain[cut:]), False),
        "lz4 with a tail": ("lz4", packed["lz4"] + random_tail(), False),
        "lz4 with a size too small": ("lz4", pack_lz4(0x68, plain, struct.pack("<Q", 5)), False),
        "lz4 with a size too large": ("lz4", pack_lz4(0x68, plain, struct.pack("<Q", 1 << 62)), False),
        "lz4 with a wrong sum": ("lz4", pack_lz4(0x64, plain)[:-1] + b"\7", False),
    }


def random_tail() -> bytes:
    return Random(10).randbytes(16)


def pack_xerial(data: bytes, block: int = 32_768) -> bytes:
    """Return snappy's blocks as Java's library frames them."""
    out = bytearray(b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1))
    for start in range(0, len(data), block):
        packed = compress("snappy", data[start : start + block])
        out += struct.pack(">i", len(packed)) + packed
    return bytes(out)


def pack_lz4(flags: int, data: bytes, size: bytes = b"") -> bytes:
    """Return a frame of one block, with sums and the size as the flags say."""
    head = bytes([flags, 0x70]) + size
    block = bytes(pa.compress(data, codec="lz4_raw", asbytes=True))
    out = b"\x04\x22\x4d\x18" + head + bytes([xxhash.xxh32_intdigest(head) >> 8 & 255])
    out += struct.pack("<I", len(block)) + block + (_sum(block) if flags & 0x10 else b"")
    return out + bytes(4) + (_sum(data) if flags & 4 else b"")


def _sum(data: bytes) -> bytes:
    return struct.pack("<I", xxhash.xxh32_intdigest(data))
