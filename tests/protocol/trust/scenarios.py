"""The small worlds that are explored in full, with their numbers of states, and a larger one that is walked through."""

from __future__ import annotations

from typing import NamedTuple

from tests.protocol.trust.state import Left, Scenario


class Explored(NamedTuple):
    """`states` is how many there are with all rules."""

    scenario: Scenario
    states: int


def _inside(states: int, records: int = 2, **left: int) -> Explored:
    return Explored(Scenario(records, Left(**left), stored_inside=True), states)


def _outside(states: int, records: int = 2, **left: int) -> Explored:
    return Explored(Scenario(records, Left(**left), stored_inside=False), states)


QUICK = {
    "crash-in": _inside(31_496, 3, crashes=1, expiries=1),
    "crash2-in": _inside(26_488, crashes=2, expiries=2),
    "loss-in": _inside(7_286, crashes=1, expiries=1, losses=1),
    "loss-out": _outside(46_277, crashes=1, expiries=1, losses=1),
    "loss3-in": _inside(8_260, 3, expiries=1, losses=1),
    "restore-in": _inside(44_008, crashes=1, expiries=1, restores=1),
    "both-in": _inside(20_250, expiries=1, losses=1, restores=1),
    "cut0-in": _inside(40_800, cuts=1),
    "hung-in": _inside(4_655, expiries=1, takeovers=1),
    "expired-in": _inside(48_893, 3, crashes=1, expiries=1, retentions=1),
    "cut-loss-in": _inside(391, 1, cuts=1, losses=1),
    "returned-in": _inside(525, 1, cuts=1, returns=1),
    "hung2-in": _inside(31_728, crashes=1, expiries=1, takeovers=1),
    "foreign-in": _inside(184, 1, losses=1, foreign=1),
    "foreign2-in": _inside(4_419, expiries=1, losses=1, foreign=1),
    "overwritten-in": _inside(2_874, 1, crashes=1, expiries=1, cuts=1),
    "lost-in": _inside(1_112, expiries=1, file_losses=1),
    "lost-cut-in": Explored(Scenario(1, Left(cuts=1, file_losses=1), True, suspects=True), 531),
}
LARGEST = {
    "crash-out": _outside(70_064, 3, crashes=1, expiries=1),
    "crash2-out": _outside(81_742, crashes=2, expiries=2),
    "loss-rows": Explored(Scenario(2, Left(crashes=1, expiries=1, losses=1), False, rows_survive=True), 58_369),
    "loss3-out": _outside(41_503, 3, expiries=1, losses=1),
    "restore-out": _outside(158_453, crashes=1, expiries=1, restores=1),
    "restore3-out": _outside(170_019, 3, expiries=1, restores=1),
    "both-out": _outside(147_595, expiries=1, losses=1, restores=1),
    "cut-in": _inside(589_840, crashes=1, cuts=1),
    "cut-ex-in": _inside(131_750, expiries=1, cuts=1),
    "cut-ex-out": _outside(185_251, expiries=1, cuts=1),
    "overwritten-out": _outside(3_831, 1, crashes=1, expiries=1, cuts=1),
    "lost-out": _outside(24_208, crashes=1, expiries=1, file_losses=1),
    "cut-loss": _outside(352_249, cuts=1, losses=1),
    "hung-out": _outside(5_077, expiries=1, takeovers=1),
    "moved-in": Explored(Scenario(2, Left(cuts=1, moves=1), True, suspects=True), 568_507),
    "cut3-in": _inside(7_309_046, 3, cuts=1, losses=1),
    "cut-out": _outside(1_100_784, crashes=1, cuts=1),
    "cut-restore": _outside(6_272_848, cuts=1, restores=1),
}
ALL = {**QUICK, **LARGEST}

WALKED = {
    "inside": Scenario(3, Left(2, 2, 1, 1, 1, 0), stored_inside=True),
    "outside": Scenario(3, Left(2, 2, 1, 1, 1, 0), stored_inside=False),
}
