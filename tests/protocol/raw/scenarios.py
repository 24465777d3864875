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


EXPLORED = {
    "crash2-in": _inside(32_353, 2, crashes=2, expiries=2),
    "two-in": _inside(3500, 1, 1, crashes=1, expiries=1),
    "hung-in": _inside(4105, 2, expiries=1, takeovers=1),
    "foreign-in": _inside(1451, 2, losses=1, foreign=1),
    "loss-in": _inside(11_339, 2, crashes=1, expiries=1, losses=1),
    "loss3-in": _inside(8748, 3, expiries=1, losses=1),
    "both-in": _inside(20_529, 2, expiries=1, losses=1, restores=1),
    "loss-rows": Explored(Scenario((1,), Left(crashes=1, expiries=1, losses=1), False, rows_survive=True), 2455),
    "upgrade-out": _outside(36_539, 2, crashes=1, expiries=1, upgrades=1),
    "upgrade-in": _inside(19_570, 2, crashes=1, expiries=1, upgrades=1),
    "upgrade-twice-in": _inside(3277, 1, crashes=2, expiries=1, upgrades=1),
    "upgrade-loss-in": _inside(11_399, 2, crashes=1, losses=1, upgrades=1),
    "upgrade-last-in": Explored(Scenario((3,), Left(crashes=1, upgrades=1), True, moved=2), 38_063),
    "cut-ex-in": _inside(26_833, 2, expiries=1, cuts=1),
    "lost-in": _inside(1918, 2, expiries=1, file_losses=1),
    "expired-in": _inside(6072, 2, crashes=1, expiries=1, retentions=1),
    "expired-loss-in": _inside(18_407, 3, expiries=1, losses=1, retentions=1),
    "deleted-in": _inside(7714, 2, crashes=1, expiries=2, deletions=2),
    "deleted-upgrade-in": _inside(21_001, 2, takeovers=1, expiries=1, upgrades=1, deletions=1),
    "deleted-hung-in": _inside(8557, 2, takeovers=1, expiries=2, deletions=1),
    "deleted-cut-in": _inside(2153, 1, crashes=1, expiries=1, cuts=1, deletions=1),
    "restore-upgrade-out": _outside(25_898, 1, crashes=1, expiries=1, restores=1, upgrades=1),
    "deleted-out": _outside(12_796, 2, crashes=1, expiries=1, deletions=1),
    "release-in": Explored(Scenario((1,), Left(crashes=1, releases=1, restores=1), True, quarantined=0), 677),
    "release-upgrade-in": Explored(
        Scenario((1,), Left(crashes=1, releases=2, upgrades=1, losses=1), True, quarantined=0), 1729
    ),
}

LARGEST = {"deleted-stray-in": _inside(244_185, 1, 1, crashes=1, expiries=2, upgrades=1, deletions=1, foreign=1)}
ALL = {**EXPLORED, **LARGEST}

_MANY = Left(crashes=2, expiries=2, cuts=1, losses=1, restores=1, takeovers=1, foreign=1, deletions=1)
WALKED = {
    "inside": Scenario((3,), _MANY, stored_inside=True),
    "outside": Scenario((3,), _MANY, stored_inside=False),
    "two": Scenario((2, 1), _MANY, stored_inside=True),
    "upgraded": Scenario((3,), _MANY._replace(cuts=0, upgrades=1), stored_inside=False),
}
