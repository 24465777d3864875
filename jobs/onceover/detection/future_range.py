"""Ranges of windows that lie ahead of the clock: meant where the ledger knows windows there, mistyped elsewhere."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

from onceover.errors import OnceoverError
from onceover.model.window import WindowRange


def not_ahead(pipeline_name: str, asked: WindowRange) -> WindowRange:
    """The range, if it ends in the past or the ledger knows windows up to there: records may be dated ahead.

    Raises UsageError otherwise, also where the ledger cannot be asked. What the clock has passed needs no ledger.
    """
    from onceover.config.endpoints import address
    from onceover.ledger.database import connect, require_current
    from onceover.ledger.queries import last_end

    clock = datetime.now(UTC)
    if asked.end <= clock:
        return asked
    with suppress(OnceoverError), connect(address("postgres"), f"onceover windows of {pipeline_name}") as connection:
        require_current(connection)
        clock = max(clock, last_end(connection, pipeline_name) or clock)
    return asked.not_after(clock)
