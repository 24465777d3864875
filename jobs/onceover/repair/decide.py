"""A person's decision about conflicts of one window, whichever door it came through."""

from __future__ import annotations

from onceover.context import PipelineContext
from onceover.errors import UsageError
from onceover.ledger import decisions
from onceover.ledger.decisions import DecidedConflicts
from onceover.model.conflict import NEWEST, OLDEST, Decision
from onceover.model.record import parse_id
from onceover.model.window import Window

ALL = "all"
"""In place of an ID: every open conflict of the window."""


def decide(context: PipelineContext, window: Window, record: str, keep: str, who: str, why: str) -> DecidedConflicts:
    """Record which content of the ID counts: the one whose hash begins with `keep`. For `all` IDs of the window, the
    `newest` or the `oldest`, where that is known. The next repair uses the decision. Raise UsageError for anything
    else, and unless an open conflict of the window names the ID with that content."""
    chosen = _parse(context, window, record.strip(), keep)
    context.require_own_root()
    context.read_registration()
    if chosen is None:
        return decisions.decide_all(context.ledger, context.name, window.start, keep, who, why)
    return DecidedConflicts(
        1, tuple(decisions.record_decision(context.ledger, context.name, window.start, chosen, who, why))
    )


def _parse(context: PipelineContext, window: Window, record: str, keep: str) -> Decision | None:
    if record == ALL:
        if keep not in (NEWEST, OLDEST):
            raise UsageError(f"--keep takes {NEWEST} or {OLDEST} for all conflicts of a window")
        return None
    source, offset = parse_id(record.encode("ascii", "replace"))
    if not 4 <= len(keep) <= 32 or set(keep) - set("0123456789abcdef"):
        raise UsageError(
            f"--keep takes the hash of a content of that ID, at least its first 4 hex digits; {NEWEST} and "
            f"{OLDEST} go with `{ALL}`. `onceover explain {context.name} {window}` shows the hashes"
        )
    return Decision(source, offset, keep)
