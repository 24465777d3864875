"""Progress of a repair: how many of its windows were claimed, published, confirmed, and are certified now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from onceover.errors import UsageError
from onceover.ledger.catalog import read_registered
from onceover.ledger.database import Connection
from onceover.ledger.page_overview import read_consistently
from onceover.ledger.repair_requests import (
    count_requested_windows,
    find_request,
    find_run_requests,
    list_requested_windows,
)
from onceover.model.wording import pluralize

MAX_WINDOWS: Final = 500
_ENDED = frozenset({"confirmed", "revoked", "failed", "unneeded", "left", "restored", "cancelled"})


def read_run(connection: Connection, dag_id: str, run_id: str) -> list[Mapping[str, Any]]:
    """Return the repair requests of a run of Airflow, empty until it has made one: nothing was to be repaired, or the
    run has not judged yet."""
    with read_consistently(connection):
        return [_read(connection, row) for row in find_run_requests(connection, dag_id, run_id)]


def read_request(connection: Connection, request_id: int) -> Mapping[str, Any]:
    """Return a repair request as `find_request` does, with its progress: `states` counts its windows by their repair's
    state, `certified` those that are certified now, by this repair or another; `done`: no window of it waits for this
    repair; `sentence` says how far it is, or how it ended; `windows` are the first 500, failed ones first, each with
    its `local` start as in Window. Raise UsageError for an unknown number."""
    with read_consistently(connection):
        row = find_request(connection, request_id)
        if row is None:
            raise UsageError(f"there is no repair request {request_id}")
        return _read(connection, row)


def _read(connection: Connection, row: Mapping[str, Any]) -> Mapping[str, Any]:
    counts = count_requested_windows(connection, row["request_id"])
    states = Counter[str]()
    for each in counts:
        states[each["state"]] += each["n"]
    total, certified = states.total(), sum(each["n"] for each in counts if each["is_certified"])
    windowing = read_registered(connection, row["pipeline"]).windowing
    windows = list_requested_windows(connection, row["request_id"], MAX_WINDOWS)
    done = not states.keys() - _ENDED
    return {
        **row,
        "states": states,
        "total": total,
        "certified": certified,
        "done": done,
        "sentence": describe_progress(states, total, certified, done),
        "windows": [{**each, "local": windowing.describe_local(each["start"])} for each in windows],
    }


def describe_progress(states: Mapping[str, int], total: int, certified: int, done: bool) -> str:
    """Describe how far a repair is, or how it ended, by what the ledger says of each window."""
    if not total:
        return "It repairs no window."
    counts = ", ".join(f"{number:,} {state}" for state, number in sorted(states.items()))
    if not done:
        return f"{certified:,} of {pluralize(total, 'window')} certified so far: {counts}."
    if certified == total:
        return f"Every window is certified: {counts}." if total > 1 else "The window is certified."
    return f"{certified:,} of {pluralize(total, 'window')} certified, the others are not: {counts}."
