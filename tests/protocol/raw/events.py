"""Everything that can happen, as a trace shows it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from tests.protocol.raw.lines import Lines, Record, shown, shown_record


class Event(StrEnum):
    """Everything that can happen; the first group are faults, the producer's doing, and a person's release."""

    PRODUCED = "produced"
    EXPIRED = "log expires up to"
    CUT = "log is cut to"
    LEDGER_LOST = "LEDGER LOST"
    BACKED_UP = "ledger backed up"
    RESTORED = "LEDGER RESTORED"
    CRASHED = "driver crashes"
    TORN = "appends a part and crashes"
    TAKEN_OVER = "driver hangs and is superseded"
    APPENDED_LATE = "superseded driver appends"
    FOREIGN_APPENDED = "a line of another log is appended to"
    RAW_EXPIRED = "retention takes the raw of"
    FILE_LOST = "raw loses the file of"
    RELEASE_BEGUN = "PERSON has a release append"
    RELEASE_KILLED = "release killed"
    LANDINGS_DELETED = "landings are deleted of"
    REBUILD_KILLED = "rebuild killed"
    UPGRADED = "UPGRADE: from now on another window for"

    REGISTERED = "registered"
    REBUILD_BEGUN = "rebuild begins"
    REBUILT = "rebuild commits"
    ROOT_TAKEN = "PERSON: this ledger takes the root"
    GIVEN_UP_LEDGER = "PERSON: a ledger of before the upgrade is given up for a rebuild"
    PLANNED = "plans"
    HOLE_PLANNED = "plans to read again"
    LOOKED_AHEAD = "plans nothing"
    READ = "reads"
    READ_FAILED = "cannot read: not in the log"
    APPENDED = "appends"
    INCREMENTED = "increments"
    LANDED = "lands"
    STORED = "stores its offsets"
    CUT_SEEN = "detection records a cut"
    LISTED = "detection: a file without a window"
    CERTIFIED = "detection certifies"
    ACCEPTED = "PERSON accepts as never read"
    READ_AGAIN = "what was lost is read again for"
    GIVEN_UP = "PERSON gives up for"
    DECIDED = "PERSON decides, as two versions evaluated and none landed,"
    RELEASE_LANDED = "release lands"
    CLAIMED = "repair claims"
    SCANNED = "repair freezes and reads"
    UNPROVED = "repair misses a line that landed"
    WAITED = "repair waits for a batch under way"
    REFUSED = "repair refuses less"
    PUBLISHED = "repair publishes"


class Action(NamedTuple):
    """One transition: what happened, to which window, to which record, with which lines."""

    did: Event
    window: int = -1
    record: Record = -1
    lines: Lines | None = None

    def __str__(self) -> str:
        words = [str(self.did)]
        if self.window >= 0:
            words.append(f"W{self.window}")
        if self.record >= 0:
            words.append(shown_record(self.record))
        if self.lines is not None:
            words.append(shown(self.lines))
        return " ".join(words)
