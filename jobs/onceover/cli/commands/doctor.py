"""`onceover doctor`: reaches every part, names what is wrong and how to mend it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import entry_points

import typer

from onceover.cli import doctor as checks
from onceover.cli.arguments import AsJson
from onceover.cli.doctor import Outcome
from onceover.cli.exit_codes import FAILED, epilog
from onceover.cli.output import as_json, draw_table, err, say, styled
from onceover.config.pipelines import read_valid
from onceover.errors import OnceoverError
from onceover.model.pipeline import Pipeline

PATIENCE_SECONDS = 20.0
Look = Callable[[], Iterator[Outcome]]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=epilog(
            "onceover doctor",
            "onceover doctor --json",
            codes={0: "nothing is wrong", FAILED: "something is wrong; each line says how to mend it"},
        )
    )(doctor)


def doctor(json: AsJson = False) -> None:
    """Reach every part, name what is wrong and how to mend it.

    This machine: Java, installed packages, disk, ports. Whether clocks agree. Kafka, each pipeline's topic, how long
    that keeps records and whom it lets lead, stored offsets. HDFS, its safe mode, room and replication. PostgreSQL and
    the ledger's version. The Spark cluster. Airflow, its Spark connection and pool. Each pipeline's TOML, unfinished
    batches, holes and blocked windows. Changes nothing; ends in 20 s.
    """
    pipelines, outcomes = _pipelines()
    looks: dict[str, Look] = {
        "Java": checks.java,
        "packages": checks.pins,
        "disk": checks.disk,
        **_registered(),
        "clocks": checks.clocks,
        "Kafka": partial(checks.kafka, pipelines),
        "offsets": partial(checks.offsets, pipelines),
        "HDFS": partial(checks.hdfs, pipelines),
        "PostgreSQL": partial(checks.postgres, pipelines),
        "Spark": checks.spark,
        "Airflow": checks.airflow,
    }
    with err().status("looking ..."):
        found = [*side_by_side(looks, PATIENCE_SECONDS), *outcomes]
    if json:
        as_json([{"check": each.check, "state": each.state, "what": each.what} for each in found])
    else:
        show(found)
    if any(each.state == "wrong" for each in found):
        raise typer.Exit(FAILED)


def side_by_side(looks: dict[str, Look], patience: float) -> list[Outcome]:
    """Every look's outcomes, in order. One that does not end in time, or ends in a way nobody foresaw, is told as
    wrong; what it found before stays."""
    found: dict[str, list[Outcome]] = {name: [] for name in looks}
    ended: set[str] = set()
    threads = {
        name: threading.Thread(target=_run, args=(name, each, found[name], ended), name=name, daemon=True)
        for name, each in looks.items()
    }
    for thread in threads.values():
        thread.start()
    deadline = time.monotonic() + patience
    for name, thread in threads.items():
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            late = f"gave no answer within {patience:.0f} s; see whether it hangs, and its log"
            found[name] = [*found[name], Outcome(name, "wrong", late)]
        elif name not in ended:
            found[name].append(Outcome(name, "wrong", "could not be looked at to its end; report what stands above"))
    return [outcome for each in found.values() for outcome in each]


def _run(name: str, look: Look, into: list[Outcome], ended: set[str]) -> None:
    try:
        into.extend(look())
    except OnceoverError as error:
        into.append(Outcome(name, "wrong", str(error)))
    ended.add(name)  # not after another error, which Python prints with its stack


def _registered() -> dict[str, Look]:
    """Looks of other packages that are installed: the embedded stack's at its ports."""
    return {each.name: each.load() for each in entry_points(group="onceover.checks")}


def _pipelines() -> tuple[tuple[Pipeline, ...], list[Outcome]]:
    good, mistakes = read_valid()
    outcomes = [Outcome("pipelines", "wrong", str(mistake)) for mistake in mistakes]
    if not good and not mistakes:
        outcomes = [Outcome("pipelines", "note", "there is none; write a TOML into pipelines/")]
    elif not mistakes:
        outcomes = [Outcome("pipelines", "fine", ", ".join(p.name for p in good))]
    return good, outcomes


def show(found: Sequence[Outcome]) -> None:
    say(draw_table(["part", "state", "what"], ((each.check, styled(each.state), each.what) for each in found)))
    wrong = sum(each.state == "wrong" for each in found)
    say("nothing is wrong" if not wrong else f"{wrong} wrong")
