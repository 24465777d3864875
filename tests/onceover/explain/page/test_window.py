"""The first sentence about a window says what its readers see."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from onceover.explain.page.window import describe_window_shortly

ROWS = {"kind": "aggregate mismatch", "evidence": {"difference": "rows", "certified_rows": 3, "rows": 3}}
TWICE = {"kind": "duplicated", "evidence": {}}


@pytest.mark.parametrize(
    ("findings", "too_many", "seen"),
    [
        pytest.param([], 0, "readers see 63 records;", id="right"),
        pytest.param([TWICE], 5, "readers see 63 records, 5 too many;", id="too many"),
        pytest.param([TWICE], -5, "readers see 63 records, 5 too few;", id="too few"),
        pytest.param([TWICE], None, "wrong is unknown until raw is read;", id="unknown"),
        pytest.param([ROWS], 0, "readers see other rows than were certified;", id="rows changed by hand"),
    ],
)
def test_sentence_says_what_readers_see(findings: list[dict[str, Any]], too_many: int | None, seen: str) -> None:
    facts: Any = SimpleNamespace(
        rows={"window": {"records": 63, "log_until": None, "tries": 0}}, state="closed", findings=findings, judged=()
    )
    sentence = describe_window_shortly(facts, {"too_many": too_many}, None)
    assert seen in sentence
    assert sentence.startswith("Closed;")
