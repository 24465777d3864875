"""Each rule left out: a certificate is false or a state has no way out, or the rule is named with why it stays."""

from __future__ import annotations

from dataclasses import fields

import pytest
from _pytest.mark import ParameterSet
from tests.protocol.exploration import explore
from tests.protocol.raw.rules import Rules
from tests.protocol.raw.scenarios import ALL, LARGEST
from tests.protocol.raw.world import world_of

WRONG = {
    "origin": "loss3-in",
    "extras": "crash2-in",
    "reopen": "upgrade-last-in",
    "wait": "two-in",
    "check_again": "deleted-stray-in",
    "upgrade": "upgrade-out",
    "own": "foreign-in",
    "expired_in_raw": "expired-loss-in",
    "length": "crash2-in",
    "epochs": "cut-ex-in",
    "epoch_in_id": "cut-ex-in",
    "cut_first": "cut-ex-in",
    "give_up_last": "lost-in",
    "proof": "lost-in",
    "two_versions": "upgrade-twice-in",
    "versions_in_raw": "restore-upgrade-out",
    "newest_tag": "upgrade-loss-in",
    "released": "release-upgrade-in",
    "delete_no_extra": "deleted-stray-in",
    "delete_own": "deleted-stray-in",
}
STUCK = {
    "nowhere": "upgrade-loss-in",
    "listing": "crash2-in",
    "less_landed": "upgrade-last-in",
    "deleted_landed": "deleted-upgrade-in",
}
PRUDENCE = {
    "refuse": "loss-in",  # a ledger that registers over a used root counts right too: what raw holds becomes extras
    "marker": "loss-in",  # two ledgers count right too, but retention would move away the other's files
    "see_cut": "cut-ex-in",  # needs an ingest that never starts again, else its next plan records the cut
    "never_less": "lost-in",  # the proof says the same of what landed
    "deleted_reopens": "deleted-out",  # digests show the second landing
    "fence": "both-in",  # digests show what an old driver or repair adds after a restore
}
"""Rules that are not missed in any small world, each with one of them."""


def mark(rule: str, name: str) -> ParameterSet:
    return pytest.param(rule, name, marks=(pytest.mark.rare, pytest.mark.largest) if name in LARGEST else ())


def test_rules_are_all_left_out_once() -> None:
    assert sorted([*WRONG, *STUCK, *PRUDENCE]) == sorted(field.name for field in fields(Rules))


@pytest.mark.parametrize(("rule", "name"), [mark(*each) for each in WRONG.items()])
def test_without_the_rule_a_certificate_is_false(rule: str, name: str) -> None:
    found = explore(world_of(ALL[name].scenario.without(rule)))
    assert found.violation is not None, str(found)


@pytest.mark.parametrize(("rule", "name"), STUCK.items())
def test_without_the_rule_a_state_has_no_way_out(rule: str, name: str) -> None:
    found = explore(world_of(ALL[name].scenario.without(rule)))
    assert (found.violation, found.stuck > 0) == (None, True), str(found)


@pytest.mark.parametrize(("rule", "name"), PRUDENCE.items())
def test_rule_is_not_missed_in_this_world(rule: str, name: str) -> None:
    found = explore(world_of(ALL[name].scenario.without(rule)))
    assert found.shown is None, str(found)
