"""Lines that no landing accounts for, collected as runs: orphans, conflicts and pending records."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from onceover.model.digest import HALVES, Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.spark import unlanded
from onceover.spark.unlanded import collect_unlanded

pytestmark = pytest.mark.spark
COLUMNS = f"window_ms bigint, generation string, kafka_partition int, offset bigint, {' bigint, '.join(HALVES)} bigint"
SOURCE = KafkaPartition("0badcafe", 0)


def test_more_runs_than_can_be_collected_are_adopted_in_parts(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [(1, 0, 7), (1, 2, 7), (1, 4, 7), (2, 6, 7), (2, 6, 8), (2, 8, 7)]  # window, offset, content
    rows = [(window, SOURCE.generation, 0, offset, content, 0, 0, 0) for window, offset, content in lines]
    held = [OffsetRange(SOURCE, 8, 20)]
    found, is_whole = collect_unlanded(spark.createDataFrame(rows, COLUMNS), held)
    assert is_whole
    assert found[1].orphans == tuple(OffsetRange(SOURCE, n, n + 1) for n in (0, 2, 4))
    assert (found[2].pending, found[2].conflicts) == ((OffsetRange(SOURCE, 8, 9),), 1)
    monkeypatch.setattr(unlanded, "_MOST_RUNS", 2)
    some, is_whole = collect_unlanded(spark.createDataFrame(rows, COLUMNS), held)
    assert (set(some), is_whole) == ({1}, False), "conflicts and pending records wait until all orphans are adopted"
    (part,) = some[1].parts
    assert (len(some[1].orphans), part.digest) == (2, Digest(2, 14))


def test_quarantined_id_with_two_contents_is_an_orphan_once(spark: SparkSession) -> None:
    rows = [(1, SOURCE.generation, 0, 5, *digest) for digest in ((7, 1, 0, 0), (8, 0, 0, 0))]
    found, _ = collect_unlanded(spark.createDataFrame(rows, COLUMNS), (), in_quarantine=True)
    (part,) = found[1].parts
    assert (part.digest, found[1].conflicts) == (Digest(1, 7, 1), 0), "of one of the contents, not a mixture"
