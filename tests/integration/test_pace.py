"""The real ingest loop under rate control: small first batches, delays in the ledger, nothing lost and nothing twice."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from tests.integration.lane import EVENTS, Lane, event

from onceover.ingest import Progress

pytestmark = pytest.mark.stack


@pytest.mark.parametrize("control", ["none", "pid"])
def test_a_backlog_is_read_in_batches_that_wait_in_line_and_every_window_is_right(
    lanes: Callable[..., Lane], control: str
) -> None:
    toml = EVENTS.replace(
        'interval = "200ms"', f'interval = "1s"\nrate_control = "{control}"\nstart_rate = 200\nsharding = "backlog"'
    )
    lane = lanes(toml=toml, partitions=2, most=700)
    lane.produce([event(n % 10, amount=n) for n in range(1500)], 0)
    lane.produce([event(n % 10, amount=n) for n in range(300)], 1)
    stop, done = threading.Event(), []

    def report(progress: Progress) -> None:
        done.append(progress)
        if progress.every_window_closed:
            stop.set()

    with lane.driver() as driver:
        driver.run(stop, threading.Event(), report)

    assert lane.detect().failed == ()
    assert sum(counted for counted, *_ in lane.aggregates().values()) == 1800  # type: ignore[misc]
    full = [progress for progress in done if progress.batch_id is not None]
    assert full[0].records == (700 if control == "none" else 400), "200 a second of each Kafka partition"
    assert all(progress.records <= 700 for progress in full)
    with lane.ledger() as ledger:
        rows = ledger.execute(
            "SELECT scheduling_delay_ms AS waited FROM onceover.batch WHERE pipeline = %s ORDER BY batch_id",
            [lane.name],
        ).fetchall()
    assert [round(progress.waited_seconds * 1000) for progress in full] == [row["waited"] for row in rows]
    assert {progress.rate is None for progress in full} == {control == "none"}
