"""Who works on which windows, for a person at a terminal."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from onceover.cli.commands.take import describe, take
from onceover.errors import UsageError
from onceover.ledger.takings import Taking
from onceover.model.windowing import Windowing

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RANGE = {"start": "2026-03-01T12:00Z", "end": "2026-03-01T13:00Z"}


def test_list_shows_hostile_texts_and_obeys_none(show: Callable[..., str]) -> None:
    taking = Taking(NOON, NOON + timedelta(hours=1), 12, "kim", "\x1b[2J[bold]INC-1", "shift", NOON)

    lines = show(describe([taking], Windowing(60))).splitlines()
    assert lines[0].split() == ["from", "to", "windows", "by", "ticket", "since", "taken", "over", "because"]
    assert "\x1b" not in lines[1]
    assert "[2J[bold]INC-1" in lines[1]


def test_empty_list_is_said_in_words(show: Callable[..., str]) -> None:
    assert show(describe([], Windowing(60))) == "no window is taken\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ticket": "INC-1"}, "no windows are named"),
        ({"release": True}, "no windows are named"),
        ({"start": RANGE["start"], "ticket": "INC-1"}, "half a range"),
        ({**RANGE}, "either --ticket"),
        ({**RANGE, "ticket": "INC-1", "release": True}, "either --ticket"),
        ({**RANGE, "ticket": " "}, "a ticket is missing"),
        ({**RANGE, "ticket": "INC\x1b[2J"}, "cannot be shown"),
    ],
)
def test_request_that_cannot_be_meant_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        take("flights", **given)
