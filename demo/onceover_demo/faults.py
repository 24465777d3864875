"""The entry of `make demo-faults`: offsets that ran ahead, and a topic deleted and recreated. Exit 0 only if all checks
pass.

Every command shown is the product's own, run as a person would run it.
"""

from __future__ import annotations

import sys
from contextlib import closing

from confluent_kafka.admin import AdminClient
from rich.console import Console

from onceover.cli.exit_codes import TRY_LATER
from onceover.config.endpoints import address
from onceover.config.pipelines import find
from onceover.kafka import Topic
from onceover.offset_stores.kafka import KafkaOffsetStore
from onceover_demo import flights, ledger_facts, oracle
from onceover_demo.scene import Scene, play
from onceover_local.stack import Stack

DAYS = 3
ALL = ("--from", "2013-01-01T00:00Z", "--to", "2013-01-05T00:00Z")


class Faults(Scene):
    """The demo of two faults."""

    def __init__(self, console: Console, stack: Stack) -> None:
        super().__init__(console, stack)
        self._days = [[f for f in flights.january() if f.scheduled_day == day] for day in range(1, DAYS + 1)]
        rows = [row for row in flights.csv_rows() if row["month"] == "1" and int(row["day"]) <= DAYS]
        self._oracle = oracle.expected(rows)

    def run(self) -> None:
        self.rule("A day of flights, read as it should be")
        self.start("kafka", "hdfs", "postgres")
        self._produce(0)
        self.ingest(until_closed=True)
        self.rule("The second day: the stored offsets run ahead of what was read")
        self._produce(1)
        skipped = self._run_ahead()
        self.ingest(until_closed=False)
        holes = self.onceover("holes", "flights", "--json", code=1)
        lost = sum(hole["end"] - hole["start"] for hole in holes if hole["reason"] == "lost")
        self.console.print(f"[red]{lost:,} records were never read[/]; Kafka still has them")
        self.checks["every offset that was skipped is named as lost"] = lost == skipped > 0
        # Windows that close once the hole is filled are judged by the next run, which the exit code asks for.
        self.onceover("repair", "flights", *ALL, "--reason", "the offsets had run ahead", "--json", code=TRY_LATER)
        self.onceover("repair", "flights", *ALL, "--reason", "the offsets had run ahead", "--json")
        self.checks["a repair reads them again"] = self.onceover("holes", "flights", "--json") == []
        self.rule("The third day: the topic is deleted and recreated")
        self._recreate()
        self._produce(2)
        self.ingest(until_closed=True)
        self.onceover("repair", "flights", *ALL, "--reason", "the topic was recreated", "--json")
        self.rule("Is it right?")
        self._check()

    def _check(self) -> None:
        postgres = address("postgres")
        difference = oracle.compare(ledger_facts.aggregates(postgres), self._oracle)
        self.checks["every window and key of three days equals the CSV"] = difference.is_equal
        states = ledger_facts.windows_by_state(postgres)
        self.checks["every window is certified"] = "not certified" not in states
        audit = self.onceover("audit", "flights", "--json")
        self.checks["Kafka, raw and the aggregates hold the same records"] = audit["equal"] and audit["records"] > 0
        verified = self.onceover("verify", "flights", "2013-01-02T12:00Z", "--json")
        self.checks["a certificate recomputed from raw is equal"] = verified["equal"]

    def _produce(self, day: int) -> None:
        flights.produce(address("kafka"), self._days[day], lambda _: None)
        self.console.print(f"{len(self._days[day]):,} flights produced")

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


if __name__ == "__main__":
    sys.exit(play("demo-faults", Faults))
