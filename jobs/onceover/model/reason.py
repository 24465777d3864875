"""Why somebody wants a repair, in a form that can be kept and shown."""

from __future__ import annotations

from onceover.errors import UsageError

REASON_LENGTH = 500


def clean_reason(text: str) -> str | None:
    """The text on one line, None if it is blank. UsageError if it is too long, or holds what nobody could read."""
    reason = " ".join(text.split())
    if len(reason) > REASON_LENGTH:
        raise UsageError(f"the reason has {len(reason)} characters; {REASON_LENGTH} are kept, shorten it")
    if not reason.isprintable():
        raise UsageError("the reason holds characters that cannot be shown; write plain text")
    return reason or None
