"""The columns that a pipeline's lines hold: their types, the formats that text is read by, and how they are grouped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import BinaryType, DataType, DecimalType, LongType, StructField, StructType

from onceover.lines.contract_names import name_contracts
from onceover.lines.grouping import Grouping
from onceover.lines.typed_lines import ColumnFormats
from onceover.model.contract import Contract, Contracts
from onceover.spark.contract_check import analyze_contract

_FUNCTIONS: Final = {"count": "sum"}  # of ones and zeros


@dataclass(frozen=True, slots=True)
class LineColumns:
    """The columns `k_NAME` and `m_NAME` of the newest contract: each earlier one has some of them, of the same types.
    Lines that ingest wrote name a contract's version by `V`, released ones by `R`. `grouped` are the same columns
    grouped into the contract's measures, as `aggregate` gives them: by `grouping`, which keeps their names."""

    contract: Contract
    types: StructType
    formats: ColumnFormats
    grouped: StructType
    grouping: Grouping

    @classmethod
    def of(cls, spark: SparkSession, contracts: Contracts) -> LineColumns:
        """Find the types by the contracts' SQL."""
        types = analyze_contract(spark, contracts.newest).types
        functions, grouped = _widen_grouped(contracts.newest, types)
        columns = [tuple(analyze_contract(spark, contract).types) for contract in contracts.versions]
        names = dict(zip(name_contracts(contracts), columns * 2, strict=True))
        return cls(
            contracts.newest,
            _make_type(types),
            ColumnFormats(_make_schema(types), names),
            _make_type(grouped),
            Grouping(functions, _make_schema(grouped)),
        )

    def name(self, rows: DataFrame, beside: Sequence[str]) -> DataFrame:
        """Give the grouped columns the contract's names. Takes and returns `window_ms` and columns `beside` too."""
        names = [(f"k_{key.name}", key.name) for key in self.contract.keys]
        names += [(f"m_{measure.name}", measure.name) for measure in self.contract.measures]
        return rows.select("window_ms", *beside, *(F.col(column).alias(name) for column, name in names))


def make_grouping(contract: Contract, types: Mapping[str, DataType], beside: Mapping[str, DataType]) -> Grouping:
    """Return how the columns of these types are grouped into the contract's measures, by its keys and `beside`."""
    functions, grouped = _widen_grouped(contract, types)
    return Grouping(functions, _make_schema({**beside, **grouped}))


def _widen_grouped(contract: Contract, types: Mapping[str, DataType]) -> tuple[dict[str, str], dict[str, DataType]]:
    """Return the function of each measure's column, and the types of the grouped columns."""
    functions = {f"m_{each.name}": _FUNCTIONS.get(each.stored, each.stored) for each in contract.measures}
    return functions, {name: _widen(functions.get(name), kind) for name, kind in types.items()}


def _widen(function: str | None, kind: DataType) -> DataType:
    """Return the type that Spark groups values of this type into."""
    if function != "sum":
        return BinaryType() if function == "bit_or" else kind
    return DecimalType(min(kind.precision + 10, 38), kind.scale) if isinstance(kind, DecimalType) else LongType()


def _make_type(types: Mapping[str, DataType]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


def _make_schema(types: Mapping[str, DataType]) -> pa.Schema:
    return pa.schema([(name, to_arrow_type(kind, timezone="UTC")) for name, kind in types.items()])
