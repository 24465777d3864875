"""Our PID estimate beside the class in Spark's own jar, fed with the same batches."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession

from onceover.ingest.rate_control import PidEstimator

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("gains", [(1.0, 0.2, 0.0), (0.7, 0.4, 0.1)])
def test_without_block_time_the_rate_is_sparks(spark: SparkSession, gains: tuple[float, float, float]) -> None:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    theirs = jvm.org.apache.spark.streaming.scheduler.rate.PIDRateEstimator(1000, *gains, 100.0)
    ours = PidEstimator(1000, 100.0, *gains)
    chance, now, compared = random.Random(7), 0, 0
    for _ in range(300):
        now += chance.choice([-500, 0, 1, 900, 1000, 1100, 60_000])
        elements = chance.choice([0, 1, 10, 5_000, 250_000])
        took, waited = chance.choice([0, 1, 300, 999, 1000, 1001, 40_000]), chance.choice([0, 5, 400, 90_000])
        if now <= ours._latest_ms:  # Spark's clock stays where it is, ours goes back: the one place where they differ
            now = int(ours._latest_ms)
        found = theirs.compute(now, elements, took, waited)
        rate = ours.compute(now, elements, took, waited)
        assert (rate is None) == found.isEmpty()
        if rate is not None:
            assert rate == pytest.approx(found.get(), rel=1e-9)
            compared += 1
    assert compared > 100
