"""The offsets that a pipeline's own lines may have: every other intact line in its raw files was written elsewhere.

Ingest notes each generation and Kafka partition in the root's marker and in the ledger before it appends the first line
of it.
"""

from __future__ import annotations

from onceover.context import PipelineContext
from onceover.ledger.identity import read_origins
from onceover.model.offsets import LARGEST_END, OffsetRange
from onceover.model.root_marker import join_origins


def read_own_offsets(context: PipelineContext) -> tuple[OffsetRange, ...]:
    """Return all offsets from each origin on. Read them after the files whose lines they judge."""
    marker = context.markers.read_newest_readable().marker
    origins = join_origins([marker.origins if marker else {}, read_origins(context.ledger, context.name)])
    return tuple(OffsetRange(source, origin, LARGEST_END) for source, origin in sorted(origins.items()))
