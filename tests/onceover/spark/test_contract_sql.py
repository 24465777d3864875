"""SQL of every kind of expression, analyzed for a contract: it has the value that Spark gives it."""

from __future__ import annotations

from typing import cast

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from onceover.spark.contract_sql import make_visible, read_sql

from .contracts import make_contract

pytestmark = pytest.mark.spark

SCHEMA = (
    "a STRING, i INT, n BIGINT, d DECIMAL(12, 2), f DOUBLE, b BOOLEAN, day DATE, at TIMESTAMP, "
    "texts ARRAY<STRING>, numbers ARRAY<INT>, m MAP<STRING, INT>, s STRUCT<x: INT, y: STRING>, "
    "rows ARRAY<STRUCT<x: INT, y: STRING>>"
)
SQL = """
nullif(value.i, 5)
nullif(value.i >= 5, false)
nullif(nullif(value.a, ''), 'x')
nullif(CAST(value.a AS INT), CAST(value.n AS INT))
nullif(CAST(value.a AS DECIMAL(9, 1)), value.d)
nullifzero(value.i)
zeroifnull(value.i)
value.i BETWEEN 1 AND 9
value.i NOT BETWEEN value.n AND 9
CAST(value.a AS INT) BETWEEN CAST(value.n AS INT) AND 99
nullif(value.i BETWEEN 1 AND 9, value.n BETWEEN nullif(value.n, 3) AND 9)
coalesce(value.i, value.n, 0)
nvl(value.i, 1)
nvl2(value.i, value.n, 0)
ifnull(value.a, 'none')
if(value.b, value.i, -1)
CASE WHEN value.i > 3 THEN 'much' WHEN value.b THEN 'yes' ELSE value.a END
CASE value.i WHEN 5 THEN 'five' END
decode(value.i, 5, 'five', 'other')
value.i IN (1, 5, 9)
value.a IN ('12', value.s.y)
value.i IS DISTINCT FROM value.n
value.i <=> value.n
NOT value.b AND value.i IS NOT NULL OR value.a IS NULL
isnotnull(value.i)
isnan(value.f)
value.a LIKE '1%'
value.a LIKE ANY ('1%', '%3')
value.a ILIKE ALL ('1%', '%2')
value.a RLIKE '^[0-9]+$'
regexp_extract(value.a, '([0-9])', 1)
regexp_replace(value.a, '1', 'x')
regexp_substr(value.a, '[2-9]')
regexp_count(value.a, '[0-9]')
upper(trim(value.a)) || lower(value.s.y)
trim(BOTH '1' FROM value.a)
concat_ws('-', value.a, value.s.y)
lpad(value.a, 5, '0')
lpad(value.a, 5)
overlay(value.a PLACING 'x' FROM 1)
substring(value.a, 1, 1)
left(value.a, 1)
right(value.a, 1)
split(value.a, '2')[0]
split_part(value.a, '2', 1)
startswith(value.a, '1')
contains(value.a, '2')
endswith(value.a, '2')
position('2' IN value.a)
char_length(value.a)
octet_length(value.a)
md5(value.a)
sha2(value.a, 256)
xxhash64(value.a, value.i)
hash(value.a)
base64(encode(value.a, 'utf-8'))
to_binary(value.a, 'utf-8')
hex(value.i)
value.i + value.n * 2 - value.i % 3
value.n DIV 2
value.d / 3
-value.i
abs(value.d)
mod(value.i, 3)
pmod(-value.i, 3)
try_divide(value.i, 0)
try_add(value.i, 1)
round(value.f, 1)
bround(value.d, 1)
floor(value.f)
ceil(value.d)
greatest(value.i, value.n)
least(value.i, 3)
sign(value.f)
sqrt(value.f)
width_bucket(value.f, 0, 10, 5)
CAST(value.a AS INT)
CAST(value.i AS STRING)
CAST(value.f AS DECIMAL(9, 2))
value.a::INT
try_cast(value.s.y AS INT)
try_to_number(value.a, '99')
to_number(value.a, '99')
to_char(value.d, '999.99')
CAST(value.day AS TIMESTAMP)
CAST(value.at AS DATE)
to_timestamp(concat(value.day, ' 10:00:00'))
to_timestamp(concat(value.day, ' 10'), 'yyyy-MM-dd HH')
try_to_timestamp(concat(value.day, ' 10'), 'yyyy-MM-dd HH')
to_date(concat(value.day, ''), 'yyyy-MM-dd')
timestamp_millis(value.n)
timestamp_seconds(value.i)
from_unixtime(value.i)
unix_timestamp(value.at)
date_trunc('HOUR', value.at)
trunc(value.day, 'MM')
date_add(value.day, 1)
datediff(value.day, DATE '2024-01-01')
value.day + INTERVAL 1 DAY
value.at - INTERVAL '1' HOUR
timestampadd(HOUR, 1, value.at)
timestampdiff(MINUTE, TIMESTAMP '2024-01-01 00:00:00Z', value.at)
extract(HOUR FROM value.at)
date_part('YEAR', value.at)
hour(value.at)
weekday(value.day)
date_format(value.at, 'yyyy-MM-dd')
make_date(2024, value.i, 1)
last_day(value.day)
months_between(value.at, TIMESTAMP '2024-01-01 00:00:00Z')
to_utc_timestamp(value.at, '+01:00')
value.s.x
value.rows[0].y
value.rows.x[0]
value.numbers[0]
try_element_at(value.numbers, 9)
element_at(value.m, 'k')
value.m['k']
map_keys(value.m)[0]
map_contains_key(value.m, 'k')
size(value.texts)
cardinality(value.numbers)
array_contains(value.texts, 'p')
array_join(value.texts, ',')
array_max(transform(value.numbers, x -> x + value.i))
size(filter(value.numbers, x -> x BETWEEN 1 AND 2))
exists(value.numbers, x -> nullif(x, 2) IS NULL)
forall(value.numbers, x -> x > 0)
aggregate(value.numbers, 0, (sum, x) -> sum + x)
aggregate(value.numbers, 0, (sum, x) -> sum + x, sum -> nullif(sum, 0))
element_at(transform(value.rows, r -> r.y), 1)
array_join(sort_array(value.texts), '')
array_join(array_sort(value.texts, (l, r) -> CASE WHEN l < r THEN 1 WHEN l > r THEN -1 ELSE 0 END), '')
map_filter(value.m, (k, v) -> v > 0)['k']
element_at(transform_values(value.m, (k, v) -> v + value.i), 'k')
zip_with(value.numbers, value.numbers, (x, y) -> x * y)[1]
named_struct('x', value.i).x
struct(value.i AS x).x
get_json_object(concat('{"k":"', value.a, '"}'), '$.k')
from_json(concat('{"k":', value.a, '}'), 'k INT').k
transform(array(concat('{"k":', value.a, '}')), t -> from_json(t, 'k INT').k)[0]
aggregate(from_json(concat('{"l":[1,', value.a, ']}'), 'l ARRAY<INT>').l, 0, (x, y) -> x + y)
CASE WHEN value.a > '9' THEN 0 ELSE from_json(concat('{"s":{"k":', value.a, '}}'), 's STRUCT<k: INT>').s.k END
to_json(value.s)
from_csv(value.a, 'k STRING').k
key
CAST(key AS INT)
unix_millis(kafka_timestamp)
nullif(key, value.a)
""".strip().splitlines()


@pytest.fixture(scope="module")
def one_row(spark: SparkSession) -> DataFrame:
    at = "TIMESTAMP '2024-01-02 10:30:00Z'"
    fields = (
        f"'a', '12', 'i', 5, 'n', 3L, 'd', 12.50BD, 'f', 2.25D, 'b', true, 'day', DATE '2024-01-02', 'at', {at}, "
        "'texts', array('q', 'p'), 'numbers', array(1, 2), 'm', map('k', 7), 's', named_struct('x', 8, 'y', 'Y'), "
        "'rows', array(named_struct('x', 9, 'y', 'Z'))"
    )
    return spark.range(1).selectExpr("'44' AS key", f"named_struct({fields}) AS value", f"{at} AS kafka_timestamp")


@pytest.mark.parametrize("sql", SQL)
def test_expression_keeps_its_value(spark: SparkSession, one_row: DataFrame, sql: str) -> None:
    contract = make_contract(schema=SCHEMA)
    seen = make_visible(spark, contract, cast(StructType, StructType.fromDDL(SCHEMA)))
    spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        (expected,) = one_row.select(F.expr(sql)).collect()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "false")

    (found,) = one_row.select(read_sql(spark, seen, sql)).collect()

    assert found == expected
