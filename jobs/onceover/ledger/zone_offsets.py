"""Offsets of time zones by PostgreSQL's data."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg.errors import InvalidParameterValue

from onceover.ledger.database import Connection


def read_zone_offsets(connection: Connection, zone: str, moments: Sequence[int]) -> dict[int, int] | None:
    """Return the zone's offset from UTC at each of these seconds since 1970, None for a zone that is not known."""
    query = (
        "SELECT s AS moment, extract(epoch FROM to_timestamp(s) AT TIME ZONE %s)::bigint - s AS seconds "
        "FROM unnest(%s::bigint[]) AS s"
    )
    try:
        with connection.transaction():
            return {row["moment"]: row["seconds"] for row in connection.execute(query, [zone, list(moments)])}
    except InvalidParameterValue:
        return None
