"""Hostile records by families, each timed: a record counts or has a reason, and costs no more than a record does."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from tests.onceover.spark.contracts import interpret_values, make_contract

from onceover.model.contract import Key
from onceover.model.measures import Measure

pytestmark = pytest.mark.spark

COPIES = 40
"""Records of each family."""
CPU_SECONDS = 2.0
"""Of the JVM for a family, above what as many plain records take: the machine may be busy with something else."""
CPU_SECONDS_A_MEGABYTE = 0.5
"""Of the family's bytes, above that: long records took 0.1 to 0.2 s a megabyte, twice that on a busy machine, and a
quadratic search of the same bytes took 600 s a megabyte."""
JSON = make_contract(
    schema="a DECIMAL(12, 2), s STRING, l ARRAY<DECIMAL(38, 9)>, m MAP<STRING, DECIMAL(9, 3)>, at BIGINT",
    event_time="coalesce(value.at, 1357041600000)",
    keys=(Key("text", "value.s"), Key("cast", "CAST(value.s AS DECIMAL(12, 2))")),
    measures=(Measure("a", "sum", "value.a"), Measure("s", "max", "value.s::DECIMAL(20, 4)")),
)
TEXT = make_contract(
    format="text",
    schema="",
    keys=(Key("first", "split(value, ' ')[0]"),),
    measures=(Measure("amount", "sum", "CAST(split(value, ' ')[1] AS DECIMAL(12, 2))"),),
)
ContractOf = Literal["json", "text"]
CONTRACTS = {"json": JSON, "text": TEXT}
OFTEN = ("escapes and commas", "plain digits", "cast", "mutated")
"""Families that `make test` tries."""
MARKS = dict.fromkeys(OFTEN, ()) | dict.fromkeys(("bare", "escaped text", "text cast"), pytest.mark.rare)
"""Of the families that `make test` and `make test-faults` try; `make test-rest` tries the others."""
Family = Callable[[random.Random], bytes]


def number(chance: random.Random) -> str:
    """Return a number that takes minutes to write out."""
    digits, exponent = chance.choice(["1", "9.9", "0.5", "123456"]), chance.choice(["999999", "9999999", "99999999"])
    return f"{digits}{chance.choice('eE')}{chance.choice(['', '+', '-'])}{exponent}"


def escape(text: str, chance: random.Random) -> str:
    return "".join(f"\\u{ord(each):04x}" if chance.random() < 0.5 or each in "eE" else each for each in text)


def with_commas(text: str, chance: random.Random) -> str:
    return "".join(each + chance.choice(["", ",", ",,"]) for each in text)


def in_other_digits(text: str, chance: random.Random) -> str:
    zero = ord(chance.choice("٠०０"))
    return "".join(chr(zero + int(each)) if each.isdigit() else each for each in text)


def mutate(chance: random.Random) -> bytes:
    value = bytearray(b'{"a":"1,5","s":"12.50","l":[1.5,2e1],"m":{"x":0.125},"at":1357041600000}')
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(value))
        value[at : at + chance.randrange(3)] = bytes(chance.choices(range(256), k=chance.randrange(3)))
    return bytes(value)


FAMILIES: dict[str, Family] = {
    "bare": lambda chance: b'{"a":%b}' % number(chance).encode(),
    "quoted": lambda chance: b'{"l":[1,"%b"]}' % number(chance).encode(),
    "commas": lambda chance: b'{"a":"%b"}' % with_commas(number(chance), chance).encode(),
    "escapes": lambda chance: b'{"a":"%b"}' % escape(number(chance), chance).encode(),
    "escapes and commas": lambda chance: (
        b'{"m":{"x":"%b"}}' % escape(with_commas(number(chance), chance), chance).encode()
    ),
    "other digits": lambda chance: f'{{"a":"{in_other_digits(number(chance), chance)}"}}'.encode(),
    "repeated": lambda chance: b"{%b}" % b",".join([b'"a":1e99999'] * chance.randrange(1000, 5000)),
    "repeated strings": lambda chance: b'{%b,"a":1}' % b",".join([b'"a":"1e9,999,999"'] * chance.randrange(10, 50)),
    "plain digits": lambda chance: b'{"a":"%b"}' % (b"7" * chance.randrange(100_000, 400_000)),
    "array": lambda chance: b'{"l":[%b]}' % b",".join([b'"1e9999999"'] * 1000),
    "cast": lambda chance: b'{"s":"%b"}' % number(chance).encode(),
    "cast digits": lambda chance: b'{"s":"0.%b"}' % (b"7" * chance.randrange(100_000, 400_000)),
    "small exponents": lambda chance: b"{%b}" % b",".join([b'"a":"9e%d"' % chance.randrange(-99, 99)] * 1000),
    "nested": lambda chance: b'{"l":' + b"[" * chance.randrange(1, 5000),
    "far dates": lambda chance: b'{"at":%d}' % chance.choice([10**13 - 1, 10**13, -1, 2**63 - 1, -(2**63), 2**64]),
    "long text": lambda chance: json.dumps({"s": chance.choice("x\0é\ud800") * chance.randrange(1, 3000)}).encode(),
    "escaped text": lambda chance: b'{"s":"%bz","a":1}' % (b"\\u0434" * chance.randrange(20_000, 50_000)),
    "mutated": mutate,
}
TEXTS: dict[str, Family] = {
    "text cast": lambda chance: b"x %b" % number(chance).encode(),
    "text digits": lambda chance: b"x %b" % (b"7" * chance.randrange(100_000, 400_000)),
    "text spaces": lambda chance: b"x" + b" " * chance.randrange(10_000, 100_000),
    "text bytes": lambda chance: bytes(chance.choices(range(256), k=chance.randrange(200))),
}


def measure_cpu() -> float:
    """Return the seconds of processor that the JVM has taken."""
    process = SparkContext._gateway.proc  # type: ignore[union-attr]
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def interpret_twice(spark: SparkSession, contract: object, values: Sequence[bytes]) -> float:
    """Interpret the values twice, and return the CPU seconds of the first time."""
    begun = measure_cpu()
    rows = interpret_values(spark, contract, values)  # type: ignore[arg-type]
    took = measure_cpu() - begun
    assert len(rows) == len(values)
    assert interpret_values(spark, contract, values) == rows  # type: ignore[arg-type]
    return took


@cache
def measure_plain(spark: SparkSession, contract: ContractOf) -> float:
    """Return the least CPU seconds that as many plain records take."""
    plain = b'{"a":1.5,"s":"2.5"}' if contract == "json" else b"x 2.5"
    return min(interpret_twice(spark, CONTRACTS[contract], [plain] * COPIES) for _ in range(2))


@pytest.mark.parametrize(
    "family",
    [pytest.param(each, marks=MARKS.get(each, pytest.mark.largest)) for each in (*FAMILIES, *TEXTS)],
)
def test_family_counts_or_has_a_reason_and_costs_little(spark: SparkSession, family: str) -> None:
    chance = random.Random(family)
    contract: ContractOf = "json" if family in FAMILIES else "text"
    make = {**FAMILIES, **TEXTS}[family]
    least = measure_plain(spark, contract)
    values = [make(chance) for _ in range(COPIES)]
    took = interpret_twice(spark, CONTRACTS[contract], values)
    assert took - least < CPU_SECONDS + CPU_SECONDS_A_MEGABYTE * sum(map(len, values)) / 1e6
