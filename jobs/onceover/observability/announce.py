"""What other DAGs hear of a day whose windows have other rows now: each request with its windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from onceover.ledger.announcements import offer_days
from onceover.ledger.database import Connection
from onceover.model.json_text import to_plain

_OF_DAY: Final = ("pipeline", "day")
_OF_REQUEST: Final = ("by", "via", "who", "reason", "request", "dag_id", "run_id")
_OF_WINDOW: Final = ("start", "end", "revision", "certificate", "verdict", "before", "after")


def collect_announcements(connection: Connection, run: str, pipelines: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the days of these pipelines that are to be announced, as offered to this run: by pipeline and day, what
    the event of each carries as `published`, in JSON's types."""
    return list(build_announcements(offer_days(connection, run, pipelines)))


def build_announcements(rows: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """Yield the announcement of each day, from windows in order of pipeline, day and request."""
    for (pipeline, day), of_day in groupby(rows, key=itemgetter(*_OF_DAY)):
        published = [
            {"pipeline": pipeline, **dict(zip(_OF_REQUEST, request, strict=True)),
             "windows": [{name: row[name] for name in _OF_WINDOW} for row in windows]}
            for request, windows in groupby(of_day, key=itemgetter(*_OF_REQUEST))
        ]  # fmt: skip
        yield to_plain({"pipeline": pipeline, "day": day, "published": published})
