"""The contracts of a pipeline kept beside its raw, so that its lines can be read without the ledger."""

from __future__ import annotations

from pyspark.sql import SparkSession

from onceover.context import PipelineContext
from onceover.ledger.catalog import RegisteredPipeline
from onceover.lines.contract_names import name_contract
from onceover.model.json_text import to_json
from onceover.raw.contract_files import keep_contracts
from onceover.spark.contract_check import analyze_contract


def keep_registered_contracts(spark: SparkSession, context: PipelineContext, registered: RegisteredPipeline) -> None:
    """Write each contract that has no file yet, with the types of the columns that its lines have. Every process that
    writes lines does so before its first one."""
    contracts = {name_contract(each, n): each for n, each in enumerate(registered.contracts.versions, 1)}

    def describe(name: str) -> bytes:
        types = analyze_contract(spark, contracts[name]).types
        columns = {column: kind.simpleString() for column, kind in types.items()}
        return to_json({"name": name, "contract": contracts[name], "columns": columns}, indent=1).encode()

    keep_contracts(context.raw_address, context.layout, contracts, describe)
