"""The decision whether a ledger may write below a raw root, from the root's marker and what the ledger holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from onceover.model.root_marker import LedgerIdentity, RootMarker


class RootProblem(StrEnum):
    """The reason to refuse a raw root."""

    LOST_LEDGER = "lost ledger"
    LOST_RAW = "lost raw"
    UNMARKED = "unmarked"
    OTHER_LEDGER = "other ledger"
    COPIED_LEDGER = "copied ledger"
    RESTORED_LEDGER = "restored ledger"
    OTHER_CLUSTER = "other cluster"
    OTHER_STORE = "other store"


@dataclass(frozen=True, slots=True)
class RootFacts:
    """What a raw root and a ledger hold of one pipeline.

    `has_landed`: the ledger has a landed batch. `holds_raw` and `has_rows`: files below the root, rows in the aggregate
    table; both matter only without a marker or without a landed batch. `knows_driver`: the ledger gave the epoch of the
    marker's driver. `kafka_cluster` is None where no cluster is read. `other_store` is the raw store that the landed
    batches wrote to, None if it is this one.
    """

    marker: RootMarker | None
    ledger: LedgerIdentity
    is_registered: bool
    has_landed: bool
    holds_raw: bool
    has_rows: bool
    knows_driver: bool
    kafka_cluster: str | None = None
    other_store: str | None = None

    @property
    def needs_rebuild(self) -> bool:
        """Return whether only a rebuild gives this ledger the landings that it lacks."""
        return not self.has_landed and (not self.is_registered or self.holds_raw or self.has_rows)


def judge_root(facts: RootFacts) -> RootProblem | None:
    """Return why the ledger may not write below the root, None if it may: the root is its own, or unused."""
    marker = facts.marker
    if facts.other_store is not None:
        return RootProblem.OTHER_STORE
    if marker is None:
        if facts.has_landed:
            return RootProblem.UNMARKED if facts.holds_raw else RootProblem.LOST_RAW
        return RootProblem.LOST_LEDGER if facts.holds_raw or facts.has_rows else None
    if marker.ledger.ledger_id != facts.ledger.ledger_id:
        return RootProblem.OTHER_LEDGER
    if marker.ledger.database != facts.ledger.database:
        return RootProblem.COPIED_LEDGER
    if marker.driver is not None and not facts.knows_driver:
        return RootProblem.RESTORED_LEDGER
    if facts.kafka_cluster is not None and facts.kafka_cluster != marker.kafka_cluster:
        return RootProblem.OTHER_CLUSTER
    return None
