"""The query of a batch runs again for each batch, by one task or by several, and each record lands and counts once."""

from __future__ import annotations

import pytest
from tests.integration.events import event
from tests.integration.lane import Lanes

from onceover.ingest import batch_queries, batch_query

pytestmark = pytest.mark.stack


@pytest.mark.parametrize("few", [pytest.param(0, marks=pytest.mark.rare), 1_000])
def test_batches_of_one_query_land_each_record_once(lanes: Lanes, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_queries, "FEW_OFFSETS", few)
    lane = lanes(partitions=3, most=90)
    for kafka_partition in range(3):
        lane.produce([event(n / 4, "ab"[n % 2], n) for n in range(100)], kafka_partition)
        lane.produce([b"not JSON"], kafka_partition)
    done = lane.ingest()
    assert [progress.records for progress in done if progress.batch_id] == [90, 90, 90, 33]
    log = lane.log()
    assert sorted(lane.ids()) == sorted(log)
    assert lane.aggregates() == {
        (float(start), kind): (len(own), sum(own), max(own))
        for start in range(0, 25, 5)
        for place, kind in enumerate("ab")
        if (own := [n for n in range(place, 100, 2) if start <= n / 4 < start + 5 for _ in range(3)])
    }
    detection = lane.detect()
    assert (detection.certified, detection.failed) == (5, ())


@pytest.mark.rare
def test_batch_of_too_many_windows_is_read_in_smaller_ones(
    lanes: Lanes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(batch_query, "MAX_WINDOWS", 2)
    lane = lanes()
    lane.produce([event(5 * n, amount=n) for n in range(16)])
    done = [progress.records for progress in lane.ingest() if progress.batch_id]
    assert done == [2] * 8
    refused = [line.partition(": a task of the batch has ") for line in caplog.messages if "too large" in line]
    assert [size for size, _, _ in refused] == [
        f"a batch of {most} offsets is too large, the next reads at most {most // 2}" for most in (16, 8, 4)
    ], "the limit stays in force"
    assert "Exception in task" not in capfd.readouterr().err
    assert lane.aggregates() == {(5.0 * n, "a"): (1, n, n) for n in range(16)}
    detection = lane.detect()
    assert (detection.certified, detection.failed) == (16, ()), "what was refused appended nothing"
