"""Confs of runs that hold anything, for every DAG: refused by Airflow, or by a task in one line before it reads the
ledger, or read as what they say."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.airflow_home import DAGS, make_project, name_airflow_home
from tests.dags.doubles import AirflowRun
from tests.hostile.canaries import require_harmless
from tests.hostile.texts import make_text, make_value
from tests.hostile.tries import few_or_all

from onceover.context import PipelineContext
from onceover.errors import UsageError

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag
    from airflow.sdk import Context

name_airflow_home()
pytestmark = pytest.mark.airflow
TRIES = 300
RUN = AirflowRun(
    data_interval_start=datetime(2013, 1, 1, tzinfo=UTC), data_interval_end=datetime(2013, 1, 2, tzinfo=UTC)
)
KNOWN = ["events", "orders"]
GOOD: dict[str, Any] = {
    "pipeline": "events", "from": "2013-01-01T05:00Z", "to": "2013-01-01T07:00Z", "window": "2013-01-01T05:00Z",
    "reason": "why not", "force": False, "dry_run": False, "plan": None, "offsets": "1f2e3d4c-0:1200-1300",
    "kind": "expired", "id": "all", "keep": "newest", "revision": None, "ticket": "INC-1", "release": False,
}  # fmt: skip


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's home with the pipelines `events` and `orders`."""
    return make_project(tmp_path_factory.mktemp("home"), monkeypatch)


@pytest.fixture
def dag_bag(home: Path) -> DagBag:
    """This repository's DAGs for these pipelines."""
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(DAGS)


class LedgerReachedError(Exception):
    """The task found nothing wrong and asks the ledger of this pipeline."""


def build_door(dag: str, params: dict[str, Any]) -> Any:
    """Return the task of a DAG that reads the conf first, as the DAG wires it."""
    from onceover_airflow.operators.audit import AskAuditOperator
    from onceover_airflow.operators.decisions import AcceptLossOperator, RestoreOperator, TakeOperator
    from onceover_airflow.operators.repair import DetectOperator
    from onceover_airflow.operators.reread import RereadOperator
    from onceover_airflow.operators.restate import RestateOperator
    from onceover_airflow.operators.retention import RollUpOperator
    from onceover_airflow.params import chosen_pipelines

    task: dict[str, Any] = {"task_id": "door", "pipeline": "{{ params.pipeline }}"}
    doors: dict[str, Any] = {
        "accept_loss": lambda: AcceptLossOperator(**task),
        "audit_against_log": lambda: AskAuditOperator(**task),
        "expire_raw": lambda: RollUpOperator(**{**task, "pipeline": "events"}),
        "repair_history": lambda: DetectOperator(
            **{**task, "pipeline": chosen_pipelines(params.get("pipeline"), KNOWN)[0]}, scope="run"
        ),
        "repair_on_call": lambda: DetectOperator(**task, scope="run", reason_needed=True),
        "reread_window": lambda: RereadOperator(**task),
        "restate_history": lambda: RestateOperator(**task),
        "restore_window": lambda: RestoreOperator(**task),
        "take_windows": lambda: TakeOperator(**task),
    }
    return doors[dag]()


def make_conf(number: int, names: list[str], file: str) -> dict[str, Any]:
    random = Random(f"conf {number}")
    conf = {name: GOOD[name] for name in names}
    for name in random.sample(names, min(len(names), random.choice((1, 1, 2, 9)))):
        conf[name] = make_value("confs", number * 20 + len(name), file)
    if random.random() < 0.2:
        conf[make_text("conf keys", number, file)] = make_value("conf values", number, file)
    return conf


def is_taken_by_airflow(dag: Any, conf: dict[str, Any]) -> bool:
    """Return whether Airflow makes a run of it, by the check that comes first in its API."""
    from airflow.sdk.exceptions import ParamValidationError

    params = copy.deepcopy(dag.params)
    try:
        params.update(conf)
        params.validate()
    except ParamValidationError:
        return False
    return True


def run_task(dag: str, conf: dict[str, Any]) -> None:
    context = cast("Context", {"dag_run": RUN, "params": conf})
    door = build_door(dag, conf)
    door.render_template_fields(context)
    door.execute(context)


def judge_task(dag: str, conf: dict[str, Any]) -> str | None:
    """Return what is wrong with how the task takes the conf, None if nothing."""
    try:
        run_task(dag, conf)
    except UsageError as error:
        said = str(error)
        return None if said.isprintable() and 10 <= len(said) <= 500 else f"said {said[:200]!r}"
    except LedgerReachedError as reached:
        wanted = "events" if dag == "expire_raw" else conf["pipeline"]
        asked = KNOWN if wanted == "every pipeline" else [str(wanted).strip()]
        return None if str(reached) in asked else f"asked the ledger of {reached}"
    except Exception as error:  # noqa: BLE001 - this is what a try looks for
        return f"{type(error).__name__}: {str(error)[:200]}"
    return "ended without the ledger"


@few_or_all(TRIES)
def test_conf_of_any_dag_is_refused_by_name_or_harmless(
    dag_bag: DagBag, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    def reach(context: PipelineContext) -> object:
        raise LedgerReachedError(context.name)

    monkeypatch.setattr(PipelineContext, "ledger", property(reach))
    dags = {name: sorted(dag.params) for name, dag in sorted(dag_bag.dags.items())}
    asking = [name for name, params in dags.items() if params]
    taken = dict.fromkeys(dags, 0)

    def attempt(number: int) -> str | None:
        dag = list(dags)[number % len(dags)]
        conf = make_conf(number, dags[dag] or ["reason"], str(tmp_path / "canary"))
        taken[dag] += is_taken_by_airflow(dag_bag.dags[dag], conf)
        wrong = judge_task(dag, conf) if dag in asking else None
        return f"{dag}, {conf!r}: {wrong}"[:500] if wrong else None

    for dag in asking:
        good = {name: GOOD[name] for name in dags[dag]}
        assert is_taken_by_airflow(dag_bag.dags[dag], good), dag
        with pytest.raises(LedgerReachedError, match="events"):
            run_task(dag, good)
    require_harmless(attempt, count, tmp_path, home)
    assert sum(taken[dag] for dag in asking) < count / 2, "Airflow refuses most of them before a run exists"
