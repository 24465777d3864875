"""Each rule left out: a certificate is false or a state has no way out, or the rule is named with why it stays."""

from __future__ import annotations

from dataclasses import fields

import pytest
from _pytest.mark import ParameterSet
from tests.protocol.exploration import explore
from tests.protocol.raw.model import world_of
from tests.protocol.raw.mutants import PRUDENCE, STUCK, WRONG
from tests.protocol.raw.rules import Rules
from tests.protocol.raw.scenarios import ALL, LARGEST


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
