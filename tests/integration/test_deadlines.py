"""Windows that are not certified within the pipeline's deadline are reported, each once."""

from __future__ import annotations

import pytest
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import land_twice

from onceover.detection import deadlines
from onceover.model.window import format_moment

pytestmark = pytest.mark.stack


def list_overdue(lane: Lane) -> list[tuple[str, str]]:
    with lane.open() as context:
        return [(format_moment(one.window_start), one.state) for one in deadlines.list_overdue(context)]


def backdate(lane: Lane, hours: int) -> None:
    lane.query(
        "UPDATE onceover.batch SET landed_at = clock_timestamp() - make_interval(hours => %s) WHERE pipeline = %s",
        [hours, lane.name],
    )


def test_overdue_window_is_notified_once_until_certified(lanes: Lanes) -> None:
    lane = lanes()
    assert list_overdue(lane) == [], "it has no deadline"
    lane.toml.write_text(lane.toml.read_text() + '\n[repair]\ndeadline = "2h"\n')
    assert list_overdue(lane) == [], "it has not run yet"
    land_twice(lane, [event(1), event(6)])
    assert list_overdue(lane) == [], "it has time"
    backdate(lane, 3)
    request_id = lane.detect().request_id or 0
    both = [("2026-03-01T12:00Z", "failed"), ("2026-03-01T12:05Z", "failed")]
    assert list_overdue(lane) == both
    assert list_overdue(lane) == [], "notified once"
    lane.repair(request_id)
    lane.land([event(2)])
    backdate(lane, 3)
    assert list_overdue(lane) == [("2026-03-01T12:00Z", "closed")], (
        "a late record opened it again, and it was not judged again"
    )
