"""Ingest, a schedule, a backfill and on call at once on the same windows: any interleaving ends right."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import cast

import pytest
from tests.integration.events import event
from tests.integration.lane import Lanes
from tests.integration.planted_failures import count_certified, land_without_commit, minutes

pytestmark = [pytest.mark.stack, pytest.mark.rare]
ROUNDS = 2


def test_concurrent_processes_leave_every_window_certified(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([event(n, amount=1) for n in range(10)])
    chance, failures, stop = random.Random(4), [], threading.Event()

    def repairing(detect: Callable[[], int | None]) -> Callable[[], None]:
        def work() -> None:
            try:
                while not stop.is_set():
                    request = detect()
                    if request is not None:
                        lane.repair(request)
            except Exception as error:  # noqa: BLE001
                failures.append(error)

        return work

    ways = [
        threading.Thread(target=repairing(lambda: lane.detect().request_id), name="schedule"),
        threading.Thread(target=repairing(lambda: lane.detect(minutes(0, 10)).request_id), name="backfill"),
        threading.Thread(target=repairing(lambda: lane.detect(minutes(0, 5), force=True).request_id), name="on call"),
    ]
    for way in ways:
        way.start()
    produced = 10
    try:
        for _ in range(ROUNDS):
            late = [event(chance.randrange(10), amount=1) for _ in range(5)]
            lane.produce(late)
            produced += len(late)
            with lane.driver() as driver:
                land_without_commit(driver)  # the same offsets are landed and counted again by the next driver
            lane.ingest()
    finally:
        stop.set()
        for way in ways:
            way.join(120)
    assert failures == []
    for _ in range(3):
        request = lane.detect().request_id
        if request is not None:
            lane.repair(request)
    assert count_certified(lane) == 2
    assert sum(cast(int, row[0]) for row in lane.aggregates().values()) == produced == len(lane.log())
    assert lane.audit()["equal"]
