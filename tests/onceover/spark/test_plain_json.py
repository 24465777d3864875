"""Which JSON Arrow reads in the place of Spark. That both read the same is asserted wherever values are interpreted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from onceover.spark.plain_json import make_plain_type, read_plain

KIND = pa.struct([("at", pa.int64()), ("kind", pa.string()), ("it", pa.struct([("n", pa.int8())]))])
PLAIN = {
    b"{}": {"at": None, "kind": None, "it": None},
    b' {"at":1}'[1:]: {"at": 1, "kind": None, "it": None},
    b'{"it":{"n":-128},"kind":"\xc3\xa9","other":[{"at":2}],"at":-9223372036854775808}': {
        "at": -(1 << 63), "kind": "\u00e9", "it": {"n": -128},
    },
    b'{"it":{},\n"kind":"N or I","at":null}': {"at": None, "kind": "N or I", "it": {"n": None}},
    b'{"kind":"Information","isNaN":true}': {"at": None, "kind": "Information", "it": None},
}  # fmt: skip
OTHERS = [
    *(None, b"", b"1", b"null", b"[]", b' {"at":1}', b'{"at":1} ', b'\xef\xbb\xbf{"at":1}', b'{"at":1}{"at":2}'),
    *(b'{"at":"1"}', b'{"at":1.0}', b'{"at":9223372036854775808}', b'{"it":{"n":128}}', b'{"it":1}', b'{"kind":1}'),
    *(b'{"kind":"\\n"}', b'{"kind":"\xff"}', b'{"kind":"\n"}', b'{"at":1,"at":2}', b'{"at":01}', b"{'at':1}"),
    *(
        b'{"other":[-NaN]}',
        b'{"other": NaN}',
        b'{"other":[1,Inf]}',
        b'{"other":NaN}',
        b'{"other":-Infinity}',
        b'{"other":Inf}',
        b'{"at":1}\0}',
        b'{"other":"' + b"x" * 1000 + b'"}',
    ),
]


def test_plain_values_are_read_and_others_are_left() -> None:
    expected: dict[Any, Any] = {**PLAIN, **dict.fromkeys(OTHERS)}
    for value, fields in expected.items():
        assert read_plain(pa.array([value], pa.binary()), KIND).to_pylist() == [fields], value


def test_values_keep_their_places_beside_those_that_are_left() -> None:
    values = [b"1", *PLAIN, None, *PLAIN, b'{"kind":"\\n"}']

    read = read_plain(pa.array([b"", *values], pa.binary()).slice(1), KIND)

    assert read.to_pylist() == [None, *PLAIN.values(), None, *PLAIN.values(), None]


def test_a_wrong_value_leaves_no_more_than_500() -> None:
    values = pa.array([*[b'{"at":1}'] * 5_600, b'{"at":"1"}', *[b'{"at":1}'] * 5_000], pa.binary())

    read = read_plain(values, KIND)

    assert read.is_null().to_pylist() == [5_500 <= number < 6_000 for number in range(10_601)]


@pytest.mark.parametrize(
    ("first", "second"),
    [(b'{"other":{}', b"{}}"), (b'{"other":"}', b'{"}'), (b'{"other":[{}', b"{}]}"), (b'{"at":1}{}', b"}"),
     (b'{"other":{}', b',"at":1}{"at":2}'), (b'{"at":1}{"other":', b"{}}")],
)  # fmt: skip
def test_no_object_reaches_from_one_value_into_the_next(first: bytes, second: bytes) -> None:
    read = read_plain(pa.array([b'{"at":1}', first, second], pa.binary()), KIND)

    assert read.to_pylist()[1:] == [None, None]


def test_types_that_both_do_not_read_alike_leave_all_to_spark() -> None:
    plain: dict[str, DataType] = {
        "a": BooleanType(),
        "b": ByteType(),
        "c": ShortType(),
        "d": IntegerType(),
        "e": LongType(),
    }
    plain |= {"f": StringType(), "g": _make_type({"h": StringType()})}
    assert make_plain_type(_make_type(plain)) == pa.struct(
        [("a", pa.bool_()), ("b", pa.int8()), ("c", pa.int16()), ("d", pa.int32()), ("e", pa.int64()),
         ("f", pa.string()), ("g", pa.struct([("h", pa.string())]))]
    )  # fmt: skip
    for kind in (DoubleType(), FloatType(), DecimalType(9, 2), DateType(), TimestampType(), ArrayType(LongType())):
        assert make_plain_type(_make_type({"a": LongType(), "b": kind})) is None
    assert make_plain_type(StructType()) is None


def _make_type(fields: Mapping[str, DataType]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def test_field_that_may_not_be_null_keeps_its_place() -> None:
    kind = make_plain_type(StructType([StructField("a", LongType(), nullable=False)]))
    assert kind is not None
    read = read_plain(pa.array([b'{"a":1}'] * 1000 + [b"1"]), kind)
    assert read.to_pylist() == [{"a": 1}] * 1000 + [None]
    assert len(read_plain(pa.array([], pa.binary()), kind)) == 0
