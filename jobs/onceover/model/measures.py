"""Measures: what a contract's column may do with records."""

from __future__ import annotations

from dataclasses import dataclass

STORED = ("count", "sum", "min", "max")
"""The operations by which columns are merged."""
OPERATIONS = ("count", "count_if", "sum", "min", "max")
"""Those that a TOML names."""
SKIPPED = "skipped"
"""The operation of a measure that counts the records that another measure skipped, and the end of its name."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A column that aggregates records. `operation` is one of OPERATIONS, and `sql` of a count may be `*`; or
    `skipped`, which counts the records for which the SQL of the measure that `sql` names threw."""

    name: str
    operation: str
    sql: str

    @property
    def stored(self) -> str:
        """The operation of its column, one of STORED."""
        return self.operation if self.operation in STORED else "count"
