"""Whether Spark can carry out a contract that follows another, with the same types for what both have."""

from __future__ import annotations

from pyspark.sql import SparkSession

from onceover.model.contract import Columns, Contract
from onceover.spark.contract_check import check_contract, checked


def check_change(spark: SparkSession, old: Contract, new: Contract, file: str) -> tuple[Columns, list[str]]:
    """The columns of the new contract, and each key and measure that would be of another type, as a few words.

    Raises MistakesError with all that is wrong with the new one by itself; `file` is what messages call it.
    """
    columns = check_contract(spark, new, file)
    before, after = checked(spark, old).types, checked(spark, new).types
    retyped = [
        f"{'key' if name.startswith('k_') else 'measure'} {name[2:]} is of type {after[name].simpleString()}, not "
        f"{kind.simpleString()}"
        for name, kind in before.items()
        if name in after and after[name] != kind
    ]
    return columns, retyped
