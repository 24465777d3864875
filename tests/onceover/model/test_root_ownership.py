"""The decision whether a ledger may write below a raw root: one case a row."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from tests.onceover.model.test_root_marker import MARKER

from onceover.model.root_marker import LedgerIdentity
from onceover.model.root_ownership import RootFacts, RootProblem, judge_root

OWN = RootFacts(MARKER, MARKER.ledger, True, True, False, True, True, MARKER.kafka_cluster)
UNUSED = RootFacts(None, MARKER.ledger, False, False, False, False, False)
OTHER = LedgerIdentity(UUID(int=9), MARKER.ledger.database)
COPY = LedgerIdentity(MARKER.ledger.ledger_id, "7300000000000000001/16999")


@pytest.mark.parametrize(
    "facts",
    [
        OWN,
        UNUSED,
        replace(UNUSED, is_registered=True),
        replace(OWN, kafka_cluster=None),
        replace(OWN, has_landed=False, holds_raw=True),  # killed after its first append
        replace(OWN, marker=replace(MARKER, driver=None), knows_driver=False),
    ],
)
def test_own_or_unused_root_is_accepted(facts: RootFacts) -> None:
    assert judge_root(facts) is None


@pytest.mark.parametrize(
    ("facts", "problem", "needs_rebuild"),
    [
        (replace(UNUSED, holds_raw=True), RootProblem.LOST_LEDGER, True),
        (replace(UNUSED, has_rows=True), RootProblem.LOST_LEDGER, True),
        (replace(UNUSED, is_registered=True, holds_raw=True), RootProblem.LOST_LEDGER, True),
        (replace(OWN, marker=None, holds_raw=True), RootProblem.UNMARKED, False),
        (replace(OWN, marker=None), RootProblem.LOST_RAW, False),  # raw may expire, and markers stay
        (replace(OWN, ledger=OTHER), RootProblem.OTHER_LEDGER, False),
        (replace(UNUSED, marker=MARKER, ledger=OTHER), RootProblem.OTHER_LEDGER, True),
        (replace(UNUSED, marker=MARKER, ledger=OTHER, is_registered=True), RootProblem.OTHER_LEDGER, False),
        (replace(OWN, ledger=OTHER, has_landed=False, holds_raw=True), RootProblem.OTHER_LEDGER, True),
        (replace(OWN, ledger=COPY), RootProblem.COPIED_LEDGER, False),
        (replace(OWN, knows_driver=False), RootProblem.RESTORED_LEDGER, False),
        (replace(UNUSED, marker=MARKER, holds_raw=True), RootProblem.RESTORED_LEDGER, True),
        (replace(OWN, kafka_cluster="a mirror"), RootProblem.OTHER_CLUSTER, False),
        (replace(OWN, ledger=OTHER, knows_driver=False, kafka_cluster="a mirror"), RootProblem.OTHER_LEDGER, False),
    ],
)
def test_root_of_another_owner_is_refused(facts: RootFacts, problem: RootProblem, needs_rebuild: bool) -> None:
    assert (judge_root(facts), facts.needs_rebuild) == (problem, needs_rebuild)
