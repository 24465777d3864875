"""Who did what to a pipeline and why, and the offsets that ingest skipped."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from onceover.explain.finding_text import describe_finding
from onceover.ledger.actions import list_actions
from onceover.ledger.database import Connection
from onceover.ledger.page_overview import list_pipeline_findings, read_consistently

MAX_ACTIONS: Final = 50


def read_history(
    connection: Connection, name: str, before: datetime | None = None, limit: int = MAX_ACTIONS
) -> list[Mapping[str, Any]]:
    """Return the actions before that moment (None: now) as `list_actions` does, newest first. The next are those before
    the last one's."""
    with read_consistently(connection):
        return list_actions(connection, name, before, limit)


def list_holes(connection: Connection, name: str) -> list[Mapping[str, Any]]:
    """Return the pipeline's own open findings, of holes and of a cut log: `kind`, `evidence` with the offsets, `since`,
    and in words `what` is wrong and `how` that is known. As detection last saw them; asks no broker."""
    with read_consistently(connection):
        rows = list_pipeline_findings(connection, name)
    texts = [describe_finding(row["kind"], row["evidence"]) for row in rows]
    return [{**row, "what": text.what, "how": text.how} for row, text in zip(rows, texts, strict=True)]
