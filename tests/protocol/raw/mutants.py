"""Each rule left out, in a small world that shows why it is there."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tests.protocol.exploration import Exploration, explore
from tests.protocol.raw.events import Action
from tests.protocol.raw.scenarios import ALL, QUICK
from tests.protocol.raw.state import Scenario, State
from tests.protocol.raw.world import world_of

Outcome = Literal["wrong", "stuck", "not missed"]

PRUDENCE = {
    "refuse": "a ledger that registers over a used root counts right as well: what is there are extras",
    "marker": "two ledgers on one root count right as well, but retention would move the files of the other",
    "see_cut": "it needs an ingest that never starts again; else its next plan records the cut",
    "never_less": "the proof says the same of what landed, and a person accepted the rest as never read",
}
"""Rules that are not missed within these bounds, and why they stay."""


class Mutant(NamedTuple):
    """Rules left out, the world to look in, and what becomes of it."""

    without: tuple[str, ...]
    world: str
    outcome: Outcome

    @property
    def name(self) -> str:
        return f"{' '.join(self.without)} in {self.world}"

    @property
    def scenario(self) -> Scenario:
        return ALL[self.world].scenario.without(*self.without)

    def explore(self) -> Exploration[State, Action]:
        return explore(world_of(self.scenario))

    @property
    def is_soon_seen(self) -> bool:
        """A false certificate ends the exploration; all else takes all of it."""
        return self.world in QUICK


def _mutant(outcome: Outcome, world: str, *without: str) -> Mutant:
    return Mutant(without, world, outcome)


MUTANTS = (
    _mutant("wrong", "loss3-in", "origin"),
    _mutant("wrong", "crash2-in", "extras"),
    _mutant("wrong", "upgrade-twice-in", "nowhere"),
    _mutant("wrong", "upgrade-last-in", "reopen"),
    _mutant("wrong", "two-in", "wait"),
    _mutant("wrong", "upgrade-out", "upgrade"),
    _mutant("wrong", "foreign-in", "own"),
    _mutant("wrong", "expired-loss-in", "expired_in_raw"),
    _mutant("wrong", "crash2-in", "length"),
    _mutant("stuck", "crash2-in", "listing"),
    _mutant("wrong", "cut-ex-in", "epochs"),
    _mutant("wrong", "cut-ex-in", "epoch_in_id"),
    _mutant("wrong", "cut-ex-in", "cut_first"),
    _mutant("stuck", "upgrade-last-in", "less_landed"),
    _mutant("wrong", "upgrade-twice-in", "two_versions"),
    _mutant("wrong", "upgrade-loss-in", "newest_tag"),
    _mutant("wrong", "release-upgrade-in", "released"),
    _mutant("wrong", "deleted-out", "deleted_reopens"),
    _mutant("wrong", "deleted-upgrade-in", "deleted_landed"),
    _mutant("wrong", "deleted-hung-in", "unread_is_extra"),
    _mutant("wrong", "deleted-cut2-in", "delete_settled"),
    _mutant("wrong", "deleted-stray-in", "delete_no_extra"),
    _mutant("wrong", "deleted-stray-in", "delete_own"),
    _mutant("wrong", "restore3-out", "fence"),
    _mutant("wrong", "lost-in", "give_up_last"),
    _mutant("wrong", "lost-in", "proof"),
    _mutant("not missed", "loss-in", "refuse"),
    _mutant("not missed", "loss-in", "marker"),
    _mutant("not missed", "cut-ex-in", "see_cut"),
    _mutant("not missed", "lost-in", "never_less"),
)
