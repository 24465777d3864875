"""Avro topics through the whole loop: raw has the schemas that wrote its values, and repairs ask no registry."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.integration.events import NOON_MS, moment
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import minutes, replay
from tests.integration.program import as_json, run
from tests.integration.releases import release

from onceover.cli.doctor import check_kafka, check_registry
from onceover.cli.topic_sample import take_sample
from onceover.config.endpoints import pipelines_folder
from onceover.config.pipelines import find
from onceover.explain.page.ingest import read_ingest
from onceover.model.window import format_moment
from onceover.raw import schema_files
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack
TRIPS = """
[contract]
topic = "{topic}"
window_minutes = {minutes}
format = "avro"
wire_format = "confluent"
schema_file = "{topic}.avsc"
required = ["at"]
event_time = "value.at"
[contract.keys]
city = "value.city"
[contract.measures]
trips = {{ count = "*" }}
fare = {{ sum = "value.fare" }}
seats = {{ sum = "value.seats" }}
[contract.bounds]
horizon = "none"
skew = "none"
[ingest]
idle_after = "{idle_after}"
"""
FARE = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
AT = {"type": "long", "logicalType": "timestamp-millis"}


def make_schema(seats: str | None = None, fare: object = FARE, **more: object) -> dict[str, Any]:
    fields = [{"name": "at", "type": AT}, {"name": "city", "type": ["null", "string"]}, {"name": "fare", "type": fare}]
    fields += [{"name": "seats", "type": seats}] if seats else []
    return {"type": "record", "name": "Trip", "fields": fields + [{"name": n, "type": t} for n, t in more.items()]}


def make_reader() -> dict[str, Any]:
    schema = make_schema()
    schema["fields"].append({"name": "seats", "type": "long", "default": 4})
    return schema


class Writer:
    """A producer's own serializer, of one schema."""

    def __init__(self, registry: SchemaRegistryClient, lane: Lane, schema: Mapping[str, Any]) -> None:
        self._serialize = AvroSerializer(registry, json.dumps(schema))
        self._context = SerializationContext(lane.topic, MessageField.VALUE)

    def write(self, number: int, **fields: object) -> bytes:
        trip = {"at": NOON_MS + number * 30_000, "city": ["Oslo", None][number % 2], "fare": Decimal(number) / 4}
        value = self._serialize(trip | fields, self._context)
        assert isinstance(value, bytes)
        return value


def make_lane(lanes: Lanes, partitions: int = 1) -> Lane:
    lane = lanes(TRIPS, partitions=partitions)
    lane.toml.with_suffix(".avsc").write_text(json.dumps(make_reader()))
    return lane


@pytest.fixture
def client(registry: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry}) as client:
        yield client


@contextmanager
def stopped(stack: Stack) -> Iterator[None]:
    stack.stop_part("registry")
    try:
        yield
    finally:
        stack.start_part("registry")


def count_trips(numbers: Iterable[int], seats: Mapping[int, int] | None = None) -> dict[tuple[object, ...], Any]:
    """Return the aggregates of these trips, without SQL; those without seats have the reader's default."""
    rows: dict[tuple[object, ...], tuple[int, Decimal, int]] = {}
    for number in numbers:
        key = (number * 0.5 // 5 * 5.0, ["Oslo", None][number % 2])
        trips, fare, all_seats = rows.get(key, (0, Decimal(), 0))
        rows[key] = (trips + 1, fare + Decimal(number) / 4, all_seats + (seats or {}).get(number, 4))
    return rows


def count_records(lane: Lane) -> list[int]:
    return [row["trips"] for row in lane.query(f'SELECT trips FROM aggregates."{lane.name}"')]


def test_values_are_read_by_what_wrote_them(lanes: Lanes, client: SchemaRegistryClient, stack: Stack) -> None:
    lane = make_lane(lanes)
    old = Writer(client, lane, make_schema())
    new = Writer(client, lane, make_schema("int", extra={"type": "array", "items": "string"}))
    other = Writer(client, lane, make_schema(fare="string"))
    first = old.write(0)
    lane.produce([first, *(old.write(number) for number in range(1, 10))])
    lane.produce(new.write(number, seats=number, extra=["x", ""]) for number in range(10, 20))
    unknown = b"\x00\x7f\xff\xff\xff" + first[5:]
    lane.produce([other.write(20, fare="1.00"), first[:-1], first + b"\x00", unknown, b'{"at": 1}', None])
    replay(lane)
    lane.ingest()

    expected = count_trips(range(20), {number: number for number in range(10, 20)})
    ids = [int.from_bytes(value[1:5]) for value in (first, new.write(1, seats=1, extra=[]), other.write(1, fare=""))]
    assert {at: value for at, (_, value) in lane.log().items()} == {
        (line.record.source.kafka_partition, line.record.offset): line.record.value for _, line in lane.lines()
    }
    assert set(lane.reasons().values()) == {
        "tombstone",
        "unparseable: not in Confluent's wire format",
        f"unparseable: schema {ids[0]}: Avro cut off",
        f"unparseable: schema {ids[0]}: bytes behind the Avro value",
        "unparseable: schema with an ID of 32 bits is not in the registry",
        f"unparseable: schema {ids[2]}: field fare: string is no decimal(10, 2)",
    }
    lane.repair_detected()
    assert lane.aggregates() == expected
    selected = "SELECT schema, is_read, difference FROM onceover.writer_schema WHERE pipeline = %s"
    assert sorted(tuple(row.values()) for row in lane.query(selected, [lane.name])) == [
        (str(ids[0]), True, "field seats: has its default"),
        (str(ids[1]), True, "field seats: int is read as long; field extra: is left out"),
        (str(ids[2]), False, "field fare: string is no decimal(10, 2)"),
    ]
    with stopped(stack):
        assert lane.repair_detected(minutes(0, 10), by_value=True, force=True).failed == ()
        assert lane.aggregates() == expected
        assert lane.verify(0)["equal"]
        assert lane.audit(minutes(0, 10))["equal"]


def test_records_wait_for_a_registry_that_is_away(lanes: Lanes, client: SchemaRegistryClient, stack: Stack) -> None:
    lane = make_lane(lanes, partitions=2)
    old, new = Writer(client, lane, make_schema()), Writer(client, lane, make_schema("int"))
    lane.land([old.write(number) for number in range(5)])
    fresh = [new.write(number, seats=1) for number in range(5, 10)]
    with stopped(stack):
        lane.produce([old.write(10), *fresh, old.write(11)], 0)
        lane.produce([old.write(12)], 1)
        with lane.driver() as driver, lane.ledger() as ledger:
            for _ in range(4):
                driver.turn()
            assert "waits before records whose schema it cannot get" in read_ingest(ledger, lane.name).sentence
        waiting = lane.query("SELECT unknown_schema, unknown_schema_why FROM onceover.kafka_partition "
                             "WHERE pipeline = %s AND unknown_schema IS NOT NULL", [lane.name])  # fmt: skip
        assert [(row["unknown_schema"].lower, row["unknown_schema"].upper) for row in waiting] == [(6, 7)]
        assert lane.reasons() == {}
        assert sum(count_records(lane)) == 7
        (seen,) = [each for each in check_kafka([lane.pipeline]) if ":6-7 waits" in each.what]
        assert (seen.state, "stack up registry" in seen.what) == ("wrong", True)
        assert [each.state for each in check_registry([lane.pipeline])] == ["wrong"]
        checked = run("pipelines", "check", lane.name, "--sample", "20")
        assert (checked.returncode, checked.stderr.count("\tat ")) == (75, 0), "no trace of Java"
        assert checked.stderr.strip().splitlines()[-1].startswith("onceover: Kafka partition 0, offset 6 waits: ")
    lane.ingest()
    assert lane.aggregates() == count_trips(range(13), dict.fromkeys(range(5, 10), 1))
    assert [each.state for each in check_registry([lane.pipeline])] == ["fine"]
    with lane.ledger() as ledger:
        assert "field seats: has its default" in read_ingest(ledger, lane.name).sentence
    assert lane.reasons() == {}


def test_refused_schema_is_released_after_a_migration(lanes: Lanes, client: SchemaRegistryClient) -> None:
    lane = make_lane(lanes)
    old, other = Writer(client, lane, make_schema()), Writer(client, lane, make_schema(fare=["null", FARE]))
    lane.land([*(old.write(number) for number in range(4)), other.write(4, fare=None), other.write(5)])
    assert [reason.partition(": field ")[2] for reason in lane.reasons().values()] == [
        "fare: null is no decimal(10, 2)"
    ]

    reader = make_reader()
    reader["fields"][2]["type"] = ["null", FARE]
    lane.toml.with_suffix(".avsc").write_text(json.dumps(reader))
    lane.migrate()
    assert sum(release(lane).windows.values()) == 1
    assert sum(count_records(lane)) == 6
    assert lane.detect().failed == ()
    assert lane.verify(0)["equal"]


def test_registered_avro_is_drafted_by_its_newest_schema(lanes: Lanes, client: SchemaRegistryClient) -> None:
    lane = make_lane(lanes)
    old, new = Writer(client, lane, make_schema()), Writer(client, lane, make_reader())
    values = [old.write(number) for number in range(10)] + [new.write(number, seats=2) for number in range(10, 20)]
    unknown = b"\0\0\xff\xff\0" + values[0][5:]
    lane.produce([*values, unknown, b"\0\x7f\xff\xff\xff\0"], timestamp=NOON_MS, key=old.write(0))
    name = f"{lane.name}_drafted"
    taken = pipelines_folder() / f"{name}_key.avsc"
    taken.touch()
    try:
        assert f"{taken} is there already" in run("pipelines", "init", lane.topic, "--name", name).stderr
        assert list(pipelines_folder().glob(f"{name}*")) == [taken], "nothing else is written"
        taken.unlink()
        drafted = as_json("pipelines", "init", lane.topic, "--name", name)
        schemas = [json.loads(Path(file).read_text()) for file in drafted["schema_files"]]
        assert schemas == [make_reader(), make_schema()]
        assert tomllib.loads(drafted["toml"])["contract"]["measures"].keys() == {"records", "fare", "seats"}
        toml = pipelines_folder() / f"{name}.toml"
        toml.write_text(toml.read_text().replace("# key_", "key_"))
        sample = take_sample(lane.spark, find(name), 100)
        assert (sample.records, sample.quarantined) == (22, 2)
    finally:
        for each in pipelines_folder().glob(f"{name}*"):
            each.unlink()


@pytest.mark.rare
def test_schema_that_raw_lost_is_named_and_restored(lanes: Lanes, client: SchemaRegistryClient, stack: Stack) -> None:
    lane = make_lane(lanes)
    value = Writer(client, lane, make_schema()).write(0)
    lane.land([value])
    lane.detect()
    path = f"{lane.layout.schema_folder}/{int.from_bytes(value[1:5])}.json"
    store = lane.store()
    kept = store.read(path)
    window = ("--from", format_moment(moment(0)), "--to", format_moment(moment(5)))

    def ask(what: str) -> None:
        repaired = run("repair", lane.name, *window, "--by-value", "--force", "--reason", "a test")
        verified = run("verify", lane.name, format_moment(moment(0)))
        for done in (repaired, verified):
            assert (done.returncode != 0, f"{path} {what}" in done.stderr) == (True, True), done.stderr
            assert "Traceback" not in done.stderr
        schema_files._read.clear()  # as in a process of its own
        assert f"{path} {what}" in lane.explain_text(0)

    store.remove(path)
    ask("is missing: put it back from a copy of raw; or restart ingest, which asks the registry for it")
    lane.overwrite(path, b"rubbish")
    ask("is not as it was written: move it away, then put it back from a copy of raw; or restart ingest")
    store.remove(path)
    schema_files._read.clear()
    with stopped(stack):
        lane.turn()
    assert store.read(path) is None
    lane.turn()
    assert store.read(path) == kept
    assert lane.verify(0)["equal"]
