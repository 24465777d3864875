"""Batches that were damaged on the broker's disk, in such a way that their CRC is right: the broker hands them out."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from tests.hostile.codecs import Try, make_bodies
from tests.kafka_batches import CODECS, HEADER, RawRecord, compress, encode_records, frame, make_batch, send

from onceover.config.endpoints import address
from onceover_local.stack import Stack

_BEFORE_EPOCH: Final = 12
_AFTER_EPOCH: Final = 16
"""What lies before in a batch is the broker's: its first offset, its length, its leader epoch."""


def make_unreadable() -> list[Try]:
    """Return all bodies that the client library does not read: as the broker takes them, and damaged."""
    return [*_make_damaged(), *(each for each in make_bodies() if not each.is_readable)]


def _make_damaged() -> Iterator[Try]:
    """Yield bodies that no reader decompresses, two records each."""
    records = [RawRecord(b"k", Random(n).randbytes(40) + bytes(400)) for n in range(2)]
    for codec in CODECS[1:]:
        yield Try("noise", codec, frame(Random(codec).randbytes(200), codec, 2), records, False, is_on_disk_only=True)
    gzip, zstd = (compress(codec, encode_records(records)) for codec in ("gzip", "zstd"))
    middle = len(gzip) // 2
    flipped = gzip[:middle] + bytes(each ^ 255 for each in gzip[middle : middle + 8]) + gzip[middle + 8 :]
    yield Try("flipped bytes", "gzip", frame(flipped, "gzip", 2), records, False, is_on_disk_only=True)
    # The library never ends to inflate a body of gzip that was cut.
    yield Try("half", "zstd", frame(zstd[: len(zstd) // 2], "zstd", 2), records, False, is_on_disk_only=True)


def plant(stack: Stack, topic: str, kafka_partition: int, damaged: Try) -> None:
    """Produce a sound batch of as many bytes and records, and overwrite it behind the running broker's back."""
    size = len(damaged.batch)
    sound = next(batch for batch in _make_sound(len(damaged.records), size) if len(batch) == size)
    offset = send(address("kafka"), topic, kafka_partition, sound)
    (segment,) = (stack.local / "kafka" / "data" / f"{topic}-{kafka_partition}").glob("*.log")
    content = segment.read_bytes()
    at = 0
    while (fields := HEADER.unpack_from(content, at))[0] != offset:
        at += _BEFORE_EPOCH + fields[1]
    with segment.open("r+b") as file:
        file.seek(at + _AFTER_EPOCH)
        file.write(damaged.batch[_AFTER_EPOCH:])


def _make_sound(records: int, size: int) -> Iterator[bytes]:
    """Yield batches of about that many bytes: where a length takes a byte more, no value alone fits."""
    least = size - len(make_batch([RawRecord()] * records))
    for key in range(4):
        for pad in range(max(least - key - 8, 0), least + 1):
            yield make_batch([RawRecord()] * (records - 1) + [RawRecord(b"k" * key, b"x" * pad)])
