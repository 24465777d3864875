"""A datetime pattern that Spark takes and its author hardly means, such as `hh` without `a` or `mm` in a date.

Java's letters: y year, M and L month, d day, D day of the year, H hour from 0 to 23, k from 1 to 24, h from 1 to 12, K
from 0 to 11, a half of the day, m minute, s second, S fraction of a second, z a zone's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_TOKEN = re.compile(r"'(?:[^']|'')*'|(?P<field>(?P<letter>[A-Za-z])(?P=letter)*)|.", re.DOTALL)
_DATE, _HOUR = set("yMLdD"), set("HhKk")
_UNITS = (
    *(("year", {"y"}), ("month", {"M", "L", "D"}), ("day", {"d", "D"}), ("hour", _HOUR)),
    *(("minute", {"m"}), ("second", {"s"}), ("fraction", {"S"})),
)


_INSTEAD = {  # of letters that Spark refuses
    **dict.fromkeys("Yu", "take yyyy for the year"),
    **dict.fromkeys("wWec", "leave it out: Spark neither reads nor writes weeks and their days by number"),
    **dict.fromkeys("EFQq", "leave it out: Spark writes this letter, and does not read it"),
}
_QUOTE = "put text in quotes, such as 'T', and see Spark's page on datetime patterns for the letters"


@dataclass(frozen=True, slots=True)
class Doubt:
    """What Spark makes of a part of a pattern, and what was probably meant."""

    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class DatetimePattern:
    """A pattern by which SQL reads a time from text, or writes one."""

    text: str
    reads: bool

    @property
    def fields(self) -> list[str]:
        """The runs of one letter outside of quotes."""
        return [token["field"] for token in _TOKEN.finditer(self.text) if token["field"]]

    def has_year(self) -> bool:
        return any(field[0] == "y" for field in self.fields)

    def suggest_other(self) -> str:
        """Return what to write in place of a pattern that Spark refuses."""
        return next((_INSTEAD[field[0]] for field in self.fields if field[0] in _INSTEAD), _QUOTE)

    def list_doubts(self) -> list[Doubt]:
        """Return the doubts about a pattern that Spark takes."""
        doubts = [*_list_exchanged(self.fields), *_list_hours(self.fields, self.reads), *_list_days(self.fields)]
        if self.reads:
            doubts += [*_list_gaps(self.fields, bool(doubts)), *_list_zones(self.fields)]
        return doubts


def _list_exchanged(fields: list[str]) -> Iterator[Doubt]:
    """Return doubts about months and minutes, or seconds and their fractions, in each other's place."""
    letters = [None, *(field[0] for field in fields), None]
    for before, field, after in zip(letters, fields, letters[2:], strict=False):
        letter, in_time = field[0], before in _HOUR or after == "s"
        if letter == "m" and not in_time and {before, after} & _DATE:
            yield Doubt(f"`{field}` is the minute, here in a date", f"take {'M' * len(field)} for the month")
        elif letter in "ML" and in_time and after not in ("y", "d"):
            yield Doubt(f"`{field}` is the month, here in a time of day", f"take {'m' * len(field)} for the minute")
        elif letter == "S" and before not in ("s", None):
            yield Doubt(f"`{field}` is a fraction of a second, here without the second", "take ss for the second")
        elif letter == "s" and before == "s":
            yield Doubt(f"`{field}` is the second once more", "take SSS for its fraction")


def _list_hours(fields: list[str], reads: bool) -> Iterator[Doubt]:
    letters = {field[0] for field in fields}
    for field in fields:
        letter, has_half = field[0], "a" in letters
        if letter in "hK" and not has_half:
            read = "reads 12:15 as 00:15, and not 13:15" if letter == "h" else "reads no hour from 12:00 on"
            what = f"`{field}` without `a` {read if reads else 'writes 01:15 and 13:15 alike'}"
            yield Doubt(what, "take HH for hours from 0 to 23")
        elif letter == "K":
            what = f"`{field}` " + ("does not read 12:15 PM" if reads else "writes 12:15 PM as 00:15 PM")
            yield Doubt(what, "take hh for hours from 1 to 12")
        elif letter in "Hk" and has_half and reads and not letters & {"h", "K"}:
            yield Doubt(f"`{field}` beside `a` does not read 01:15 PM", "take hh for hours from 1 to 12")
        elif letter == "k":
            what = f"`{field}` " + ("does not read 00:15" if reads else "writes 00:15 as 24:15")
            yield Doubt(what, "take HH for hours from 0 to 23")


def _list_days(fields: list[str]) -> Iterator[Doubt]:
    letters = {field[0] for field in fields}
    for field in fields:
        if field[0] == "D" and (len(field) < 3 or letters & {"M", "L", "d"}):
            what = f"`{field}` is the day of the year, 36 for 5 February"
            yield Doubt(what, "take dd for the day of the month; where that of the year is meant, yyyy-DDD")


def _list_gaps(fields: list[str], is_explained: bool) -> Iterator[Doubt]:
    """Return doubts about units that are not read, between a coarser and a finer one that are."""
    letters = {field[0] for field in fields}
    read = [at for at, (_, those) in enumerate(_UNITS) if letters & those]
    for coarse, fine in pairwise(read):
        if fine > coarse + 1 and not is_explained:
            missing = _UNITS[coarse + 1][0]
            what = f"it has the {_UNITS[fine][0]} and no {missing}, for which Spark takes the first"
            yield Doubt(what, f"have it read the {missing} too")


def _list_zones(fields: list[str]) -> Iterator[Doubt]:
    for field in fields:
        if field[0] == "z":
            what = f"`{field}` reads a zone's short name, such as BST, which several share"
            yield Doubt(what, "take XXX for an offset such as +01:00, or VV for a name such as Europe/London")
