"""The entry of `make experiments`: what each way to keep offsets loses and repeats when a job is stopped or killed,
beside the published numbers.

Exit 0 only if every count is as expected. `.local/experiments/report.json` has all of them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from queue import Queue

from rich.console import Console
from rich.table import Table

from onceover.config.endpoints import address
from onceover.errors import OnceoverError
from onceover.fault_points import Step
from onceover.ledger.database import upgrade_schema
from onceover.model.finding_kinds import Kind
from onceover.model.pipeline import OFFSET_STORES
from onceover_demo.experiments import auto_commit, late_commit, sinks, stores
from onceover_demo.experiments.pipeline import Trial
from onceover_demo.place import own_stack, print_early_end, print_part
from onceover_demo.warm import WarmJobs
from onceover_local.stack import GROUPS, Stack

TWENTY = ("kafka", "postgres")
SINKS_ALONE = "sinks"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; None where an experiment counts wrong windows, as its note says, and no records."""

    experiment: str
    setting: str
    lost: int | None
    repeated: int | None
    published: str
    right: bool
    note: str = ""


Task = Callable[[stores.Make], Row]


def main(only: Sequence[str]) -> int:
    """Run the experiments in `.local/experiments`, a folder of their own; `only` those of the sinks, or all."""
    console, rows, place, ended = Console(), list[Row](), None, False
    if list(only) not in ([], [SINKS_ALONE]):
        console.print(f"unknown experiments {' '.join(only)}; write {SINKS_ALONE}, or nothing for all", style="red")
        return 2
    try:
        with own_stack("experiments", console) as stack:
            place = stack.local
            for row in _run_sinks(console, stack) if only else _run(console, stack):
                rows.append(row)
                counts = row.note if row.lost is None else f"lost {row.lost:,}, repeated {row.repeated:,}"
                console.print(f"  {row.experiment}, {row.setting}: {counts}")
                _write(stack, rows)
            ended = True
    except OnceoverError as error:
        print_early_end(console, "run of the experiments", error, place)
    rows.sort(key=lambda row: (row.experiment, row.setting))
    console.print(_table(rows))
    for row in rows:
        if row.note:
            console.print(f"{row.experiment}, {row.setting}: {row.note}")
    return 0 if ended and rows and all(row.right for row in rows) else 1


def _run(console: Console, stack: Stack) -> Iterator[Row]:
    console.rule("[bold]Starting Kafka, HDFS, PostgreSQL, ZooKeeper and HBase", align="left")
    stack.up({*GROUPS, "zookeeper", "hbase"} - {"airflow"}, say=print_part(console))
    upgrade_schema(address("postgres"))
    console.rule("[bold]1. enable.auto.commit=true, stopped after 10 s", align="left")
    auto = auto_commit.run()
    yield Row("1 auto-commit", "100,006 records, 2 s, 50/s", auto.outcome.lost, auto.outcome.repeated,
              "records missing", auto.right, f"CURRENT-OFFSET {auto.current_offset:,}, LOG-END-OFFSET "
              f"{auto.log_end_offset:,}, processed {auto.outcome.processed:,}")  # fmt: skip
    console.rule("[bold]2. committed when the next batch starts, one kill", align="left")
    for interval, rate in late_commit.SETTINGS:
        late = late_commit.run(interval, rate)
        yield Row("2 commit late", f"{interval:g} s, {rate}/s", late.outcome.lost, late.outcome.repeated,
                  f"{late.predicted:,} repeated", late.right, "4 x interval x rate")  # fmt: skip
    console.rule("[bold]3. SEO: an offset file after each batch; 4. ours: SIGKILL at every step", align="left")
    console.print("5. the sinks: windows that readers see wrong after a kill, before and after the repair")
    yield from _run_in_lanes(stack, [*_every_store(), *_seo(), *_sinks()])


def _run_sinks(console: Console, stack: Stack) -> Iterator[Row]:
    console.rule("[bold]Starting Kafka, HDFS and PostgreSQL", align="left")
    stack.up(("kafka", "hdfs", "postgres"), say=print_part(console))
    upgrade_schema(address("postgres"))
    console.rule(
        "[bold]5. the sinks: windows that readers see wrong after a kill, before and after the repair", align="left"
    )
    yield from _run_in_lanes(stack, list(_sinks()))


def _seo() -> Iterator[Task]:
    for interval, rate in stores.SETTINGS:

        def stopped(make: stores.Make, interval: float = interval, rate: int = rate) -> Row:
            result = stores.stop_politely(make, interval, rate)
            return Row("3 SEO, stopped", f"{interval:g} s, {rate:,}/s", result.outcome.lost, result.outcome.repeated,
                       "0 lost, 0 repeated", result.right, f"stopped with {result.left:,} left")  # fmt: skip

        yield stopped

    def killed(make: stores.Make) -> Row:
        result = stores.kill_between_batch_and_file(make)
        right = result.right and result.findings == {Kind.DUPLICATED}
        return _make_row("3 SEO, killed", "after the batch, before the file", result, "that batch repeats", right)

    yield killed


def _every_store() -> Iterator[Task]:
    """Yield a task for each store, first the two that are killed 20 times over, so that the lanes end together."""
    for store, times in [
        *((s, 20) for s in TWENTY),
        *((s, 1) for s in sorted(set(OFFSET_STORES) - {"none", *TWENTY})),
    ]:

        def killed(make: stores.Make, store: str = store, times: int = times) -> Row:
            result = stores.kill_at(make, store, tuple(Step) * times)
            setting = f"{store}, each step " + ("once" if times == 1 else f"{times} times")
            return _make_row("4 ours", setting, result, "-", result.right)

        yield killed


def _sinks() -> Iterator[Task]:
    """Yield a task for each sink and step, and for eager repair."""
    for sink, eager, step in sinks.list_settings():

        def killed(make: stores.Make, sink: str = sink, eager: bool = eager, step: Step = step) -> Row:
            result = sinks.kill_once(make, sink, step, eager=eager)
            note = f"{result.wrong_before} windows wrong before the repair, {result.wrong_after} after"
            if eager:
                note = f"right {result.seconds:.1f} s after the windows closed, without a repair by anyone else"
            name = f"5 {sink}, eager" if eager else f"5 {sink}"
            return Row(name, f"killed after {step}", None, None, "-", result.right, note)

        yield killed


def _run_in_lanes(stack: Stack, tasks: Sequence[Task]) -> Iterator[Row]:
    """Run in two lanes with a warm Spark each, as a kill mostly waits for the dead driver's lease."""
    folder, log = stack.local / "pipelines", stack.local / "log"
    folder.mkdir(exist_ok=True)
    os.environ["ONCEOVER_PIPELINES"] = str(folder)
    lanes = [WarmJobs(log / f"warm{n}.log") for n in range(2)]
    free: Queue[WarmJobs] = Queue()
    for lane in lanes:
        free.put(lane)

    def run(task: Task) -> Row:
        lane = free.get()
        try:
            return task(lambda store, **settings: Trial(folder, log, store, launch=lane.launch, **settings))
        finally:
            free.put(lane)

    try:
        with ThreadPoolExecutor(len(lanes)) as pool:
            for done in as_completed([pool.submit(run, task) for task in tasks]):
                yield done.result()
    finally:
        for lane in lanes:
            lane.close()
        del os.environ["ONCEOVER_PIPELINES"]


def _make_row(experiment: str, setting: str, killed: stores.KillResult, published: str, right: bool) -> Row:
    findings = ", ".join(sorted(killed.findings)) or "nothing"
    after = "0 repeated after the repair" if killed.repaired else "WRONG after the repair"
    note = f"{killed.kills} kills, {killed.predicted:,} repeated predicted; found: {findings}; {after}"
    return Row(experiment, setting, killed.raw.lost, killed.raw.repeated, published, right, note)


def _write(stack: Stack, rows: list[Row]) -> None:
    (stack.local / "report.json").write_text(json.dumps([asdict(row) for row in rows], indent=2))


def _table(rows: list[Row]) -> Table:
    table = Table(title="Lost and repeated records, by where and when offsets are kept", title_justify="left")
    for column in ("experiment", "setting", "lost", "repeated", "published", "right"):
        table.add_column(column, justify="right" if column in ("lost", "repeated") else "left")
    for r in rows:
        counts = ("-" if n is None else f"{n:,}" for n in (r.lost, r.repeated))
        table.add_row(r.experiment, r.setting, *counts, r.published, "[green]yes" if r.right else "[red]NO")
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
