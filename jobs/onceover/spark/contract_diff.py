"""The check of a contract that follows another: whether their common keys and measures keep their types."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType

from onceover.model.contract import Columns, Contract, name_in_toml
from onceover.spark.contract_check import CheckedContract, analyze_contract, check_contract


def check_change(spark: SparkSession, old: Contract, new: Contract, file: str) -> tuple[Columns, list[str]]:
    """Return the new contract's columns, and a description of each key and measure whose type would change.

    Raises MistakesError with all mistakes of the new contract alone; `file` names it in messages.
    """
    columns = check_contract(spark, new, file)
    earlier = analyze_contract(spark, old)
    before, after = _list_types(earlier), _list_types(analyze_contract(spark, new))
    called = {f"k_{key.name}": f"key {key.name}" for key in old.keys}
    called |= {f"m_{each.name}": f"measure {name_in_toml(old, each).split('.')[1]}" for each in old.measures}
    derived = {column.name: column.type for column in columns.derived}
    retyped = {
        called[name]: f"{after[name].simpleString()}, not {kind.simpleString()}"
        for name, kind in before.items()
        if name in after and after[name] != kind
    } | {
        f"measure {column.name}": f"{derived[column.name]}, not {column.type}"
        for column in earlier.columns.derived
        if derived.get(column.name, column.type) != column.type
    }
    return columns, [f"{name} is of type {types}" for name, types in retyped.items()]


def _list_types(checked: CheckedContract) -> dict[str, DataType]:
    """Return the types by column; for a sketch that of its values, for another type has other texts."""
    return {**checked.types, **{f"m_{name}": kind for name, kind in checked.inputs.items()}}
