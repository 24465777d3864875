"""The rows that a repair published, read again: what the database holds is what was certified."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from onceover.ledger.aggregates import Fingerprint
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.certificates import revoke
from onceover.ledger.database import Connection
from onceover.ledger.windows import cut_into_chunks


def reread_published(connection: Connection, registered: RegisteredPipeline, request_id: int) -> list[dict[str, Any]]:
    """Re-read the rows that a request published and revoke certificates that differ. Returns the request's repairs.

    A window that changed since (a late record) is left to the next detection, which judges it again. Each chunk of
    windows is a transaction of its own, so that ingest never waits long for a window.
    """
    published = connection.execute(
        "SELECT window_start FROM onceover.repair WHERE request_id = %s AND pipeline = %s AND state = 'published'",
        [request_id, registered.name],
    ).fetchall()
    for chunk in cut_into_chunks(row["window_start"] for row in published):
        with connection.transaction():
            _confirm_chunk(connection, registered, request_id, chunk)
    return list(
        connection.execute(
            "SELECT window_start, state, reason, failures, blocked, duplicates, lines_read, findings "
            "FROM onceover.repair WHERE request_id = %s AND pipeline = %s ORDER BY window_start",
            [request_id, registered.name],
        )
    )


def _confirm_chunk(
    connection: Connection, registered: RegisteredPipeline, request_id: int, starts: list[datetime]
) -> None:
    rows = connection.execute(
        """
        SELECT r.repair_id, r.window_start, c.certificate_id, c.aggregate_rows, c.aggregate_hash, c.contract_version
        FROM onceover.repair r JOIN onceover.certificate c ON c.repair_id = r.repair_id
        JOIN onceover."window" w ON w.pipeline = r.pipeline AND w.window_start = r.window_start
          AND w.version = c.version AND w.certificate_id = c.certificate_id
        WHERE r.request_id = %s AND r.pipeline = %s AND r.window_start = ANY(%s) AND r.state = 'published'
        ORDER BY r.window_start FOR UPDATE OF w
        """,
        [request_id, registered.name, starts],
    ).fetchall()
    found: dict[datetime, Fingerprint] = {}
    for version in {row["contract_version"] for row in rows}:
        of_version = [row["window_start"] for row in rows if row["contract_version"] == version]
        found |= registered.select_version(version).table.fingerprints(connection, of_version)
    for row in rows:
        reread = found[row["window_start"]]
        same = (reread.rows, reread.hash) == (row["aggregate_rows"], row["aggregate_hash"])
        why = f"re-read {reread.rows} rows that differ from the {row['aggregate_rows']} published"
        connection.execute(
            "UPDATE onceover.repair SET state = %s, reason = %s WHERE repair_id = %s",
            ["confirmed", None, row["repair_id"]] if same else ["revoked", why, row["repair_id"]],
        )
        if not same:
            revoke(connection, registered.name, row["certificate_id"], "the re-read rows differ from those published")
