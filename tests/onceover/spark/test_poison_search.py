"""The search for records of which the SQL ends Spark's JVM, or never ends, on a real topic and JVMs of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.onceover.spark.contracts import make_contract

from onceover.kafka.topic import derive_generation
from onceover.model.contract import Key
from onceover.model.measures import Measure
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.spark.poison_probe import ProbeRequest
from onceover.spark.poison_search import search

if TYPE_CHECKING:
    from tests.onceover.conftest import Broker

pytestmark = [pytest.mark.stack, pytest.mark.rare]

POISON = {  # of which record each expression is poison: what it is refused for
    "deep": "SQL failed: key deep",
    "endless": "SQL too slow: measure endless",
    "repeated": "SQL failed: measure repeated",
    "sequence": "SQL failed: measure sequence",
    "giant": "SQL failed: measure giant",
}
CONTRACT = make_contract(
    schema="kind STRING, text STRING, n BIGINT",
    keys=(Key("deep", "if(value.kind = 'deep', regexp_extract(value.text, '^((a|b)+ ?)+$', 0), '')"),),
    measures=(
        Measure("endless", "max", "if(value.kind = 'endless', regexp_extract(value.text, '^(.*?,){11}P', 0), '')"),
        Measure("repeated", "max", "length(repeat(value.text, if(value.kind = 'repeated', 2000000000, 1)))"),
        Measure("sequence", "max", "size(sequence(1L, if(value.kind = 'sequence', 2000000000, value.n)))"),
        Measure("giant", "max", "repeat(value.text, if(value.kind = 'giant', 40000000, 1))"),
    ),
)


def make(kind: str, text: str = "a") -> bytes:
    return json.dumps({"kind": kind, "text": text, "n": 3}).encode()


def test_search_names_each_poison_record_and_its_expression(broker: Broker) -> None:
    topic = broker.create(kafka_partitions=2)
    texts = {"deep": "ab " * 66_000, "endless": "1," * 100}
    harmless = [make("plain"), make("plain", "ab " * 66_000), make("plain", "[" * 100_000), b"[" * 100_000, b"{"]
    broker.produce(topic, [*harmless, *(make(kind, texts.get(kind, "a")) for kind in POISON)], 0)
    broker.produce(topic, harmless, 1)
    source = broker.source(topic)
    generation = derive_generation(source.topic_id)
    ranges = [OffsetRange(KafkaPartition(generation, p), 0, end) for p, end in ((0, 10), (1, 5))]
    found = list(search(ProbeRequest(source, CONTRACT, ()), 1, ranges))
    assert found[0] == (ranges[1], []), "what has none is known first"
    assert found[1][0] == ranges[0]
    assert {each.offset: each.reason for each in found[1][1]} == dict(enumerate(POISON.values(), 5))
