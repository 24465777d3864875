"""Why a repair published nothing, as codes; the reason beside them says it in words."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class RepairFailure(StrEnum):
    """One cause; a try may have several. Stored with the repair."""

    LOST_LINE = "lost line"  # raw lacks records that landed, or has others in their place
    UNREADABLE_FILE = "unreadable file"
    TWO_CONTENTS = "two contents"  # of one ID under one leader epoch
    STRAY_RECORD = "stray record"  # in the range of a landing that lacks it
    TOO_MANY_EXTRAS = "too many extras"  # to name each in a certificate
    TWO_WINDOWS = "two windows"  # count the same extra
    UNKNOWN_CONTRACT = "unknown contract"
    FEWER_RECORDS = "fewer records"  # than the last certificate
    REFUSED_ROWS = "refused rows"  # by the database
    OTHERWISE_DATED = "otherwise dated"  # records of a restated window, or quarantined by its contract


def shows_damage(failures: Iterable[str]) -> bool:
    """Return whether raw does not prove the window, whatever the ledger says."""
    return lacks_lines(failures) or RepairFailure.TWO_CONTENTS in failures


def lacks_lines(failures: Iterable[str]) -> bool:
    """Return whether raw has lost lines, or cannot be read."""
    return not {RepairFailure.LOST_LINE, RepairFailure.UNREADABLE_FILE}.isdisjoint(failures)
