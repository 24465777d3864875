"""A message of every type that SQL sees, with random values, and the rows that they are, without the product's code."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from google.protobuf.message_factory import GetMessageClass

from onceover.formats.protobuf.schema import find_message

EVENT = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
enum Color { NONE = 0; RED = 1; BLUE = -7; }
message Other { string text = 1; }
message Event {
  message Inner { bytes data = 1; repeated Deep deep = 2; }
  message Deep { fixed64 size = 1; optional Color color = 2; }
  int32 a_int32 = 1;
  sint32 a_sint32 = 2;
  sfixed32 a_sfixed32 = 3;
  int64 a_int64 = 4;
  sint64 a_sint64 = 5;
  sfixed64 a_sfixed64 = 6;
  uint32 a_uint32 = 7;
  fixed32 a_fixed32 = 8;
  uint64 a_uint64 = 9;
  float a_float = 10;
  double a_double = 11;
  bool a_bool = 12;
  string a_string = 13;
  bytes a_bytes = 14;
  Color a_color = 15;
  optional int64 maybe = 16;
  google.protobuf.Timestamp at = 17;
  Inner inner = 18;
  repeated int32 numbers = 19;
  repeated string texts = 20;
  map<string, Deep> by_name = 21;
  oneof either { string left = 22; uint64 right = 23; }
}
"""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COLORS = {0: "NONE", 1: "RED", -7: "BLUE"}


def make_class(proto: str = EVENT, name: str = "shop.Event") -> Any:
    return GetMessageClass(find_message(proto, name))


def _edge(chance: random.Random, low: int, high: int) -> int:
    return chance.choice([0, 1, low, high, chance.randint(low, high)])


def draw_event(chance: random.Random) -> tuple[Any, Mapping[str, Any]]:
    """Return a message, and its row as Arrow has it in Python."""
    event, row = make_class()(), {}
    ranges = {
        **dict.fromkeys(("a_int32", "a_sint32", "a_sfixed32"), (-(2**31), 2**31 - 1)),
        **dict.fromkeys(("a_int64", "a_sint64", "a_sfixed64"), (-(2**63), 2**63 - 1)),
        **dict.fromkeys(("a_uint32", "a_fixed32"), (0, 2**32 - 1)),
        "a_uint64": (0, 2**64 - 1),
    }
    plain: dict[str, Any] = {name: _edge(chance, *bounds) for name, bounds in ranges.items()}
    plain |= {"a_float": chance.choice([0.0, -1.5, 0.25]), "a_double": chance.random(), "a_bool": chance.random() < 0.5}
    plain |= {"a_string": "é\0" * chance.randrange(3), "a_bytes": chance.randbytes(chance.randrange(4))}
    plain |= {"numbers": [_edge(chance, -9, 9) for _ in range(chance.randrange(4))]}
    plain |= {"texts": ["x" * chance.randrange(3) for _ in range(chance.randrange(3))]}
    for name, value in plain.items():
        getattr(event, name).extend(value) if isinstance(value, list) else setattr(event, name, value)
        row[name] = Decimal(value) if name == "a_uint64" else value
    event.a_color = chance.choice(list(_COLORS))
    row["a_color"] = _COLORS[event.a_color]
    row |= {"maybe": None, "at": None, "inner": None, "left": None, "right": None}
    if chance.random() < 0.5:
        event.maybe = row["maybe"] = chance.choice([0, -5])
    if chance.random() < 0.8:
        event.at.seconds, event.at.nanos = (
            chance.randint(-(10**10), 10**11),
            chance.choice([0, 1, 999, 1000, 999_999_999]),
        )
        row["at"] = EPOCH + timedelta(seconds=event.at.seconds, microseconds=event.at.nanos // 1000)
    if chance.random() < 0.7:
        event.inner.data = b"\xff"
        deep = [_draw_deep(chance, event.inner.deep.add()) for _ in range(chance.randrange(3))]
        row["inner"] = {"data": b"\xff", "deep": deep}
    row["by_name"] = sorted((name, _draw_deep(chance, event.by_name[name])) for name in chance.sample("abc", 2))
    if chance.random() < 0.7:
        event.left, event.right = "gone", 7
        row["right"] = Decimal(7)
    return event, row


def _draw_deep(chance: random.Random, deep: Any) -> Mapping[str, Any]:
    deep.size = _edge(chance, 0, 2**64 - 1)
    color = chance.choice([None, *_COLORS])
    if color is not None:
        deep.color = color
    return {"size": Decimal(deep.size), "color": None if color is None else _COLORS[color]}
