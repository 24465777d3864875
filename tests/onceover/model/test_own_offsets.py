"""Which offsets a pipeline's own lines may have: by its ledger, its root's marker, and Kafka's log."""

from __future__ import annotations

from collections.abc import Mapping

from onceover.model.offsets import LARGEST_END, KafkaPartition, OffsetRange, intersect
from onceover.model.own_offsets import find_own_offsets

LIVING, SECOND, RETIRED = KafkaPartition("0a1b2c3d", 0), KafkaPartition("0a1b2c3d", 1), KafkaPartition("00000001", 0)
LOG = (OffsetRange(LIVING, 40, 90), OffsetRange(SECOND, 0, 0))
FAR = 10**15


def judge(source: KafkaPartition, offset: int, ends: Mapping[KafkaPartition, int], *marked: KafkaPartition) -> str:
    own, one = find_own_offsets(ends, marked, LOG), [OffsetRange(source, offset, offset + 1)]
    return "known" if intersect(own.known, one) else "beyond" if intersect(own.beyond, one) else "foreign"


def test_log_that_neither_ledger_nor_marker_names_is_foreign() -> None:
    assert judge(RETIRED, 3, {LIVING: 50}) == "foreign"
    assert judge(SECOND, 3, {LIVING: 50}, LIVING) == "foreign", "a Kafka partition that the pipeline never read"


def test_generation_that_only_the_marker_names_is_known() -> None:
    """A restored ledger may not know it; its lines are all that is left of its records."""
    assert judge(RETIRED, FAR, {LIVING: 50}, RETIRED, LIVING) == "known"


def test_offset_beyond_each_end_of_a_living_log_is_no_orphan() -> None:
    assert [judge(LIVING, n, {LIVING: 120}) for n in (119, 120, FAR)] == ["known", "beyond", "beyond"]
    assert [judge(LIVING, n, {LIVING: 50}) for n in (89, 90)] == ["known", "beyond"], "the log has grown since"


def test_deleted_topic_has_no_end_beyond_which_lines_wait() -> None:
    own = find_own_offsets({LIVING: 120}, (), ())
    assert (own.known, own.beyond) == ((OffsetRange(LIVING, 0, LARGEST_END),), ())
