"""One table of a TOML file, read key by key: what is wrong is noted, what was never asked for is a mistake too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeVar

from onceover.config.mistakes import Mistake, did_you_mean

_T = TypeVar("_T")
_DURATION = re.compile(r"(\d{1,9})(ms|s|m|h|d)")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LONGEST_MS = 3650 * _UNIT_MS["d"]
DURATION_RULE = 'write it like "90s", "15m", "1h" or "2d", at most 3650d'


def milliseconds(text: str) -> int | None:
    """Of a duration as somebody wrote it; None if that is none, or longer than anybody means."""
    found = _DURATION.fullmatch(text.strip())
    length = int(found[1]) * _UNIT_MS[found[2]] if found else _LONGEST_MS + 1
    return length if length <= _LONGEST_MS else None


def shortest(least: int) -> str:
    """That many milliseconds as somebody would write it."""
    unit = max((unit for unit, size in _UNIT_MS.items() if least % size == 0), key=_UNIT_MS.__getitem__)
    return f'"{least // _UNIT_MS[unit]}{unit}"'


class Table:
    """Reads values of a table; each method returns something usable even where it noted a mistake."""

    def __init__(self, values: dict[str, Any], prefix: str, file: str, mistakes: list[Mistake]) -> None:
        self.values = values
        self.prefix = prefix
        self._file = file
        self._mistakes = mistakes
        self._known: list[str] = []

    def wrong(self, key: str, what: str, remedy: str) -> None:
        """Note a mistake at a key of this table, or at the table itself."""
        dotted = ".".join(part for part in (self.prefix, key) if part)
        self._mistakes.append(Mistake(self._file, dotted, what, remedy))

    def finish(self) -> None:
        """Note every key that nobody asked for."""
        for key in self.values:
            if key not in self._known:
                self.wrong(key, "nobody knows this key", did_you_mean(key, self._known))

    def table(self, key: str, needed: bool = False) -> Table:
        value = self._take(
            key, {}, dict, "a table", f"write [{'.'.join(filter(None, (self.prefix, key)))}] above its keys", needed
        )
        return Table(value, ".".join(part for part in (self.prefix, key) if part), self._file, self._mistakes)

    def text(
        self, key: str, default: str | None = None, *, match: re.Pattern[str] | None = None, rule: str = ""
    ) -> str:
        """A string without blanks around it; `default` None means that the key is needed."""
        value: str = self._take(
            key, default, str, "a string", f"take {rule}" if rule else "write it in double quotes", default is None
        )
        value = value.strip()
        if key in self.values and isinstance(self.values[key], str):
            if not value:
                self.wrong(key, "is empty", f"take {rule}" if rule else "write something, or leave the key out")
            elif "\x00" in value:
                self.wrong(key, "holds a NUL character", "take it out")
            elif match and not match.fullmatch(value):
                self.wrong(key, f"{value[:80]!r} does not do", f"take {rule}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of different strings; none if absent."""
        values = self._take(key, [], list, "a list", 'write it like ["origin", "carrier"]', False)
        good = [value for value in values if isinstance(value, str) and value.strip() == value != ""]
        if len(good) != len(values) or len(set(good)) != len(good):
            self.wrong(key, "holds what is not a name, or a name twice", 'write it like ["origin", "carrier"]')
        return tuple(good)

    def integer(self, key: str, default: int | None, *, least: int, most: int = 2**31 - 1) -> int:
        value: int = self._take(key, default, int, "a whole number", f"write a number from {least}", default is None)
        if key in self.values and type(self.values[key]) is int and not least <= value <= most:
            above = "below 2^31" if most == 2**31 - 1 else f"to {most}"
            self.wrong(key, f"{value} does not do", f"take a number from {least}, {above}")
        return value

    def choice(self, key: str, allowed: Sequence[str], default: str) -> str:
        """One of a few words."""
        value = self.text(key, default)
        if value and value not in allowed:
            self.wrong(key, f"{value[:80]!r} is none of {', '.join(allowed)}", did_you_mean(value, allowed))
        return value if value in allowed else default

    def duration(self, key: str, default: str, least: int = 0) -> int:
        """Milliseconds."""
        value = self._take(key, default, str, "a duration", DURATION_RULE, False)
        found = milliseconds(value)
        if found is None:
            self.wrong(key, f"{value[:80]!r} is no duration", DURATION_RULE)
        elif found < least:
            self.wrong(key, f"{value[:80]!r} is too short", f"take at least {shortest(least)}")
        if found is None or found < least:
            return least
        return found

    def bound(self, key: str, default: str, least: int = 0) -> int | None:
        """Milliseconds, or None for "none"."""
        if self.values.get(key, default) == "none":
            self._known.append(key)
            return None
        return self.duration(key, default, least)

    def _take(self, key: str, default: _T | None, kind: type[_T], called: str, remedy: str, needed: bool) -> _T:
        self._known.append(key)
        if key not in self.values:
            if needed:
                self.wrong(key, "missing", remedy)
            return kind() if default is None else default
        value = self.values[key]
        if type(value) is not kind:  # a bool is an int to isinstance
            self.wrong(key, f"{str(value)[:80]!r} is not {called}", remedy)
            return kind() if default is None else default
        return value
