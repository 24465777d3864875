"""The datetime patterns in a contract's SQL: refused where Spark refuses them, else named with a warning."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from onceover.config.mistakes import MistakesError
from onceover.model.contract import Key
from onceover.model.measures import Measure
from onceover.spark.contract_check import check_contract
from onceover.spark.contract_patterns import list_warnings

from .contracts import make_contract, make_keyed

pytestmark = pytest.mark.spark


def evaluate_literal(spark: SparkSession, sql: str) -> object:
    """Return the value; None also for SQL that throws."""
    try:
        return spark.sql(f"VALUES ({sql})").collect()[0][0]
    except PySparkException:
        return None


def test_constant_that_spark_refuses_is_a_mistake(spark: SparkSession) -> None:
    refused = {
        "to_timestamp(value.s, 'YYYY-MM-dd')": "pattern 'YYYY-MM-dd'; take yyyy for the year",
        "date_format(kafka_timestamp, concat('u', '-MM'))": "pattern 'u-MM'; take yyyy for the year",
        "to_json(struct(kafka_timestamp AS t), map('timestampFormat', 'u-MM'))": "pattern 'u-MM'; take yyyy for",
        "to_date(value.s, 'EEE yyyy-MM-dd')": "pattern 'EEE yyyy-MM-dd'; leave it out: Spark writes this letter",
        "unix_timestamp(value.s, 'yyyy-MM-ddTHH:mm')": "pattern 'yyyy-MM-ddTHH:mm'; put text in quotes, such as 'T'",
        "CASE WHEN value.s > 'a' THEN value.s RLIKE '(' END": "regex '('; correct it",
        "regexp_extract(value.s, '(', 0)": "regex '('; correct it",
        "regexp_replace(value.s, '[', '')": "regex '['; correct it",
        "get_json_object(value.s, 't')": "path 't'; begin it with `$`",
        r"value.s LIKE r'\x%'": "LIKE pattern",
        "from_utc_timestamp(kafka_timestamp, 'Mars/Olympus')": "time zone 'Mars/Olympus'; take a name",
        "to_utc_timestamp(kafka_timestamp, '+25:00')": "time zone '+25:00'; take a name",
    }
    for sql, words in refused.items():
        with pytest.raises(MistakesError) as caught:
            check_contract(spark, make_keyed(sql, schema="s STRING"), "pipelines/t.toml")
        assert f"contract.keys.it: Spark refuses the {words}" in str(caught.value).replace("datetime ", "")
        literal = sql.replace("value.s", '\'{"t":"2013-02-05"}\'').replace("kafka_timestamp", "TIMESTAMP '2013-02-05'")
        assert evaluate_literal(spark, literal) is None


def test_doubtful_pattern_is_warned_of_by_its_key(spark: SparkSession) -> None:
    fine = "value.s RLIKE '^a' OR value.s LIKE 'a%' OR value.s RLIKE value.f"
    contract = make_contract(
        schema="s STRING, f STRING, at TIMESTAMP",
        event_time="coalesce(to_timestamp(value.s, 'hh:mm'), kafka_timestamp)",
        keys=(
            Key("day", "date_format(kafka_timestamp, concat('yyyy-MM', '-DD'))"),
            Key("listed", "transform(array(value.s), s -> to_date(s, 'yyyy-mm-dd'))[0]"),
            Key("parsed", "to_timestamp(from_csv(value.s, 't STRING').t, 'HH:mm:SS')"),
            Key("dumped", "to_csv(struct(kafka_timestamp AS t), map('timestampFormat', 'kk'))"),
            # No pattern, one of the record's own, one that is not used, one that a key may well have.
            Key("plain", "to_timestamp(value.s)"),
            Key("own", "to_timestamp(value.s, value.f)"),
            Key("unused", "unix_timestamp(value.at, 'hh')"),
            *(Key("fine", fine), Key("zone", "from_utc_timestamp(value.at, 'Europe/Oslo')")),
            Key("clock", "date_format(to_timestamp(value.s, 'HH:mm'), 'h a')"),
        ),
        measures=(Measure("n", "count", "*"), Measure("last", "max", "from_unixtime(length(value.s), 'hh')")),
    )
    check_contract(spark, contract)

    warnings = [str(warning) for warning in list_warnings(spark, contract, "t.toml")]

    assert [warning.removeprefix("t.toml: contract.").split(";")[0] for warning in warnings] == [
        "event_time: pattern 'hh:mm': `hh` without `a` reads 12:15 as 00:15, and not 13:15",
        "event_time: pattern 'hh:mm': it has no year, and Spark takes 1970",
        "keys.day: pattern 'yyyy-MM-DD': `DD` is the day of the year, 36 for 5 February",
        "keys.listed: pattern 'yyyy-mm-dd': `mm` is the minute, here in a date",
        "keys.parsed: pattern 'HH:mm:SS': `SS` is a fraction of a second, here without the second",
        "keys.dumped: pattern 'kk': `kk` writes 00:15 as 24:15",
        "measures.last.max: pattern 'hh': `hh` without `a` writes 01:15 and 13:15 alike",
    ]
