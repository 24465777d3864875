"""Why the contract's SQL threw for a record: Spark's own error, of the one expression that the reason names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from onceover.lines.escapes import escape_headers
from onceover.model.contract import Contract, name_values
from onceover.model.poison import SQL_FAILED, PoisonRecord
from onceover.model.record import Record
from onceover.raw.schema_files import SchemaFiles
from onceover.spark.failure import summarize
from onceover.spark.interpret import evaluate

_SCHEMA = "kafka_partition INT, offset BIGINT, kafka_timestamp BIGINT, key BINARY, headers BINARY, value BINARY"
_CLASSED = re.compile(r"\[[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*\] [^\n]+")
"""An error as Spark writes it: [CLASS.SUBCLASS] text SQLSTATE: ..."""
_WIDTH = 300


def explain_sql_failure(
    spark: SparkSession,
    contract: Contract,
    reason: str,
    record: Record,
    poison: Iterable[PoisonRecord] = (),
    schemas: SchemaFiles | None = None,
) -> str | None:
    """Return Spark's error, with its class, for a record of that reason: the expression that it names is evaluated once
    more, unless the record is one of `poison`, which have their error. None for another reason, or if the expression
    does not throw now. Raises Py4JNetworkError for a dead JVM."""
    for known in poison:
        if (known.source, known.offset, known.reason) == (record.source, record.offset, reason):
            return known.error
    columns = {f"{SQL_FAILED}: {shown}": column for column, shown in name_values(contract).items()}
    if reason not in columns:
        return None
    try:
        evaluate_record(spark, contract, columns[reason], record, schemas)
    except Py4JNetworkError:
        raise
    except (PySparkException, Py4JError) as error:
        classed = _CLASSED.findall(str(error))
        own = [each for each in classed if not each.startswith("[INTERNAL_ERROR")]
        return " ".join((own or [summarize(error)])[-1].split())[:_WIDTH]
    return None


def evaluate_record(
    spark: SparkSession, contract: Contract, column: str, record: Record, schemas: SchemaFiles | None = None
) -> Any:
    """Return what one column of `name_values` is for the record. Raises Spark's own error where the SQL throws."""
    parts = (record.key, escape_headers(record.headers), record.value)
    row = (record.source.kafka_partition, record.offset, record.kafka_timestamp, *map(_as_binary, parts))
    return spark.createDataFrame([row], _SCHEMA).transform(evaluate(contract, column, schemas)).collect()[0][0]


def _as_binary(part: bytes | None) -> bytearray | None:
    return None if part is None else bytearray(part)
