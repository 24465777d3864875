"""Windows whose certificates count extras that have landed since."""

from __future__ import annotations

from onceover.context import PipelineContext
from onceover.ledger.certificates import reopen_certified
from onceover.ledger.extras import list_extras, list_landed_extras


def reopen_extras(context: PipelineContext) -> None:
    """Have detection judge the windows whose certificates count a record which had landed nowhere, and has landed
    since, in any window: what landed counts where it landed, once."""
    extras = list_extras(context.ledger, context.name)
    reopen_certified(context.ledger, context.name, list_landed_extras(context.ledger, context.name, extras))
