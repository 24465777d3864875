"""A process that evaluates the contract's SQL for some records at a time, and may die of it, or never end.

Standard input has a pickled `ProbeRequest`, then a line of JSON for each `Unit`. The answers are lines of JSON: first
[the process ID of its JVM, the number of lines], then for each unit null, or [whether the records are to blame, what
Spark said]; for the column ID, [generation, Kafka partition, offset] of a line.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Queue
from typing import Final

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext, StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from onceover.kafka.reader import KafkaSource
from onceover.kafka.topic import derive_generation
from onceover.model.contract import Contract, name_values
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.poison import PoisonRecord
from onceover.model.record import ID_COLUMNS, LARGEST_RECORD
from onceover.raw.schema_files import SchemaFiles
from onceover.spark.contract_check import analyze_contract
from onceover.spark.decoding import find_decoding
from onceover.spark.failure import summarize
from onceover.spark.interpret import interpret
from onceover.spark.raw_lines import LineFile, read_raw_lines
from onceover.spark.session import open_session
from onceover.spark.source import name_shards, read_shards

ID: Final = "ID"
_OWN_ERROR: Final = "onceover.errors."
_ANY_TIME: Final = "CAST(0 AS BIGINT)"
_OF_LINE: Final = (*ID_COLUMNS, "kafka_timestamp", "key", "headers", "value")


@dataclass(frozen=True, slots=True)
class QuarantineLines:
    """The lines of quarantine in these files, in the raw store at that address."""

    address: str
    files: tuple[LineFile, ...]


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """The topic's log, or lines of quarantine; the contract, and the poison records that are known and left out."""

    source: KafkaSource | QuarantineLines
    contract: Contract
    poison: tuple[PoisonRecord, ...]
    schemas: SchemaFiles | None = None


@dataclass(frozen=True, slots=True)
class Unit:
    """Offsets to evaluate together: all of the contract's SQL, or that of one column of `name_values`. Of quarantine,
    the lines of these numbers, in the order of their IDs; the Kafka partition means nothing there."""

    kafka_partition: int
    start: int
    end: int
    column: str | None = None


class _Evaluation:
    """The contract's SQL over the topic's log, on a session of this process, planned once for all units."""

    lines = 0

    def __init__(self, spark: SparkSession, source: KafkaSource, asked: ProbeRequest) -> None:
        self._spark, self._source, self._asked = spark, source, asked
        self._generation = derive_generation(source.topic_id)
        self._queries: dict[str | None, DataFrame] = {}
        self.run(None)  # the first run takes seconds

    def run(self, unit: Unit | None) -> Sequence[object] | None:
        """Evaluate the unit, no record for None, and return the answer. Raises Spark's errors."""
        column = unit.column if unit else None
        if column not in self._queries:
            self._queries[column] = self._plan(_select_column(self._asked.contract, column))
        shards = (
            [OffsetRange(KafkaPartition(self._generation, unit.kafka_partition), unit.start, unit.end)] if unit else []
        )
        with name_shards(self._spark, shards):
            return _answer(self._queries[column])

    def _plan(self, contract: Contract) -> DataFrame:
        # Sorted, all are read before the first is evaluated: else the reader's process ends with each that fails.
        decoding = find_decoding(self._spark, contract, self._asked.schemas)
        records = read_shards(self._spark, self._source, 1, decoding).sortWithinPartitions("offset")
        poison = tuple(known for known in self._asked.poison if known.source.generation == self._generation)
        return records.transform(_evaluate(contract, poison, self._asked.schemas))


class _LineEvaluation:
    """The contract's SQL over lines of quarantine, of which this process keeps a copy."""

    def __init__(self, spark: SparkSession, source: QuarantineLines, asked: ProbeRequest) -> None:
        self._asked = asked
        read = read_raw_lines(spark, source.address, source.files, "intact", "event_ms", *_OF_LINE)
        records = read.where("intact AND event_ms IS NULL").select(*_OF_LINE).dropDuplicates(list(ID_COLUMNS))
        number = F.row_number().over(Window.orderBy(*ID_COLUMNS)) - 1
        self._records = records.withColumn("number", number).persist(StorageLevel.DISK_ONLY)
        self.lines = self._records.count()

    def run(self, unit: Unit) -> Sequence[object] | None:
        """As `_Evaluation.run`; return the ID of the first line for the column ID."""
        records = self._records.where(F.col("number").between(unit.start, unit.end - 1))
        if unit.column == ID:
            return list(records.select(*ID_COLUMNS).collect()[0])
        contract = _select_column(self._asked.contract, unit.column)
        return _answer(records.transform(_evaluate(contract, self._asked.poison, self._asked.schemas)))


def _evaluate(
    contract: Contract, poison: Sequence[PoisonRecord], schemas: SchemaFiles | None
) -> Callable[[DataFrame], DataFrame]:
    """Evaluate all of each record, and return a row for each that makes a text which no line of raw has room for."""

    def select(records: DataFrame) -> DataFrame:
        found = records.transform(interpret(contract, poison, schemas))
        types = analyze_contract(records.sparkSession, contract).types
        texts = [name for name, kind in types.items() if isinstance(kind, StringType)]
        is_giant = F.greatest(F.lit(0), F.lit(0), *map(F.octet_length, texts)) > LARGEST_RECORD
        is_evaluated = F.xxhash64("reason", *name_values(contract)) == 0  # for next to no record
        return found.where(is_giant | is_evaluated).select(is_giant.alias("is_giant"))

    return select


def _answer(query: DataFrame) -> Sequence[object] | None:
    giants = [row for row in query.collect() if row.is_giant]
    return [True, f"it makes a text of more than {LARGEST_RECORD >> 20} MiB"] if giants else None


def _select_column(contract: Contract, column: str | None) -> Contract:
    """Return the contract with the SQL of that column alone, as `name_values` names it; as it is for None."""
    if column is None:
        return contract
    return replace(
        contract,
        event_time=contract.event_time if column == "event_ms" else _ANY_TIME,
        keys=tuple(key for key in contract.keys if column == f"k_{key.name}"),
        measures=tuple(measure for measure in contract.measures if column == f"m_{measure.name}"),
    )


def main() -> None:
    """Answer until standard input ends, which ends the process and its JVM even in the middle of a unit."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # a JVM prints to it
        asked: ProbeRequest = pickle.load(sys.stdin.buffer)
        units: Queue[Unit] = Queue()
        threading.Thread(target=_take, args=(units,), daemon=True).start()

        def say(answer: object) -> None:
            answers.write(json.dumps(answer) + "\n")
            answers.flush()

        with open_session("onceover search for poison records") as spark:
            evaluation: _Evaluation | _LineEvaluation
            if isinstance(asked.source, KafkaSource):
                evaluation = _Evaluation(spark, asked.source, asked)
            else:
                evaluation = _LineEvaluation(spark, asked.source, asked)
            say([SparkContext._gateway.proc.pid, evaluation.lines])  # type: ignore[union-attr]
            while True:
                unit = units.get()
                try:
                    answer = evaluation.run(unit)
                except (Py4JNetworkError, ConnectionError):
                    os._exit(1)  # its JVM has died
                except (PySparkException, Py4JError) as error:
                    say([_OWN_ERROR not in str(error), summarize(error)])
                else:
                    say(answer)


def _take(units: Queue[Unit]) -> None:
    with suppress(ValueError):  # a line without its end
        for line in sys.stdin.buffer:
            units.put(Unit(*json.loads(line)))
    os.killpg(0, signal.SIGKILL)  # the process leads a group of its own


if __name__ == "__main__":
    main()
