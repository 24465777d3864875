"""Window files frozen before they are read: their lengths, once no writer is in the middle of an append, and the files
as tasks read them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime

from onceover.context import PipelineContext
from onceover.ledger.batches import list_in_flight
from onceover.model.raw_file import CompactedFile
from onceover.raw.frozen_file import FrozenText
from onceover.raw.window_files import WindowFiles
from onceover.spark.hdfs_leases import SOFT_LIMIT_SECONDS, Leases

log = logging.getLogger(__name__)


def freeze(context: PipelineContext, leases: Leases, starts: Sequence[datetime]) -> Mapping[datetime, int]:
    """Return the length of each window's file, 0 for a missing one, once no writer is in the middle of an append."""
    for start in context.files.read_lengths(starts):
        path = context.layout.window_file(start)
        if leases.is_closed(path):
            continue
        # A live writer finishes in its own time; the lease is taken only when no live writer can hold it.
        patience = SOFT_LIMIT_SECONDS if list_in_flight(context.ledger, context.name) else 0.0
        if not leases.wait_until_closed(path, patience):
            log.warning("%s is open, its writer is dead: recovering its lease", path)
            leases.recover(path)
    return dict.fromkeys(starts, 0) | context.files.read_lengths(starts)


def list_texts(files: WindowFiles, lengths: Mapping[datetime, int]) -> dict[datetime, FrozenText]:
    """Return the text of windows by its frozen length, but for empty and missing files."""
    return {start: FrozenText(files.layout.window_file(start), length) for start, length in lengths.items() if length}


def list_compacted(files: WindowFiles, compacted: Mapping[datetime, CompactedFile]) -> dict[datetime, FrozenText]:
    """Return the compacted files of windows. A file that is missing, or has another length than was recorded, is left
    out: its records are missed, and its window fails alone."""
    return {
        start: FrozenText(path, compacted[start].bytes) for start, path in files.find_compacted_files(compacted).items()
    }
