"""Days of quarantine that a repair has to search for orphans."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from onceover.context import PipelineContext
from onceover.detection.own_offsets import read_own_offsets
from onceover.ledger.quarantine_days import list_searchable_days
from onceover.model.offsets import intersect


def find_searchable_days(context: PipelineContext, lengths: Mapping[date, int]) -> list[date]:
    """Return the days whose files, of these lengths, may hold orphans. A day with lines beyond the end of a log waits
    until the log or the ledger reaches one of them, or the topic is deleted, for Spark would find the same again."""
    days = list_searchable_days(context.ledger, context.name, lengths)
    waiting = {day: firsts for day, firsts in days.items() if firsts}
    if waiting:
        held = context.read_held(f"{len(waiting)} days of quarantine with lines beyond the end of a log")
        beyond = None if held is None else read_own_offsets(context, held).beyond
        for day, firsts in waiting.items():
            if beyond is None or len(intersect(firsts, beyond)) == len(firsts):
                del days[day]
    return list(days)
