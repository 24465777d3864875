"""Compressed values are read whole or refused, and never cost more memory than their bound."""

from __future__ import annotations

import gzip
import random
import time
import tracemalloc
import zlib
from collections.abc import Callable

import pyarrow as pa
import pytest
import zstandard

from onceover.formats.compression import decompress
from onceover.formats.undecodable import LARGEST, UndecodableError
from onceover.model.contract import COMPRESSIONS


def write_zstd_stream(value: bytes) -> bytes:
    """Compress as producers do that stream: the frame does not say how long its text is."""
    return zstandard.ZstdCompressor(write_content_size=False).compress(value)


def write_lz4(value: bytes) -> bytes:
    with pa.CompressedOutputStream(sink := pa.BufferOutputStream(), "lz4") as stream:
        stream.write(value)
    return bytes(sink.getvalue().to_pybytes())


def write_snappy(value: bytes) -> bytes:
    return bytes(pa.Codec("snappy").compress(value, asbytes=True))


WRITERS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("zstd", zstandard.ZstdCompressor().compress),
    ("zstd", write_zstd_stream),
    ("lz4", write_lz4),
    ("snappy", write_snappy),
]
each_writer = pytest.mark.parametrize(("codec", "write"), WRITERS)
each_joined = pytest.mark.parametrize(("codec", "write"), WRITERS[:-1])
TEXT = b'{"origin":"EWR","carrier":"UA","dep_delay":2}' * 20


def test_each_codec_of_a_contract_is_tried_here() -> None:
    assert {"none", *(codec for codec, _ in WRITERS)} == set(COMPRESSIONS)


@each_writer
def test_value_comes_back(codec: str, write: Callable[[bytes], bytes]) -> None:
    for text in (b"", b"x", TEXT, random.Random(3).randbytes(300_000), bytes(LARGEST)):
        assert decompress(write(text), codec) == text


@each_joined
def test_several_members_are_one_value(codec: str, write: Callable[[bytes], bytes]) -> None:
    assert decompress(write(TEXT) + write(b"") + write(b"end"), codec) == TEXT + b"end"


@each_writer
def test_value_that_is_cut_off_is_refused(codec: str, write: Callable[[bytes], bytes]) -> None:
    value = write(TEXT)
    for end in range(len(value)):
        with pytest.raises(UndecodableError, match=f"^not exactly a value of {codec}$"):
            decompress(value[:end], codec)


@each_writer
@pytest.mark.parametrize("more", [b"\0", b"x", b"\n", b"more than a header has"])
def test_bytes_behind_a_value_are_refused(codec: str, write: Callable[[bytes], bytes], more: bytes) -> None:
    with pytest.raises(UndecodableError):
        decompress(write(TEXT) + more, codec)


@each_writer
def test_bomb_is_refused_in_bounded_memory(codec: str, write: Callable[[bytes], bytes]) -> None:
    bomb = write(bytes(256 * 1024 * 1024))
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    with pytest.raises(UndecodableError, match=f"^more than 4 MiB without {codec}$"):
        decompress(bomb, codec)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 5 * LARGEST
    assert pa.total_allocated_bytes() == before


@each_writer
def test_one_byte_beyond_the_bound_is_refused(codec: str, write: Callable[[bytes], bytes]) -> None:
    with pytest.raises(UndecodableError, match=f"^more than 4 MiB without {codec}$"):
        decompress(write(bytes(LARGEST + 1)), codec)


@each_writer
def test_rubbish_is_refused_or_read_and_never_anything_else(codec: str, write: Callable[[bytes], bytes]) -> None:
    chance = random.Random(11)
    refused = 0
    for _ in range(2_000):
        value = bytearray(write(TEXT))
        for _ in range(chance.randint(1, 4)):
            value[chance.randrange(len(value))] = chance.randrange(256)
        try:
            decompress(bytes(value), codec)
        except UndecodableError:
            refused += 1

    assert refused > 500


@each_joined
def test_many_members_take_linear_time(codec: str, write: Callable[[bytes], bytes]) -> None:
    def count_seconds(value: bytes) -> float:
        begin = time.process_time()
        assert decompress(value, codec) == b""
        return time.process_time() - begin

    few = min(count_seconds(write(b"") * 4_000) for _ in range(3))

    assert count_seconds(write(b"") * 32_000) < 24 * few + 0.1


def test_snappy_says_no_more_than_it_has() -> None:
    for head in (
        b"\xff\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\xff\xff",
        b"\x80\x80\x80\x80\x80\x01",
        b"\x04",
        b"\x06",
        b"\x80",
    ):
        with pytest.raises(UndecodableError):
            decompress(head + b"\x10abcde", "snappy")


def test_gzip_is_not_zlib() -> None:
    with pytest.raises(UndecodableError):
        decompress(zlib.compress(TEXT), "gzip")
