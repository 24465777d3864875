from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from onceover.cli.commands import holes as command
from onceover.model.gap import Gap, Reason
from onceover.model.offsets import KafkaPartition, OffsetRange

SOURCE = KafkaPartition("5f3a0b1c", 0)


def test_thousands_of_holes_are_counted_with_their_span(
    monkeypatch: pytest.MonkeyPatch, show: Callable[..., str]
) -> None:
    pipeline = SimpleNamespace(name="events", read_registration=lambda: None)
    gaps = tuple(Gap(OffsetRange(SOURCE, 3 * n, 3 * n + 1), Reason.EXPIRED) for n in range(5_000))
    monkeypatch.setattr(command, "open_pipeline", lambda *_: nullcontext(pipeline))
    monkeypatch.setattr(command, "probe_holes", lambda _: gaps)
    answer = command.holes("events")
    shown = show(*answer.parts)
    assert answer.code == 1
    assert "5f3a0b1c-0:297-298" in shown
    assert "5f3a0b1c-0:300-301" not in shown
    assert "and 4,900 more; --json lists all" in shown
    assert "expired, from the first to the last: 5f3a0b1c-0:0-14998" in shown
