"""The demo's own queries in PostgreSQL, as any reader would run them: aggregates and a few totals."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg

from onceover.model.finding_kinds import Kind
from onceover_demo.oracle import Key, Row


def aggregates(postgres: str) -> dict[Key, Row]:
    """Return the aggregates as a reader sees them."""
    query = (
        "SELECT extract(epoch FROM window_start)::bigint, origin, carrier, flights, delay_sum, delay_max "
        "FROM aggregates.flights"
    )
    with psycopg.connect(postgres) as connection:
        return {(r[0], r[1], r[2]): (int(r[3]), int(r[4]), int(r[5])) for r in connection.execute(query)}


def totals(postgres: str) -> Mapping[str, int]:
    """Return the ledger's counts of batches, landings, lines and late records."""
    query = """
        SELECT (SELECT count(*) FROM onceover.batch WHERE state = 'landed' AND pipeline = 'flights'),
          (SELECT count(*) FROM onceover.batch WHERE state = 'superseded' AND pipeline = 'flights'),
          count(*) FILTER (WHERE window_start IS NOT NULL),
          coalesce(sum(records) FILTER (WHERE window_start IS NOT NULL), 0),
          coalesce(sum(records) FILTER (WHERE late), 0),
          coalesce(sum(records) FILTER (WHERE quarantine_day IS NOT NULL), 0)
        FROM onceover.landing WHERE pipeline = 'flights'"""
    names = ("landed", "superseded", "landings", "lines", "late", "quarantined")
    with psycopg.connect(postgres) as connection:
        row = connection.execute(query).fetchone()
    return dict(zip(names, map(int, row or (0,) * len(names)), strict=True))


def is_every_window_closed(postgres: str) -> bool:
    """Return whether the watermark has closed every window: all was read, and ingest was idle for `idle_after`."""
    with psycopg.connect(postgres) as connection:
        row = connection.execute("SELECT every_window_closed FROM onceover.pipeline WHERE name = 'flights'").fetchone()
    return bool(row and row[0])


def windows_by_state(postgres: str) -> Mapping[str, int]:
    """Count the windows that are certified, by basis, and those that are not."""
    query = """
        SELECT CASE WHEN c.version = w.version THEN 'certified from ' || c.basis ELSE 'not certified' END, count(*)
        FROM onceover."window" w LEFT JOIN onceover.certificate c USING (certificate_id)
        WHERE w.pipeline = 'flights' GROUP BY 1 ORDER BY 1"""
    with psycopg.connect(postgres) as connection:
        return {str(state): int(count) for state, count in connection.execute(query)}


def certificates_and_rows(postgres: str) -> tuple[str, str]:
    """Return fingerprints of all certificates and of all aggregates with their row versions: any write changes them."""
    with psycopg.connect(postgres) as connection:
        row = connection.execute(
            """
            SELECT (SELECT md5(string_agg(t.xmin::text || t::text, ',' ORDER BY t::text)) FROM onceover.certificate t),
              (SELECT md5(string_agg(t.xmin::text || t::text, ',' ORDER BY t::text)) FROM aggregates.flights t)"""
        ).fetchone()
    return (str(row[0]), str(row[1])) if row else ("", "")


def findings(postgres: str) -> Mapping[str, tuple[int, int]]:
    """Count, by kind of finding, the windows that ever had it and those that have it now."""
    query = """
        SELECT kind, count(DISTINCT window_start), count(DISTINCT window_start) FILTER (WHERE resolved_at IS NULL)
        FROM onceover.finding
        WHERE pipeline = 'flights' AND window_start IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1"""
    with psycopg.connect(postgres) as connection:
        return {str(kind): (int(ever), int(now)) for kind, ever, now in connection.execute(query)}


def late_without_spark(postgres: str) -> int:
    """Count the windows with late records that were certified from the ledger alone."""
    query = """
        SELECT count(DISTINCT window_start) FROM onceover.finding
        WHERE pipeline = 'flights' AND kind = %s AND resolution = 'certified from the ledger'"""
    with psycopg.connect(postgres) as connection:
        row = connection.execute(query, [Kind.LATE]).fetchone()
    return int(row[0]) if row else 0
