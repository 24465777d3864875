from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import typer

from onceover.cli.commands import holes as command
from onceover.model.gap import Gap, Reason
from onceover.model.offsets import KafkaPartition, OffsetRange

SOURCE = KafkaPartition("5f3a0b1c", 0)


@contextmanager
def open_nothing(*_: str) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(name="events", read_registration=lambda: None)


def test_thousands_of_holes_are_counted_with_their_span(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gaps = tuple(Gap(OffsetRange(SOURCE, 3 * n, 3 * n + 1), Reason.EXPIRED) for n in range(5_000))
    monkeypatch.setattr(command, "open_pipeline", open_nothing)
    monkeypatch.setattr(command, "probe_holes", lambda _: gaps)
    with pytest.raises(typer.Exit):
        command.holes("events")
    shown = capsys.readouterr().out
    assert "5f3a0b1c-0:297-298" in shown
    assert "5f3a0b1c-0:300-301" not in shown
    assert "and 4,900 more ranges" in shown
    assert "expired, from the first to the last: 5f3a0b1c-0:0-14998" in shown
