"""A task reads the lines of small windows together: every byte of each, and those of no other one."""

from __future__ import annotations

from collections.abc import Generator
from itertools import pairwise
from random import Random
from threading import Event

import numpy as np
import pytest

from onceover.errors import TerminalError
from onceover.lines.accounts import Accounts
from onceover.lines.pieces import LandedRanges, cut_pieces
from onceover.lines.window_batch import BatchPiece
from onceover.raw.frozen_file import FrozenText
from onceover.spark.window_reading import WindowFile, cut_batches, read_batches

CHUNK = 300
_NONE = np.empty(0, np.int64)
ACCOUNTS = Accounts(0, 1, cut_pieces(LandedRanges(*[_NONE] * 6)), (), 0)


class Files:
    """Files in memory that come in pieces of whole lines; a broken one ends in an error."""

    def __init__(self, texts: dict[str, bytes], broken: str) -> None:
        self._texts, self._broken = texts, broken

    def read_lines(self, path: str, length: int, chunk: int) -> Generator[memoryview, None, None]:
        assert length == len(self._texts[path])
        for line in self._texts[path].splitlines(keepends=True):
            yield memoryview(line)
        if path == self._broken:
            raise TerminalError(f"{path} ends early")


def _split(piece: BatchPiece) -> list[tuple[int, bytes]]:
    bounds = [0, *piece.ends]
    return [(window, bytes(piece.text[a:b])) for window, (a, b) in zip(piece.windows, pairwise(bounds), strict=True)]


@pytest.mark.parametrize("seed", range(20))
def test_pieces_hold_the_lines_of_each_window_in_order(seed: int) -> None:
    random = Random(seed)
    texts: dict[str, bytes] = {}
    files: list[WindowFile] = []
    for n in range(8):
        for name in (f"/{n}", f"/{n}.zst"):
            lines = [
                b"%d-" % n + random.randbytes(random.randrange(60)).hex().encode()
                for _ in range(random.choice([0, 1, 9]))
            ]
            texts[name] = b"\n".join([*lines, random.choice([b"", b"torn"])])
        compacted = FrozenText(f"/{n}.zst", len(texts[f"/{n}.zst"])) if random.random() < 0.3 else None
        files.append(WindowFile(n, f"/{n}", len(texts[f"/{n}"]), ACCOUNTS, compacted))
    failures: dict[int, str] = {}
    found: dict[tuple[int, bool], list[bytes]] = {}
    windows: list[int] = []
    for batch, pieces in read_batches(Files(texts, "/3"), files, failures, CHUNK, CHUNK):
        for piece in pieces:
            assert len(piece.text) <= CHUNK + 120
            for number, text in _split(piece):
                windows.append(batch[number].window_ms)
                found.setdefault((windows[-1], piece.compacted), []).extend(text.split())
    assert windows == sorted(windows)
    assert failures == {3: "/3 ends early"}
    for file in files:
        n = file.window_ms
        assert found.get((n, False), []) == texts[file.path].split()
        wanted = texts[file.compacted.path].split() if file.compacted and n != 3 else []
        assert found.get((n, True), []) == wanted


def test_batches_have_the_given_weight_or_one_file() -> None:
    weights = [100, 200, 1, 500, 0, 300, 299, 0, 2]
    files = [WindowFile(n, f"/{n}", weight, ACCOUNTS) for n, weight in enumerate(weights)]
    batches = [[file.length for file in batch] for batch in cut_batches(files, CHUNK)]
    assert batches == [[100, 200], [1], [500], [0, 300], [299, 0], [2]]


def test_next_piece_is_read_while_one_is_folded() -> None:
    texts = {f"/{n}": b"x" * CHUNK for n in range(3)}
    files = [WindowFile(n, f"/{n}", CHUNK, ACCOUNTS) for n in range(3)]
    opened = {path: Event() for path in texts}

    class Reader(Files):
        def read_lines(self, path: str, length: int, chunk: int) -> Generator[memoryview, None, None]:
            opened[path].set()
            yield from super().read_lines(path, length, chunk)

    read = read_batches(Reader(texts, ""), files, {}, CHUNK, CHUNK)
    _, pieces = next(read)
    assert len(list(pieces)) == 1
    next(read)
    assert opened["/1"].wait(10), "before its pieces are asked for"
    read.close()
    assert not opened["/2"].is_set()
