"""Files cut into pieces of whole lines, whole or in splits, hold the lines that the file holds, each once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceover.lines.chunks import TOO_LONG, Fill, cut_lines, cut_text, find_line

FILES = [b"", b"\n", b"a", b"a\n", b"aaaa\nbbbbbbbb\ncccc\ndd", b"\n\nab\n\n\ncd\n", b"abcdefgh" * 3]


def _open(text: bytes, start: int, end: int) -> Fill:
    """Return a fill that fails the test when it is asked for a byte at or past `end`."""
    at = start

    def fill(view: memoryview) -> None:
        nonlocal at
        assert len(view) > 0
        assert at + len(view) <= end
        view[:] = text[at : at + len(view)]
        at += len(view)

    return fill


def _cut(text: bytes, start: int, end: int, chunk: int, longest: int = 1000) -> Iterator[bytes]:
    return map(bytes, cut_lines(_open(text, start, end), end - start, chunk, longest))


@pytest.mark.parametrize("text", FILES)
def test_pieces_are_whole_lines(text: bytes) -> None:
    for length in range(len(text) + 1):
        for chunk in range(1, 12):
            pieces = list(_cut(text, 0, length, chunk))
            assert b"".join(pieces) == text[:length], "nothing past the frozen length"
            assert all(piece[-1:] == b"\n" for piece in pieces[:-1])


@pytest.mark.parametrize("text", FILES)
def test_text_is_cut_into_whole_lines(text: bytes) -> None:
    for chunk in range(1, 12):
        pieces = list(map(bytes, cut_text(text, chunk)))
        assert b"".join(pieces) == text
        assert all(piece[-1:] == b"\n" for piece in pieces[:-1])
        assert all(len(piece) <= chunk or piece.find(b"\n") in (-1, len(piece) - 1) for piece in pieces)
        joined = [one + other for one, other in pairwise(pieces)]
        assert all(len(both) > chunk for both in joined), "pieces are as long as they may be"


@pytest.mark.parametrize("text", FILES)
def test_splits_at_every_byte_hold_each_line_once(text: bytes) -> None:
    length = len(text)
    for first in range(length + 1):
        for second in range(first, length + 1):
            bounds = [find_line(_open(text, at - 1, length), at, length, 2) for at in (0, first, second, length)]
            assert bounds == sorted(bounds)
            parts = [b"".join(_cut(text, a, b, 3)) for a, b in pairwise(bounds)]
            assert b"".join(parts) == text
            assert all(part[-1:] == b"\n" for part in parts[:-1] if part and text[-1:] == b"\n")
            starts = {0, *(n + 1 for n, byte in enumerate(text) if byte == ord("\n")), length}
            assert bounds[1] == min(n for n in starts if n >= first)


@given(st.lists(st.integers(0, 9), max_size=6), st.booleans(), st.integers(1, 4), st.integers(4, 9))
def test_longer_lines_are_one_corrupt_line_each(sizes: list[int], ended: bool, chunk: int, longest: int) -> None:
    lines = [bytes([ord("a") + n]) * size for n, size in enumerate(sizes)]
    text = b"\n".join(lines) + (b"\n" if ended else b"")
    pieces = list(_cut(text, 0, len(text), chunk, longest))
    found = [line for piece in pieces for line in piece.split(b"\n") if line]
    assert found == [line if len(line) <= longest else TOO_LONG for line in lines if line]
    assert all(len(piece) <= longest + chunk for piece in pieces)
