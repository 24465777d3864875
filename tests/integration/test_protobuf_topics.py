"""Protobuf topics through the whole loop, with Confluent's own serializer and its registry."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass
from tests.integration.events import NOON_MS
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import minutes, replay
from tests.integration.program import as_json

from onceover.cli.topic_sample import take_sample
from onceover.config.endpoints import address, pipelines_folder
from onceover.config.pipelines import find
from onceover.formats.protobuf.schema import find_message
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack
TRIPS = """
[contract]
topic = "{topic}"
window_minutes = {minutes}
format = "protobuf"
wire_format = "confluent"
schema_file = "{topic}.proto"
message = "shop.Trip"
required = ["at"]
event_time = "value.at"
[contract.keys]
city = "value.city"
[contract.measures]
trips = {{ count = "*" }}
cents = {{ sum = "value.cents" }}
[contract.bounds]
horizon = "none"
skew = "none"
[ingest]
idle_after = "{idle_after}"
"""
PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Other { string text = 1; }
message Trip {
  google.protobuf.Timestamp at = 1;
  optional string city = 2;
  sint64 cents = 3;
}
"""


class Writer:
    """A producer's own serializer, of one schema."""

    def __init__(self, client: SchemaRegistryClient, lane: Lane, proto: str, message: str = "shop.Trip") -> None:
        self._make = GetMessageClass(find_message(proto, message))
        self._serialize = ProtobufSerializer(self._make, client, {"use.deprecated.format": False})
        self._context = SerializationContext(lane.topic, MessageField.VALUE)

    def write(self, number: int, **fields: object) -> bytes:
        trip = self._make(cents=number, **fields)
        trip.at.FromMilliseconds(NOON_MS + number * 30_000)
        return self.serialize(trip)

    def serialize(self, message: object) -> bytes:
        value = self._serialize(message, self._context)
        assert isinstance(value, bytes)
        return value

    def write_other(self) -> bytes:
        return self.serialize(self._make(text="x"))


def test_messages_are_read_by_what_wrote_them(lanes: Lanes, registry: str, stack: Stack) -> None:
    lane = lanes(TRIPS)
    lane.toml.with_suffix(".proto").write_text(PROTO)
    with SchemaRegistryClient({"url": registry}) as client:
        old = Writer(client, lane, PROTO)
        more = PROTO.replace("sint64 cents = 3;", "sint64 cents = 3; repeated string tags = 4; uint32 seats = 5;")
        new, wrong = Writer(client, lane, more), Writer(client, lane, PROTO.replace("sint64", "int64"))
        first = old.write(0, city="Oslo")
        lane.produce([first, *(old.write(number) for number in range(1, 5))])
        lane.produce(new.write(number, city="Oslo", tags=["x"], seats=2) for number in range(5, 10))
        bad = wrong.write(10, city="Oslo")
        lane.produce([bad, first[:-1], b"\0", Writer(client, lane, PROTO, "shop.Other").write_other()])
    replay(lane)
    lane.ingest()

    wrong_id, right_id = int.from_bytes(bad[1:5]), int.from_bytes(first[1:5])
    assert set(lane.reasons().values()) == {
        f"unparseable: schema {right_id}: not a Protobuf message",
        "unparseable: not in Confluent's wire format",
        f"unparseable: schema {right_id}: message shop.Other is no shop.Trip",
        f"unparseable: schema {wrong_id}: field cents: int64 is no sint64",
    }
    expected = {(0.0, "Oslo"): (6, Decimal(35)), (0.0, None): (4, Decimal(10))}
    lane.repair_detected()
    assert lane.aggregates() == expected
    stack.stop_part("registry")
    try:
        assert lane.repair_detected(minutes(0, 5), by_value=True, force=True).failed == ()
        assert lane.aggregates() == expected
        assert lane.audit(minutes(0, 5))["equal"]
    finally:
        stack.start_part("registry")


def test_registered_messages_are_drafted(lanes: Lanes, registry: str) -> None:
    lane = lanes(TRIPS)
    with SchemaRegistryClient({"url": registry}) as client:
        writer, other = Writer(client, lane, PROTO), Writer(client, lane, PROTO, "shop.Other")
        values = [writer.write(number, city=["Oslo", "Bergen"][number % 2]) for number in range(20)]
        values.append(other.write_other())
    lane.produce([*values, b"\0\0\0\xff\xff\0\x01"], timestamp=NOON_MS)
    name = f"{lane.name}_drafted"
    try:
        drafted = as_json("pipelines", "init", lane.topic, "--name", name)
        file = Path(drafted["file"])
        toml = tomllib.loads(file.read_text())["contract"]
        assert (toml["format"], toml["message"], toml["schema_file"]) == ("protobuf", "shop.Trip", f"{name}.proto")
        assert 'message = "shop.Trip"  # guess: or shop.Other' in drafted["toml"]
        assert (toml["event_time"], toml["keys"], toml["required"]) == ("value.at", {"city": "value.city"}, ["at"])
        assert toml["measures"]["cents"] == {"sum": "value.cents"}
        sample = take_sample(lane.spark, find(name), 100)
        assert (sample.records, sample.quarantined, sum(sample.windows.values())) == (22, 2, 20)
    finally:
        for each in pipelines_folder().glob(f"{name}.*"):
            each.unlink()


@pytest.mark.rare
def test_fields_repeated_by_the_million_stop_nothing(lanes: Lanes) -> None:
    lane = lanes(TRIPS.replace('wire_format = "confluent"', ""))
    lane.toml.with_suffix(".proto").write_text(
        PROTO.replace("int64 cents = 3;", "int64 cents = 3; repeated Other o = 4;")
    )
    good = b"\x0a\x06\x08" + encode_varint(NOON_MS // 1000) + b"\x18\x02"
    producer = Producer(
        {"bootstrap.servers": address("kafka"), "message.max.bytes": 32 << 20, "compression.type": "gzip"}
    )
    for size in (1 << 20, 4 << 20, 18 << 20, 18 << 20):
        for value in (good, good + b"\x22\0" * (size // 2 - 16)):
            producer.produce(lane.topic, value, partition=0)
        assert producer.flush(30) == 0
    lane.ingest()

    assert sorted(lane.reasons().values()) == [
        *["unparseable: field o: more than 16384 items"] * 2,
        *["unparseable: more than 4 MiB of Protobuf"] * 2,
    ]
    assert lane.aggregates() == {(0.0, None): (4, Decimal(4))}


def encode_varint(number: int) -> bytes:
    low = [number >> shift & 0x7F for shift in range(0, number.bit_length(), 7)]
    return bytes([*(each | 0x80 for each in low[:-1]), low[-1]])
