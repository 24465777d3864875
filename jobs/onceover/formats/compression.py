"""Values that the producer itself compressed, besides what Kafka compresses and every client undoes."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
import zstandard

from onceover.formats.undecodable import LARGEST, UndecodableError

_SLICE: Final = 256
"""Bytes that make 8 MiB at most: a block of zstd makes 128 KiB of 4 bytes."""


def decompress(value: bytes, codec: str) -> bytes:
    """Return the value as it was before `codec`, one of `model.contract.COMPRESSIONS`.

    Takes gzip's members, zstd's and LZ4's frames, each one or several, or one raw Snappy block. Raises UndecodableError
    for anything else, for what is cut off or has other bytes behind it, and for more than LARGEST bytes.
    """
    try:
        plain = _DECODERS[codec](value)
    except (OSError, ValueError, zlib.error, zstandard.ZstdError) as error:
        raise UndecodableError(f"not exactly a value of {codec}") from error
    if len(plain) > LARGEST:
        raise UndecodableError(f"more than {LARGEST >> 20} MiB without {codec}")
    return plain


def _read_gzip(value: bytes) -> bytes:
    return _read_frames(value, lambda: zlib.decompressobj(wbits=31))


def _read_zstd(value: bytes) -> bytes:
    return _read_frames(value, _ZSTD.decompressobj)


def _read_frames(value: bytes, begin: Callable[[], Any]) -> bytes:
    """Decompress slice by slice, so that a bomb makes no more than one too many, and what is left behind a frame is
    copied once."""
    parts: list[bytes] = []
    size, at, frame = 0, 0, None
    while (at < len(value) or not parts) and size <= LARGEST:
        frame = frame or begin()
        taken = value[at : at + _SLICE]
        parts.append(frame.decompress(taken))
        size, at = size + len(parts[-1]), at + len(taken)
        if frame.eof:
            at, frame = at - len(frame.unused_data), None
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
