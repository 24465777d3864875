"""Rows as COPY text are what PostgreSQL reads them as, of each type that a contract's column may have."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from onceover.ledger.database import Connection
from onceover.lines.copy_text import format_rows

TYPES = {
    "window_ms": (pa.int64(), "timestamptz"),
    "s": (pa.string(), "text"),
    "b": (pa.bool_(), "boolean"),
    "y": (pa.int8(), "smallint"),
    "h": (pa.int16(), "smallint"),
    "i": (pa.int32(), "integer"),
    "l": (pa.int64(), "bigint"),
    "d": (pa.decimal128(38, 7), "numeric"),
    "day": (pa.date32(), "date"),
    "at": (pa.timestamp("us", "UTC"), "timestamptz"),
}
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ROWS: list[tuple[Any, ...]] = [
    (NOON, "a", True, 1, 2, 3, 4, Decimal("5.0000001"), date(2026, 3, 1), NOON + timedelta(microseconds=1)),
    (NOON, None, None, None, None, None, None, None, None, None),
    (datetime(1970, 1, 1, tzinfo=UTC), "", False, -128, -(2**15), -(2**31), -(2**63), Decimal("-9" + "9" * 30),
     date(1, 1, 1), datetime(1, 1, 1, tzinfo=UTC)),
    (datetime(2286, 11, 20, tzinfo=UTC), "\\N", True, 127, 2**15 - 1, 2**31 - 1, 2**63 - 1, Decimal("0E-7"),
     date(9999, 12, 31), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    *((NOON, text, None, None, None, None, None, Decimal("-1E-7"), None, None)
      for text in ("\\", "\\\\t", "\t", "\n", "\r", "a\r\nb", "\\.", '"', "\x0b", "\u2028", "é\U0001f600", "\x85")),
]  # fmt: skip


def make_table() -> pa.Table:
    columns = dict(zip(TYPES, map(list, zip(*ROWS, strict=True)), strict=True))
    columns["window_ms"] = [round(moment.timestamp() * 1000) for moment in columns["window_ms"]]
    return pa.table({name: pa.array(columns[name], kind) for name, (kind, _) in TYPES.items()})


def test_rows_are_a_line_each_whatever_they_hold() -> None:
    lines = format_rows(make_table()).split(b"\n")
    assert len(lines) == len(ROWS) + 1
    assert lines[0] == (
        b"2026-03-01 12:00:00+00\ta\ttrue\t1\t2\t3\t4\t5.0000001\t2026-03-01\t2026-03-01 12:00:00.000001Z"
    )
    assert lines[1] == b"2026-03-01 12:00:00+00" + b"\t\\N" * 9
    texts = [line.split(b"\t")[1] for line in lines[3:13]]
    assert texts == [rb"\\N", rb"\\", rb"\\\\t", rb"\t", rb"\n", rb"\r", rb"a\r\nb", rb"\\.", b'"', b"\x0b"]
    assert format_rows(make_table()[:0]) == b""
    assert format_rows(make_table()[:2].select(["window_ms"])) == b"2026-03-01 12:00:00+00\n" * 2


def test_sketch_is_written_as_bits_and_null_as_null() -> None:
    rows = pa.table({"window_ms": [0, 0], "bits": pa.array([b"\x0a\xff", None], pa.binary())})
    assert format_rows(rows) == b"1970-01-01 00:00:00+00\tx0aff\n1970-01-01 00:00:00+00\t\\N\n"


@pytest.mark.stack
def test_postgres_reads_the_rows_as_they_were(connection: Connection) -> None:
    with connection.transaction():
        columns = ", ".join(f'"{name}" {kind}' for name, (_, kind) in TYPES.items())
        connection.execute(f"CREATE TEMPORARY TABLE given (n serial, {columns}) ON COMMIT DROP")
        names = ", ".join(f'"{name}"' for name in TYPES)
        with connection.cursor() as cursor, cursor.copy(f"COPY given ({names}) FROM STDIN") as copy:
            copy.write(format_rows(make_table()))
        rows = connection.execute(f"SELECT {names} FROM given ORDER BY n").fetchall()
    assert [tuple(row.values()) for row in rows] == ROWS
