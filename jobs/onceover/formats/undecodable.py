"""A value that is not of the contract's format."""

from __future__ import annotations

from onceover.errors import TerminalError


class UndecodableError(TerminalError):
    """The value cannot be decoded; the message is the reason for quarantine, and holds nothing of the value."""
