"""Opens the ledger for one request: read only, and with a limit for each statement, so that no page slows ingest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from onceover.context import PipelineContext, open_ledger, open_pipeline
from onceover.errors import TransientError
from onceover.ledger.database import Connection, DatabaseError

MAX_SECONDS = 3


@contextmanager
def read_ledger() -> Iterator[Connection]:
    """Open the ledger for what is about no single pipeline. Raises TransientError for a statement that takes too
    long."""
    with _explain(), open_ledger("page") as connection:
        yield limit(connection)


@contextmanager
def read_pipeline(name: str) -> Iterator[PipelineContext]:
    """Open a pipeline, its ledger as `read_ledger` does. Raises UsageError for an unknown name."""
    with _explain(), open_pipeline(name, "page") as context:
        limit(context.ledger)
        yield context


def limit(connection: Connection) -> Connection:
    """Refuse every write on this connection from now on, and end each statement after MAX_SECONDS."""
    connection.execute(f"SET default_transaction_read_only = on; SET statement_timeout = '{MAX_SECONDS}s'")
    return connection


@contextmanager
def _explain() -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise TransientError(
            f"the ledger did not answer within {MAX_SECONDS} s ({why}); load the page again, or ask PostgreSQL what "
            "is slow: SELECT * FROM pg_stat_activity"
        ) from error
