"""A record's window in Spark SQL and in the tasks that frame lines, against the one reference."""

from __future__ import annotations

import random

import numpy as np
import pytest
from pyspark.sql import SparkSession

from onceover.config.zones import read_changes
from onceover.ingest.framing import find_starts
from onceover.model.windowing import Windowing
from onceover.spark.windowing import find_window

LATEST = 9_999_999_999_999  # ms, the largest event time


@pytest.mark.parametrize(
    ("minutes", "zone"),
    [(60, ""), (1440, ""), (1440, "Europe/Berlin"), (360, "Australia/Lord_Howe"), (60, "Australia/Lord_Howe"),
     (1440, "Pacific/Apia"), (1440, "America/St_Johns"), (720, "Africa/Casablanca"), (30, "Asia/Kathmandu")],
)  # fmt: skip
def test_spark_and_tasks_find_the_window(spark: SparkSession, minutes: int, zone: str) -> None:
    windowing = Windowing(minutes, zone, read_changes(zone) if zone else ())
    firsts, seed = windowing.pieces.firsts, random.Random(f"{minutes} {zone}")
    near = [at + by for at in firsts for by in (-1, 0, 1, minutes * 60_000 - 1, minutes * 60_000)]
    times = sorted({max(at, 0) for at in near} | {seed.randrange(LATEST) for _ in range(2_000)} | {0, LATEST})
    expected = [windowing.floor_ms(at) for at in times]

    given = spark.createDataFrame([(at,) for at in [*times, None]], "event_ms bigint")
    rows = given.select("event_ms", find_window(windowing).alias("start")).collect()

    assert {row.event_ms: row.start for row in rows} == dict(zip([*times, None], [*expected, None], strict=True))
    assert find_starts(np.array(times), windowing.pieces).tolist() == expected
    assert all(at <= of for at, of in zip(expected, times, strict=True))
