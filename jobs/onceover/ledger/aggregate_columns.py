"""The columns of an aggregate table: their definitions, and how an increment adds to a row."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from psycopg import sql

from onceover.model.contract import Column, Columns, DerivedColumn
from onceover.model.measures import DISTINCT, RECORD_KEY_LENGTH, SKETCH_TYPE

_MERGE = {
    "count": "coalesce({old}, 0) + coalesce({new}, 0)",
    "sum": "coalesce({old} + {new}, {old}, {new})",
    "min": "least({old}, {new})",
    "max": "greatest({old}, {new})",
    "bit_or": "coalesce({old} | {new}, {old}, {new})",
}

# Spark compares strings by their bytes; least and greatest must too, whatever the database's collation.
_COLUMN_TYPES = {"text": 'text COLLATE "C"'}

# `div` gives the exact whole quotient, where `/` rounds to some digits before `round` would round again.
_AVG = "sign({sum}) * div(2 * abs({sum}) * {up} + {count}, 2 * nullif({count}, 0)) * {down}"


def define(column: Column | DerivedColumn) -> sql.Composed:
    """Return the definition of a column."""
    kind = sql.SQL(_COLUMN_TYPES.get(column.type, column.type))
    return sql.SQL("{} {}").format(sql.Identifier(column.name), kind)


def define_staged(column: DerivedColumn) -> sql.Composed:
    """Return the definition of a column that PostgreSQL computes in a staging table. Aggregates have none such, for
    logical replication leaves them out."""
    parts = [sql.SQL("{}").format(sql.Identifier(part)) for part in column.of.parts]
    return sql.SQL("{} GENERATED ALWAYS AS ({}) STORED").format(define(column), _derive(column, parts))


def show(column: Column | DerivedColumn) -> sql.Composed:
    """Return what a person reads of a column: all of it, or some digits of a sketch's hash, which is a page long."""
    text = sql.SQL("left(md5({}::text), 8)" if column.type == SKETCH_TYPE else "{}")
    return text.format(sql.Identifier(column.name))


def merge(columns: Columns) -> sql.Composed:
    """Return what to SET where row `excluded` is added to row `t`."""
    merged = {each.name: _merge(each) for each in columns.measures}
    values = merged | {each.name: _derive(each, [merged[part] for part in each.of.parts]) for each in columns.derived}
    return sql.SQL(", ").join(sql.SQL("{} = {}").format(sql.Identifier(name), value) for name, value in values.items())


def _merge(column: Column) -> sql.Composed:
    name = sql.Identifier(column.name)
    return sql.SQL(_MERGE[str(column.operation)]).format(
        old=sql.SQL("t.{}").format(name), new=sql.SQL("excluded.{}").format(name)
    )


def _derive(column: DerivedColumn, parts: Sequence[sql.Composed]) -> sql.Composed:
    if column.of.operation == "avg":
        total, count = sql.SQL("({})::numeric").format(parts[0]), sql.SQL("({})").format(parts[1])
        up, down = (sql.Literal(Decimal(1).scaleb(scale)) for scale in (column.of.scale, -column.of.scale))
        return sql.SQL(_AVG).format(sum=total, count=count, up=up, down=down)
    if column.of.operation == DISTINCT:
        return sql.SQL("aggregates.estimate_distinct({})").format(parts[0])
    value = sql.SQL("substr({}, {})").format(parts[0], sql.Literal(RECORD_KEY_LENGTH + 1))
    return value if column.type == "text" else sql.SQL("({})::{}").format(value, sql.SQL(column.type))
