"""Averages and values by time in the real ledger's tables, against plain Python, near real time and replaced."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction

import pytest
from bench.large_ledger import drop_pipeline, pipeline
from tests.onceover.ledger.noon_rows import BATCH, NOON, insert_noon

from onceover.ledger.catalog import RegisteredPipeline, register_pipeline
from onceover.ledger.database import Connection
from onceover.model.contract import Column, Columns, DerivedColumn
from onceover.model.measures import Derived

pytestmark = pytest.mark.stack
SCALES = (0, 2, 18)
TYPES = {"text": "a 1", "boolean": "true", "smallint": "-7", "integer": "2147483647", "bigint": "-9223372036854775808",
         "numeric": "-0.0000001"}  # fmt: skip


@pytest.fixture
def averages(connection: Connection) -> Iterator[RegisteredPipeline]:
    """A pipeline with an average of each of SCALES, of the same numbers."""
    derived = [Derived(f"mean{scale}", "avg", scale) for scale in SCALES]
    parts = [Column(part, "numeric", part.rpartition("_")[2]) for of in derived for part in of.parts]
    columns = Columns((), tuple(parts), tuple(DerivedColumn("numeric", of) for of in derived))
    registered = register_pipeline(connection, pipeline(f"d{uuid.uuid4().hex[:10]}"), columns)
    insert_noon(connection, registered)
    yield registered
    drop_pipeline(connection, registered)


def divide(total: Fraction, count: int, scale: int) -> Decimal:
    """Return the quotient, rounded half away from zero, by whole numbers alone."""
    quotient = abs(total) * 10**scale / count
    whole = (2 * quotient.numerator + quotient.denominator) // (2 * quotient.denominator)
    return Decimal(f"{whole if total >= 0 else -whole}E-{scale}")


def read_averages(connection: Connection, registered: RegisteredPipeline) -> list[Decimal | None]:
    (row,) = connection.execute(f"SELECT * FROM aggregates.{registered.name}").fetchall()
    return [row[f"mean{scale}"] for scale in SCALES]


def stage(connection: Connection, registered: RegisteredPipeline, total: Decimal | None, count: int) -> None:
    values = [r"\N" if total is None else f"{total:f}", str(count)] * len(SCALES)
    registered.table.stage(connection, BATCH, ["\t".join([NOON.isoformat(), *values])])


def test_average_is_exact_after_each_increment_and_repair(connection: Connection, averages: RegisteredPipeline) -> None:
    draw = random.Random(7)
    total, count = Fraction(0), 0
    for step in range(300):
        count_added = draw.choice((1, 2, 3, 7, 1_000_003))
        added = Decimal(draw.randint(-(10 ** draw.choice((1, 9, 27))), 10**27)).scaleb(-draw.choice((0, 1, 9)))
        if step % 50 == 0:
            stage(connection, averages, added, count_added)
            averages.table.replace(connection, BATCH, NOON, step)
            total, count = Fraction(added), count_added
        else:
            stage(connection, averages, added, count_added)
            averages.table.increment(connection, BATCH)
            total, count = total + Fraction(added), count + count_added
        expected = [divide(total, count, scale) for scale in SCALES]
        assert read_averages(connection, averages) == expected, (total, count)


def test_half_rounds_away_from_zero_and_digits_stay(connection: Connection, averages: RegisteredPipeline) -> None:
    for total, shown in (("1", "0.13"), ("-1", "-0.13"), ("8", "1.00"), ("0", "0.00")):
        stage(connection, averages, Decimal(total), 8)
        averages.table.replace(connection, BATCH, NOON, 1)
        assert str(read_averages(connection, averages)[1]) == shown


def test_average_of_no_value_is_null(connection: Connection, averages: RegisteredPipeline) -> None:
    stage(connection, averages, None, 0)
    averages.table.increment(connection, BATCH)
    assert read_averages(connection, averages) == [None, None, None]
    stage(connection, averages, Decimal(5), 2)
    averages.table.increment(connection, BATCH)
    assert read_averages(connection, averages)[1] == Decimal("2.50")


def test_changed_average_changes_the_fingerprint(connection: Connection, averages: RegisteredPipeline) -> None:
    stage(connection, averages, Decimal(5), 2)
    averages.table.replace(connection, BATCH, NOON, 1)
    proved = averages.table.fingerprint(connection, NOON)
    assert proved == averages.table.fingerprint(connection, NOON, BATCH)
    connection.execute(f"UPDATE aggregates.{averages.name} SET mean2 = 3")
    assert averages.table.fingerprint(connection, NOON) != proved
    assert list(averages.table.compare(connection, BATCH, [NOON], 9)) == [NOON]


@pytest.mark.parametrize("kind", TYPES)
def test_value_by_time_keeps_its_type(connection: Connection, kind: str) -> None:
    derived = (Derived("first", "min_by"), Derived("last", "max_by"))
    measures = tuple(Column(each.parts[0], "text", each.operation[:3]) for each in derived)
    columns = Columns((), measures, tuple(DerivedColumn(kind, each) for each in derived))
    registered = register_pipeline(connection, pipeline(f"d{uuid.uuid4().hex[:10]}"), columns)
    insert_noon(connection, registered)
    try:
        increment(connection, registered, [f"{5:013} {1:010} {9:019} {TYPES[kind]}"] * 2)
        increment(connection, registered, [f"{5:013} {1:010} {10:019} 0", f"{5:013} {1:010} {8:019} 0"])
        row = connection.execute(
            f"SELECT first::text, last::text, pg_typeof(last)::text AS kind FROM aggregates.{registered.name}"
        ).fetchone()
        shown = TYPES[kind]
        assert row == {
            "first": shown,
            "last": shown,
            "kind": "timestamp with time zone" if kind == "timestamptz" else kind,
        }
    finally:
        drop_pipeline(connection, registered)


def increment(connection: Connection, registered: RegisteredPipeline, records: Sequence[str]) -> None:
    registered.table.stage(connection, BATCH, ["\t".join([NOON.isoformat(), *records])])
    registered.table.increment(connection, BATCH)
