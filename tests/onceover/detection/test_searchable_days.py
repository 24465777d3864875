"""Days of quarantine that only lines beyond the end of a log leave unexplained wait until those can be judged."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from onceover.detection import searchable_days
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.own_offsets import find_own_offsets

LOG, OTHER = KafkaPartition("0a1b2c3d", 0), KafkaPartition("0a1b2c3d", 1)
WAITING, NEW = date(2026, 3, 1), date(2026, 3, 2)
FIRSTS = [OffsetRange(LOG, 7, 8), OffsetRange(OTHER, 3, 4)]


@pytest.mark.parametrize(
    ("held", "is_searched"),
    [
        ((OffsetRange(LOG, 0, 7), OffsetRange(OTHER, 0, 3)), False),
        ((OffsetRange(LOG, 0, 8), OffsetRange(OTHER, 0, 3)), True),
        ((OffsetRange(LOG, 8, 9), OffsetRange(OTHER, 0, 3)), True),
        ((OffsetRange(KafkaPartition("4e5f6a7b", 0), 0, 1),), True),
        ((), True),
        (None, False),
    ],
    ids=[
        "no log reached one",
        "one log reached one",
        "it has expired",
        "recreated topic",
        "deleted topic",
        "no answer",
    ],
)
def test_day_waits_until_a_log_reaches_a_line(
    monkeypatch: pytest.MonkeyPatch, held: tuple[OffsetRange, ...] | None, is_searched: bool
) -> None:
    context: Any = SimpleNamespace(ledger=None, name="things", read_held=lambda _: held)
    days = {WAITING: FIRSTS, NEW: ()}
    monkeypatch.setattr(searchable_days, "list_searchable_days", lambda *_: dict(days))
    monkeypatch.setattr(
        searchable_days, "read_own_offsets", lambda _, held: find_own_offsets({LOG: 5, OTHER: 3}, (), held)
    )
    assert searchable_days.find_searchable_days(context, {}) == ([WAITING] if is_searched else []) + [NEW]
