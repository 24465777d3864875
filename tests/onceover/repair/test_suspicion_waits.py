"""Why a suspicion waits, in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from onceover.ledger.suspicions import Suspicion
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.repair.suspicions import explain_wait

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("names", "declares"),
    [(["2026-03-01T12:00Z"], False), (["2026-03-01T12:00Z", "the quarantine of 2026-03-01"], True)],
)
def test_day_of_quarantine_that_lacks_lines_has_a_way_out(names: list[str], declares: bool) -> None:
    suspicion = Suspicion(OffsetRange(KafkaPartition("1f2e3d4c", 0), 0, 5), (NOON,))
    why = explain_wait("things", suspicion, names)
    assert all(name in why for name in names)
    assert ("`onceover retention things --adopt-missing --dry-run`" in why) is declares
