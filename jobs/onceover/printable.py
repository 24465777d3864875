"""Text from elsewhere, safe to show: a producer's bytes must neither drive a terminal nor forge a line of a log."""

from __future__ import annotations


def escape(text: str) -> str:
    """Return the text with everything unprintable escaped, ends of lines too."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
