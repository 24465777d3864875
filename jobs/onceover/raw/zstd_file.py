"""A compacted window's file: its lines in zstd frames, which any zstd tool reads, and the table of these frames.

    frame ... frame, each some MiB of whole lines | a skippable frame: stored size, text size and hash of each frame

The table is that of zstd's seekable format (zstd's `contrib/seekable_format`), so that a file is cut at its frames
between tasks. A frame's hash is the lower half of its text's XXH64.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing
from typing import Final

import numpy as np
import pyarrow as pa
import xxhash

from onceover.errors import TerminalError
from onceover.lines.chunks import CHUNK, LONGEST, cut_text
from onceover.raw.store import Reading

FRAME: Final = 16 * 1024 * 1024
"""Bytes of text in a frame, but for a line that is longer."""

_LEVEL: Final = 9
_MOST: Final = max(FRAME, LONGEST + 1)
_TAIL: Final = 1024 * 1024  # read first: the table of 87,000 frames, and a small file whole
_HEADER, _FOOTER = struct.Struct("<II"), struct.Struct("<IBI")
_SKIPPABLE, _SEEKABLE, _HAS_HASHES = 0x184D2A5E, 0x8F92EAB1, 0x80
_ENTRY: Final = np.dtype([("stored", "<u4"), ("text", "<u4"), ("hash", "<u4")])

Open = Callable[[str, int, int], Reading]
"""Opens the bytes `[start, end)` of a file, as `RawStore.open` does."""


def compress_lines(text: Iterable[memoryview]) -> Iterator[bytes]:
    """Yield the file that holds this text, which comes in any pieces. Memory holds a frame, and a piece."""
    codec = pa.Codec("zstd", compression_level=_LEVEL)
    entries: list[tuple[int, int, int]] = []
    for whole in _fill_frames(text):
        stored = codec.compress(whole, asbytes=True)
        entries.append((len(stored), len(whole), _hash(whole)))
        yield stored
    table = np.array(entries, _ENTRY).tobytes()
    footer = _FOOTER.pack(len(entries), _HAS_HASHES, _SEEKABLE)
    yield _HEADER.pack(_SKIPPABLE, len(table) + len(footer)) + table + footer


def read_frames(
    open_file: Open, path: str, length: int, start: int = 0, end: int | None = None, chunk: int = CHUNK
) -> Generator[memoryview, None, None]:
    """Yield the lines of the frames that begin in `[start, end)` of a file of that length, all by default, as
    `cut_text` does. Memory holds a frame.

    Raise TerminalError, which names the file, for what `compress_lines` did not write, and what `Reading` raises.
    """
    tail_at = max(length - _TAIL, 0)
    tail = bytearray(length - tail_at)
    if tail:
        with closing(open_file(path, tail_at, length)) as reading:
            reading.fill(memoryview(tail))
    try:
        frames = _read_table(tail, length)
    except ValueError as error:
        raise _report(path, error) from None
    ends = np.cumsum(frames["stored"], dtype=np.int64)
    begins = ends - frames["stored"]
    chosen = np.flatnonzero((begins >= start) & (begins < (length if end is None else end)))
    if not len(chosen):
        return
    first, after = int(begins[chosen[0]]), int(ends[chosen[-1]])
    codec = pa.Codec("zstd")
    with ExitStack() as opened:
        fill: Callable[[memoryview], object] = io.BytesIO(tail[max(first - tail_at, 0) :]).readinto
        if first < tail_at:
            fill = opened.enter_context(closing(open_file(path, first, after))).fill
        for number in chosen.tolist():
            stored_size, text_size, written = frames[number].tolist()
            stored = bytearray(stored_size)
            fill(memoryview(stored))
            try:
                text = codec.decompress(stored, text_size, asbytes=True)
            except OSError as error:
                raise _report(path, error, number) from error
            if _hash(text) != written:
                raise _report(path, "its hash differs", number)
            yield from cut_text(text, chunk)


def _fill_frames(text: Iterable[memoryview]) -> Iterator[bytes]:
    """Yield the text cut after newlines, in pieces of at most FRAME, or one line that is longer."""
    held = bytearray()
    for piece in text:
        held += piece
        while len(held) > FRAME:
            cut = held.rfind(b"\n", 0, FRAME) + 1 or held.find(b"\n", FRAME) + 1
            if not cut:
                break
            yield bytes(held[:cut])
            del held[:cut]
    if held:
        yield bytes(held)


def _read_table(tail: bytearray, length: int) -> np.ndarray:
    """Return the frames' entries from the end of a file. Raise ValueError for a table that cannot be the file's."""
    if len(tail) < _HEADER.size + _FOOTER.size:
        raise ValueError("it has no table of frames")
    count, kind, magic = _FOOTER.unpack_from(tail, len(tail) - _FOOTER.size)
    size = _HEADER.size + count * _ENTRY.itemsize + _FOOTER.size
    if (kind, magic) != (_HAS_HASHES, _SEEKABLE) or size > len(tail):
        raise ValueError("it has no table of frames")
    at = len(tail) - size
    frames = np.frombuffer(tail, _ENTRY, count, at + _HEADER.size)
    if (
        _HEADER.unpack_from(tail, at) != (_SKIPPABLE, size - _HEADER.size)
        or int(frames["stored"].sum(dtype=np.int64)) + size != length
        or (count and min(frames["stored"].min(), frames["text"].min()) == 0)
        or (count and max(frames["stored"].max() // 2, frames["text"].max()) > _MOST)
    ):
        raise ValueError("its table of frames is another file's")
    return frames


def _hash(text: bytes) -> int:
    return xxhash.xxh64_intdigest(text) & 0xFFFFFFFF


def _report(path: str, why: object, frame: int | None = None) -> TerminalError:
    where = "" if frame is None else f"frame {frame}: "
    return TerminalError(
        f"{path} is not as compaction wrote it: {where}{why}; put it back where `onceover explain` says"
    )
