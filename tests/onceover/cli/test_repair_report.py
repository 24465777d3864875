from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from onceover.cli.repair_report import Result, describe_planned, describe_result
from onceover.detection.detect import Detection, FailedWindow
from onceover.detection.plan import PlannedRepair, RepairPlan
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.json_text import to_json
from onceover.model.windowing import Windowing
from onceover.repair.confirmation import Confirmation

Show = Callable[..., str]
HOURS = [Windowing(60).window_at(datetime(2013, 1, 1, hour, tzinfo=UTC)) for hour in range(3)]
NAMES = [str(window) for window in HOURS]
FOUND = (Finding(Kind.DUPLICATED, {"landings": [1, 2]}),)
DETECTION = Detection("things", 5, 2, tuple(FailedWindow(w, FOUND) for w in HOURS), 0, 0, 0, (), 7)
NOTHING = dataclasses.replace(DETECTION, failed=(), request_id=None)
CUT = Finding(Kind.TRUNCATED, {"end_and_stored": [["5f3a0b1c", 0, 90, 120]], "cut_from": [["5f3a0b1c", 0, 3]]})
DONE = Confirmation("things", 7, tuple(NAMES), (), (), (), (), (), 30, 330)


def hole(reason: str) -> Finding:
    return Finding(Kind.HOLE, {"gaps": [{"offsets": ["5f3a0b1c", 0, 3, 9], "reason": reason, "likely_windows": []}]})


def confirmed(*names: str, **changed: Any) -> Confirmation:
    return dataclasses.replace(DONE, confirmed=names, **changed)


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (Result(NOTHING), 0),
        (Result(DETECTION, DONE), 0),
        (Result(DETECTION, confirmed(*NAMES[:2], unneeded=((NAMES[2], "certified meanwhile"),))), 0),
        (Result(DETECTION, confirmed(*NAMES[:2], left=((NAMES[2], "being repaired by request:1"),))), 75),
        (Result(DETECTION, confirmed(*NAMES[:2], failed=((NAMES[2], "raw holds 1 of 2"),))), 1),
        (Result(DETECTION, confirmed(*NAMES[:2], newly_blocked=((NAMES[2], "raw holds 1 of 2"),))), 1),
        (Result(DETECTION, confirmed(*NAMES[:2], revoked=((NAMES[2], "re-read differs"),))), 1),
        (Result(DETECTION, confirmed(*NAMES[:2])), 75),
        (Result(DETECTION, confirmed(), spark_exit_code=75), 75),
        (Result(DETECTION, confirmed(), spark_exit_code=-9), 1),
        (Result(dataclasses.replace(NOTHING, waiting=1)), 75),
        (Result(dataclasses.replace(NOTHING, findings=(hole("lost"),))), 0),
        (Result(dataclasses.replace(NOTHING, judged=0, findings=(CUT,))), 0),
        (Result(dataclasses.replace(NOTHING, findings=(hole("expired"),))), 1),
    ],
)
def test_exit_code_says_how_the_repair_ended(result: Result, code: int) -> None:
    assert result.exit_code == code
    assert json.loads(to_json(result))["exit_code"] == code


def test_failed_window_is_shown_with_its_outcome(show: Show) -> None:
    shown = show(*describe_result(Result(DETECTION, confirmed(NAMES[0], failed=((NAMES[1], "raw holds 1 of 2"),)))))
    lines = shown.splitlines()
    assert [line.split()[:2] for line in lines[1:4]] == [
        [NAMES[0], "confirmed"],
        [NAMES[1], "failed"],
        [NAMES[2], "left"],
    ]
    assert "raw holds 1 of 2" in lines[2]


def test_repair_with_nothing_wrong_says_so(show: Show) -> None:
    shown = show(*describe_result(Result(NOTHING)))
    assert shown == "nothing to repair: 5 windows judged, 2 certified from the ledger\n"


def test_loss_that_waits_for_a_decision_is_shown_with_its_page(show: Show) -> None:
    shown = show(*describe_result(Result(dataclasses.replace(NOTHING, findings=(hole("expired"),)))))
    said = " ".join(shown.split())
    assert "5f3a0b1c-0:3-9 expired: Kafka no longer has them" in said.replace("5f3a0b1c-00000", "5f3a0b1c-0")
    assert "See `onceover holes things`." in said


def test_dry_run_reports_changes_and_which_only_raw_can_prove(show: Show) -> None:
    planned = (
        PlannedRepair(HOURS[0], FOUND, 60, 5944, 60, 30, 7),
        PlannedRepair(HOURS[1], (Finding(Kind.MISSING_FILE),), 10, 992, 10, None, 7),
    )
    shown = show(*describe_planned(RepairPlan("things", planned, 1)))
    assert [line.split()[:7] for line in shown.splitlines()[1:3]] == [
        [NAMES[0], "60", "5.9", "kB", "60", "30", "-30"],
        [NAMES[1], "10", "992", "bytes", "10", "-", "-"],
    ]
    assert "2 windows from 70 lines" in shown
    assert "Of 1 window the file is missing or too short" in " ".join(shown.split())
    assert "1 window left out: batches are landing" in shown
    assert shown.endswith("Nothing was written.\n")


def test_typed_reason_is_neither_markup_nor_a_control_character(show: Show) -> None:
    shown = show(*describe_result(Result(DETECTION, confirmed(failed=((NAMES[0], "[red]a\x1b[2Jb"),)))))
    assert "[red]a\\x1b[2Jb" in shown
    assert "\x1b" not in shown


def test_range_without_a_judged_window_names_the_states(show: Show) -> None:
    nothing = dataclasses.replace(NOTHING, judged=0)
    shown = show(*describe_result(Result(nothing, unjudged={"open": 1, "certified": 2})))
    said = " ".join(shown.split())
    assert "nothing to judge: of the windows of this range are 2 certified, 1 open; an open window is judged" in said
    shown = show(*describe_result(Result(nothing, unjudged={})))
    assert "this range has no window" in " ".join(shown.split())
