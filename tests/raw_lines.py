"""Lines that tests plant in raw. They count by their value: what a contract made of it is left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from onceover.lines.line_format import Line, encode
from onceover.model.record import Record

CONTRACT = "V1-00c0ffee00c0ffee"


def date_record(record: Record, event_ms: int, contract: str = CONTRACT) -> Line:
    """Return the line of a record with that event time."""
    return Line(record, event_ms, contract, None)


def quarantine_record(record: Record, reason: str, contract: str = CONTRACT) -> Line:
    """Return the line of a record in quarantine."""
    return Line(record, None, contract, (reason.encode(),))


def change_record(line: Line, **fields: Any) -> Line:
    """Return the line with other fields of its record, and no columns that could differ from them."""
    return replace(line, record=replace(line.record, **fields), columns=line.columns if line.reason else None)


def join_append(lines: Iterable[bytes]) -> bytes:
    """Return the bytes of one append, as ingest sends them: each begins and ends with a newline."""
    text = b"\n".join(lines)
    return b"\n" + text + b"\n" if text else b""


def encode_append(*lines: Line) -> bytes:
    """Return the bytes of one append of these lines."""
    return join_append(map(encode, lines))
