"""Random JSON values of every type, right, wrong and nearly right, and what Python makes of each."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

REFUSED = object()
WHOLE = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
DECIMALS = {"DECIMAL(12,2)": (12, 2), "DECIMAL(38,18)": (38, 18), "DECIMAL(5,5)": (5, 5), "DECIMAL(20,0)": (20, 0)}
LEAVES = (*WHOLE, *DECIMALS, "BOOLEAN", "DOUBLE", "FLOAT", "STRING", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
TYPES = (*LEAVES, "ARRAY<DECIMAL(12,2)>", "MAP<STRING,TIMESTAMP>", "STRUCT<a: DATE, b: DOUBLE>", "ARRAY<STRING>")

TEXTS = [  # near a number, near a time, and near other JSON
    *("12,50", "1.234,56", "1,2,3", "١٢", "+5", " 12", "12 ", "1_000", "0x10", "NaN", "Infinity", "", "x"),
    *("12:30", "T09:15:00", "2024", "2024-1-2", "2024-02-30", "2024-02-29", "0000-01-01", "12345-01-01", "now"),
    *("today", "2024-01-02", "2024-01-02 rubbish", "2024-01-02T10:00Z", "2024-01-02T24:00:00Z", "2024-01-02T23:59:60Z"),
    *(f"2024-01-02T10:00:00{end}" for end in (".123456789Z", ".1200000Z", " Europe/Berlin", "CET", "+18:30", "-00:00")),
    *("1700000000", "true", "null", "[1]", "{}"),
]
OTHERS = ["true", "false", "null", "[]", "{}", "[1.50]", '{"a": 1.50 }', '"\\ud800"', '"\\ud83d\\ude00"', '"\\\\ud800"']


@dataclass(frozen=True)
class Number:
    """A JSON number as it is written."""

    text: str


class Members(list[tuple[str, Any]]):
    """The members of a JSON object, in order, with every name that is there twice."""


def make_object(kinds: Mapping[str, str], chance: random.Random) -> str:
    """Return a JSON object of these fields: any JSON for all of them, or for one beside plain values."""
    wild = chance.choice([*kinds, *[None] * len(kinds)])
    texts = (make_text(kind, chance, is_plain=wild not in (None, name)) for name, kind in kinds.items())
    return "{" + ",".join(f'"{name}":{text}' for name, text in zip(kinds, texts, strict=True)) + "}"


def make_text(kind: str, chance: random.Random, *, is_plain: bool) -> str:
    """Return JSON for a field of that type: a plain value of it, else one in half of all cases."""
    if kind.startswith("ARRAY"):
        inner = [make_text(kind[6:-1], chance, is_plain=is_plain) for _ in range(chance.randrange(3))]
        return f"[{','.join(inner)}]"
    if kind.startswith("MAP"):
        names = (
            ["a", "?"]
            if is_plain
            else [chance.choice(["a", "b", "", "?", "\\ud800"]) for _ in range(chance.randrange(3))]
        )
        return "{" + ",".join(f'"{name}":{make_text("TIMESTAMP", chance, is_plain=is_plain)}' for name in names) + "}"
    if kind.startswith("STRUCT"):
        texts = [make_text(inner, chance, is_plain=is_plain) for inner in ("DATE", "DOUBLE")]
        return f'{{"a":{texts[0]},"b":{texts[1]}}}'
    return _make_plain(kind, chance) if is_plain or chance.random() < 0.5 else _make_other(kind, chance)


def read(kind: str, found: Any) -> Any:
    """Return the value of that type that Python reads, or REFUSED. `found` is of `load`."""
    if found is None:
        return None
    if kind.startswith(("ARRAY", "MAP", "STRUCT")):
        return _read_nested(kind, found)
    reader: Callable[[Any], Any] = {
        **dict.fromkeys(WHOLE, lambda it: _read_whole(it, WHOLE[kind])),
        **dict.fromkeys(DECIMALS, lambda it: _read_decimal(it, *DECIMALS[kind])),
        "BOOLEAN": lambda it: it if isinstance(it, bool) else REFUSED,
        "DOUBLE": _read_double,
        "FLOAT": lambda it: _narrow(_read_double(it)),
        "STRING": _read_string,
        "DATE": lambda it: date.fromisoformat(it) if isinstance(it, str) else REFUSED,
        "TIMESTAMP": _read_moment,
        "TIMESTAMP_NTZ": _read_local,
    }[kind]
    try:
        return reader(found)
    except (ValueError, InvalidOperation, OverflowError):
        return REFUSED


def load(text: str) -> dict[str, Any]:
    """Return the object's members, the last of each name, with numbers as written and nested objects as pairs."""
    pairs = json.loads(text, parse_float=Number, parse_int=Number, object_pairs_hook=Members)
    return dict(pairs)


def _make_plain(kind: str, chance: random.Random) -> str:
    if kind in WHOLE:
        return str(chance.randrange(-(2 ** (WHOLE[kind] - 1)), 2 ** (WHOLE[kind] - 1)))
    if kind in DECIMALS:
        precision, scale = DECIMALS[kind]
        number = Decimal(chance.randrange(10 ** chance.randint(1, precision))).scaleb(-scale)
        text = f"{number if chance.random() < 0.5 else -number:f}"
        return chance.choice([text, f'"{text}"'])
    moment = datetime.fromtimestamp(chance.randrange(-(10**10), 10**11), UTC)
    plain: Mapping[str, Callable[[], str]] = {
        "BOOLEAN": lambda: chance.choice(["true", "false"]),
        "DOUBLE": lambda: repr(chance.uniform(-1, 1) * 10.0 ** chance.randrange(-300, 300)),
        "FLOAT": lambda: repr(float(np.float32(chance.uniform(-1e6, 1e6)))),
        "STRING": lambda: json.dumps("".join(chance.choices('aé"\\\t€😀1.', k=chance.randrange(6)))),
        "DATE": lambda: f'"{moment.date().isoformat()}"',
        "TIMESTAMP": lambda: (
            f'"{moment:%Y-%m-%dT%H:%M:%S}.{chance.randrange(10**6):06}{chance.choice(["Z", "+05:30"])}"'
        ),
        "TIMESTAMP_NTZ": lambda: f'"{moment:%Y-%m-%d %H:%M:%S}"',
    }
    text = plain[kind]()
    return text.replace("+05:30", "-0100") if kind == "TIMESTAMP" and chance.random() < 0.1 else text


def _make_other(kind: str, chance: random.Random) -> str:
    """Return JSON near the type's values, or of another type."""
    digits = "".join(chance.choices("0123456789", k=chance.choice([1, 2, 5, 15, 16, 17, 25, 40])))
    whole = digits.lstrip("0") or "0"
    fraction = f"{whole[: chance.randrange(1, len(whole) + 1)]}.{digits}{'0' * chance.choice([0, 0, 3, 30])}"
    sign, power = (
        chance.choice(["", "+", "-"]),
        chance.choice([0, 1, 2, 5, 15, 18, 30, 38, 99, 308, 325, 400, 99999999]),
    )
    exponent = f"{chance.choice([whole[:3], fraction])}{chance.choice('eE')}{sign}{power}"
    numbers = [whole, f"-{whole}", fraction, f"-{fraction}", exponent, f"-{exponent}", "-0", "0.0", "0.004", "1.005"]
    text = json.dumps(chance.choice([*numbers, *TEXTS]), ensure_ascii=False)
    return chance.choice([chance.choice(numbers), chance.choice(numbers), text, chance.choice(OTHERS)])


def _read_whole(found: Any, bits: int) -> Any:
    if not isinstance(found, Number):
        return REFUSED
    value = int(found.text)
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else REFUSED


def _read_decimal(found: Any, precision: int, scale: int) -> Any:
    text = found.text if isinstance(found, Number) else found
    if not isinstance(text, str) or not text.isascii() or text != text.strip() or "_" in text or text.startswith("+"):
        return REFUSED
    value = Decimal(text)
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):  # NaN, or infinity
        return REFUSED
    kept = "".join(map(str, digits)).rstrip("0")
    exponent += len(digits) - len(kept)
    return value if not kept or (-exponent <= scale and len(kept) + exponent <= precision - scale) else REFUSED


def _read_double(found: Any) -> Any:
    if not isinstance(found, Number):
        return REFUSED
    value = float(found.text)
    is_zero = not any(digit in "123456789" for digit in found.text.lower().partition("e")[0])
    return value if np.isfinite(value) and (value or is_zero) else REFUSED


def _narrow(value: Any) -> Any:
    if value is REFUSED:
        return value
    with np.errstate(over="ignore", under="ignore"):
        narrow = float(np.float32(value))
    return narrow if np.isfinite(narrow) and (narrow or not value) else REFUSED


def _read_string(found: Any) -> Any:
    if isinstance(found, bool):
        return str(found).lower()
    if isinstance(found, Number):
        return str(int(found.text))
    if isinstance(found, str):
        return found if found.encode("utf-8", "surrogatepass").decode("utf-8", "ignore") == found else REFUSED
    return REFUSED


def _read_moment(found: Any) -> Any:
    if not isinstance(found, str) or len(found) < 16:  # a date alone is no moment
        return REFUSED
    moment = datetime.fromisoformat(found)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _read_local(found: Any) -> Any:
    moment = datetime.fromisoformat(found) if isinstance(found, str) and len(found) >= 16 else None
    return moment if moment and moment.tzinfo is None else REFUSED


def _read_nested(kind: str, found: Any) -> Any:
    is_object = isinstance(found, Members)
    if kind.startswith("ARRAY"):
        if is_object or not isinstance(found, list):
            return REFUSED
        values = [read(kind[6:-1], each) for each in found]
        return REFUSED if REFUSED in values else values
    if not is_object:
        return REFUSED
    members = dict(found)
    if kind.startswith("STRUCT"):
        fields = {"a": read("DATE", members.get("a")), "b": read("DOUBLE", members.get("b"))}
        return REFUSED if REFUSED in fields.values() else fields
    moments = {_read_string(name): read("TIMESTAMP", value) for name, value in found}
    return REFUSED if REFUSED in (*moments, *moments.values()) or len(moments) < len(found) else moments
