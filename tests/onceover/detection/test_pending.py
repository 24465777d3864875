"""When a record that a certificate names as pending needs a repair."""

from __future__ import annotations

from collections.abc import Mapping

from onceover.detection.pending import _judge
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.own_offsets import find_own_offsets

AT = KafkaPartition("0a1b2c3d", 0)
LOG = (OffsetRange(AT, 0, 50),)
FAR = (OffsetRange(AT, 60, 70),)


def judge(end: int, log: tuple[OffsetRange, ...] = LOG) -> Mapping[str, object] | None:
    """Return what is found of FAR if the ledger never saw the log reach an offset after `end`."""
    finding = _judge(FAR, (), log, (*log, *find_own_offsets({AT: end}, (), log).known))
    return None if finding is None else finding.evidence


def test_record_beyond_every_end_of_the_log_waits_on() -> None:
    assert judge(50) is None


def test_record_that_a_cut_log_once_reached_is_found() -> None:
    assert judge(70) == {"records": 10, "landed": 0, "lost": 10, "offsets": [["0a1b2c3d", 0, 60, 70]]}


def test_record_beyond_the_log_of_a_deleted_topic_is_found() -> None:
    assert (judge(50, ()) or {})["lost"] == 10
