"""A pipeline that is not the demo's, of a town's water meters: its contract, its readings, produced while jobs run and
die, and what its aggregates have to be, computed without SQL."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from random import Random

from tests.integration.cluster_jobs import PATIENCE, Jobs, end_well, wait_until
from tests.integration.compaction import decompress, list_states, read_compacted
from tests.integration.events import NOON_MS, Rows, count_minutes
from tests.integration.lane import Lane
from tests.integration.planted_failures import count_certified

from onceover.fault_points import RepairStep, Step
from onceover.lines.line_format import Line, decode
from onceover_demo.supervised import SupervisedJob

PARTITIONS, WINDOW_MINUTES, HOURS = 3, 10, 4
RECORDS, PORTION = 6000, 600
SOME = 200
"""Records of a portion: the others are under way."""
METERS = """
[contract]
topic = "{topic}"
window_minutes = 10
format = "json"
schema = "meter STRUCT<id: STRING, ward: INT>, `read at` STRING, litres DECIMAL(9,3), note STRING"
required = ["meter.id", "litres"]
event_time = "to_timestamp(value.`read at`)"
[contract.keys]
meter = "value.meter.id"
ward = "value.meter.ward"
leaks = "value.litres >= 90"
[contract.measures]
readings = {{ count = "*" }}
notes = {{ count = "value.note" }}
litres = {{ sum = "value.litres" }}
least = {{ min = "value.litres" }}
last_note = {{ max = "value.note" }}
[contract.bounds]
horizon = "none"
skew = "none"
[ingest]
allowed_lateness = "5m"
idle_after = "{idle_after}"
interval = "200ms"
max_records_per_batch = 150
[storage]
raw_root = "/water/{topic}"
"""


def make_readings(seed: int) -> list[bytes]:
    """Return readings of four hours in the order of their time, which many share; of twenty one is an hour late, and of
    a hundred one has no litres."""
    chance = Random(seed)
    readings = []
    for n in range(RECORDS):
        second = max(0, n * HOURS * 3600 // RECORDS // 5 * 5 - 3600 * (chance.random() < 0.05))
        at = datetime.fromtimestamp(NOON_MS / 1000 + second, UTC)
        reading: dict[str, object] = {
            "meter": {"id": chance.choice("pqrst"), "ward": chance.choice([1, 2, None])},
            "read at": at.isoformat(),
            "note": chance.choice(["dry", "wet", None]),
        }
        litres = "" if n % 100 == 99 else f', "litres": {chance.randrange(100_000) / 1000:.3f}'
        readings.append((json.dumps(reading)[:-1] + litres + "}").encode())
    return readings


def count_readings(values: Iterable[bytes]) -> Rows:
    """Return what the aggregates have to be for these readings."""
    groups = defaultdict[tuple[object, ...], list[tuple[Decimal, str | None]]](list)
    for reading in (json.loads(value, parse_float=Decimal) for value in values):
        if (litres := reading.get("litres")) is not None:
            minute = count_minutes(datetime.fromisoformat(reading["read at"])) // WINDOW_MINUTES * WINDOW_MINUTES
            key: tuple[object, ...] = minute, reading["meter"]["id"], reading["meter"]["ward"], litres >= 90
            groups[key].append((litres, reading["note"]))
    rows: Rows = {}
    for key, each in groups.items():
        litres, notes = [one for one, _ in each], [note for _, note in each if note is not None]
        rows[key] = len(each), len(notes), sum(litres), min(litres), max(notes, default=None)
    return rows


@dataclass(slots=True)
class Town:
    """The pipeline, its jobs, and how many of its readings are produced."""

    lane: Lane
    jobs: Jobs
    readings: list[bytes] = field(default_factory=lambda: make_readings(34))
    produced: int = 0

    def produce(self) -> None:
        """Produce the next portion, in all Kafka partitions."""
        portion = self.readings[self.produced : self.produced + PORTION]
        assert portion
        for partition in range(PARTITIONS):
            self.lane.produce(portion[partition::PARTITIONS], partition)
        self.produced += len(portion)

    def start_ingest(self, step: Step | None = None) -> SupervisedJob:
        """Start an ingest, which holds itself at that step of its third batch, and produce while it starts."""
        ingest = self.jobs("ingest.py", "--pipeline", self.lane.name)
        ingest.start(step, 3)
        self.produce()
        return ingest

    def kill_ingest(self, step: Step) -> None:
        ingest = self.start_ingest(step)
        ingest.wait_until_held(PATIENCE)
        ingest.kill()

    def land(self, ingest: SupervisedJob, records: int) -> None:
        """Produce a portion while ingest runs, and wait until so many records of it have landed."""
        goal = self.produced + records
        self.produce()
        wait_until(ingest, lambda: self.count_landed() >= goal)

    def count_landed(self) -> int:
        """Return how many records are before the stored offsets."""
        query = "SELECT coalesce(sum(next_offset), 0) AS n FROM onceover.stored_offset WHERE pipeline = %s"
        return int(self.lane.query(query, [self.lane.name])[0]["n"])

    def end_ingest(self, ingest: SupervisedJob) -> None:
        """Produce what is left, wait until all is in raw and each window closed, and stop ingest."""
        while self.produced < RECORDS:
            self.produce()
        wait_until(ingest, lambda: self.count_landed() == RECORDS and "open" not in list_states(self.lane))
        assert ingest.stop() == 0, ingest.read_log()

    def start_repair(self, request_id: int | None, step: RepairStep | None = None) -> SupervisedJob:
        """Start the repair; one with a step holds itself there."""
        repair = self.jobs("repair.py", "--pipeline", self.lane.name, "--request", str(request_id))
        repair.start(step)
        if step is not None:
            repair.wait_until_held(PATIENCE)
        return repair

    def require_counted(self) -> None:
        """Require that raw has each record, with its value, and that each row of each window is right; of what is
        compacted, each record is there once."""
        lane, log = self.lane, self.lane.log()
        assert Counter(value for _, value in log.values()) == Counter(self.readings)
        lines = [line for _, line in lane.lines()]
        assert {name_record(line): line.record.value for line in lines} == {at: value for at, (_, value) in log.items()}
        rows = count_readings(self.readings)
        assert lane.detect().request_id is None
        assert lane.aggregates() == rows
        assert (count_certified(lane), lane.detect().judged) == (len({key[0] for key in rows}), 0)

        compaction = self.jobs(
            "compact.py", "--pipeline", lane.name, "--older-than-ms", "0", "--who", "me", "--why", "-"
        )
        compaction.start()
        end_well(compaction)
        kept = [decode(line) for file in read_compacted(lane).values() for line in decompress(file).splitlines()]
        counted = {at for at, (_, value) in log.items() if b'"litres"' in (value or b"")}
        assert Counter(map(name_record, kept)) == Counter(counted)


def name_record(line: Line) -> tuple[int, int]:
    """Return Kafka partition and offset of the line's record."""
    return line.record.source.kafka_partition, line.record.offset
