"""Records of several contract versions, each interpreted by its own version, in the columns of the newest."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceover.model.contract import Contract, Contracts, Cutovers
from onceover.model.offsets import OffsetRange
from onceover.raw.schema_files import SchemaFiles
from onceover.spark.contract_check import analyze_contract
from onceover.spark.interpret import interpret
from onceover.spark.range_join import looked_up

_NO_END = 2**63 - 1


def interpret_each(contracts: Contracts, schemas: SchemaFiles | None = None) -> Callable[[DataFrame], DataFrame]:
    """Add the columns of `interpret`, by each ID's version, with nulls for measures that only a later version has.

    Also takes generation, kafka_partition and offset. With several versions, adds `version` too. With one version, does
    the same as `interpret`.
    """
    if len(contracts.versions) == 1:
        return interpret(contracts.newest, contracts.list_poison(1), schemas)

    def add(records: DataFrame) -> DataFrame:
        numbered = records.transform(add_version(contracts.cutovers))
        interpreted = (
            numbered.where(F.col("version") == version)
            .transform(interpret(contract, contracts.list_poison(version), schemas))
            .transform(add_missing_measures(contracts.newest))
            for version, contract in enumerate(contracts.versions, 1)
        )
        return reduce(DataFrame.unionByName, interpreted)

    return add


def add_missing_measures(newest: Contract) -> Callable[[DataFrame], DataFrame]:
    """Add the measures of `newest` that the records lack, as nulls."""

    def add(records: DataFrame) -> DataFrame:
        types = analyze_contract(records.sparkSession, newest).types
        missing = {name: F.lit(None).cast(kind) for name, kind in types.items() if name not in records.columns}
        return records.withColumns(missing) if missing else records

    return add


def add_version(cutovers: Cutovers) -> Callable[[DataFrame], DataFrame]:
    """Add the `version`: that of the ID's release, if there is a `released_version`, else by the cutovers; or that of
    its window, if there is a larger `restated_version`."""
    begins = (
        (piece, version)
        for source in cutovers.at
        for version, pieces in cutovers.cut_by_version([OffsetRange(source, 0, _NO_END)]).items()
        for piece in pieces
    )
    by_cutover = looked_up(begins, "version")

    def add(records: DataFrame) -> DataFrame:
        released = [F.col("released_version")] if "released_version" in records.columns else []
        # The default is for a Kafka partition that was added after all cutovers.
        version = F.coalesce(*released, "version", F.lit(cutovers.newest))
        if "restated_version" in records.columns:
            version = F.greatest(version, "restated_version")
        return records.transform(by_cutover).withColumn("version", version.cast("int"))

    return add
