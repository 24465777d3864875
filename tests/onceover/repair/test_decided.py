from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from tests.plain_pieces import split_ranges

from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.conflict import Contested, Decision
from onceover.model.digest import Digest, sum_digests
from onceover.model.finding_kinds import Kind
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.raw_file import CompactedFile
from onceover.model.rebuilt_window import DecidedContent, RebuiltRange, RebuiltWindow
from onceover.model.release import Release
from onceover.repair.proof import prove

START = datetime(2013, 1, 1, 5, tzinfo=UTC)
P0 = KafkaPartition("00000001", 0)


def of(start: int, end: int) -> OffsetRange:
    return OffsetRange(P0, start, end)


def record(offset: int, content: int = 0) -> Digest:
    return Digest(1, 1_000_000 * (content + 1) + offset)


def name(offset: int, content: int) -> str:
    """Return the hash of a content, which is its digest in hex digits."""
    return f"{record(offset, content).high1:08x}{0:024x}"


def records(*offsets: int, content: int = 0) -> Digest:
    return sum_digests(record(offset, content) for offset in offsets)


def content(offset: int, content: int, *, counts: bool) -> DecidedContent:
    return DecidedContent(of(offset, offset + 1), name(offset, content), counts)


def decide(offset: int, kept: int, newest: int | None = 1) -> Decision:
    return Decision(P0, offset, name(offset, kept), None if newest is None else name(offset, newest))


def judge(
    landed: Sequence[Digest], decisions: Sequence[Decision], contents: Sequence[DecidedContent], *, lost: bool = False
) -> tuple[str, ...]:
    """Prove a window of which each landing read offsets 0 to 9, and whose IDs 0 to 4 are not decided."""
    landings = tuple(ClaimedLanding(n, ((of(0, 10), digest),)) for n, digest in enumerate(landed))
    claimed = ClaimedWindow(
        7, START, START + timedelta(hours=1), UUID(int=1), 4, landings, None, decisions=tuple(decisions)
    )
    kept = {c.offsets: c.digest for c in contents if c.counts}
    ranges = tuple(
        RebuiltRange(piece, kept[piece] if piece in kept else records(*(range(1, 5) if lost else range(5))))
        for piece in split_ranges(landings, [d.offsets for d in decisions]).ranges
        if piece in kept or piece.start < 5
    )
    rebuilt = RebuiltWindow(20, 0, 0, 0, 0, 0, 0, 900, ranges=ranges, decided=tuple(contents))
    return prove(claimed, rebuilt).reasons


PLAIN = records(0, 1, 2, 3, 4)
NINE_OLD, NINE_NEW = record(9, 0), record(9, 1)


@pytest.mark.parametrize("kept", [0, 1])
def test_landing_may_hold_either_content_of_a_decided_id(kept: int) -> None:
    contents = [content(9, 0, counts=kept == 0), content(9, 1, counts=kept == 1)]
    assert judge([PLAIN + NINE_OLD, PLAIN + NINE_NEW], [decide(9, kept)], contents) == ()


def test_rejected_content_of_another_window_is_no_part_here() -> None:
    assert judge([PLAIN], [decide(9, 1)], []) == ()


def test_content_rejected_here_counts_in_its_landing_only() -> None:
    assert judge([PLAIN + NINE_OLD], [decide(9, 1)], [content(9, 0, counts=False)]) == ()


def test_lost_record_is_not_hidden_by_a_decided_one() -> None:
    contents = [content(9, 0, counts=False), content(8, 1, counts=True)]
    (reason,) = judge([PLAIN + NINE_OLD], [decide(9, 1), decide(8, 1)], contents, lost=True)
    assert "raw holds 4 of 6" in reason


def test_lost_content_of_a_decided_id_is_missed() -> None:
    (reason,) = judge([PLAIN + NINE_OLD], [decide(9, 0)], [])
    assert "raw holds 5 of 6" in reason


def judge_compacted(*landed: tuple[OffsetRange, Digest], contents: tuple[int, ...]) -> tuple[str, ...]:
    """Prove a window whose compacted file has IDs 0 to 4, and the kept content 1 of ID 9 if that is one of those of the
    window."""
    kept = [content(9, 1, counts=True)] if 1 in contents else []
    held = sum_digests([PLAIN, *(c.digest for c in kept)])
    decision = replace(decide(9, 1), contents=tuple(name(9, c) for c in contents))
    claimed = ClaimedWindow(
        7, START, START + timedelta(hours=1), UUID(int=1), 4,
        tuple(ClaimedLanding(n, (part,)) for n, part in enumerate(landed)), held, (decision,),
        CompactedFile(held, 1_000),
    )  # fmt: skip
    pieces = (RebuiltRange(of(0, 5), PLAIN), *(RebuiltRange(c.offsets, c.digest) for c in kept))
    rebuilt = RebuiltWindow(20, 0, 0, 0, 0, 0, 0, 0, ranges=pieces, decided=tuple(kept), compacted=held)
    return prove(claimed, rebuilt).reasons


def test_rejected_content_that_compaction_left_out_was_landed() -> None:
    old = (of(0, 10), PLAIN + NINE_OLD)
    assert judge_compacted(old, contents=(0,)) == ()
    assert judge_compacted(old, (of(8, 20), NINE_NEW), contents=(0, 1)) == ()


def test_other_lost_text_is_missed_beside_a_decided_id() -> None:
    """The lost text held 10, which landed after the window was compacted, with a range that has the decided 9."""
    old = (of(0, 10), PLAIN + NINE_NEW)
    (reason,) = judge_compacted(old, (of(9, 20), record(10)), contents=(1,))
    assert "raw holds 0 of 1" in reason
    (reason,) = judge_compacted(old, (of(9, 20), record(10)), contents=(0, 1))
    assert "raw holds 0 of 1" in reason


def test_rejected_content_of_a_release_leaves_it_proved() -> None:
    release = Release(90, 2, (of(7, 8), of(9, 10)))
    landing = ClaimedLanding(1, ((of(7, 10), record(7) + NINE_OLD),), release)
    claimed = ClaimedWindow(
        7, START, START + timedelta(hours=1), UUID(int=1), 4, (landing,), None, decisions=(decide(9, 1),)
    )
    held = RebuiltRange(of(7, 8), record(7), 90)
    rebuilt = RebuiltWindow(20, 0, 0, 0, 0, 0, 0, 900, (held,), decided=(content(9, 0, counts=False),))
    assert prove(claimed, rebuilt).is_proved
    (reason,) = prove(claimed, replace(rebuilt, ranges=())).reasons
    assert "raw holds 0 of 2" in reason, "7 is lost"
    (reason,) = prove(replace(claimed, decisions=(decide(8, 1),)), rebuilt).reasons
    assert "raw holds 1 of 2" in reason, "the release has no 8"


def test_thousands_of_decided_ids_are_split_by_the_logs_contents() -> None:
    offsets = range(1000, 3000)
    landings = (
        ClaimedLanding(1, ((of(0, 5000), PLAIN + records(*offsets)),)),
        ClaimedLanding(2, ((of(0, 5000), PLAIN + records(*offsets, content=1)),)),
    )
    contents = [content(o, c, counts=(o % 2 == c)) for o in offsets for c in (0, 1)]
    decisions = tuple(decide(o, o % 2) for o in offsets)
    claimed = ClaimedWindow(7, START, START + timedelta(hours=1), UUID(int=1), 4, landings, None, decisions=decisions)
    pieces = (RebuiltRange(of(0, 1000), PLAIN), *(RebuiltRange(c.offsets, c.digest) for c in contents if c.counts))
    rebuilt = RebuiltWindow(20, 0, 0, 0, 0, 0, 0, 900, ranges=pieces, decided=tuple(contents))
    assert prove(claimed, rebuilt).is_proved


def test_undecided_conflict_of_the_ledger_refuses_the_window() -> None:
    landing = ClaimedLanding(1, ((of(0, 5), PLAIN),))
    claimed = ClaimedWindow(7, START, START + timedelta(hours=1), UUID(int=1), 4, (landing,), None)
    rebuilt = RebuiltWindow(20, 0, 0, 0, 0, 0, 0, 900, ranges=(RebuiltRange(of(0, 5), PLAIN),))
    assert prove(claimed, rebuilt).is_proved
    verdict = prove(replace(claimed, contested=Contested(undecided=2)), rebuilt)
    assert (len(verdict.reasons), [f.kind for f in verdict.findings]) == (1, [Kind.CONFLICT])
    verdict = prove(replace(claimed, contested=Contested(suspected=2)), rebuilt)
    assert (verdict.is_proved, verdict.waits) == (False, True), "other contents of its IDs may be in other windows"
