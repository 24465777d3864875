"""Compacted files that a ledger restored from a backup does not know, where the text is gone."""

from __future__ import annotations

from datetime import datetime

from onceover.context import PipelineContext
from onceover.errors import UsageError
from onceover.ledger import compactions
from onceover.ledger.compactions import CompactionDue
from onceover.model.pipeline import Pipeline


def list_found(context: PipelineContext, start: datetime | None, end: datetime | None) -> list[CompactionDue]:
    """Return the windows of the range whose certified text is gone, in whole or in part, and beside which a
    compacted file is named for the certificate."""
    listed = compactions.list_certified_texts(context.ledger, context.name, start, end)
    texts = {text.window_start: text for text in listed}
    lengths = context.files.read_lengths(texts)
    short = {at: text for at, text in texts.items() if lengths.get(at, 0) < text.text_bytes}
    present = context.files.read_compacted_lengths({at: text.digest for at, text in short.items()})
    return [short[at] for at in sorted(present)]


def list_due(
    context: PipelineContext, older_than_ms: int, start: datetime | None, end: datetime | None
) -> tuple[list[CompactionDue], list[CompactionDue]]:
    """Return the windows of the range whose files are to be taken over, and the others that may be compacted. Raise
    UsageError for a pipeline whose raw is not on HDFS."""
    _require_hdfs(context.pipeline)
    found = list_found(context, start, end)
    replaced = {each.window_start for each in found}
    due = compactions.list_compactable(context.ledger, context.name, older_than_ms, start, end)
    return found, [each for each in due if each.window_start not in replaced]


def _require_hdfs(pipeline: Pipeline) -> None:
    if (store := pipeline.storage.raw_store) != "hdfs":
        raise UsageError(
            f'pipelines/{pipeline.name}.toml: [storage] raw_store = "{store}", and only raw on HDFS is compacted; '
            "let retention delete old text instead, see docs/raw-stores.md"
        )
