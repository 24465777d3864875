"""Spare IDs, as the bytes of landings show which of their ranges' IDs they landed, and records beside those that landed
under another leader epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from tests.raw_lines import date_record, join_append

from onceover.ledger.landed_offsets import Covering, LandedBytes
from onceover.lines.line_format import compute_digest, encode
from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.digest import EMPTY, Digest
from onceover.model.log_history import NO_EPOCH, EpochSpan
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce
from onceover.model.rebuilt_window import RebuiltRange, RebuiltWindow
from onceover.model.record import Record
from onceover.raw.layout import Layout
from onceover.repair import folded
from onceover.repair.folded import find_beside, find_spare, read_landed
from onceover.repair.proof import list_doubtful

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
P0, P1 = KafkaPartition("0badcafe", 0), KafkaPartition("0badcafe", 1)
WHOLE = OffsetRange(P0, 0, 10)


def make_record(source: KafkaPartition, offset: int) -> Record:
    return Record(source, offset, 0, None, (), b"%d" % offset)


def make_lines(source: KafkaPartition, *offsets: int) -> list[bytes]:
    return [encode(date_record(make_record(source, n), 0)) for n in offsets]


def digest(source: KafkaPartition, *offsets: int) -> Digest:
    return compute_digest(make_record(source, n) for n in offsets)


DEAD = join_append(make_lines(P0, *range(10)))
OWN = join_append([*make_lines(P0, 3, 7, 8), *make_lines(P1, 40)])


class File:
    """The file of one window, in memory."""

    layout = Layout("/raw", "p")

    def __init__(self, content: bytes) -> None:
        self.content = content

    def read_bytes(self, path: str, start: int, end: int) -> Iterator[bytes]:
        assert path == self.layout.window_file(START)
        yield from [self.content[start:end]] if end <= len(self.content) else []


LANDED = LandedBytes(
    1, OffsetRange(P0, 0, 10), digest(P0, 3, 7, 8), START, len(DEAD), len(DEAD) + len(OWN), is_there=True
)
OTHER = replace(LANDED, offsets=OffsetRange(P1, 30, 50), digest=digest(P1, 40))


def read(content: bytes, *landings: LandedBytes) -> tuple[OffsetRange, ...]:
    file: Any = File(content)
    return coalesce(read_landed(file, landings))


def test_landings_bytes_show_its_ids_beside_a_dead_batchs() -> None:
    landed = (OffsetRange(P0, 3, 4), OffsetRange(P0, 7, 9), OffsetRange(P1, 40, 41))
    assert read(DEAD + OWN, LANDED, OTHER) == landed
    assert read(DEAD + OWN + DEAD, LANDED) == landed[:2]


@pytest.mark.parametrize(
    ("content", "landing"),
    [
        (DEAD + OWN[:-9], LANDED),
        (DEAD + OWN.replace(b"\t8\t", b"\t9\t"), LANDED),
        (OWN + DEAD, LANDED),
        (DEAD + OWN, replace(LANDED, digest=digest(P0, 7, 8, 9))),
        (DEAD + OWN, replace(LANDED, digest=digest(P0, 3, 6, 7, 8))),
        (DEAD + join_append([*make_lines(P0, 3, 3, 8), *make_lines(P1, 40)]), LANDED),
        (DEAD + OWN, replace(LANDED, is_there=False)),
    ],
    ids=["torn", "damaged", "moved", "others", "fewer", "twice", "expired"],
)
def test_bytes_that_are_not_whole_leave_the_range_to_the_landing(content: bytes, landing: LandedBytes) -> None:
    assert read(content, landing) == (landing.offsets,)


def test_ids_that_no_landing_of_the_window_holds_are_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = replace(LANDED, window_start=START + timedelta(hours=1))  # whose bytes would hold all
    covering = Covering((LANDED, elsewhere), (OffsetRange(P0, 5, 6),))
    monkeypatch.setattr(folded, "list_covering", lambda *_: covering)
    found = []
    for content in (DEAD + OWN, OWN):
        context: Any = SimpleNamespace(ledger=None, name="p", files=File(content))
        found.append(find_spare(context, START, [OffsetRange(P0, 2, 10)]))
    assert found == [tuple(OffsetRange(P0, a, b) for a, b in ((2, 3), (4, 5), (6, 7), (9, 10))), ()]


@pytest.mark.parametrize(
    ("held", "doubtful"),
    [
        (Digest(3, 7), ()),
        (Digest(2, 7), ()),  # lost, so nothing to take out
        (Digest(4, 7), (WHOLE,)),
        (Digest(3, 8), (WHOLE,)),
    ],
)
def test_offsets_with_other_records_than_landed_are_doubtful(held: Digest, doubtful: tuple[OffsetRange, ...]) -> None:
    landings = (ClaimedLanding(1, ((WHOLE, Digest(3, 7)),)),)
    claimed = ClaimedWindow(1, START, START + timedelta(hours=1), UUID(int=1), 1, landings, None)
    assert list_doubtful(claimed, RebuiltWindow(EMPTY, 0, 0, (RebuiltRange(WHOLE, held),))) == doubtful


def test_strays_that_landed_under_no_such_epoch_are_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    def span(start: int, end: int, epoch: int | None, source: KafkaPartition = P0) -> EpochSpan:
        return EpochSpan(OffsetRange(source, start, end), epoch)

    asked = []

    def list_spans(ledger: object, name: str, offsets: list[OffsetRange]) -> list[EpochSpan]:
        asked.append(offsets)
        return [span(0, 20, 1), span(15, 30, 2), span(0, 9, None, P1)]

    monkeypatch.setattr(folded, "list_landed_spans", list_spans)
    context: Any = SimpleNamespace(ledger=None, name="p")
    strays = (span(5, 25, 1), span(5, 25, 2), span(5, 6, NO_EPOCH), span(5, 12, 7, P1))
    rebuilt = RebuiltWindow(EMPTY, 0, 0, strays=strays)
    assert find_beside(context, rebuilt) == [span(20, 25, 1), span(5, 15, 2), span(9, 12, 7, P1)]
    assert find_beside(context, replace(rebuilt, strays=())) == []
    assert asked == [[each.offsets for each in strays]]
