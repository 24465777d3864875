"""What becomes of each kind of text that the public JSON test suite has: valid, invalid, and up to the reader."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from .contracts import interpret_values, make_keyed

pytestmark = pytest.mark.spark

NO_OBJECT, NOT_UTF_8 = "unparseable: not one JSON object", "unparseable: not UTF-8"
TAKEN = [
    *(b'{"a":"x"}', b' {\t"a"\r\n: "x" }\n', b'{"\\u0061":"x"}', b'{"a":"x","b":[[[[]]]]}', b'{"":0,"a":"x"}'),
    *(b'{"a":"x","a":"y"}', b'{"a":"x","b":1e400}', b'{"a":"x","b":-1e-400}', b'{"a":"x","b":"\\ud800"}'),
    *(b'{"a":"x","b":-0.0e+1}', b'{"a":"\\"\\\\\\/\\b\\f\\n\\r\\t"}', b'{"a":"\\ud83d\\ude00"}', '{"a":"€"}'.encode()),
    *(b'{"a":null}', b'{"a":"\\u2028"}', '{"a":"\u2028\x7f"}'.encode(), b'{"a":"1.50"}', b'{"a":"[1]"}', b'{"a":"{}"}'),
    *(b"{}", b'{"A":"x"}', b'{"b":{"a":"x"},"c":[1e999,"]}"]}', b'{"v":[{}],"end":null,"broken":"x"}'),
    b'{"a":"x","b":' + b"[" * 500 + b"]" * 500 + b"}",
]
NO_STRING = [b'{"a":1.50}', b'{"a":1e2}', b'{"a":[]}', b'{"a":{"b":1}}', b'{"a":"\\ud800"}', b'{"a":"x\\udc00y"}']
INVALID = [
    *(b"", b" ", b"null", b"true", b"1", b'"x"', b"[]", b'[{"a":"x"}]', b"\xef\xbb\xbf{}", b"{", b"}"),
    *(b'{"a":"x"', b'{"a"}'),
    *(b'{"a":}', b'{"a":"x",}', b'{,"a":"x"}', b'{"a":"x"}}', b'{"a":"x"}]', b'{"a":"x"} {"a":"y"}'),
    *(b'{"a":"x"},{"a":"y"}',),
    *(b"{'a':'x'}", b'{a:"x"}', b'{"a":"x"}/**/', b'{"a":"x"}//', b'{"a":"x"}#', b'{"a":"x" "b":1}'),
    *(b'{"a" "x"}', b'{1:1}'),
    *(b'{"b":01}', b'{"b":.5}', b'{"b":1.}', b'{"b":+1}', b'{"b":-}', b'{"b":1e}', b'{"b":0x10}'),
    *(b'{"b":NaN}', b'{"b":Infinity}'),
    *(b'{"b":--1}', b'{"b":1_0}', b'{"b":1,2}', b'{"b":[1,]}', b'{"b":[1 2]}', b'{"b":[1}', b'{"b":nul}'),
    *(b'{"b":True}', b'{"b":@}'),
    *(b'{"b":"\n"}', b'{"b":"\x00"}', b'{"b":"\\x"}', b'{"b":"\\u12"}', b'{"b":"\\uD8zz"}', b'{"b":"}'),
    *(b'{"b":"\\"}', b'{"b":\\n1}'),
    *(b'{\xc2\xa0"b":1}', b'{\x0c"b":1}', b'{"b":1}\x00', b'{"a":"x"}],"a":[{"a":"y"}', b'{"a":"x"},{}],"v":[{}'),
    *(b'{"a":"x"}],"b":[{"a":"y"}', b'{"a":"x"},{"end":1}],"x":[1'),
    *(b'{"b":' + b"[" * 100_000, b'{"b":' + b"9" * 1001 + b"}", b'{"a":' + b"9" * 1001 + b"}"),
    *(b"not json", b'{"a":"x"} xyz', b'{"a":"x"}{"a":"y"}', b'{"a":"x"},"b":2', b"{},", b'{"a":01}', b'{"a":NaN}'),
]  # fmt: skip
MISCODED = [
    *(b'{"a":"\xff"}', b'{"a":"\xc0\xaf"}', b'{"a":"\xed\xa0\x80"}', b'{"a":"\xf4\x90\x80\x80"}', b'{"a":"\xe2\x82"}'),
    *('{"a":"x"}'.encode("utf-16"), '{"a":"é"}'.encode("latin-1")),
]


def test_each_kind_of_text_has_its_fate(spark: SparkSession) -> None:
    expected = {
        **dict.fromkeys(TAKEN),
        **dict.fromkeys(NO_STRING, "unparseable: field a is no STRING"),
        **dict.fromkeys(INVALID, NO_OBJECT),
        **dict.fromkeys(MISCODED, NOT_UTF_8),
    }

    rows = interpret_values(spark, make_keyed("value.a", schema="a STRING"), list(expected))

    assert {value: row.reason for value, row in zip(expected, rows, strict=True)} == expected
    assert [row.k_it for row in rows[: len(TAKEN)]] == [json.loads(value).get("a") for value in TAKEN]


@pytest.mark.parametrize("value", [*INVALID, *MISCODED])
def test_text_that_is_refused_is_none_for_python_either(value: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        _read_object(value)


def _read_object(value: bytes) -> None:
    found = json.loads(value.decode("utf-8"), parse_constant=_refuse)
    if not isinstance(found, dict) or len(value) > 1_000:  # a number of more than 1,000 digits is up to the reader
        raise ValueError(found)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
