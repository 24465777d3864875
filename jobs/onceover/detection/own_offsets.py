"""Which intact lines in raw can be the pipeline's own, by its ledger, its root's marker and Kafka's log."""

from __future__ import annotations

from collections.abc import Sequence

from onceover.context import PipelineContext
from onceover.ledger.frontiers import read_largest_ends
from onceover.model.offsets import OffsetRange
from onceover.model.own_offsets import OwnOffsets, find_own_offsets


def read_own_offsets(context: PipelineContext, held: Sequence[OffsetRange]) -> OwnOffsets:
    """Return the pipeline's own offsets; `held` is what Kafka's log holds. Read them after the files whose lines they
    judge: ledger and marker know each line before it is appended."""
    marker = context.markers.read_newest_readable().marker
    ends = read_largest_ends(context.ledger, context.name)
    return find_own_offsets(ends, marker.origins if marker else (), held)
