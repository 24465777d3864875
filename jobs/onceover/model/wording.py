"""Numbers and lists in words, for whatever a person reads."""

from __future__ import annotations

from collections.abc import Iterable


def pluralize(number: int, noun: str) -> str:
    """Return `1 record` or `2 records`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def format_records(number: int | None) -> str:
    """Return a number of records in words, also an unknown one."""
    return "an unknown number of records" if number is None else pluralize(number, "record")


def format_duration(seconds: float) -> str:
    """Return the duration in its largest two units, as in `12 h 3 min` or `7 d`."""
    left, parts = int(seconds), []
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        number, left = divmod(left, size)
        parts.append((number, unit))
    first = next((at for at, (number, _) in enumerate(parts) if number), len(parts) - 1)
    shown = [f"{number:,} {unit}" for number, unit in parts[first : first + 2] if number]
    return " ".join(shown) or "0 s"


def format_list(numbers: Iterable[object], noun: str, most: int = 8) -> str:
    """Return `landing 3` or `landings 3, 4 and 9`, with at most `most` of them named."""
    shown = [str(number) for number in numbers]
    left = len(shown) - most
    if left > 0:
        return f"{noun}s {', '.join(shown[:most])} and {left} more"
    if len(shown) == 1:
        return f"{noun} {shown[0]}"
    return f"{noun}s {', '.join(shown[:-1])} and {shown[-1]}" if shown else f"no {noun}s"
