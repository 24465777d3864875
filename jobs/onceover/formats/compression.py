"""Values that the producer itself compressed, besides what Kafka compresses and every client undoes."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
import zstandard

from onceover.formats.undecodable import UndecodableError

LARGEST: Final = 8 * 1024 * 1024
"""Bytes of a value after decompression: a value of some kilobytes may say that it has gigabytes."""
_ZSTD_SLICE: Final = 256
"""Bytes that make 8 MiB at most: a block of 4 bytes makes 128 KiB."""


def decompress(value: bytes, codec: str) -> bytes:
    """Return the value as it was before `codec`, one of `model.contract.COMPRESSIONS`.

    Takes gzip's members, zstd's and LZ4's frames, each one or several, or one raw Snappy block. Raises UndecodableError
    for anything else, for what is cut off or has other bytes behind it, and for more than LARGEST bytes.
    """
    try:
        plain = _DECODERS[codec](value)
    except (OSError, ValueError, zlib.error, zstandard.ZstdError) as error:
        raise UndecodableError(f"not exactly a {codec} value") from error
    if len(plain) > LARGEST:
        raise UndecodableError(f"more than {LARGEST >> 20} MiB without {codec}")
    return plain


def _read_gzip(value: bytes) -> bytes:
    parts: list[bytes] = []
    while value or not parts:
        member = zlib.decompressobj(wbits=31)
        parts.append(member.decompress(value, LARGEST + 1))
        if sum(map(len, parts)) > LARGEST:
            break
        if not member.eof:
            raise ValueError("cut off")
        value = member.unused_data
    return b"".join(parts)


def _read_zstd(value: bytes) -> bytes:
    parts: list[bytes] = []
    size, at, frame = 0, 0, None
    while (at < len(value) or not parts) and size <= LARGEST:
        frame = frame or _ZSTD.decompressobj()
        parts.append(frame.decompress(value[at : at + _ZSTD_SLICE]))
        size, at = size + len(parts[-1]), at + _ZSTD_SLICE
        if frame.eof:
            at, frame = min(at, len(value)) - len(frame.unused_data), None
    if frame is not None and size <= LARGEST:
        raise ValueError("cut off")
    return b"".join(parts)


def _read_lz4(value: bytes) -> bytes:
    if not value:
        raise ValueError("empty")
    with pa.CompressedInputStream(pa.BufferReader(value), "lz4") as frames:
        return bytes(frames.read(LARGEST + 1))


def _read_snappy(value: bytes) -> bytes:
    """Decompress a raw block, which begins with the length of its text in groups of 7 bits, the lowest first."""
    size = 0
    for place, byte in enumerate(value[:5]):
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    if size > LARGEST:
        raise UndecodableError(f"more than {LARGEST >> 20} MiB without snappy")
    return bytes(_SNAPPY.decompress(value, size, asbytes=True))


_ZSTD: Final = zstandard.ZstdDecompressor()
_SNAPPY: Final = pa.Codec("snappy")
_DECODERS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "gzip": _read_gzip,
    "zstd": _read_zstd,
    "snappy": _read_snappy,
    "lz4": _read_lz4,
}
