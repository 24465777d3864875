"""Cutovers found in raw contradict the fewest lines, wherever odd lines are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

import pytest
from pyspark.sql import SparkSession

from onceover.lines.contract_names import name_contracts
from onceover.model.contract import Contract, Contracts
from onceover.model.offsets import KafkaPartition
from onceover.recovery.cutovers import add_versions, find_cutovers
from onceover.spark.session import choose_codegen

pytestmark = pytest.mark.spark
Versions = Mapping[int, int]


@pytest.fixture(autouse=True)
def interpreted(spark: SparkSession) -> Iterator[None]:
    with choose_codegen(spark, 0):
        yield


def find(spark: SparkSession, newest: int, *partitions: Versions) -> list[dict[int, int]]:
    """Return the cutovers of each of these Kafka partitions, of which some offsets have lines of these versions."""
    rows = [("0a1b2c3d", n, *item) for n, versions in enumerate(partitions) for item in versions.items()]
    schema = "generation string, kafka_partition int, offset bigint, line_version int"
    found = find_cutovers(spark.createDataFrame(rows, schema).repartition(3), newest)
    return [found.get(KafkaPartition("0a1b2c3d", n), {}) for n in range(len(partitions))]


def test_cutover_lies_where_the_version_changes(spark: SparkSession) -> None:
    right = {n: 1 + (n >= 100) + (n >= 150) for n in range(200)}
    cases: list[tuple[Versions, dict[int, int]]] = [
        (right, {2: 100, 3: 150}),
        (dict.fromkeys((5, 6, 9), 1), {2: 10, 3: 10}),  # old lines alone: at their end
        (dict.fromkeys((5, 6, 9), 2), {3: 10}),
        (dict.fromkeys((5, 6, 9), 3), {}),  # new lines alone: from the start
        ({**dict.fromkeys(range(10), 1), **dict.fromkeys(range(30, 40), 3)}, {2: 10, 3: 10}),  # behind the last old one
        ({**right, 0: 3, 50: 2, 199: 1, 2**63 - 2: 1}, {2: 100, 3: 150}),  # forged lines move no cutover
        ({**right, **dict.fromkeys(range(115, 125), 1)}, {2: 100, 3: 150}),
    ]
    assert find(spark, 3, *(versions for versions, _ in cases)) == [expected for _, expected in cases]
    assert find(spark, 1, right) == [{}]


def test_no_other_offset_contradicts_fewer_lines(spark: SparkSession) -> None:
    random, worlds = Random(7), []
    for _ in range(300):
        length = random.randint(1, 30)
        cuts = [random.randint(0, length) for _ in range(3)]
        worlds.append(
            {
                n: random.randint(1, 4) if random.random() < 0.2 else 1 + sum(cut <= n for cut in cuts)
                for n in range(length)
                if random.random() < 0.8
            }
        )
    for versions, found in zip(worlds, find(spark, 4, *worlds), strict=True):
        for version in (2, 3, 4):
            costs = [sum((n >= at) != (named >= version) for n, named in versions.items()) for at in range(31)]
            assert found.get(version, 0) == costs.index(min(costs)), "the smallest of the best"
        assert sorted(found.values()) == list(found.values()), "a later version does not begin earlier"


def test_first_version_of_an_id_counts_and_releases_do_not(spark: SparkSession) -> None:
    contracts = tuple(Contract("t", 5, "json", "", (), at, "", (), (), None, None) for at in ("a", "b"))
    one, two, _, released = (name.decode() for name in name_contracts(Contracts(contracts)))
    named = [(0, one), (1, one), (1, two), (2, two), (3, two), (0, released), (2, "V3-0123456789abcdef"), (0, "V2-0")]
    rows = [("0a1b2c3d", 0, offset, contract) for offset, contract in named]
    schema = "generation string, kafka_partition int, offset bigint, contract string"
    lines = spark.createDataFrame(rows, schema).transform(add_versions(contracts))
    assert find_cutovers(lines, 2) == {KafkaPartition("0a1b2c3d", 0): {2: 2}}
    found = {row.contract: (row.line_version, row.line_released, row.unknown) for row in lines.collect()}
    assert (found[one], found[two], found[released]) == ((1, None, None), (2, None, None), (None, 2, None))
    assert found["V2-0"] == (None, None, "V2-0")
