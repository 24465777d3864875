"""`make experiments`: what each way to keep offsets does to a job that is stopped or killed, beside what was published.

Exit 0 only if every count is what it must be. `.local/experiments/report.json` has them all.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from onceover.endpoints import address
from onceover.errors import OnceoverError
from onceover.ledger.database import migrate
from onceover.offset_stores import OFFSET_STORES
from onceover.stack import GROUPS, Stack
from onceover.steps import Step
from onceover_demo.experiments import auto_commit, late_commit, stores
from onceover_demo.experiments.pipeline import Trial
from onceover_demo.place import own_stack
from onceover_demo.warm import WarmJobs

TWENTY = ("kafka", "postgres")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    experiment: str
    setting: str
    lost: int
    repeated: int
    published: str
    right: bool
    note: str = ""


def main() -> int:
    """Run them in `.local/experiments`, a place of its own."""
    console, rows, ended = Console(), list[Row](), False
    try:
        with own_stack("experiments", console) as stack:
            for row in _run(console, stack):
                rows.append(row)
                console.print(f"  {row.experiment}, {row.setting}: lost {row.lost:,}, repeated {row.repeated:,}")
                _write(stack, rows)
            ended = True
    except OnceoverError as error:
        console.print(f"[red]the experiments ended early: {error}")
    console.print(_table(rows))
    return 0 if ended and rows and all(row.right for row in rows) else 1


def _run(console: Console, stack: Stack) -> Iterator[Row]:
    console.rule("[bold]Starting Kafka, HDFS, PostgreSQL, ZooKeeper and HBase", align="left")
    stack.up({*GROUPS, "zookeeper", "hbase"} - {"airflow"}, say=lambda part, what: console.print(f"  {part} {what}"))
    migrate(address("postgres"))
    console.rule("[bold]1. enable.auto.commit=true, stopped after 10 s", align="left")
    one = auto_commit.run()
    yield Row("1 auto-commit", "100,006 records, 2 s, 50/s", one.outcome.lost, one.outcome.repeated, "records missing",
              one.right, f"CURRENT-OFFSET {one.current_offset:,}, LOG-END-OFFSET {one.log_end_offset:,}, "
              f"processed {one.outcome.processed:,}")  # fmt: skip
    console.rule("[bold]2. committed when the next batch starts, one kill", align="left")
    for interval, rate in late_commit.SETTINGS:
        two = late_commit.run(interval, rate)
        yield Row("2 commit late", f"{interval:g} s, {rate}/s", two.outcome.lost, two.outcome.repeated,
                  f"{two.predicted:,} repeated", two.right, "4 x interval x rate")  # fmt: skip
    with _trials(stack) as make:
        console.rule("[bold]3. SEO: an offset file after each batch", align="left")
        for interval, rate in stores.SETTINGS:
            three = stores.stop_politely(make, interval, rate)
            yield Row("3 SEO, stopped", f"{interval:g} s, {rate}/s", three.outcome.lost, three.outcome.repeated,
                      "0 lost, 0 repeated", three.right)  # fmt: skip
        killed, batch = stores.kill_between_batch_and_file(make)
        yield _of_killed("3 SEO, killed", "after the batch, before the file", killed, f"{batch:,} repeated",
                         killed.right and killed.raw.repeated == batch)  # fmt: skip
        console.rule("[bold]4. ours: SIGKILL at every step of a batch, each store", align="left")
        for store in sorted(OFFSET_STORES.keys() - {"none"}):
            killed = stores.kill_at(make, store)
            yield _of_killed("4 ours", f"{store}, each step once", killed, "-", killed.right)
        for store in TWENTY:
            killed = stores.kill_at(make, store, tuple(step for n in range(20) for step in (list(Step)[n % 6],)))
            yield _of_killed("4 ours", f"{store}, 20 kills", killed, "-", killed.right)


def _of_killed(experiment: str, setting: str, killed: stores.Killed, published: str, right: bool) -> Row:
    found = ", ".join(sorted(killed.findings)) or "nothing"
    after = "0 repeated after the repair" if killed.repaired else "WRONG after the repair"
    return Row(experiment, setting, killed.raw.lost, killed.raw.repeated, published, right, f"found: {found}; {after}")


@contextmanager
def _trials(stack: Stack) -> Iterator[Callable[..., Trial]]:
    """Trials whose processes run on one warm Spark, and whose TOMLs are no file of the checkout."""
    import os

    folder = stack.local / "pipelines"
    folder.mkdir(exist_ok=True)
    os.environ["ONCEOVER_PIPELINES"] = str(folder)
    log = stack.local / "log"
    warm = WarmJobs(log / "warm.log")
    try:
        yield lambda store, **settings: Trial(folder, log, store, launch=warm.launch, **settings)
    finally:
        warm.close()
        del os.environ["ONCEOVER_PIPELINES"]


def _write(stack: Stack, rows: list[Row]) -> None:
    (stack.local / "report.json").write_text(
        json.dumps([{k: getattr(r, k) for k in r.__slots__} for r in rows], indent=2)
    )


def _table(rows: list[Row]) -> Table:
    table = Table(title="Lost and repeated records, by where and when offsets are kept", title_justify="left")
    for column in ("experiment", "setting", "lost", "repeated", "published", "as it must be", "note"):
        table.add_column(column, justify="right" if column in ("lost", "repeated") else "left")
    for r in rows:
        table.add_row(r.experiment, r.setting, f"{r.lost:,}", f"{r.repeated:,}", r.published,
                      "[green]yes" if r.right else "[red]NO", r.note)  # fmt: skip
    return table


if __name__ == "__main__":
    sys.exit(main())
