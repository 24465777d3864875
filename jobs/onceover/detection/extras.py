"""Windows whose certificates count extras that have landed since."""

from __future__ import annotations

from onceover.context import PipelineContext
from onceover.ledger.certificates import reopen_certified
from onceover.ledger.extras import list_extras, list_landed_spans
from onceover.model.log_history import intersect_spans


def reopen_extras(context: PipelineContext) -> None:
    """Have detection judge the windows whose certificates count a record which had landed nowhere, and has landed
    since, in any window: what landed counts where it landed, once."""
    extras = list_extras(context.ledger, context.name)
    if not extras:
        return
    offsets = [each.offsets for spans in extras.values() for each in spans]
    landed = list_landed_spans(context.ledger, context.name, offsets)
    reopened = (start for start, spans in extras.items() if intersect_spans(spans, landed))
    reopen_certified(context.ledger, context.name, reopened)
