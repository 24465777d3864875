"""A repair's query says the same whether it is interpreted, as small ones are, or compiled."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyspark.sql import SparkSession

from onceover.digest import Digest
from onceover.line import Line, Record, encode
from onceover.offsets import KafkaPartition, OffsetRange
from onceover.repair import Claimed, LandingOf
from onceover.spark.rebuild import Rebuild
from onceover.spark.session import COMPILED_FROM_BYTES, compiled_for

from .contracts import NOON, payments

pytestmark = pytest.mark.spark
SOURCE = KafkaPartition("0badcafe", 3)
WHOLE = OffsetRange(SOURCE, 0, 40)
START = datetime.fromtimestamp(NOON / 1000, UTC)


def test_interpreted_or_compiled_a_rebuild_says_the_same(spark: SparkSession, tmp_path: Path) -> None:
    paid = b'{"payment":{"at_ms":%d,"amount":"%d.10"},"country":%s,"note":"\\u00e9\\t","cents":%d}'
    countries = (b'"NO"', b"null", b'"S\\\\E"')
    texts = [
        encode(
            Line(Record(SOURCE, n, NOON + n, b"c%d" % (n % 2), (), paid % (NOON + n, n, countries[n % 3], n)), NOON + n)
        )
        for n in range(40)
    ]
    window_file = tmp_path / "1200.log"
    window_file.write_bytes(b"\n".join([*texts, *texts[5:15], texts[7][:50], b""]))  # a replay and a torn line
    landing = LandingOf(1, ((WHOLE, Digest()),))
    claimed = Claimed(1, START, START + timedelta(minutes=5), 1, 1, (landing,), None)
    contract = replace(payments(tmp_path), horizon_ms=None)

    shown = spark.read.text(str(window_file)).select("_metadata.file_path").first()
    assert shown

    def rebuilt() -> tuple[object, list[tuple[object, ...]]]:
        files = {START: shown.file_path}
        with closing(Rebuild(spark, contract, [claimed], [WHOLE], files)) as rebuild:
            rows = rebuild.aggregated()
            assert rows is not None
            found = sorted(map(tuple, rows.collect()), key=str)
            plans.append(rows._jdf.queryExecution().executedPlan().toString())  # final once it has run
            return rebuild.results()[START], found

    plans: list[str] = []
    with compiled_for(spark, COMPILED_FROM_BYTES - 1):
        small = rebuilt()
    with compiled_for(spark, COMPILED_FROM_BYTES):
        large = rebuilt()
    assert small == large
    assert ["*(1)" in plan for plan in plans] == [False, True], "they ran in the two ways"
    found, rows = small
    assert (found.lines, found.corrupt_lines, found.duplicates) == (51, 1, 10)  # type: ignore[attr-defined]
    assert found.digest != Digest()  # type: ignore[attr-defined]
    assert len(rows) == 6


def test_what_spark_submit_was_told_holds() -> None:
    told = Mock()
    told.sparkContext.getConf.return_value.contains = {"spark.sql.codegen.wholeStage"}.__contains__
    with compiled_for(told, 0):
        pass
    told.conf.set.assert_not_called()
    told.conf.unset.assert_not_called()


def test_afterwards_the_session_is_as_it_was(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.codegen.wholeStage")
    with compiled_for(spark, 0):
        assert spark.conf.get("spark.sql.codegen.wholeStage") == "false"
    assert spark.conf.get("spark.sql.codegen.wholeStage") == before
