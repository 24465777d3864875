"""What a person decides in Airflow reaches the functions of the command line, with Airflow's user and the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from airflow.sdk import Context
from tests.dags.doubles import AirflowRun

from onceover.context import PipelineContext
from onceover.detection import future_range, holes
from onceover.errors import UsageError
from onceover.ledger import takings
from onceover.ledger.takings import Taking
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.window import WindowRange
from onceover.repair import revisions
from onceover_airflow.operators.decisions import AcceptLossOperator, RestoreOperator, TakeOperator

pytestmark = pytest.mark.airflow
FIVE = datetime(2013, 1, 1, 5, tzinfo=UTC)
SOURCE = KafkaPartition("1f2e3d4c", 0)
WHY = {"reason": " INC-42 "}
TIMES = {"from": "2013-01-01T05:00Z", "to": "2013-01-01T07:00Z"}


@dataclass
class Library:
    """A double of the functions that write decisions."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def accept_loss(
        self, context: PipelineContext, span: OffsetRange, windows: WindowRange, *by: str, **kind: bool
    ) -> tuple[tuple[OffsetRange, ...], list[datetime]]:
        self.calls.append((context.name, str(span), windows.start, windows.end, *by, kind))
        return (span,), [FIVE]

    def take(self, *arguments: Any) -> tuple[int, list[Taking]]:
        self.calls.append(arguments[1:])
        return 2, [Taking(FIVE, FIVE.replace(hour=7), 2, "bob", "INC-1", None, FIVE)]


@pytest.fixture
def library(project: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    stand_in = Library()
    monkeypatch.setattr(holes, "accept_loss", stand_in.accept_loss)
    monkeypatch.setattr(revisions, "restore_revision", stand_in.take)
    monkeypatch.setattr(takings, "take_windows", stand_in.take)
    monkeypatch.setattr(takings, "release_windows", stand_in.take)
    monkeypatch.setattr(PipelineContext, "ledger", None)
    monkeypatch.setattr(future_range, "read_last_end", lambda connection, pipeline: None)
    for name in ("require_own_root", "require_same_contract"):
        monkeypatch.setattr(PipelineContext, name, lambda context: None)
    monkeypatch.setattr(PipelineContext, "read_registration", lambda context: context)
    return stand_in


def context(**params: Any) -> Context:
    return cast(Context, {"dag_run": AirflowRun("a_decision"), "params": params})


@pytest.mark.parametrize("kind", ["expired", "unreadable"])
def test_loss_is_accepted_for_the_windows_of_the_form(library: Library, kind: str) -> None:
    operator = AcceptLossOperator(task_id="accept", pipeline="events")

    done = operator.execute(context(offsets="1f2e3d4c-0:1200-1300", kind=kind, **TIMES, **WHY))

    flags = {"unreadable": kind == "unreadable"}
    span = OffsetRange(SOURCE, 1200, 1300)
    assert library.calls == [("events", str(span), FIVE, FIVE.replace(hour=7), "ada", "INC-42", flags)]
    assert done == {"pipeline": "events", "offsets": 100, "ranges": 1, "reopened": 1}


def test_windows_are_taken_and_released_by_airflows_user(library: Library) -> None:
    operator = TakeOperator(task_id="take", pipeline="events")
    span = WindowRange(FIVE, FIVE.replace(hour=7))

    taken = operator.execute(context(ticket=" INC-42 ", reason=None, release=False, **TIMES))
    released = operator.execute(context(ticket=None, reason=" my  shift ", release=True, **TIMES))

    assert library.calls == [("events", span, "ada", "INC-42", None), ("events", span, "ada", "my shift")]
    assert taken == {"pipeline": "events", "taken": 2, "from": ["bob"]}
    assert released == {"pipeline": "events", "released": 2, "from": ["bob"]}


@pytest.mark.parametrize(
    ("operator", "params", "said"),
    [
        (RestoreOperator, {"window": "2013-01-01T05:00Z"}, "a restore needs a reason"),
        (RestoreOperator, {"window": "2013-01-01T05:01Z", **WHY}, "is not the start of a window"),
        (RestoreOperator, {"window": "2999-01-01T05:00Z", **WHY}, "in the future"),
        (RestoreOperator, {"window": "2013-01-01T05:00Z", "revision": "3; x", **WHY}, "'revision' is a str"),
        (RestoreOperator, {**WHY}, "'window' is missing"),
        (AcceptLossOperator, {"kind": 7, **WHY}, "'kind' is not a text"),
        (AcceptLossOperator, {"kind": "gone", **WHY}, "choose one of"),
        (TakeOperator, {"ticket": " ", **WHY}, "'ticket' is not a text"),
        (TakeOperator, {"ticket": "a\x1b[2Jb", **WHY}, "cannot be shown"),
        (TakeOperator, {"ticket": "x" * 101, **WHY}, "the limit is 100"),
        (TakeOperator, {"ticket": "INC-1", "release": "false", **WHY}, "'release' is a str"),
        (TakeOperator, {"ticket": "INC-1", **WHY}, "names no windows"),
        (AcceptLossOperator, {"kind": "expired", "offsets": "x", **WHY}, "x"),
        (AcceptLossOperator, {"kind": "expired", "offsets": "1f2e3d4c-0:1-2", **WHY}, "names no windows"),
    ],
)
def test_malformed_form_is_refused(library: Library, operator: Any, params: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        operator(task_id="form", pipeline="events").execute(context(**params))
    assert library.calls == []
