"""A duration as an operator writes it: "90s", "15m", "1h" or "2d"."""

from __future__ import annotations

import re

_DURATION = re.compile(r"(\d{1,9})(ms|s|m|h|d)")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LONGEST_MS = 3650 * _UNIT_MS["d"]
DURATION_RULE = 'write it like "90s", "15m", "1h" or "2d", at most 3650d'


def parse_duration(text: str) -> int | None:
    """Return the milliseconds of a written duration, None if the text is malformed or longer than DURATION_RULE
    allows."""
    match = _DURATION.fullmatch(text.strip())
    length = int(match[1]) * _UNIT_MS[match[2]] if match else _LONGEST_MS + 1
    return length if length <= _LONGEST_MS else None
