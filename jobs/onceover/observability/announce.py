"""What other DAGs hear of published windows: one message for each request, no larger than Airflow likes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Final

from onceover.ledger.database import Connection
from onceover.ledger.repair_tries import offer_published
from onceover.model.json_text import to_plain

MAX_OFFERED: Final = 5_000
MAX_WINDOWS: Final = 500
"""Windows of one message: a larger request has several."""


def collect_announcements(connection: Connection, run: str) -> list[Mapping[str, Any]]:
    """Return the windows that were published and not announced yet, as offered to this run: by pipeline and request,
    what an event carries, in JSON's types."""
    return list(build_announcements(offer_published(connection, run, MAX_OFFERED)))


def build_announcements(rows: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """Yield the announcements of published windows, which are in order of pipeline and request."""
    for (pipeline, request_id), group in groupby(rows, key=lambda row: (row["pipeline"], row["request_id"])):
        published = list(group)
        first = published[0]
        for at in range(0, len(published), MAX_WINDOWS):
            windows = [
                {name: row[name] for name in ("start", "end", "revision", "before", "after")}
                for row in published[at : at + MAX_WINDOWS]
            ]
            extra = {
                "pipeline": pipeline,
                "by": "restore" if first["state"] == "restored" else "repair",
                "via": first["via"],
                "who": first["who"],
                "reason": first["why"],
                "request": request_id,
                "dag_id": first["dag_id"],
                "run_id": first["run_id"],
                "windows": windows,
            }
            yield to_plain(extra)
