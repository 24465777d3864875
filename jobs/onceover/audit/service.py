"""Audits for Airflow and the command line: request one, and read its result."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from onceover.audit import store as audit_store
from onceover.context import PipelineContext
from onceover.errors import TransientError
from onceover.ledger.certificates import read_certificate


def request_audit(
    context: PipelineContext, kind: str, *, start: datetime | None = None, end: datetime | None = None, who: str
) -> int | None:
    """Record an audit for `jobs/audit.py` to carry out and return its id; None for an audit of the whole log of a
    pipeline that has not run yet. Raises TerminalError for a window without a certificate, before Spark starts."""
    if kind == "log" and start is None and not context.is_registered():
        return None
    registered = context.require_same_contract()
    if kind == "window" and start is not None:
        read_certificate(context.ledger, registered.name, start)
    return audit_store.record_request(context.ledger, registered.name, kind, start, end, who)


def require_result(context: PipelineContext, audit_id: int) -> Mapping[str, Any]:
    """Return the result of an audit. Raises TransientError if it has none yet."""
    _, result = audit_store.read_audit(context.ledger, context.name, audit_id)
    if result is None:
        raise TransientError(f"audit {audit_id} of {context.name} ended without a result; run it again")
    return result
