"""Measures: what a contract's column may do with records."""

from __future__ import annotations

from dataclasses import dataclass

STORED = ("count", "sum", "min", "max", "bit_or")
"""The operations by which columns are merged."""
BY_TIME = {"min_by": "min", "max_by": "max"}
"""The operations that take the value of the record with the smallest or largest event time, ties by its ID."""
DISTINCT = "approx_count_distinct"
"""The operation that estimates how many values differ, from a sketch of them."""
OPERATIONS = ("count", "count_if", "sum", "min", "max", "avg", *BY_TIME, DISTINCT)
"""Those that a TOML names."""
SKIPPED = "skipped"
"""The operation of a measure that counts the records that another measure skipped, and the end of its name."""
RECORD_KEY_LENGTH = 45
"""Characters of a text before the value of its record: 13 digits of event time, 10 and 19 of the ID, 3 blanks."""
# A multiresolution bitmap (Estan, Varghese and Fisk, Bitmap Algorithms for Counting Active Flows on High-Speed Links,
# 2006). A value sets one bit, found by its hash: half of all values in the first component, a quarter in the next.
SKETCH_COMPONENTS = 24
SKETCH_COMPONENT_BITS = 256  # errors of 5 %, as of Spark's function of this name
SKETCH_BYTES = SKETCH_COMPONENTS * SKETCH_COMPONENT_BITS // 8
SKETCH_TYPE = f"bit({SKETCH_BYTES * 8})"
"""PostgreSQL's type of a sketch."""
_MERGED_BY = {**BY_TIME, DISTINCT: "bit_or"}
_PARTS = {"avg": ("sum", "count"), "min_by": ("record",), "max_by": ("record",), DISTINCT: ("sketch",)}


@dataclass(frozen=True, slots=True)
class Measure:
    """A column that aggregates records. `operation` is one of OPERATIONS but avg, and `sql` of a count may be `*`; or
    `skipped`, which counts the records for which the SQL of the measure that `sql` names threw."""

    name: str
    operation: str
    sql: str

    @property
    def stored(self) -> str:
        """The operation of its column, one of STORED."""
        return self.operation if self.operation in STORED else _MERGED_BY.get(self.operation, "count")


@dataclass(frozen=True, slots=True)
class Derived:
    """A column that PostgreSQL computes of the measures of its row: an avg, rounded half away from zero to `scale`
    digits after the point, the value of a min_by or max_by, or the estimate of an approx_count_distinct."""

    name: str
    operation: str
    scale: int = 0

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the measures that it is computed of, which merge and are proved."""
        return tuple(f"{self.name}_{part}" for part in _PARTS[self.operation])


def split_measure(name: str, operation: str, sql: str, scale: int) -> tuple[tuple[Measure, ...], tuple[Derived, ...]]:
    """Return the measures that are stored for one of a TOML, and the column that is derived of them, if any."""
    if operation not in _PARTS:
        return (Measure(name, operation, sql),), ()
    derived = Derived(name, operation, scale if operation == "avg" else 0)
    operations = ("sum", "count") if operation == "avg" else (operation,)
    return tuple(Measure(part, each, sql) for part, each in zip(derived.parts, operations, strict=True)), (derived,)
