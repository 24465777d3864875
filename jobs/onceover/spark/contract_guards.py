"""Guards around the conversions in a contract's SQL: a text that is not plainly a value of the type throws.

Spark takes more: a decimal of a million digits, `5d` and `0x1p3` for numbers, 1e400 for infinity, `2024` for the first
of January, `2024-01-05 soon` for a date. To a time of day it adds today's date, and a time zone that is a name has
rules that change from one release of Java to the next. In SQL that tries, such as `try_cast`, such a text is null.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from onceover.spark.catalyst import get_name, list_children
from onceover.spark.json_fields import LONG_NUMBER, NO_STRING

# Spark writes out all digits of a number that it casts to a decimal: 1e9999999 keeps a core busy for 20 s, 1e99999999
# for hours, and 400,000 plain digits for 6 s.
_NO_DECIMAL: Final = r"[eE][+-]?\d{3}|\d[\d.]{100}|(?!\d)\p{Nd}"
_MAYBE_ROUNDED: Final = rf"{LONG_NUMBER}|\d[eE]\+?\d{{3}}"
"""A number that a double may not hold, of too many digits or too large an exponent."""
_BLANK: Final = r"[\x00-\x20\x7F]*"
_NUMBER: Final = rf"^{_BLANK}[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:nan|inf|infinity)){_BLANK}\z"
_NOT_ZERO: Final = "^[^eE]*[1-9]"
_DATE: Final = r"[+-]?\d{4,6}-\d\d?-\d\d?"
_TIME: Final = r"[T ](?:[01]?\d|2[0-3]):[0-5]?\d(?::[0-5]?\d(?:\.\d*)?)?"
_ZONE: Final = r"(?: ?(?:Z|(?:UTC|GMT|UT)?[+-](?:0?\d|1[0-8])(?::?\d\d(?::?\d\d)?)?|UTC|GMT|UT))?"
_DATED: Final = rf"^{_BLANK}{_DATE}(?:{_TIME}{_ZONE})?{_BLANK}\z"
_WITHOUT_ZONE: Final = rf"^{_BLANK}{_DATE}(?:{_TIME})?{_BLANK}\z"
_FRACTION: Final = r"-?\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)"
_MAX_DIGITS: Final = 20  # of a number that the decimal below holds: with a sign, a digit and a point, 18 behind it
_Unfit = tuple[Callable[[Column], Column], str]
_NO_NUMBER: Final[_Unfit] = (lambda text: ~text.rlike(_NUMBER), "is no plain number")
_UNFIT: Final[Mapping[str, _Unfit]] = {
    "decimal": (
        lambda text: text.rlike(_NO_DECIMAL), "is too large a number for a decimal, or not written in the digits 0 to 9"
    ),
    "double": _NO_NUMBER,
    "float": _NO_NUMBER,
    "date": (lambda text: ~text.rlike(_DATED), "is no whole date, or one with a time that is none"),
    "timestamp_ntz": (lambda text: ~text.rlike(_WITHOUT_ZONE), "is no date and time without a time zone"),
    "timestamp": (
        lambda text: ~text.rlike(_DATED), "is no timestamp with a date and, if it has a time zone, with its offset"
    ),
}  # fmt: skip
GUARDED: Final = tuple(_UNFIT)
_PARSERS: Final = {"ParseToTimestamp", "ParseToDate"}
_WITH_PATTERN: Final = {"ToNumber", "TryToNumber"}
CONVERTED: Final = {"Cast", "GetJsonObject", *_PARSERS, *_WITH_PATTERN}
"""Classes of expressions that may need a guard."""


def find_guarded_type(node: Any) -> str | None:
    """Return which type of GUARDED the analyzed node makes of a string by a cast, or by what becomes one; else None."""
    name, children = get_name(node), list_children(node)
    # Spark makes a cast of to_timestamp and to_date without a pattern, but only after the analysis.
    if name not in ("Cast", *_WITH_PATTERN) and not (name in _PARSERS and len(children) == 1):
        return None
    kind = re.match("[a-z_]*", node.dataType().simpleString())
    return kind[0] if kind and kind[0] in _UNFIT and children[0].dataType().simpleString() == "string" else None


def refuse_unfit(kind: str, node: Any, text: Column) -> Column:
    """Return the text that the analyzed node makes a value of that type of, if it is fit."""
    is_unfit, why = _UNFIT[kind]
    return _refuse(text, text, is_unfit(text), why, "string", node)


def refuse_overflow(node: Any, text: Column, made: Column) -> Column:
    """Return the floating-point number that the analyzed node made of the text, unless it is infinite or zero and the
    text is not."""
    is_infinite = (F.abs(made) == float("inf")) & ~text.rlike("(?i)inf")
    is_zero = (made == 0) & text.rlike(_NOT_ZERO)
    return _refuse(text, made, is_infinite | is_zero, "is beyond its type", node.dataType().sql(), node)


def is_fraction_to_decimal(node: Any) -> bool:
    """Return whether the analyzed node casts a floating-point number to a decimal."""
    is_decimal = get_name(node) == "Cast" and node.dataType().simpleString().startswith("decimal")
    return is_decimal and list_children(node)[0].dataType().simpleString() in ("double", "float")


def refuse_infinite(node: Any, number: Column) -> Column:
    """Return the floating-point number of which the analyzed node makes a decimal, or null if it is infinite or none,
    unless it is so."""
    is_infinite = ~(F.abs(number) < float("inf"))
    kind = list_children(node)[0].dataType().simpleString()
    return _refuse(number.cast("string"), number, is_infinite, "is no decimal", kind, node)


def refuse_rounded(text: Column, found: Column) -> Column:
    """Return what get_json_object found, and throw where it may have written a number as a double that is another, or
    have put a character in place of bytes that are none."""
    why = F.lit("get_json_object may have rounded a number, or the text is not UTF-8; from_json reads it exactly")
    # The text first: only where it holds such a number is the object looked for twice.
    is_rounded = text.rlike(_MAYBE_ROUNDED) & found.rlike(NO_STRING) & _has_rounded(text)
    may_differ = is_rounded | ~F.is_valid_utf8(text)
    return F.when(may_differ, F.raise_error(why).cast("string")).otherwise(found)


def _has_rounded(text: Column) -> Column:
    """Return whether the text has a number, or digits in a string, that a double does not hold."""

    def is_rounded(number: Column) -> Column:
        wide = "DECIMAL(38, 18)"
        is_kept = number.try_cast("double").cast("string").try_cast(wide) == number.try_cast(wide)
        is_long = (F.length(number) > _MAX_DIGITS) | ~F.coalesce(is_kept, F.lit(False))
        return F.when(number.rlike("[eE]"), number.rlike(_MAYBE_ROUNDED)).otherwise(is_long)

    return F.exists(F.regexp_extract_all(text, F.lit(_FRACTION), F.lit(0)), is_rounded)


def _refuse(text: Column, value: Column, is_refused: Column, why: str, kind: str, node: Any) -> Column:
    message = F.concat(F.lit("'"), F.substring(text, 1, 80), F.lit(f"' {why}"))
    instead = F.lit(None) if _tries(node) else F.raise_error(message)
    return F.when(is_refused, instead.cast(kind)).otherwise(value)


def _tries(node: Any) -> bool:
    """Return whether the SQL asks for null where it fails."""
    name = get_name(node)
    if name == "Cast":
        return str(node.evalMode().toString()) == "TRY"
    return name.startswith("Try") or (name == "ParseToTimestamp" and not node.failOnError())
