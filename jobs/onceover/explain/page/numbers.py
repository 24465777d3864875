"""A window's numbers by key, before and after the repair that replaced them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from onceover.ledger.catalog import read_registered
from onceover.ledger.database import Connection
from onceover.ledger.page_overview import read_consistently
from onceover.ledger.window_history import list_row_changes

MAX_ROWS: Final = 100


def read_numbers(
    connection: Connection, name: str, window_start: datetime, repair_id: int | None = None
) -> Mapping[str, Any]:
    """Return `measures`, and `rows` of `key`, `before` and `after` whose measures a repair changed, at most MAX_ROWS
    of them, with how many were `left_out`. Without a repair's number, compares the last rows that any repair replaced
    with the rows of now; `revisions` is None if none replaced rows. Raise UsageError for a repair that kept no rows."""
    with read_consistently(connection):
        registered = read_registered(connection, name)
        changes = list_row_changes(connection, registered, window_start, repair_id, MAX_ROWS)
    rows = changes["rows"] if changes else []
    return {
        "measures": registered.columns.shown,
        "revisions": {"before": changes["before"], "after": changes["after"]} if changes else None,
        "rows": rows,
        "left_out": changes["differing"] - len(rows) if changes else 0,
    }
