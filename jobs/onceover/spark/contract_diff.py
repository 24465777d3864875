"""The check of a contract that follows another: whether their common keys and measures keep their types."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType

from onceover.model.contract import Columns, Contract
from onceover.spark.contract_check import CheckedContract, analyze_contract, check_contract


def check_change(spark: SparkSession, old: Contract, new: Contract, file: str) -> tuple[Columns, list[str]]:
    """Return the new contract's columns, and a description of each key and measure whose type would change.

    Raises MistakesError with all mistakes of the new contract alone; `file` names it in messages.
    """
    columns = check_contract(spark, new, file)
    earlier = analyze_contract(spark, old)
    before, after = _list_types(earlier), _list_types(analyze_contract(spark, new))
    retyped = [
        f"{'key' if name.startswith('k_') else 'measure'} {name[2:]} is of type {after[name].simpleString()}, not "
        f"{kind.simpleString()}"
        for name, kind in before.items()
        if name in after and after[name] != kind
    ]
    derived = {column.name: column.type for column in columns.derived}
    retyped += [
        f"measure {column.name} is of type {derived[column.name]}, not {column.type}"
        for column in earlier.columns.derived
        if derived.get(column.name, column.type) != column.type
    ]
    return columns, retyped


def _list_types(checked: CheckedContract) -> dict[str, DataType]:
    """Return the types by column; for a sketch that of its values, for another type has other texts."""
    return {**checked.types, **{f"m_{name}": kind for name, kind in checked.inputs.items()}}
