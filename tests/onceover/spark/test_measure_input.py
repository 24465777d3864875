"""The bit of a sketch that a value sets, against another library's XXH64."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest
import xxhash
from pyspark.sql import SparkSession

from onceover.model.measures import DISTINCT, SKETCH_COMPONENT_BITS, SKETCH_COMPONENTS

from .contracts import interpret_values, make_measured

pytestmark = pytest.mark.spark


def find_place(text: str) -> int:
    """Return the place of the text's bit, by what docs/pipeline-reference.md says of it."""
    digest = xxhash.xxh64_intdigest(text.encode(), seed=42)
    component = 0
    others = digest // SKETCH_COMPONENT_BITS
    while component < SKETCH_COMPONENTS - 1 and others % 2 == 0:
        component, others = component + 1, others // 2
    return component * SKETCH_COMPONENT_BITS + digest % SKETCH_COMPONENT_BITS


def test_a_value_sets_the_bit_of_its_hash(spark: SparkSession) -> None:
    draw = random.Random(5)
    numbers = [0, 1, -(2**31), *(draw.randrange(2**31) for _ in range(3_000))]
    values = [b'{"a":%d}' % number for number in numbers]
    rows = interpret_values(spark, make_measured(DISTINCT, "value.a"), values)
    assert [row.m_it for row in rows] == [find_place(str(number)) for number in numbers]
    assert max(row.m_it for row in rows) // SKETCH_COMPONENT_BITS > 8, "late components too"


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("concat('\\u00e9 \\t', value.a)", "é \t7"),
        ("''", ""),
        ("value.a = 7", "true"),
        ("CAST(value.a AS DECIMAL(9, 2))", str(Decimal("7.00"))),
        ("CAST(NULL AS STRING)", None),
    ],
)
def test_value_of_each_type_is_hashed_as_text(spark: SparkSession, sql: str, text: str | None) -> None:
    (row,) = interpret_values(spark, make_measured(DISTINCT, sql), [b'{"a":7}'])
    assert (row.reason, row.m_it) == (None, None if text is None else find_place(text))
