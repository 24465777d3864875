"""Measures: what a contract's column may do with records."""

from __future__ import annotations

from dataclasses import dataclass

OPERATIONS = ("count", "sum", "min", "max")
SKIPPED = "skipped"
"""The operation of a measure that counts the records that another measure skipped, and the end of its name."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A column that aggregates records. `operation` is count, sum, min or max, and `sql` of a count may be `*`; or
    `skipped`, which counts the records for which the SQL of the measure that `sql` names threw."""

    name: str
    operation: str
    sql: str
