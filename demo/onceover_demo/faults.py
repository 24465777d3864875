"""The entry of `make demo-faults`: offsets that ran ahead, and a topic deleted and recreated. Exit 0 only if all checks
pass.

Every command shown is the product's own, run as a person would run it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from rich.console import Console

from onceover.cli.exit_codes import TRY_LATER
from onceover.config.endpoints import address
from onceover.config.pipelines import find
from onceover.errors import OnceoverError, TransientError
from onceover.kafka import Topic
from onceover.ledger.database import upgrade_schema
from onceover.offset_stores.kafka import KafkaOffsetStore
from onceover_demo import flights, ledger_facts, oracle
from onceover_demo.place import own_stack, print_early_end, print_part
from onceover_demo.supervised import SupervisedJob
from onceover_local.stack import Stack

DAYS = 3
PATIENCE_SECONDS = 900.0
ALL = ("--from", "2013-01-01T00:00Z", "--to", "2013-01-05T00:00Z")


class Faults:
    """The demo of two faults, with its checks."""

    def __init__(self, console: Console, stack: Stack) -> None:
        self._console, self._stack, self.checks = console, stack, dict[str, bool]()
        self._days = [[f for f in flights.january() if f.scheduled_day == day] for day in range(1, DAYS + 1)]
        rows = [row for row in flights.csv_rows() if row["month"] == "1" and int(row["day"]) <= DAYS]
        self._oracle = oracle.expected(rows)

    def run(self) -> None:
        """Run every chapter in order; raises what goes wrong in one."""
        self._rule("A day of flights, read as it should be")
        self._stack.up(("kafka", "hdfs", "postgres"), say=print_part(self._console))
        upgrade_schema(address("postgres"))
        flights.create_topic(address("kafka"))
        self._produce(0)
        self._ingest(until_closed=True)
        self._rule("The second day: the stored offsets run ahead of what was read")
        self._produce(1)
        skipped = self._run_ahead()
        self._ingest(until_closed=False)
        holes = self._onceover("holes", "flights", "--json", code=1)
        lost = sum(hole["end"] - hole["start"] for hole in holes if hole["reason"] == "lost")
        self._console.print(f"[red]{lost:,} records were never read[/]; Kafka still has them")
        self.checks["every offset that was skipped is named as lost"] = lost == skipped > 0
        # Windows that close once the hole is filled are judged by the next run, which the exit code asks for.
        self._onceover("repair", "flights", *ALL, "--reason", "the offsets had run ahead", "--json", code=TRY_LATER)
        self._onceover("repair", "flights", *ALL, "--reason", "the offsets had run ahead", "--json")
        self.checks["a repair reads them again"] = self._onceover("holes", "flights", "--json") == []
        self._rule("The third day: the topic is deleted and recreated")
        self._recreate()
        self._produce(2)
        self._ingest(until_closed=True)
        self._onceover("repair", "flights", *ALL, "--reason", "the topic was recreated", "--json")
        self._rule("Is it right?")
        self._check()

    def _check(self) -> None:
        postgres = address("postgres")
        difference = oracle.compare(ledger_facts.aggregates(postgres), self._oracle)
        self.checks["every window and key of three days equals the CSV"] = difference.is_equal
        states = ledger_facts.windows_by_state(postgres)
        self.checks["every window is certified"] = "not certified" not in states
        audit = self._onceover("audit", "flights", "--json")
        self.checks["Kafka, raw and the aggregates hold the same records"] = audit["equal"] and audit["records"] > 0
        verified = self._onceover("verify", "flights", "2013-01-02T12:00Z", "--json")
        self.checks["a certificate recomputed from raw is equal"] = verified["equal"]

    def _produce(self, day: int) -> None:
        flights.produce(address("kafka"), self._days[day], lambda _: None)
        self._console.print(f"{len(self._days[day]):,} flights produced")

    def _run_ahead(self) -> int:
        """Commit half of the unread offsets, as a client does that commits before it has processed them. Returns how
        many offsets it skipped."""
        pipeline = find("flights")
        with (
            closing(Topic(address("kafka"), flights.TOPIC, pipeline.ingest.isolation, pipeline.kafka)) as topic,
            closing(KafkaOffsetStore(address("kafka"), flights.TOPIC, pipeline.ingest.group, pipeline.kafka)) as store,
        ):
            facts = topic.facts()
            end, stored = facts.end, store.load(facts.end).offsets
            ahead = {p: stored[p] + (end[p] - stored[p]) // 2 for p in end}
            store.save(ahead, facts.topic_id)
            return sum(ahead[p] - stored[p] for p in end)

    def _recreate(self) -> None:
        admin = AdminClient({"bootstrap.servers": address("kafka")})
        admin.delete_topics([flights.TOPIC])[flights.TOPIC].result(30)
        flights.create_topic(address("kafka"))

    def _ingest(self, *, until_closed: bool) -> None:
        postgres = address("postgres")
        ingest = SupervisedJob("ingest.py", ["--pipeline", "flights"], self._stack.local / "log" / "ingest.log")
        before = ledger_facts.totals(postgres)["landed"]
        try:
            ingest.start()
            if until_closed:
                _wait(lambda: ledger_facts.totals(postgres)["landed"] > before
                      and ledger_facts.is_every_window_closed(postgres), ingest)  # fmt: skip
            else:
                _wait(lambda: "nothing to read" in ingest.read_log(), ingest)
            self.checks["ingest stops cleanly"] = ingest.stop(PATIENCE_SECONDS) == 0
        finally:
            ingest.close()
        (self._stack.local / "log" / "ingest.log").unlink(missing_ok=True)

    def _onceover(self, *arguments: str, code: int = 0) -> Any:
        """Run one of the product's commands and return its JSON. Raises TransientError for any other exit code."""
        shown = " ".join(f'"{a}"' if " " in a else a for a in arguments)
        self._console.print(f"[bold]$ onceover {shown}")
        program = str(Path(sys.executable).with_name("onceover"))
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != code:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise TransientError(f"onceover {arguments[0]} ended with {done.returncode}, not {code}: {last}")
        return json.loads(done.stdout)

    def _rule(self, title: str) -> None:
        self._console.rule(f"[bold]{title}", align="left")


def _wait(done: Callable[[], bool], ingest: SupervisedJob) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise TransientError(
                f"ingest was not done within {PATIENCE_SECONDS:.0f} s; its log ends with: {ingest.read_last_line()}"
            )
        time.sleep(0.5)


def main() -> int:
    """Run the demo in `.local/demo-faults`, a folder of its own."""
    console, checks, place = Console(), dict[str, bool](), None
    try:
        with own_stack("demo-faults", console) as stack:
            place = stack.local
            faults = Faults(console, stack)
            checks = faults.checks
            checks["every chapter was run"] = False
            faults.run()
            checks["every chapter was run"] = True
    except OnceoverError as error:
        print_early_end(console, "demo", error, place)
        return error.exit_code
    for check, right in checks.items():
        console.print(f"{'[green]yes[/]' if right else '[red]NO [/]'} {check}")
    return 0 if checks and all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
