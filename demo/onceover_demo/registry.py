"""The entry of `make demo-registry`: flights in Avro by three schemas of a registry, which is gone when they are read
again. Exit 0 only if all checks pass.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from onceover.config.endpoints import PIPELINES, address, home
from onceover_demo import flights, ledger_facts, oracle
from onceover_demo.flights import Flight
from onceover_demo.scene import Scene, play
from onceover_local.stack.files import write_whole

ALL = ("--from", "2013-01-01T00:00Z", "--to", "2013-01-05T00:00Z")
_READER = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "origin", "type": "string"},
        {"name": "carrier", "type": "string"},
        {"name": "sched_dep", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "dep_delay", "type": "long"},
    ],
}


class RegistryScene(Scene):
    """Evolution that the reader's schema takes, a schema that it refuses, and a repair without the registry."""

    def run(self) -> None:
        folder = self.stack.local / "pipelines"
        os.environ[PIPELINES] = str(folder)
        write_whole(folder / "flights.toml", _write_toml((home() / "pipelines" / "flights.toml").read_text()))
        write_whole(folder / "flights.avsc", json.dumps(_READER))
        flown = flights.january()
        days = [[flight for flight in flown if flight.scheduled_day == day] for day in (1, 2, 3)]
        rows = [row for row in flights.csv_rows() if row["month"] == "1" and row["day"] in ("1", "2")]
        expected = oracle.expected(rows)

        self.rule("A day of flights in Avro, the next by a newer schema, the third by one that cannot be read")
        self.start("kafka", "hdfs", "postgres", "registry")
        with SchemaRegistryClient({"url": address("registry")}) as client:
            self._produce(client, days[0], "int")
            self._produce(client, days[1], "long", dest="string")
            self._produce(client, days[2], "string")
        self.ingest(until_closed=True)
        self.onceover("repair", "flights", *ALL, "--reason", "certify what is right", "--json")
        days_held = self.onceover("quarantine", "flights", "list", "--json")["days"]
        held = sum((Counter(day["reasons"]) for day in days_held), Counter[str]())
        for why, number in held.items():
            self.console.print(f"[red]{number:,} records in quarantine[/]: {why}")
        is_named = all(why.endswith(": field dep_delay: string is no long") for why in held)
        self.checks["each flight of the third schema is in quarantine, by name"] = is_named and held.total() == len(
            days[2]
        )
        self._check(expected, "every window and key of two schemas equals the CSV")

        self.rule("The registry is gone, and every value is read again")
        self.stack.stop_part("registry")
        self.onceover("repair", "flights", *ALL, "--by-value", "--force", "--reason", "read all again", "--json")
        self._check(expected, "a repair without the registry gives the same")
        verified = self.onceover("verify", "flights", "2013-01-02T12:00Z", "--json")
        self.checks["so does a certificate recomputed from raw"] = verified["equal"]

    def _produce(self, client: SchemaRegistryClient, flown: Sequence[Flight], delay: str, **more: str) -> None:
        """Produce flights by Confluent's serializer, with delays of that Avro type."""
        fields = [*_READER["fields"][:3], *({"name": n, "type": t} for n, t in {"dep_delay": delay, **more}.items())]
        serialize = AvroSerializer(client, json.dumps({**_READER, "fields": fields}))
        context = SerializationContext(flights.TOPIC, MessageField.VALUE)

        def encode(flight: Flight) -> bytes:
            value = {
                "origin": flight.origin,
                "carrier": flight.carrier,
                "dest": flight.dest,
                "sched_dep": flight.scheduled,
                "dep_delay": str(flight.delay_minutes) if delay == "string" else flight.delay_minutes,
            }
            return bytes(serialize(value, context) or b"")

        flights.produce(address("kafka"), list(flown), lambda _: None, encode)
        self.console.print(f"{len(flown):,} flights produced, their delay is of Avro's type {delay}")

    def _check(self, expected: Mapping[oracle.Key, oracle.Row], check: str) -> None:
        postgres = address("postgres")
        is_equal = oracle.compare(ledger_facts.aggregates(postgres), expected).is_equal
        self.checks[check] = is_equal and "not certified" not in ledger_facts.windows_by_state(postgres)


def _write_toml(text: str) -> str:
    """Return the text of `pipelines/flights.toml` for values in Avro."""
    start, end = text.index("schema = "), text.index("required = ")
    return (
        (text[:start] + 'wire_format = "confluent"\nschema_file = "flights.avsc"\n' + text[end:])
        .replace('format = "json"', 'format = "avro"')
        .replace("to_timestamp(value.sched_dep)", "value.sched_dep")
    )


if __name__ == "__main__":
    sys.exit(play("demo-registry", RegistryScene))
