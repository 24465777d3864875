"""Records of several versions of a contract, each interpreted by its own, in the columns of the newest one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceover.cutovers import Contracts, Cutovers
from onceover.offsets import OffsetRange
from onceover.pipeline import Contract
from onceover.spark.contract_check import checked
from onceover.spark.interpret import interpret

_VERSIONS = "of_generation string, of_kafka_partition int, low bigint, high bigint, version int"
_NO_END = 2**63 - 1


def interpret_each(contracts: Contracts, present: Sequence[int]) -> Callable[[DataFrame], DataFrame]:
    """Adds what `interpret` adds, by the version that each ID has, and null for measures that only a later one has.

    Takes generation, kafka_partition and offset besides. Where there are several versions, `version` is added too, and
    only those that are `present` are used, in ascending order: a record of another one is interpreted by the last of
    them, which says nothing. With one version it is `interpret` and nothing else.
    """
    if len(contracts.versions) == 1:
        return interpret(contracts.newest)

    def add(records: DataFrame) -> DataFrame:
        numbered = records.transform(_numbered(contracts.cutovers))
        earlier = list(present[:-1])
        of_each = [numbered.where(F.col("version") == version) for version in earlier]
        of_each.append(numbered.where(~F.col("version").isin(earlier)) if earlier else numbered)
        interpreted = (
            some.transform(interpret(contracts.versions[version - 1])).transform(with_measures_of(contracts.newest))
            for some, version in zip(of_each, present, strict=True)
        )
        return reduce(DataFrame.unionByName, interpreted)

    return add


def with_measures_of(newest: Contract) -> Callable[[DataFrame], DataFrame]:
    """Adds the measures of that contract which the records' own has not, as nulls."""

    def add(records: DataFrame) -> DataFrame:
        types = checked(records.sparkSession, newest).types
        missing = {name: F.lit(None).cast(kind) for name, kind in types.items() if name not in records.columns}
        return records.withColumns(missing) if missing else records

    return add


def _numbered(cutovers: Cutovers) -> Callable[[DataFrame], DataFrame]:
    """Adds the `version` that the ID has."""
    rows = [
        (source.generation, source.kafka_partition, piece.start, piece.end, version)
        for source in cutovers.at
        for version, pieces in cutovers.by_version([OffsetRange(source, 0, _NO_END)]).items()
        for piece in pieces
    ]

    def add(records: DataFrame) -> DataFrame:
        begins = F.broadcast(records.sparkSession.createDataFrame(rows, _VERSIONS))
        here = [
            F.col("generation") == F.col("of_generation"),
            F.col("kafka_partition") == F.col("of_kafka_partition"),
            (F.col("offset") >= F.col("low")) & (F.col("offset") < F.col("high")),
        ]
        version = F.coalesce("version", F.lit(cutovers.newest))  # of a Kafka partition that came after all cutovers
        return records.join(begins, here, "left").select(*records.columns, version.alias("version"))

    return add
