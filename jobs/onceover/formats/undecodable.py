"""A value that is not of the contract's format."""

from __future__ import annotations

from typing import Final

from onceover.errors import TerminalError

LARGEST: Final = 4 * 1024 * 1024
"""Bytes of a decoded value: one of some kilobytes may become gigabytes, and costs Spark's JVM a fifth of a second a
million bytes. The search for poison records evaluates 16 at once, in 10 seconds of processor time."""


class UndecodableError(TerminalError):
    """The value cannot be decoded; the message is the reason for quarantine, and holds nothing of the value."""
