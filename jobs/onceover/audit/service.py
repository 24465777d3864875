"""Audits for Airflow and the command line: request one, and read its result."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from onceover.audit import store as audit_store
from onceover.context import PipelineContext
from onceover.errors import TransientError
from onceover.ingest.restatements import share_restatements
from onceover.ledger.certificates import read_certificate
from onceover.model.window import WindowRange
from onceover.repair.restate import require_restatable

MAX_RECORDS: Final = 1_000_000
MAX_BYTES: Final = 256 * 1024 * 1024
"""Of a window that a schedule verifies, so that it takes seconds on two cores, and a minute at most."""


def request_audit(
    context: PipelineContext, kind: str, *, start: datetime | None = None, end: datetime | None = None, who: str
) -> int | None:
    """Record an audit for `jobs/audit.py` to carry out and return its id; None for an audit of the whole log of a
    pipeline that has not run yet. Before Spark starts, raises TerminalError for a window without a certificate, and
    RootRefusedError if raw is in another raw store than the TOML names."""
    if kind == "log" and start is None and not context.is_registered():
        return None
    registered = context.require_same_contract()
    if kind == "window" and start is not None:
        read_certificate(context.ledger, registered.name, start)
    context.root.require_same_store()
    return audit_store.record_request(context.ledger, registered.name, kind, start, end, who)


def request_preview(context: PipelineContext, chosen: WindowRange, who: str) -> int:
    """Record a preview of this range's restatement for `jobs/audit.py`, and return its id. Raises as
    `require_restatable` does, before Spark starts."""
    context.require_own_root()
    share_restatements(context)
    require_restatable(context, context.require_same_contract(), chosen)
    return audit_store.record_request(context.ledger, context.name, "restatement", chosen.start, chosen.end, who)


def request_sample(context: PipelineContext, seed: str, who: str) -> int | None:
    """Record an audit of one certified window, chosen at random by the seed, and return its id; None if the pipeline
    has no such window of at most MAX_RECORDS records and MAX_BYTES of raw."""
    if not context.is_registered():
        return None
    registered = context.require_same_contract()
    start = audit_store.choose_certified(
        context.ledger, registered.name, seed, most_records=MAX_RECORDS, most_bytes=MAX_BYTES
    )
    return None if start is None else request_audit(context, "window", start=start, who=who)


def read_sample(context: PipelineContext, audit_id: int) -> tuple[datetime, Mapping[str, Any]]:
    """Return the window of a sample and its result, which has no differences if the window's certificate is no longer
    valid: it may have changed meanwhile, and detection judges it. Raises as `require_result`."""
    result = require_result(context, audit_id)
    audit, _ = audit_store.read_audit(context.ledger, context.name, audit_id)
    if audit.start is None:
        raise ValueError(f"audit {audit_id} names no window")
    is_valid = result["valid"] and read_certificate(context.ledger, context.name, audit.start).is_valid
    return audit.start, result if is_valid else {**result, "equal": True, "differences": []}


def require_result(context: PipelineContext, audit_id: int) -> Mapping[str, Any]:
    """Return the result of an audit. Raises TransientError if it has none yet."""
    _, result = audit_store.read_audit(context.ledger, context.name, audit_id)
    if result is None:
        raise TransientError(f"audit {audit_id} of {context.name} ended without a result; run it again")
    return result
