"""The demo's chapters: replay, crash twice, compare, repair, compare again, repair again."""

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
from onceover.ledger.database import upgrade_schema
from onceover.model.finding_kinds import Kind
from onceover_demo import flights, ledger_facts, oracle
from onceover_demo.place import print_part
from onceover_demo.supervised import SupervisedJob
from onceover_local.airflow_rest import AirflowRest
from onceover_local.stack.stack import Stack

DAG = "repair_failed_windows"
PATIENCE_SECONDS = 900.0  # for a machine with busy cores; each wait usually takes about a minute
# The step after which ingest is killed, and in which of the process's batches.
CRASHES = ((Step.APPENDED, 2), (Step.INCREMENTED, 2))


@dataclass(slots=True)
class DemoResult:
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
    """One run of the demo on a stack of its own."""

    def __init__(self, console: Console, stack: Stack, raw_store: str = "hdfs") -> None:
        self._console, self._stack, self.result = console, stack, DemoResult()
        self._servers = ("kafka", "postgres", raw_store)
        self._oracle = oracle.expected(flights.csv_rows())
        self.result.oracle_rows = len(self._oracle)
        self.result.oracle_windows = len({key[0] for key in self._oracle})
        self._wrong_windows: frozenset[int] = frozenset()
        self._repaired: frozenset[int] = frozenset()

    def run(self) -> DemoResult:
        """Run every chapter in order; raises what goes wrong in one."""
        self._chapter(
            "start", f"Start Kafka, {'HBase' if 'hbase' in self._servers else 'HDFS'} and PostgreSQL", self._start
        )
        self._chapter("replay", "Replay January 2013's flights in order of departure", self._replay)
        self._chapter("ingest", "Ingest them, and kill it twice", self._ingest)
        self._chapter("airflow", "Start Airflow", self._start_airflow)
        self._chapter("repair", f"Airflow runs {DAG}", self._repair)
        self._chapter("again", "Run the repair again", self._repair_again)
        return self.result

    def _chapter(self, name: str, title: str, act: Callable[[], None]) -> None:
        self._console.rule(f"[bold]{title}", align="left")
        started = time.monotonic()
        act()
        self.result.seconds[name] = round(time.monotonic() - started, 1)
        self._console.print(f"[dim]{self.result.seconds[name]:.1f} s")

    def _start(self) -> None:
        self._stack.up(self._servers, say=print_part(self._console))
        upgrade_schema(address("postgres"))

    def _replay(self) -> None:
        month = flights.january()
        self.result.flights = len(month)
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
            bar = progress.add_task("lines landed", total=self.result.flights)

            def tick() -> None:
                progress.update(bar, completed=min(self.result.flights, ledger_facts.totals(postgres)["lines"]))

            try:
                for step, batch in CRASHES:
                    ingest.start(stop_after=step, count=batch)
                    ingest.wait_until_held(PATIENCE_SECONDS)
                    ingest.kill()
                    self.result.crashes.append({"after": str(step), "at": datetime.now(UTC).isoformat()})
                    progress.console.print(f"SIGKILL after [bold]{step}[/], before the next step; started again")
                ingest.start()
                _wait(
                    lambda: ledger_facts.is_every_window_closed(postgres),
                    PATIENCE_SECONDS,
                    "ingest to read everything",
                    tick,
                )
                code = ingest.stop()
                self.result.checks["ingest stops cleanly on SIGTERM"] = code == 0
            except TransientError as error:
                raise TransientError(f"{error}; ingest's log ends with: {ingest.read_last_line()}") from error
            finally:
                ingest.close()
        self._compare_before(postgres)

    def _compare_before(self, postgres: str) -> None:
        self.result.ingest = ledger_facts.totals(postgres)
        difference = oracle.compare(ledger_facts.aggregates(postgres), self._oracle)
        self._wrong_windows = difference.wrong_windows
        self.result.before = _numbers(difference)
        self._console.print(
            f"{self.result.ingest['landed']} batches landed, {self.result.ingest['superseded']} superseded by the "
            f"crashes; [bold]{self.result.ingest['late']:,}[/] records arrived after their window had closed"
        )
        self._console.print(
            f"[red]{len(self._wrong_windows)} windows are wrong now[/]: {difference.surplus:+,} flights in all, up to "
            f"{difference.largest_error} in one row"
        )
        self.result.checks["the crashes made windows wrong"] = bool(self._wrong_windows)
        self.result.checks["nothing was quarantined"] = self.result.ingest["quarantined"] == 0

    def _start_airflow(self) -> None:
        self._stack.up(say=print_part(self._console))

    def _repair(self) -> None:
        airflow = self._airflow()
        airflow.wait_for_dag(DAG, PATIENCE_SECONDS)
        # The DAG has a schedule too: the first run, the scheduler's or this one, does the work.
        airflow.trigger(DAG)
        runs = self._wait_for_runs(airflow)
        results = [self._results(airflow, run) for run in runs]
        worked = [r for r in results if r[0].get("request_id") is not None]
        self.result.checks["one run repaired, in one Spark application"] = len(worked) == 1
        self.result.detection, self.result.confirmation, self.result.seconds["repair DAG"] = (
            worked[0] if worked else results[0]
        )
        named = _starts(failed["window"] for failed in self.result.detection["failed"])
        self._repaired = _starts(self.result.confirmation["confirmed"])
        self.result.checks["every wrong window was found"] = self._wrong_windows <= named
        self._console.print(
            f"{self.result.detection['judged']} windows judged, {self.result.detection['certified']} certified from "
            f"the ledger without Spark, [bold]{len(named)}[/] failed. The evidence for each (the report has all of it):"
        )
        cells = [
            f"{failed['window'][5:16].replace('T', ' ')} {_evidence(failed)}"
            for failed in self.result.detection["failed"]
        ]
        self._console.print(Columns(cells, padding=(0, 2), column_first=True))
        self._compare_after(address("postgres"))

    def _compare_after(self, postgres: str) -> None:
        difference = oracle.compare(ledger_facts.aggregates(postgres), self._oracle)
        self.result.after = _numbers(difference)
        self.result.states = ledger_facts.windows_by_state(postgres)
        self.result.findings = ledger_facts.findings(postgres)
        certified = sum(n for state, n in self.result.states.items() if state.startswith("certified"))
        last_kill = datetime.fromisoformat(str(self.result.crashes[-1]["at"]))
        self.result.seconds["last kill to certified"] = round((datetime.now(UTC) - last_kill).total_seconds(), 1)
        self.result.checks["no finding is left"] = not any(now for _, now in self.result.findings.values())
        flown = sum(row[0] for key, row in self._oracle.items() if key[0] in self._repaired)
        kept = self.result.confirmation["lines_read"] - self.result.confirmation["duplicates"]
        self.result.checks["of the lines read, all but the duplicates are the flights flown"] = kept == flown
        self.result.late_without_spark = ledger_facts.late_without_spark(postgres)
        self.result.checks["late records counted rightly were certified without Spark"] = (
            self.result.late_without_spark > 0 or not self.result.ingest["late"]
        )
        self.result.checks["every window and key equals the oracle"] = difference.is_equal
        self.result.checks["every window of the month is certified"] = (
            certified == sum(self.result.states.values()) == self.result.oracle_windows
        )
        self.result.checks["every repaired window was confirmed by reading back"] = len(
            self.result.confirmation["confirmed"]
        ) == self.result.states.get("certified from raw", 0)

    def _repair_again(self) -> None:
        postgres = address("postgres")
        before = ledger_facts.certificates_and_rows(postgres)
        airflow = self._airflow()
        run = airflow.trigger(DAG)
        airflow.wait_for_run(DAG, run, PATIENCE_SECONDS)
        states = {t["task_id"]: t["state"] for t in airflow.tasks(DAG, run)}
        self.result.checks["the second run started no Spark"] = states["windows.repair"] == "skipped"
        self.result.checks["the second run changed no row and no certificate"] = (
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
        times = airflow.run(DAG, run)
        detection = airflow.result(DAG, run, "windows.detect", 0)
        confirmation = airflow.result(DAG, run, "windows.confirm", 0)
        duration = datetime.fromisoformat(times["end_date"]) - datetime.fromisoformat(times["start_date"])
        return (
            detection if isinstance(detection, dict) else {},
            confirmation if isinstance(confirmation, dict) else {},
            round(duration.total_seconds(), 1),
        )


def write_report(result: DemoResult, path: Path) -> None:
    """Write all numbers as JSON, for programs that check them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    report = {name: getattr(result, name) for name in DemoResult.__slots__} | {"right": result.is_right}
    path.write_text(json.dumps(report, indent=2, default=str) + "\n")


def _numbers(difference: oracle.OracleDifference) -> dict[str, int]:
    return {
        "wrong_windows": len(difference.wrong_windows),
        "wrong_rows": difference.wrong_rows,
        "largest_error": difference.largest_error,
        "surplus_flights": difference.surplus,
    }


def _starts(windows: Iterable[str]) -> frozenset[int]:
    """Parse windows as they are written into seconds since 1970, as the oracle has them."""
    return frozenset(int(datetime.fromisoformat(window).timestamp()) for window in windows)


def _evidence(failed: Mapping[str, Any]) -> str:
    """Summarize a window's findings in a few words each."""
    return ", ".join(_fact(finding) for finding in failed["findings"])


def _fact(finding: Mapping[str, Any]) -> str:
    match finding:
        case {"kind": Kind.DUPLICATED, "landings": landings}:
            return f"{len(landings)} landings overlap"
        case {"kind": Kind.UNACCOUNTED_BYTES, "expected_length": expected, "file_length": length}:
            return f"{length - expected:+,} bytes"
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
