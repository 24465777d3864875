"""Five incidents, each in a pipeline of its own, with the alert that tells of it and the right numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.integration.events import Rows, count_events, event
from tests.integration.kills import kill_after
from tests.integration.lane import Lane
from tests.integration.planted_failures import append, encode_line, expire, replay
from tests.own_stack import ROOT

from onceover.fault_points import Step

ALERTS = Path(ROOT, "deploy", "alerts.yml")


@dataclass
class Incident:
    """A pipeline in trouble: `alert` is what wakes a person, `right` what readers have to see in the end."""

    what: str
    lane: Lane
    alert: str
    right: Rows

    def link(self, airflow: str) -> str:
        """Return the address of the page that the alert names."""
        (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
        (page,) = (rule["annotations"]["page"] for rule in group["rules"] if rule["alert"] == self.alert)
        return str(
            page.replace("{{ $externalLabels.airflow }}", airflow).replace("{{ $labels.pipeline }}", self.lane.name)
        )


def count(produced: Mapping[int, int]) -> Rows:
    return count_events(event(minute, amount=amount) for minute, amount in produced.items())


def produce(lane: Lane, produced: Mapping[int, int]) -> None:
    lane.produce([event(minute, amount=amount) for minute, amount in produced.items()])


def certify(lane: Lane, produced: Mapping[int, int]) -> None:
    """Bring these events to certified windows, as on a good day."""
    produce(lane, produced)
    lane.ingest()
    lane.detect()


def double_numbers(lane: Lane) -> Incident:
    """Land one batch twice, in two windows."""
    first, second = {1: 1, 6: 1, 11: 1}, {2: 5, 7: 7}
    certify(lane, first)
    produce(lane, second)
    replay(lane)
    lane.ingest()
    lane.detect()
    return Incident("doubled numbers", lane, "OnceoverWindowsOverdue", count(first | second))


def kill_ingest(lane: Lane) -> Incident:
    """Kill the driver in the middle of a batch, three hours ago."""
    first, second = {1: 1, 6: 1, 11: 1}, {2: 5, 12: 7}
    certify(lane, first)
    produce(lane, second)
    kill_after(lane, Step.APPENDED)
    lane.query(
        "UPDATE onceover.driver SET expires_at = now() - interval '3 hours', heartbeat_at = now() - "
        "interval '3 hours', progress_at = now() - interval '3 hours' WHERE pipeline = %s",
        [lane.name],
    )
    return Incident("dead ingest", lane, "OnceoverDriverDead", count(first | second))


def expire_unread(lane: Lane) -> Incident:
    """Drop seven records from Kafka's log before ingest has read them."""
    produced = {minute: minute for minute in range(20)}
    lost = range(5, 12)
    produce(lane, {minute: produced[minute] for minute in range(5)})
    lane.turn()
    produce(lane, {minute: produced[minute] for minute in range(5, 20)})
    expire(lane, lost.stop)
    lane.turn(3)
    lane.detect()
    return Incident(
        "expired hole", lane, "OnceoverHoleExpired", count({m: n for m, n in produced.items() if m not in lost})
    )


WRONG = event(1, amount=60)


def forge_line(lane: Lane) -> Incident:
    """Put a record's ID into its window's file a second time, with another content."""
    produced = {minute: minute for minute in range(10)}
    certify(lane, produced)
    append(lane, 0, encode_line(lane, 0, WRONG))
    lane.sweep()
    lane.repair_detected()
    return Incident("forged line", lane, "OnceoverWindowsOverdue", count(produced))


def take_out(lane: Lane) -> None:
    path = lane.window_file(0)
    lane.overwrite(path, lane.read(path).replace(encode_line(lane, 0, WRONG), b""))


def block_window(lane: Lane) -> Incident:
    """Lose a window's file for good, and fail three repairs of it; Kafka still has its records."""
    produced = {minute: minute for minute in range(10)}
    certify(lane, produced)
    lane.store().remove(lane.window_file(0))
    lane.sweep()
    for _ in range(3):
        lane.repair_detected()
    return Incident("blocked window", lane, "OnceoverWindowsBlocked", count(produced))
