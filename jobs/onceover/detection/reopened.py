"""Certified windows that detection judges again: their files are not as certified, or their extras have landed."""

from __future__ import annotations

from datetime import datetime

from onceover.context import PipelineContext
from onceover.detection.certified import read_frozen_lengths
from onceover.detection.look import Files
from onceover.ledger.certificates import reopen_certified
from onceover.ledger.database import Connection
from onceover.ledger.extras import list_extras, list_landed_extras
from onceover.model.window import WindowRange


def list_unlike_certified(
    connection: Connection, pipeline: str, files: Files, window_range: WindowRange | None = None
) -> list[datetime]:
    """Return the certified windows of the range (None: all), in order, whose file is longer or shorter than its
    certificate says. One that is missing is left to the sweep."""
    start, end = (window_range.start, window_range.end) if window_range else (None, None)
    frozen = read_frozen_lengths(connection, pipeline, start, end)  # before the files, which only grow
    lengths = files.read_lengths(frozen)
    return [start for start, expected in frozen.items() if lengths.get(start, 0) not in (0, expected)]


def reopen_unlike_certified(context: PipelineContext, window_range: WindowRange | None) -> None:
    """Have detection judge the certified windows whose files are not as certified. Until the next sweep only their
    length shows that they hold records which a hole lacks."""
    starts = list_unlike_certified(context.ledger, context.name, context.files, window_range)
    reopen_certified(context.ledger, context.name, starts)


def reopen_extras(context: PipelineContext) -> None:
    """Have detection judge the windows whose certificates count a record which had landed nowhere, and has landed
    since, in any window: what landed counts where it landed, once."""
    extras = list_extras(context.ledger, context.name)
    reopen_certified(context.ledger, context.name, list_landed_extras(context.ledger, context.name, extras))
