"""The reason that an operator gives for an action, in a form that can be stored and shown."""

from __future__ import annotations

from onceover.errors import UsageError

REASON_LENGTH = 500


def clean_reason(text: str) -> str | None:
    """Return the text on one line, None if it is blank. Raise UsageError if it is too long or not printable."""
    reason = " ".join(text.split())
    if len(reason) > REASON_LENGTH:
        raise UsageError(f"the reason has {len(reason)} characters, the limit is {REASON_LENGTH}; shorten it")
    if not reason.isprintable():
        raise UsageError("the reason holds characters that cannot be shown; write plain text")
    return reason or None
