"""What Airflow and the command line ask for when something is to be proved again. Plain values in and out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from onceover.errors import TransientError

if TYPE_CHECKING:
    from onceover.ledger.catalog import Registered
    from onceover.ledger.database import Connection


def ask(
    pipeline_name: str, kind: str, *, start: datetime | None = None, end: datetime | None = None, who: str
) -> int | None:
    """Write an audit down, for `jobs/audit.py` to carry out; its id. None for a pipeline that has not run yet, where a
    schedule asks for all of its windows. A window without a certificate is refused here, before Spark starts."""
    from onceover.audit import store as audit_store
    from onceover.ledger.catalog import is_registered, require_same_contract

    with _opened(pipeline_name) as (connection, pipeline):
        if kind == "log" and start is None and not is_registered(connection, pipeline.name):
            return None
        known: Registered = require_same_contract(connection, pipeline)
        if kind == "window" and start is not None:
            audit_store.certified(connection, known.name, start)
        return audit_store.ask(connection, known.name, kind, start, end, who)


def result(pipeline_name: str, audit_id: int) -> Mapping[str, Any]:
    """What came out of it; TransientError if nothing has yet."""
    from onceover.audit import store as audit_store

    with _opened(pipeline_name) as (connection, pipeline):
        _, found = audit_store.read(connection, pipeline.name, audit_id)
    if found is None:
        raise TransientError(f"audit {audit_id} of {pipeline_name} ended without a result; run it again")
    return found


@contextmanager
def _opened(name: str) -> Iterator[tuple[Connection, Any]]:
    from onceover.config.endpoints import address
    from onceover.config.pipelines import find
    from onceover.ledger.database import connect, require_current

    pipeline = find(name)
    with connect(address("postgres"), f"onceover audit {pipeline.name}") as connection:
        require_current(connection)
        yield connection, pipeline
