"""SQL that the check of a contract refuses, each with its reason and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from onceover.config.mistakes import MistakesError
from onceover.config.pipeline_file import read_pipeline
from onceover.spark.interpret import interpret

from .contracts import PAYMENTS, list_refusals, make_contract, make_keyed, make_records

pytestmark = pytest.mark.spark

CLOCKS = {
    "current_timestamp": ["current_timestamp()", "unix_timestamp()"],
    "now": ["now()", "nullif(now(), kafka_timestamp)"],
    "current_date": ["current_date", "date_add(curdate(), 1)"],
    "localtimestamp": ["localtimestamp()"],
    "user": ["current_user()"],
    "current_timezone": ["current_timezone()"],
    "'now'": ["TIMESTAMP 'now'", "'now'::timestamp"],
    "'today'": ["to_timestamp('today')"],
    "'Tomorrow'": ["CAST( 'Tomorrow' AS DATE)"],
    "'yesterday'": ["date'yesterday'"],
    "'12:30'": ["TIMESTAMP '12:30'", "'12:30'::timestamp"],
    "'T9:15:00'": ['timestamp_ltz"T9:15:00"'],
}
TIMES = {
    "makes TIMESTAMPs of several texts at once, of which none is looked at": [
        "CAST(split(key, ',') AS ARRAY<TIMESTAMP>)[0]",
        "CAST(array(key) AS ARRAY<TIMESTAMP>)[0]",
    ],
    **{
        f"{word} changes from run to run; take kafka_timestamp or a field of the record": CLOCKS[word]
        for word in CLOCKS
    },
}
CHANCE = ["rand()", "uuid()", "random(5)", "monotonically_increasing_id()", "shuffle(array(1))"]
KEYS = {
    "is not deterministic": [f"CAST({sql} AS STRING)" for sql in CHANCE],
    "needs other records": [
        *("sum(value.a)", "count(*)", "row_number() OVER (ORDER BY key)", "explode(array(1))", "(SELECT 1)"),
        *("EXISTS (SELECT 1)", "window(kafka_timestamp, '5 minutes').start"),
    ],
    "with name `generation` cannot be resolved": ["generation"],
    "with name `__onceover_of_offset` cannot be resolved": ["__onceover_of_offset"],
    "with name `leader_epoch` cannot be resolved": ["leader_epoch"],
    "No such struct field `b` in `a`": ["value.b"],
    "Cannot resolve routine `nosuch`": ["nosuch(1)"],
    "Syntax error at or near 'c'": ["a b c"],
    "names all columns at once": ["to_json(struct(*))"],
    "gives itself a name": ["value.a AS other"],
    "is of type struct<a:int>; make it a string, integer": ["value"],
    "is of type double; cast it": ["CAST(key AS DOUBLE)"],
    "is of type timestamp_ntz": ["CAST(kafka_timestamp AS TIMESTAMP_NTZ)"],
    "is of type string collate UNICODE_CI": ["key COLLATE UNICODE_CI"],
    "makes a VARIANT, which rounds numbers; take from_json(...)": ["parse_json(key) IS NULL"],
    "makes a VARIANT": ["try_variant_get(parse_json(key), '$.n', 'int')", "CAST(CAST(key AS VARIANT) AS INT)"],
    "makes null by from_csv of a text that is no value of its type": ["from_csv(key, 'at TIMESTAMP').at"],
    "declare each field there as STRING, and cast it": ["from_csv(key, 'n INT, s STRING').n"],
    "makes null by from_xml": ["from_xml(key, 'n INT').n"],
    "makes 0 by xpath of a text that is no number; take xpath_string(...) and a cast": ["xpath_int(key, 'a/b')"],
    "text -> CAST(text AS DECIMAL(28, 6)))": ["CAST(split(key, ',') AS ARRAY<DECIMAL(9, 1)>)[0]"],
    "gives from_json options; leave them out": ["from_json(key, 'n INT', map('mode', 'DROPMALFORMED')).n"],
    "reads ARRAY<INT> by from_json; read an object with it": ["from_json(key, 'ARRAY<INT>')[0]"],
    "reads MAP<STRING,INT> by from_json; read an object with it": ["from_json(key, 'MAP<STRING, INT>')['n']"],
    "reads field s.t as BINARY by from_json; declare it as": ["from_json(key, 's STRUCT<t: BINARY>').s.t IS NULL"],
}


def list_rows(refused: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    return [(sql, words) for words, each in refused.items() for sql in each]


@pytest.mark.parametrize(("sql", "words"), list_rows(TIMES))
def test_event_time_from_the_clock_is_refused(spark: SparkSession, sql: str, words: str) -> None:
    (line,) = list_refusals(spark, make_contract(event_time=sql))

    assert line.startswith("event_time: ")
    assert words in line


@pytest.mark.parametrize(("sql", "words"), list_rows(KEYS))
def test_impossible_key_is_refused_with_the_reason(spark: SparkSession, sql: str, words: str) -> None:
    (line,) = list_refusals(spark, make_keyed(sql))

    assert line.startswith("keys.it: ")
    assert words in line
    assert "SQLSTATE" not in line


@pytest.mark.parametrize(
    ("measure", "mistake"),
    [
        ('avg = "CAST(key AS DOUBLE)"', "measures.it.avg: a sum of double depends on the order of the records; cast"),
        ('avg = "key"', "measures.it.avg: a string cannot be summed; take an integer or a decimal"),
        ('avg = "nosuch"', "measures.it.avg: A column, variable, or function parameter with name `nosuch`"),
        ('min_by = "kafka_timestamp"', "measures.it.min_by: is of type timestamp; take milliseconds as BIGINT"),
        ('max_by = "CAST(key AS DATE)"', "measures.it.max_by: is of type date; take milliseconds"),
        ('max_by = "CAST(key AS FLOAT)"', "measures.it.max_by: is of type float; cast it"),
        ('max_by = "array(key)"', "measures.it.max_by: is of type array<string>; make it"),
    ],
)
def test_derived_measure_is_refused_once_by_its_own_name(
    spark: SparkSession, tmp_path: Path, measure: str, mistake: str
) -> None:
    path = tmp_path / "derived.toml"
    path.write_text(PAYMENTS.replace("[contract.bounds]", f"it = {{ {measure} }}\n[contract.bounds]"))

    (line,) = list_refusals(spark, read_pipeline(path).contract)

    assert line.startswith(mistake)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        *(("a STRIN", "STRIN"), ("INT", "names no field"), ("a INT,", "Syntax error"), ("a MAP<INT, INT>", "map")),
        ("a INT, A INT", "field a is declared twice"),
        ("s STRUCT<a: INT, A: INT>", "field s.a is declared twice"),
    ],
)
def test_schema_that_spark_cannot_read_is_refused(spark: SparkSession, schema: str, why: str) -> None:
    assert why.lower() in list_refusals(spark, make_contract(schema=schema))[0].lower()


@pytest.mark.parametrize("kind", ["VARIANT", "TIME", "BINARY", "INTERVAL DAY TO SECOND", "STRING COLLATE UNICODE_CI"])
def test_type_that_no_json_is_a_value_of_is_refused(spark: SparkSession, kind: str) -> None:
    (line,) = list_refusals(spark, make_contract(schema=f"a STRUCT<b: ARRAY<{kind}>>"))

    assert line.startswith("schema: field a.b is of type ")
    assert "declare it as BOOLEAN, TINYINT" in line


def test_unchecked_contract_is_never_interpreted(spark: SparkSession) -> None:
    with pytest.raises(MistakesError, match="now changes from run to run"):
        make_records(spark, [b"{}"]).transform(interpret(make_contract(event_time="now()")))
