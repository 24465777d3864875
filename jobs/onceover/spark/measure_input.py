"""What a measure takes of a record."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from onceover.model.measures import BY_TIME, DISTINCT, SKETCH_COMPONENT_BITS, SKETCH_COMPONENTS, Measure
from onceover.spark.contract_check import CheckedContract


def cast_input(read: Callable[[str], Column], measure: Measure, checked: CheckedContract, event_ms: Column) -> Column:
    """Return the input of a measure, of a type whose sum cannot overflow. `read` gives the column of SQL."""
    if measure.operation == "count":
        return F.lit(1) if measure.sql == "*" else read(measure.sql).isNotNull().cast("int")
    if measure.operation == "count_if":
        return F.when(read(measure.sql), 1).otherwise(0)
    if measure.operation in BY_TIME:
        return _key_by_record(event_ms, read(measure.sql))
    if measure.operation == DISTINCT:
        return _find_bit(read(measure.sql))
    return read(measure.sql).cast(checked.inputs[measure.name])


def _key_by_record(event_ms: Column, value: Column) -> Column:
    """Return RECORD_KEY_LENGTH characters that sort by event time and ID, then the value as text: the smallest and the
    largest of them are those of min_by and max_by. Null where the value is, so that such a record does not count."""
    parts = ((event_ms, 13), (F.col("kafka_partition"), 10), (F.col("kafka_offset"), 19))
    digits = [F.concat(F.lpad(part.cast("string"), length, "0"), F.lit(" ")) for part, length in parts]
    return F.concat(*digits, value.cast("string"))


def _find_bit(value: Column) -> Column:
    """Return the place of the value's bit in a sketch, null where the value is. The last bits of its XXH64 (seed 42),
    over the value's text, are the place in the component; the zeros at the end of the others are the component."""
    digest = F.xxhash64(value.cast("string"))
    others = F.shiftrightunsigned(digest, SKETCH_COMPONENT_BITS.bit_length() - 1)
    zeros = F.bit_count(others.bitwiseAND(-others) - 1)
    component = F.least(zeros, F.lit(SKETCH_COMPONENTS - 1))
    place = component * SKETCH_COMPONENT_BITS + digest.bitwiseAND(SKETCH_COMPONENT_BITS - 1)
    return F.when(value.isNotNull(), place.cast("int"))
