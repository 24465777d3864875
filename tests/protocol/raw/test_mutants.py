"""Every rule is needed: without it a certificate is false or a state has no way out, or `mutants` says why not."""

from __future__ import annotations

from dataclasses import fields

import pytest
from tests.protocol.raw.mutants import MUTANTS, PRUDENCE, Mutant
from tests.protocol.raw.rules import Rules

RARELY = (pytest.mark.rare, pytest.mark.largest)


def test_rules_are_all_left_out_once() -> None:
    tried = [name for mutant in MUTANTS for name in mutant.without]
    assert set(tried) == {field.name for field in fields(Rules)}
    assert {mutant.without[0] for mutant in MUTANTS if mutant.outcome == "not missed"} == set(PRUDENCE)


@pytest.mark.parametrize(
    "mutant",
    [pytest.param(mutant, id=mutant.name, marks=() if mutant.is_soon_seen else RARELY) for mutant in MUTANTS],
)
def test_rule_left_out_is_missed(mutant: Mutant) -> None:
    found = mutant.explore()
    outcome = "wrong" if found.violation else "stuck" if found.stuck else "not missed"
    assert outcome == mutant.outcome, str(found)
