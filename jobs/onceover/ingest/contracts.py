"""The contracts of a pipeline kept beside its raw, so that its lines can be read without the ledger."""

from __future__ import annotations

from pyspark.sql import SparkSession

from onceover.context import PipelineContext
from onceover.ledger.catalog import RegisteredPipeline
from onceover.lines.contract_names import name_contract
from onceover.raw.contract_files import keep_contracts
from onceover.raw.sealed_json import seal
from onceover.spark.contract_check import analyze_contract


def keep_registered_contracts(spark: SparkSession, context: PipelineContext, registered: RegisteredPipeline) -> None:
    """Write each contract that has no file yet, with its cutovers, and the types of the columns that its lines have.
    Every process that writes lines does so before its first one."""
    versions, first_offsets = registered.contracts.versions, registered.contracts.cutovers.at
    contracts = {name_contract(each, n): (n, each) for n, each in enumerate(versions, 1)}

    def describe(name: str) -> bytes:
        version, contract = contracts[name]
        types = analyze_contract(spark, contract).types
        columns = {column: kind.simpleString() for column, kind in types.items()}
        cutovers = [
            [source.generation, source.kafka_partition, of_source[version]]
            for source, of_source in sorted(first_offsets.items())
            if version in of_source
        ]
        return seal({"name": name, "contract": contract, "cutovers": cutovers, "columns": columns})

    keep_contracts(context.raw_address, context.layout, contracts, describe)
