from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from onceover.cli import repair_run
from onceover.cli.commands import repair as command
from onceover.detection import detect as detecting
from onceover.detection.detect import Detection
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.repair import confirmation
from onceover.repair.confirmation import Confirmation

GAP = {"offsets": ["5f3a0b1c", 0, 3, 9], "reason": "expired", "likely_windows": []}
SEEN = Detection("events", 0, 0, (), 0, 0, 0, (Finding(Kind.HOLE, {"gaps": [GAP]}),), 7)


def test_hole_that_the_repair_closed_is_not_reported(monkeypatch: pytest.MonkeyPatch, show: Callable[..., str]) -> None:
    monkeypatch.setattr(command, "open_pipeline", lambda *_: nullcontext(SimpleNamespace(name="events")))
    monkeypatch.setattr(command, "resolve_range_until_now", lambda *_: None)
    monkeypatch.setattr(repair_run, "judge_range", lambda *_: None)
    monkeypatch.setattr(repair_run, "run_entry", lambda _: 0)
    monkeypatch.setattr(repair_run, "explain_holes", lambda *_: ())
    monkeypatch.setattr(detecting, "detect", lambda *_, **__: SEEN)
    done = Confirmation("events", 7, (), (), (), (), (), (), 0, 0)
    monkeypatch.setattr(confirmation, "confirm", lambda *_: done)
    answer = command.repair("events", "", "", reason="a test")
    assert "Offsets were skipped" not in show(*answer.parts)
