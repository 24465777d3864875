"""The story, chapter by chapter: replay, crash twice, look, repair, compare, repair again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.columns import Columns
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from onceover.config.endpoints import address
from onceover.errors import TransientError
from onceover.fault_points import Step
from onceover.ledger.migrate import upgrade_schema
from onceover.model.finding_kinds import Kind
from onceover_demo import flights, ledger_facts, oracle
from onceover_demo.place import print_part
from onceover_demo.supervised import SupervisedJob
from onceover_local.airflow_rest import AirflowRest
from onceover_local.stack.stack import Stack

DAG = "repair_failed_windows"
PATIENCE_SECONDS = 900.0  # for a machine whose cores others use as well; what is waited for takes about a minute
# Which crash, and after which batch of the process that it hits.
CRASHES = ((Step.APPENDED, 2), (Step.INCREMENTED, 2))


@dataclass(slots=True)
class Told:
    """All numbers of one run of the demo, as the report holds them."""

    flights: int = 0
    oracle_rows: int = 0
    oracle_windows: int = 0
    ingest: Mapping[str, int] = field(default_factory=dict)
    crashes: list[dict[str, object]] = field(default_factory=list)
    before: dict[str, int] = field(default_factory=dict)
    detection: dict[str, Any] = field(default_factory=dict)
    confirmation: dict[str, Any] = field(default_factory=dict)
    findings: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    after: dict[str, int] = field(default_factory=dict)
    late_without_spark: int = 0
    states: Mapping[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    checks: dict[str, bool] = field(default_factory=dict)

    @property
    def is_right(self) -> bool:
        return bool(self.checks) and all(self.checks.values())


class Story:
    """One run of the demo on a stack of its own, which it stops again."""

    def __init__(self, console: Console, stack: Stack) -> None:
        self._console, self._stack, self.told = console, stack, Told()
        self._oracle = oracle.expected(flights.csv_rows())
        self.told.oracle_rows = len(self._oracle)
        self.told.oracle_windows = len({key[0] for key in self._oracle})
        self._wrong_windows: frozenset[int] = frozenset()
        self._repaired: frozenset[int] = frozenset()

    def tell(self) -> Told:
        """Every chapter in order; raises what goes wrong in one."""
        self._chapter("start", "Start Kafka, HDFS and PostgreSQL", self._start)
        self._chapter("replay", "Replay January 2013's flights in order of departure", self._replay)
        self._chapter("ingest", "Ingest them, and kill it twice", self._ingest)
        self._chapter("airflow", "Start Airflow", self._start_airflow)
        self._chapter("repair", f"Airflow runs {DAG}", self._repair)
        self._chapter("again", "Run the repair again", self._repair_again)
        return self.told

    def _chapter(self, name: str, title: str, act: Callable[[], None]) -> None:
        self._console.rule(f"[bold]{title}", align="left")
        started = time.monotonic()
        act()
        self.told.seconds[name] = round(time.monotonic() - started, 1)
        self._console.print(f"[dim]{self.told.seconds[name]:.1f} s")

    def _start(self) -> None:
        self._stack.up(("kafka", "hdfs", "postgres"), say=print_part(self._console))
        upgrade_schema(address("postgres"))

    def _replay(self) -> None:
        month = flights.january()
        self.told.flights = len(month)
        flights.create_topic(address("kafka"))
        with _progress(self._console) as progress:
            bar = progress.add_task("flights", total=len(month))
            flights.produce(address("kafka"), month, lambda sent: progress.update(bar, completed=sent))
        self._console.print(
            f"{len(month):,} flights in topic [bold]{flights.TOPIC}[/], {flights.KAFKA_PARTITIONS} Kafka partitions; "
            "event time is the scheduled departure"
        )

    def _ingest(self) -> None:
        postgres = address("postgres")
        ingest = SupervisedJob("ingest.py", ["--pipeline", "flights"], self._stack.local / "log" / "ingest.log")
        with _progress(self._console) as progress:
            bar = progress.add_task("lines landed", total=self.told.flights)

            def tick() -> None:
                progress.update(bar, completed=min(self.told.flights, ledger_facts.totals(postgres)["lines"]))

            try:
                for step, batch in CRASHES:
                    ingest.start(stop_after=step, count=batch)
                    ingest.wait_until_held(PATIENCE_SECONDS)
                    ingest.kill()
                    self.told.crashes.append({"after": str(step), "at": datetime.now(UTC).isoformat()})
                    progress.console.print(f"SIGKILL after [bold]{step}[/], before the next step; started again")
                ingest.start()
                _wait(
                    lambda: ledger_facts.everything_closed(postgres),
                    PATIENCE_SECONDS,
                    "ingest to read everything",
                    tick,
                )
                code = ingest.stop()
                self.told.checks["ingest stops cleanly on SIGTERM"] = code == 0
            except TransientError as error:
                raise TransientError(f"{error}; ingest's last words: {ingest.last_words()}") from error
            finally:
                ingest.close()
        self._look_before(postgres)

    def _look_before(self, postgres: str) -> None:
        self.told.ingest = ledger_facts.totals(postgres)
        difference = oracle.compare(ledger_facts.aggregates(postgres), self._oracle)
        self._wrong_windows = difference.wrong_windows
        self.told.before = _numbers(difference)
        self._console.print(
            f"{self.told.ingest['landed']} batches landed, {self.told.ingest['superseded']} superseded by the crashes; "
            f"[bold]{self.told.ingest['late']:,}[/] records arrived after their window had closed"
        )
        self._console.print(
            f"[red]{len(self._wrong_windows)} windows are wrong now[/]: {difference.surplus:+,} flights in all, up to "
            f"{difference.largest_error} in one row"
        )
        self.told.checks["the crashes made windows wrong"] = bool(self._wrong_windows)
        self.told.checks["nothing was quarantined"] = self.told.ingest["quarantined"] == 0

    def _start_airflow(self) -> None:
        self._stack.up(say=print_part(self._console))

    def _repair(self) -> None:
        airflow = self._airflow()
        airflow.wait_for_dag(DAG, PATIENCE_SECONDS)
        # It is on schedule: whichever run comes first, the scheduler's or ours, does the work.
        airflow.trigger(DAG)
        runs = self._wait_for_runs(airflow)
        results = [self._results(airflow, run) for run in runs]
        worked = [r for r in results if r[0].get("request_id") is not None]
        self.told.checks["one run repaired, in one Spark application"] = len(worked) == 1
        self.told.detection, self.told.confirmation, self.told.seconds["repair DAG"] = (
            worked[0] if worked else results[0]
        )
        named = _starts(failed["window"] for failed in self.told.detection["failed"])
        self._repaired = _starts(self.told.confirmation["confirmed"])
        self.told.checks["every wrong window was found"] = self._wrong_windows <= named
        self._console.print(
            f"{self.told.detection['judged']} windows judged, {self.told.detection['certified']} certified from the "
            f"ledger without Spark, [bold]{len(named)}[/] failed. The evidence for each (all of it is in the report):"
        )
        cells = [
            f"{failed['window'][5:16].replace('T', ' ')} {_evidence(failed)}"
            for failed in self.told.detection["failed"]
        ]
        self._console.print(Columns(cells, padding=(0, 2), column_first=True))
        self._look_after(address("postgres"))

    def _look_after(self, postgres: str) -> None:
        difference = oracle.compare(ledger_facts.aggregates(postgres), self._oracle)
        self.told.after = _numbers(difference)
        self.told.states = ledger_facts.windows_by_state(postgres)
        self.told.findings = ledger_facts.findings(postgres)
        certified = sum(n for state, n in self.told.states.items() if state.startswith("certified"))
        last_kill = datetime.fromisoformat(str(self.told.crashes[-1]["at"]))
        self.told.seconds["last kill to certified"] = round((datetime.now(UTC) - last_kill).total_seconds(), 1)
        self.told.checks["no finding is left"] = not any(now for _, now in self.told.findings.values())
        flown = sum(row[0] for key, row in self._oracle.items() if key[0] in self._repaired)
        kept = self.told.confirmation["lines_read"] - self.told.confirmation["duplicates"]
        self.told.checks["of the lines read, all but the duplicates are the flights flown"] = kept == flown
        self.told.late_without_spark = ledger_facts.late_without_spark(postgres)
        self.told.checks["late records counted rightly were certified without Spark"] = (
            self.told.late_without_spark > 0 or not self.told.ingest["late"]
        )
        self.told.checks["every window and key equals the oracle"] = difference.is_equal
        self.told.checks["every window of the month is certified"] = (
            certified == sum(self.told.states.values()) == self.told.oracle_windows
        )
        self.told.checks["every repaired window was confirmed by reading back"] = len(
            self.told.confirmation["confirmed"]
        ) == self.told.states.get("certified from raw", 0)

    def _repair_again(self) -> None:
        postgres = address("postgres")
        before = ledger_facts.certificates_and_rows(postgres)
        airflow = self._airflow()
        run = airflow.trigger(DAG)
        airflow.wait_for_run(DAG, run, PATIENCE_SECONDS)
        states = {t["task_id"]: t["state"] for t in airflow.tasks(DAG, run)}
        self.told.checks["the second run started no Spark"] = states["windows.repair"] == "skipped"
        self.told.checks["the second run changed no row and no certificate"] = (
            ledger_facts.certificates_and_rows(postgres) == before
        )

    def _airflow(self) -> AirflowRest:
        passwords = json.loads((self._stack.local / "airflow" / "passwords.json").read_text())
        return AirflowRest(address("airflow"), "admin", passwords["admin"])

    def _wait_for_runs(self, airflow: AirflowRest) -> list[str]:
        done = {"success", "failed"}
        with self._console.status("detect, repair, confirm ..."):
            _wait(lambda: all(run["state"] in done for run in airflow.runs(DAG)), PATIENCE_SECONDS, f"{DAG} to finish")
        return [run["dag_run_id"] for run in airflow.runs(DAG)]

    def _results(self, airflow: AirflowRest, run: str) -> tuple[dict[str, Any], dict[str, Any], float]:
        found = airflow.run(DAG, run)
        detection = airflow.result(DAG, run, "windows.detect", 0)
        confirmation = airflow.result(DAG, run, "windows.confirm", 0)
        took = datetime.fromisoformat(found["end_date"]) - datetime.fromisoformat(found["start_date"])
        return (
            detection if isinstance(detection, dict) else {},
            confirmation if isinstance(confirmation, dict) else {},
            round(took.total_seconds(), 1),
        )


def write_report(told: Told, path: Path) -> None:
    """All numbers as JSON, for whoever checks them without reading a screen."""
    path.parent.mkdir(parents=True, exist_ok=True)
    report = {name: getattr(told, name) for name in Told.__slots__} | {"right": told.is_right}
    path.write_text(json.dumps(report, indent=2, default=str) + "\n")


def _numbers(difference: oracle.Difference) -> dict[str, int]:
    return {
        "wrong_windows": len(difference.wrong_windows),
        "wrong_rows": difference.wrong_rows,
        "largest_error": difference.largest_error,
        "surplus_flights": difference.surplus,
    }


def _starts(windows: Iterable[str]) -> frozenset[int]:
    """Windows as they are written, in seconds since 1970, as the oracle has them."""
    return frozenset(int(datetime.fromisoformat(window).timestamp()) for window in windows)


def _evidence(failed: Mapping[str, Any]) -> str:
    """What was found about a window, in a few words each."""
    return ", ".join(_fact(finding) for finding in failed["findings"])


def _fact(finding: Mapping[str, Any]) -> str:
    match finding:
        case {"kind": Kind.DUPLICATED, "landings": landings}:
            return f"{len(landings)} landings overlap"
        case {"kind": Kind.UNACCOUNTED_BYTES, "expected_length": expected, "file_length": found}:
            return f"{found - expected:+,} bytes"
        case {"kind": Kind.AGGREGATE_MISMATCH, "counted": counted, "landed": landed}:
            return f"{counted - landed:+,} counted"
    return str(finding["kind"])


def _wait(done: Callable[[], bool], seconds: float, what: str, tick: Callable[[], None] = lambda: None) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise TransientError(f"waited {seconds:.0f} s for {what}")
        tick()
        time.sleep(0.5)


def _progress(console: Console) -> Progress:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console)
