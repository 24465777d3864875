"""Cutovers found again in raw: each line names the contract of its ID, and a version begins where that fits most IDs.

offset      0 ........ 80 ........ 90 ......... 200      81 to 89 are missing, and one line is odd
version     1 ......... 1           2 ..1..... 2
cutover                  81                              contradicts the one odd line
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from onceover.context import PipelineContext
from onceover.lines.contract_names import name_contracts
from onceover.model.contract import Contract, Contracts
from onceover.model.offsets import KafkaPartition
from onceover.spark.raw_lines import LineFile, read_raw_lines

_SOURCE = ("generation", "kafka_partition")


def add_versions(contracts: Sequence[Contract]) -> Callable[[DataFrame], DataFrame]:
    """Add to lines with a `contract` the version of these contracts by which each was read, `line_version`, or was
    released, `line_released`, or the `unknown` contract: the other two are null."""
    names = [name.decode() for name in name_contracts(Contracts(tuple(contracts)))]
    is_known, is_release = F.col("contract").isin(names), F.col("contract").startswith("R")
    version = F.substring_index(F.substr("contract", F.lit(2)), "-", 1).cast("int")

    def add(rows: DataFrame) -> DataFrame:
        return rows.withColumns(
            {
                "line_version": F.when(is_known & ~is_release, version),
                "line_released": F.when(is_known & is_release, version),
                "unknown": F.when(~is_known, F.col("contract")),
            }
        )

    return add


def find_cutovers(rows: DataFrame, newest: int) -> dict[KafkaPartition, dict[int, int]]:
    """Return the first offset of each version from 2 to the newest, by Kafka partition, from rows of IDs with a
    `line_version`, which may be null. An ID with several has the first of them.

    Each cutover contradicts the fewest IDs, and is the smallest such offset: right behind the last ID of the earlier
    versions, so it is the end of a Kafka partition without later ones. One that has only later versions has no cutover:
    it has them from its start.
    """
    if newest == 1:
        return {}
    in_order = Window.partitionBy(*_SOURCE).orderBy("offset")
    versions = range(2, newest + 1)
    # By how many more IDs a cutover behind this one contradicts than one at the start.
    more = {n: F.sum(F.when(F.col("line_version") >= n, 1).otherwise(-1)).over(in_order) for n in versions}
    found = (
        rows.groupBy(*_SOURCE, "offset")
        .agg(F.min("line_version").alias("line_version"))
        .where("line_version IS NOT NULL")
        .select(*_SOURCE, *(F.struct(more[n].alias("more"), F.col("offset")).alias(f"behind_{n}") for n in versions))
        .groupBy(*_SOURCE)
        .agg(*(F.min(f"behind_{n}").alias(f"best_{n}") for n in versions))
        .collect()  # one row a Kafka partition
    )
    cutovers = {
        KafkaPartition(row.generation, row.kafka_partition): {
            n: best.offset + 1 for n in versions if (best := row[f"best_{n}"]).more < 0
        }
        for row in found
    }
    return {source: of_source for source, of_source in sorted(cutovers.items()) if of_source}


def search_raw(
    spark: SparkSession, context: PipelineContext, contracts: Sequence[Contract]
) -> dict[KafkaPartition, dict[int, int]]:
    """Return the cutovers that the lines of all of the pipeline's files show."""
    files = (*context.files.list_files(), *context.files.list_compacted_files())
    if not files:
        return {}
    listed = [LineFile(number, file.path, file.length) for number, file in enumerate(files)]
    named = read_raw_lines(spark, context.raw_address, listed, *_SOURCE, "offset", "contract", "intact")
    named = named.where("intact")
    return find_cutovers(named.transform(add_versions(contracts)), len(contracts))
