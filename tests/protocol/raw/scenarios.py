"""The small worlds that are explored in full, with their numbers of states."""

from __future__ import annotations

from typing import NamedTuple

from tests.protocol.raw.state import Left, Scenario


class Explored(NamedTuple):
    """`states` is how many there are with all rules."""

    scenario: Scenario
    states: int


def _inside(states: int, *records: int, **left: int) -> Explored:
    return Explored(Scenario(records, Left(**left), stored_inside=True), states)


def _outside(states: int, *records: int, **left: int) -> Explored:
    return Explored(Scenario(records, Left(**left), stored_inside=False), states)


QUICK = {
    "crash-in": _inside(0, 3, crashes=1, expiries=1),
    "crash2-in": _inside(0, 2, crashes=2, expiries=2),
    "two-in": _inside(0, 1, 1, crashes=1, expiries=1),
    "hung-in": _inside(0, 2, expiries=1, takeovers=1),
    "foreign-in": _inside(0, 2, losses=1, foreign=1),
    "loss-in": _inside(0, 2, crashes=1, expiries=1, losses=1),
    "loss3-in": _inside(0, 3, expiries=1, losses=1),
    "both-in": _inside(0, 2, expiries=1, losses=1, restores=1),
    "upgrade-in": _inside(0, 2, crashes=1, expiries=1, upgrades=1),
    "upgrade-twice-in": _inside(0, 1, crashes=2, expiries=1, upgrades=1),
    "upgrade-loss-in": _inside(0, 2, crashes=1, losses=1, upgrades=1),
    "upgrade-last-in": Explored(Scenario((3,), Left(crashes=1, upgrades=1), True, moved=2), 0),
    "cut-ex-in": _inside(0, 2, expiries=1, cuts=1),
    "lost-in": _inside(0, 2, expiries=1, file_losses=1),
    "expired-in": _inside(0, 2, crashes=1, expiries=1, retentions=1),
    "expired-loss-in": _inside(0, 3, expiries=1, losses=1, retentions=1),
    "deleted-in": _inside(0, 2, crashes=1, expiries=2, deletions=2),
    "deleted-upgrade-in": _inside(0, 2, takeovers=1, expiries=1, upgrades=1, deletions=1),
    "deleted-hung-in": _inside(0, 2, takeovers=1, expiries=2, deletions=1),
    "deleted-stray-in": _inside(0, 1, 1, crashes=1, expiries=2, upgrades=1, deletions=1, foreign=1),
    "deleted-cut-in": _inside(0, 1, crashes=1, expiries=1, cuts=1, deletions=1),
    "deleted-out": _outside(0, 2, crashes=1, expiries=1, deletions=1),
    "release-in": Explored(Scenario((1,), Left(crashes=1, releases=1, restores=1), True, quarantined=0), 0),
    "release-upgrade-in": Explored(
        Scenario((1,), Left(crashes=1, releases=2, upgrades=1, losses=1), True, quarantined=0), 0
    ),
}
LARGEST = {
    "crash-out": _outside(0, 3, crashes=1, expiries=1),
    "crash2-out": _outside(0, 2, crashes=2, expiries=2),
    "two-out": _outside(0, 2, 1, crashes=1, expiries=1),
    "loss-out": _outside(0, 2, crashes=1, expiries=1, losses=1),
    "loss-rows": Explored(Scenario((2,), Left(crashes=1, expiries=1, losses=1), False, rows_survive=True), 0),
    "loss3-out": _outside(0, 3, expiries=1, losses=1),
    "restore-in": _inside(0, 2, crashes=1, expiries=1, restores=1),
    "restore-out": _outside(0, 2, crashes=1, expiries=1, restores=1),
    "restore3-out": _outside(0, 3, expiries=1, restores=1),
    "both-out": _outside(0, 2, expiries=1, losses=1, restores=1),
    "upgrade-out": _outside(0, 2, crashes=1, expiries=1, upgrades=1),
    "upgrade3-out": _outside(0, 3, crashes=1, upgrades=1),
    "cut-in": _inside(0, 2, crashes=1, cuts=1),
    "cut-out": _outside(0, 2, crashes=1, cuts=1),
    "cut-ex-out": _outside(0, 2, expiries=1, cuts=1),
    "cut3-in": _inside(0, 3, cuts=1),
    "cut3-out": _outside(0, 3, cuts=1),
    "cut-all-in": _inside(0, 2, crashes=1, expiries=1, cuts=1),
    "cut-all-out": _outside(0, 2, crashes=1, expiries=1, cuts=1),
    "cut-loss": _outside(0, 2, crashes=1, expiries=1, cuts=1, losses=1),
    "crash3-loss": _outside(0, 3, crashes=1, expiries=1, losses=1),
    "cut-restore": _outside(0, 2, cuts=1, restores=1),
    "lost-crash-in": _inside(0, 2, crashes=1, expiries=2, file_losses=1),
    "lost-loss-in": _inside(0, 2, expiries=1, losses=1, file_losses=1),
    "deleted3-in": _inside(0, 3, crashes=1, expiries=1, deletions=1),
    "deleted-cut2-in": _inside(0, 2, crashes=1, expiries=1, cuts=1, deletions=1),
    "deleted-restore": _outside(0, 2, expiries=1, restores=1, deletions=1),
}
ALL = {**QUICK, **LARGEST}

_MANY = Left(crashes=2, expiries=2, cuts=1, losses=1, restores=1, takeovers=1, foreign=1, deletions=1)
WALKED = {
    "inside": Scenario((3,), _MANY, stored_inside=True),
    "outside": Scenario((3,), _MANY, stored_inside=False),
    "two": Scenario((2, 1), _MANY, stored_inside=True),
    "upgraded": Scenario((3,), _MANY._replace(cuts=0, upgrades=1), stored_inside=False),
}
