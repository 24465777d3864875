"""Mutants: one rule of the protocol left out or turned round, each of which breaks an invariant."""

from __future__ import annotations

from enum import Enum, auto


class Mutant(Enum):
    """The broken rules, each named for its wrong behaviour."""

    PUBLISH_AT_ANY_VERSION = auto()  # the version under the lock is taken for the claimed one
    CERTIFY_AT_ANY_VERSION = auto()  # the same, of a detection that was slow
    CONTROL_ROW_APART = auto()  # step 4 adds the rows in one transaction, the control row in the next
    BYTES_OF_ALL_LANDINGS = auto()  # a file is compared with every landing ever, not with those since the certificate
    OFFSETS_FIRST = auto()  # the offsets are committed before anything is appended
    PUBLISH_IN_TWO = auto()  # delete in one transaction, insert and certify in the next
    ALL_BYTES_COUNT = auto()  # a repair counts every line there is, landed or not
    ATTEMPTS_STAY_BEGUN = auto()  # a plan leaves the driver's own failed attempts as they are
    LANDED_SUPERSEDED = auto()  # a takeover supersedes landed batches too
    REFILL_STATES_MORE = auto()  # a refill states the whole hole and reads its first record
    REFILL_STAYS_WHOLE = auto()  # a refill is read from its start again until one batch lands all of it
    BLOCKED_TRIED = auto()  # a schedule goes on trying a blocked window
