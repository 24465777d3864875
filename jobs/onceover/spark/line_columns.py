"""The columns that a pipeline's lines hold, as Spark's types and as the formats that a line's text is read by."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructField, StructType

from onceover.lines.contract_names import name_contracts
from onceover.lines.typed_lines import ColumnFormats
from onceover.model.contract import Contracts
from onceover.spark.contract_check import analyze_contract


@dataclass(frozen=True, slots=True)
class LineColumns:
    """The columns `k_NAME` and `m_NAME` of the newest contract: each earlier one has some of them, of the same types.
    Lines that ingest wrote name a contract's version by `V`, released ones by `R`."""

    types: StructType
    formats: ColumnFormats

    @classmethod
    def of(cls, spark: SparkSession, contracts: Contracts) -> LineColumns:
        """Find the types by the contracts' SQL."""
        types = analyze_contract(spark, contracts.newest).types
        fields = [StructField(name, kind) for name, kind in types.items()]
        schema = pa.schema([(name, to_arrow_type(kind, timezone="UTC")) for name, kind in types.items()])
        columns = [tuple(analyze_contract(spark, contract).types) for contract in contracts.versions]
        names = dict(zip(name_contracts(contracts), columns * 2, strict=True))
        return cls(StructType(fields), ColumnFormats(schema, names))
