"""Windows whose certificates count extras that have landed since."""

from __future__ import annotations

from onceover.context import PipelineContext
from onceover.ledger.certificates import reopen_certified
from onceover.ledger.extras import list_extras
from onceover.ledger.landed_offsets import read_accounted
from onceover.model.offsets import intersect


def reopen_extras(context: PipelineContext) -> None:
    """Have detection judge the windows whose certificates count a record which had landed nowhere, and has landed
    since, in any window: what landed counts where it landed, once."""
    extras = list_extras(context.ledger, context.name)
    if not extras:
        return
    accounted = tuple(read_accounted(context.ledger, context.name))
    landed = (start for start, ranges in extras.items() if intersect(accounted, ranges))
    reopen_certified(context.ledger, context.name, landed)
