"""Text is compacted only if a compacted file can hold what its certificate says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from onceover.compaction.job import _find_difference
from onceover.ledger.certificates import StoredCertificate
from onceover.ledger.compactions import CompactionDue
from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.digest import Digest
from onceover.model.log_history import EpochSpan
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.rebuilt_window import RebuiltRange, RebuiltWindow

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
WHOLE, HELD = OffsetRange(KafkaPartition("0badcafe", 0), 0, 2), Digest(2, 7)
LANDINGS = tuple(ClaimedLanding(n, ((WHOLE, HELD),), spans=(EpochSpan(WHOLE, n),)) for n in (1, 2))


def test_record_of_two_leader_epochs_keeps_a_window_as_text() -> None:
    claimed = ClaimedWindow(1, START, START + timedelta(hours=1), UUID(int=1), 1, LANDINGS, None)
    certified = StoredCertificate(claimed, (), HELD, 900, True, "raw", HELD)
    due, ranges = CompactionDue(START, HELD, 900), tuple(RebuiltRange(WHOLE, HELD, leader_epoch=n) for n in (1, 2))
    rebuilt = RebuiltWindow(HELD, 4, 900, ranges, repeated=2)
    assert _find_difference(due, certified, rebuilt) == (
        "2 records landed under two leader epochs, and a compacted file has one"
    )
    assert _find_difference(due, certified, replace(rebuilt, repeated=0)) is None
    more = replace(rebuilt, repeated=0, digest=Digest(3, 9))
    assert _find_difference(due, certified, more) == f"raw holds {Digest(3, 9)}, its certificate says {HELD}"
    lost = _find_difference(due, certified, replace(rebuilt, ranges=ranges[:1]))
    assert lost == f"raw differs from its certificate: landing 2: raw holds 0 of 2 of {WHOLE}"
