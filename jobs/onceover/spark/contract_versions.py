"""Records of several versions of a contract, each interpreted by its own, in the columns of the newest one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceover.model.contract import Contract, Contracts, Cutovers
from onceover.model.offsets import OffsetRange
from onceover.spark.contract_check import checked
from onceover.spark.interpret import interpret
from onceover.spark.range_join import looked_up

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
    """Adds the `version` that the ID has: by its release, if there is a `released_version`, else by the cutovers."""
    begins = (
        (piece, version)
        for source in cutovers.at
        for version, pieces in cutovers.cut_by_version([OffsetRange(source, 0, _NO_END)]).items()
        for piece in pieces
    )
    by_cutover = looked_up(begins, "version")

    def add(records: DataFrame) -> DataFrame:
        released = [F.col("released_version")] if "released_version" in records.columns else []
        # The last one is of a Kafka partition that came after all cutovers.
        version = F.coalesce(*released, "version", F.lit(cutovers.newest))
        return records.transform(by_cutover).withColumn("version", version.cast("int"))

    return add
