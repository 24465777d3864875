"""Open and expired windows that a repair searches for orphans: blocked ones only once a person names them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from onceover.detection import searchable_windows
from onceover.detection.look import Judgement, Look
from onceover.detection.unexplained_files import UnexplainedFile
from onceover.ledger.file_lengths import ExpectedFile
from onceover.model.digest import Digest
from onceover.model.finding import Evidence, judge_window
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.window import WindowRange

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
OPEN, OPEN_BLOCKED, EXPIRED, EXPIRED_BLOCKED, CERTIFIED = (NOON + timedelta(minutes=5 * n) for n in range(5))
LOST = OffsetRange(KafkaPartition("0a1b2c3d", 0), 5, 10)


def judge(start: datetime) -> Judgement:
    """Return the judgement of an open window whose file has 50 bytes that no landing accounts for."""
    evidence = Evidence(start, start, 1, Digest(), None, None, 0, Digest(), 100, (), 0, (), (), ())
    return Judgement(evidence, 150, judge_window(evidence, 150))


def make_file(start: datetime, *, is_expired: bool, is_blocked: bool = False) -> UnexplainedFile:
    return UnexplainedFile(ExpectedFile(start, 0, False, not is_expired, is_expired, is_blocked), 50)


@pytest.fixture(autouse=True)
def ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    look = Look((judge(OPEN), judge(OPEN_BLOCKED)), 0, (), frozenset(), (), frozenset({OPEN_BLOCKED}), {}, 2)
    monkeypatch.setattr(searchable_windows, "judge_windows", lambda *_, **__: look)
    monkeypatch.setattr(searchable_windows, "was_read_for_orphans", lambda *_: False)


def find(window_range: WindowRange | None, *lost: OffsetRange) -> list[datetime]:
    files = [
        make_file(EXPIRED, is_expired=True),
        make_file(EXPIRED_BLOCKED, is_expired=True, is_blocked=True),
        make_file(CERTIFIED, is_expired=False),
    ]
    context: Any = type("Context", (), {"ledger": None, "name": "flights", "files": None})
    return list(searchable_windows.find_searchable_windows(context, lost, window_range, files))


def test_schedule_searches_windows_that_are_not_blocked() -> None:
    assert find(None, LOST) == [OPEN, EXPIRED]


def test_person_has_blocked_windows_searched() -> None:
    hour = WindowRange(NOON, NOON + timedelta(hours=1), 5)
    assert find(hour, LOST) == [OPEN, OPEN_BLOCKED, EXPIRED, EXPIRED_BLOCKED]


def test_no_window_is_searched_without_an_expired_hole() -> None:
    assert find(None) == []
