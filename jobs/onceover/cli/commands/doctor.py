"""`onceover doctor`: checks of every service, each problem with its remedy."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import entry_points

from onceover.cli import doctor as checks
from onceover.cli.arguments import NO_PIPELINE
from onceover.cli.command import command
from onceover.cli.doctor import Outcome
from onceover.cli.exit_codes import FAILED
from onceover.cli.output import Answer, Table, get_stderr
from onceover.config.pipelines import read_valid
from onceover.errors import OnceoverError
from onceover.model.pipeline import Pipeline
from onceover.model.wording import pluralize

PATIENCE_SECONDS = 20.0
Check = Callable[[], Iterator[Outcome]]


@command(
    "onceover doctor",
    "onceover doctor --json",
    codes={0: "no problem was found", FAILED: "a problem was found; each line says how to fix it"},
)
def doctor() -> Answer:
    """Check every service and pipeline; name each problem and how to fix it.

    This machine: Java, installed packages, disk, ports. Clocks: whether they agree. Kafka: each topic's retention and
    leader election, stored offsets. HDFS: safe mode, free space, replication, synced appends, block scanner, the owner
    of each raw root. PostgreSQL: the ledger's version. Schema registry: whether it answers. Spark: the cluster.
    Airflow: its processes, Spark connection and pool. Pipelines: TOML, a dead or stalled ingest, holes, blocked
    windows. Changes nothing; ends within 20 s.
    """
    pipelines, outcomes = _check_pipelines()
    named_checks: dict[str, Check] = {
        "Java": checks.check_java,
        "packages": checks.check_pins,
        "disk": checks.check_disk,
        **_load_registered(),
        "clocks": checks.check_clocks,
        "Kafka": partial(checks.check_kafka, pipelines),
        "offsets": partial(checks.check_offsets, pipelines),
        "HDFS": partial(checks.check_hdfs, pipelines),
        "roots": partial(checks.check_roots, pipelines),
        "PostgreSQL": partial(checks.check_postgres, pipelines),
        "registry": partial(checks.check_registry, pipelines),
        "Spark": checks.check_spark,
        "Airflow": checks.check_airflow,
    }
    with get_stderr().status("checking ..."):
        outcomes = [*run_checks(named_checks, PATIENCE_SECONDS), *outcomes]
    states = Counter(each.state for each in outcomes)
    wrong, notes = states["wrong"], pluralize(states["note"], "note")
    return Answer(
        outcomes,
        [
            Table(outcomes, ("part", "check"), "state", "what", most=None),
            f"{wrong} wrong, {notes}" if wrong else f"nothing is wrong, {notes}",
        ],
        FAILED if wrong else 0,
    )


def run_checks(named_checks: dict[str, Check], patience: float) -> list[Outcome]:
    """Run the checks in threads and return their outcomes, in order. A check that exceeds `patience` seconds or raises
    an unexpected error gets an outcome `wrong` after those that it has yielded."""
    outcomes: dict[str, list[Outcome]] = {name: [] for name in named_checks}
    ended: set[str] = set()
    threads = {
        name: threading.Thread(target=_run, args=(name, check, outcomes[name], ended), name=name, daemon=True)
        for name, check in named_checks.items()
    }
    for thread in threads.values():
        thread.start()
    deadline = time.monotonic() + patience
    for name, thread in threads.items():
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            late = f"gave no answer within {patience:.0f} s; check whether it hangs, and its log"
            outcomes[name] = [*outcomes[name], Outcome(name, "wrong", late)]
        elif name not in ended:
            outcomes[name].append(Outcome(name, "wrong", "the check itself crashed; report the traceback above"))
    return [outcome for each in outcomes.values() for outcome in each]


def _run(name: str, check: Check, into: list[Outcome], ended: set[str]) -> None:
    try:
        into.extend(check())
    except OnceoverError as error:
        into.append(Outcome(name, "wrong", str(error)))
    ended.add(name)  # after another error it stays out, and Python prints the traceback


def _load_registered() -> dict[str, Check]:
    """Return the checks that other installed packages register, like the embedded stack's of its ports."""
    return {point.name: point.load() for point in entry_points(group="onceover.checks")}


def _check_pipelines() -> tuple[tuple[Pipeline, ...], list[Outcome]]:
    good, mistakes = read_valid()
    outcomes = [Outcome("pipelines", "wrong", str(mistake)) for mistake in mistakes]
    if not good and not mistakes:
        outcomes = [Outcome("pipelines", "note", NO_PIPELINE)]
    elif not mistakes:
        outcomes = [Outcome("pipelines", "fine", ", ".join(p.name for p in good))]
    return good, outcomes
