"""Cut logs: detection compares Kafka's log with what landed where no ingest does."""

from __future__ import annotations

import logging

from onceover.context import PipelineContext
from onceover.errors import BusyError, MissingTopicError, OnceoverError
from onceover.ledger.log_cuts import end_cuts, is_uncompared, record_cuts
from onceover.ledger.root import RootRefusedError

log = logging.getLogger(__name__)
_PATIENCE_SECONDS = 5.0


def compare_log(context: PipelineContext) -> bool:
    """Compare the pipeline's log with what landed, unless ingest runs, which does. A broker that does not answer is
    logged: what it holds is then compared by the next detection, or by ingest before it reads. What a topic that was
    deleted held beyond a cut is a hole.

    Returns False if the comparison could not be made, and none was since the ledger was rebuilt: no window may be
    certified then."""
    generation = None
    try:
        with context.open_own_topic(timeout=_PATIENCE_SECONDS) as topic:
            facts = topic.facts()
            generation = facts.generation
            source = context.build_source(facts, stall_seconds=_PATIENCE_SECONDS)
            record_cuts(context.ledger, context.name, facts, source)
    except BusyError:
        return not is_uncompared(context.ledger, context.name, generation)
    except MissingTopicError as error:
        if end_cuts(context.ledger, context.name):
            log.warning("%s; what it held since it was cut can no longer be read, and is a hole", error)
    except RootRefusedError:
        raise
    except OnceoverError as error:
        log.warning("the log of %s was not compared with what landed: %s", context.name, error)
        return not is_uncompared(context.ledger, context.name, generation)
    return True
