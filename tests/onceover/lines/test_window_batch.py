"""Windows that are folded together give what each gives alone."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from tests.onceover.lines.test_folded_window import FORMATS, drop_doubtful
from tests.onceover.lines.world_accounts import make_accounts
from tests.onceover.lines.worlds import make_world

from onceover.lines.accounts import Accounts
from onceover.lines.disjoint_units import cut_units
from onceover.lines.folded_window import FoldedUnit, fold_units
from onceover.lines.window_batch import BatchPiece, fold_batch


def _cut(random: Random, texts: list[bytes]) -> Iterator[BatchPiece]:
    """Yield the texts in pieces of whole lines, of which each has the end of one window and the begin of the next."""
    held: list[tuple[int, bytes]] = []
    for number, text in enumerate(texts):
        for line in text.split(b"\n"):
            held.append((number, line + b"\n"))
            if random.random() < 0.1:
                yield _join(held)
                held = []
    if held:
        yield _join(held)


def _join(held: list[tuple[int, bytes]]) -> BatchPiece:
    windows, texts = zip(*held, strict=True)
    ends = [sum(len(text) + 1 for text in texts[: n + 1]) for n in range(len(texts))]
    return BatchPiece(memoryview(b"\n".join(texts)), windows, ends)


def _fold(text: bytes, accounts: Accounts) -> FoldedUnit | None:
    (unit,) = fold_units(cut_units(lambda: [(False, memoryview(text))], len(text)), accounts, FORMATS)
    return unit


@pytest.mark.parametrize("seed", range(12))
def test_windows_together_give_what_each_gives_alone(seed: int) -> None:
    random = Random(seed)
    worlds = [make_world(random, random.choice([3, 100]), random.choice([0, 5, 200])) for _ in range(5)]
    for world in worlds[:3]:
        drop_doubtful(world)
    texts = [b"\n".join([b"", *world.lines, *random.choice([[b"torn"], []])]) for world in worlds]
    accounts = [make_accounts(world) for world in worlds]
    together = fold_batch(_cut(random, texts), accounts, FORMATS)
    alone = [_fold(text, each) for text, each in zip(texts, accounts, strict=True)]
    assert [repr(each) for each in together.summaries] == [repr(each and each.summary) for each in alone]
    assert all(together.summaries[:3])
    rows = [(n, key) for n, each in enumerate(alone) if each for key in each.rows.column(0).to_pylist()]
    assert list(zip(together.window.tolist(), together.rows.column(0).to_pylist(), strict=True)) == rows


def test_batch_without_pieces_has_windows_without_lines() -> None:
    accounts = [make_accounts(make_world(Random(1), 3, 3))] * 2
    folded = fold_batch([], accounts, FORMATS)
    assert [summary and (summary.lines, summary.digest.records) for summary in folded.summaries] == [(0, 0), (0, 0)]
    assert folded.rows == FORMATS.schema.empty_table()
