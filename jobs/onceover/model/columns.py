"""The columns of a pipeline's aggregates: names, roles and PostgreSQL types, as the ledger keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from onceover.errors import TerminalError

KEY_TYPES = frozenset({"text", "boolean", "smallint", "integer", "bigint", "numeric", "date", "timestamptz"})
MEASURE_TYPES = KEY_TYPES | {"real", "double precision"}
OPERATIONS = ("count", "sum", "min", "max")


@dataclass(frozen=True, slots=True)
class Column:
    """One key (`operation` is None) or one measure."""

    name: str
    type: str
    operation: str | None = None

    def __post_init__(self) -> None:
        allowed = KEY_TYPES if self.operation is None else MEASURE_TYPES
        if self.type not in allowed or (self.operation is not None and self.operation not in OPERATIONS):
            raise TerminalError(f"column {self.name}: {self.operation or 'key'} of type {self.type} is not supported")


@dataclass(frozen=True, slots=True)
class Columns:
    """All columns of a pipeline's aggregates, keys first."""

    keys: tuple[Column, ...]
    measures: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in (*self.keys, *self.measures))

    def as_json(self) -> dict[str, list[dict[str, str | None]]]:
        return {"keys": [asdict(c) for c in self.keys], "measures": [asdict(c) for c in self.measures]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Sequence[Mapping[str, str]]]) -> Columns:
        return cls(
            tuple(Column(**c) for c in stored["keys"]),
            tuple(Column(**c) for c in stored["measures"]),
        )
