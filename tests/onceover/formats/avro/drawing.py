"""Types and values by chance: of every kind that Avro has, the ends of each range among them."""

from __future__ import annotations

import random
import struct
from typing import Any

from tests.onceover.formats.avro.avro_kinds import AvroKind
from tests.onceover.formats.avro.encoding import Chosen

_MOST_DEPTH = 3
_LOGICAL_LONGS = (
    "time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos", "local-timestamp-millis",
    "local-timestamp-micros", "local-timestamp-nanos",
)  # fmt: skip
_SCALARS = [
    *(AvroKind(kind) for kind in ("boolean", "int", "long", "float", "double", "bytes", "string")),
    AvroKind("int", "date"),
    AvroKind("int", "time-millis"),
    *(AvroKind("long", logical) for logical in _LOGICAL_LONGS),
    AvroKind("string", "uuid"),
]
_TEXTS = ("", "a", "ø漢𝄞", '"\\\n', "\0", "field", "x" * 70, "é" * 100)


class Drawing:
    """Draws from this chance: records that SQL can read, and with `is_free` any type."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self._named: list[AvroKind] = []

    def draw_record(self, fields: int | None = None, namespace: str | None = None) -> AvroKind:
        """Return a record of the top."""
        space = self.chance.choice(("", "shop", "shop.a_b")) if namespace is None else namespace
        return self._draw_fields(self._name("record", space), 0, fields or self.chance.randint(1, 8), is_free=False)

    def draw(self, space: str, depth: int, *, is_free: bool) -> AvroKind:
        chance = self.chance
        deep = ["array", "map", "union", "union", "record"] if depth < _MOST_DEPTH else []
        drawn = chance.choice(["scalar"] * 4 + ["decimal", "fixed", "enum", "named", *deep])
        if drawn == "named":
            known = [kind for kind in self._named if kind.namespace or not space]
            drawn = "named" if known else "scalar"
        if drawn == "scalar":
            return AvroKind("null") if is_free and chance.random() < 0.1 else chance.choice(_SCALARS)
        if drawn == "decimal":
            return self._draw_decimal(space)
        if drawn == "named":
            return chance.choice(known)
        if drawn in ("array", "map"):
            return AvroKind(drawn, inner=[self.draw(space, depth + 1, is_free=is_free)])
        if drawn == "union":
            return self._draw_union(space, depth + 1, is_free=is_free)
        if drawn == "record":
            space = chance.choice((space, space, "stock"))
            return self._draw_fields(self._name("record", space), depth + 1, chance.randint(1, 4), is_free=is_free)
        made = self._name(drawn, space)
        if drawn == "fixed":
            made.size = chance.choice((1, 2, 7, 12, 16, 16, 300))
            made.logical = {12: "duration", 16: chance.choice(("", "uuid"))}.get(made.size, "")
        else:
            made.symbols = tuple(f"S{number}" for number in range(chance.choice((1, 2, 70))))
        self._named.append(made)
        return made

    def draw_value(self, kind: AvroKind) -> Any:
        """Return a value as `encode` takes it."""
        chance = self.chance
        if kind.logical == "decimal":
            most = 10 ** chance.choice((kind.precision, chance.randint(1, kind.precision))) - 1
            return chance.choice((most, -most, 0, chance.randint(-most, most)))
        if kind.kind == "null":
            return None
        if kind.kind == "boolean":
            return chance.random() < 0.5
        if kind.kind in ("int", "long"):
            most = 1 << (31 if kind.kind == "int" else 63)
            if kind.logical.endswith("timestamp-millis"):
                most = most // 1000
            ends = (most - 1, 1 - most, 0, -1, 63, 64, -64, -65)
            size = 1 << chance.randrange(most.bit_length())
            return chance.choice(ends) if chance.random() < 0.3 else chance.randint(-size, size - 1)
        if kind.kind in ("float", "double"):
            return self._draw_float(kind)
        if kind.kind == "string":
            return chance.choice(_TEXTS)
        if kind.kind in ("bytes", "fixed"):
            return chance.randbytes(kind.size if kind.kind == "fixed" else chance.choice((0, 1, 16, 200)))
        if kind.kind == "enum":
            return chance.choice(kind.symbols)
        if kind.kind == "union":
            number = chance.randrange(len(kind.inner))
            return Chosen(number, self.draw_value(kind.inner[number]))
        if kind.kind == "record":
            return {name: self.draw_value(inner) for name, inner in kind.fields}
        count = chance.choice((0, 0, 1, 2, 3, 9))
        items = [self.draw_value(kind.inner[0]) for _ in range(count)]
        return items if kind.kind == "array" else {f"{chance.choice(_TEXTS)}{n}": item for n, item in enumerate(items)}

    def _name(self, kind: str, space: str) -> AvroKind:
        return AvroKind(kind, name=f"{kind.title()}{self.chance.getrandbits(40)}", namespace=space)

    def _draw_fields(self, record: AvroKind, depth: int, count: int, *, is_free: bool) -> AvroKind:
        fields = [(f"f{number}", self.draw(record.namespace, depth, is_free=is_free)) for number in range(count)]
        record.fields = fields
        if depth:  # the top is there once
            self._named.append(record)
        return record

    def _draw_decimal(self, space: str) -> AvroKind:
        precision = self.chance.randint(1, 38)
        kind = self._name("fixed", space) if self.chance.random() < 0.5 else AvroKind("bytes")
        kind.logical, kind.precision, kind.scale = "decimal", precision, self.chance.randint(0, precision)
        if kind.kind == "fixed":
            kind.size = ((10**precision - 1).bit_length() + 8) // 8 + self.chance.choice((0, 0, 1, 9))
            self._named.append(kind)
        return kind

    def _draw_union(self, space: str, depth: int, *, is_free: bool) -> AvroKind:
        drawn = [self.draw(space, depth, is_free=is_free) for _ in range(self.chance.randint(1, 4) if is_free else 1)]
        kinds = {each.full_name if each.name else each.kind: each for each in drawn}
        branches = [kind for kind in kinds.values() if kind.kind not in ("null", "union")]
        branches += [AvroKind("null")] if self.chance.random() < 0.8 or not branches else []
        self.chance.shuffle(branches)
        if not is_free and [kind.kind for kind in branches] == ["null"]:
            branches.append(AvroKind("long"))
        return AvroKind("union", inner=branches)

    def _draw_float(self, kind: AvroKind) -> float:
        numbers = (0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.5, 5e-324, self.chance.gauss(0, 1e10))
        number = self.chance.choice(numbers)
        return struct.unpack("<f", struct.pack("<f", number))[0] if kind.kind == "float" else number
