"""JSON: which form each type of value has."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType

import pytest

from onceover.model.contract import Column, Columns
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.json_text import to_json, to_plain
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.windowing import Windowing

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (1.5, 1.5),
        ("é", "é"),
        (Kind.LATE, "late"),
        (Decimal("1.50"), "1.50"),
        (NOON, "2026-03-01T12:00Z"),
        (NOON + timedelta(seconds=1), "2026-03-01T12:00:01Z"),
        (date(2026, 3, 1), "2026-03-01"),
        (Windowing(5).window_at(NOON), "2026-03-01T12:00Z"),
        (OffsetRange(KafkaPartition("0a1b2c3d", 1), 2, 5), "0a1b2c3d-1:2-5"),
        (Finding(Kind.LATE, {"records": 3}), {"kind": "late", "records": 3}),
        (
            Columns((Column("kind", "text"),), ()),
            {"keys": [{"name": "kind", "type": "text", "operation": None}], "measures": [], "derived": []},
        ),
        (MappingProxyType({"a": (NOON, [NOON])}), {"a": ["2026-03-01T12:00Z", ["2026-03-01T12:00Z"]]}),
    ],
)
def test_plain_value_has_json_types_only(value: object, expected: object) -> None:
    assert to_plain(value) == expected
    assert json.loads(to_json(value)) == expected


def test_text_is_one_line_unless_it_is_indented() -> None:
    assert to_json({"a": [1]}) == '{"a": [1]}'
    assert to_json({"a": [1]}, indent=2) == '{\n  "a": [\n    1\n  ]\n}'
