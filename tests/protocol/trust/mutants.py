"""Each rule left out, in the smallest world that shows why it is there.

Not missed within these bounds, and kept out of prudence:

- `refuse` and `lower_origin`: the marker implies both; they are for roots that have none.
- `cut_is_hole`: until what diverged is read again, a window that it concerns has a finding anyway, by what landed.
- `open_any`: who reads more windows than needed does no harm; `open_idle` is enough, and without a cut log even an
  expired hole is.

Left out together with others where these hide it: `adopt` alone only blocks, `loss_asks_raw` hides it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from tests.protocol.exploration import Exploration, explore
from tests.protocol.trust.scenarios import ALL, QUICK
from tests.protocol.trust.state import Action, Scenario, State
from tests.protocol.trust.world import world_of

Outcome = Literal["wrong", "stuck", "endless", "not missed"]


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
        """`endless`: there are many times more states than with the rules."""
        return explore(world_of(self.scenario), 4 * ALL[self.world].states)

    @property
    def is_soon_seen(self) -> bool:
        """A false certificate ends the exploration; all else takes all of it."""
        return self.outcome == "wrong" or self.world in QUICK


def _mutant(outcome: Outcome, world: str, *without: str) -> Mutant:
    return Mutant(without, world, outcome)


MUTANTS = (
    _mutant("wrong", "loss-out", "refuse", "marker", "adopt"),  # the headline of issue 16
    _mutant("wrong", "loss-in", "marker"),
    _mutant("wrong", "loss-in", "origin"),
    _mutant("stuck", "both-in", "take_root"),
    _mutant("not missed", "loss-in", "refuse"),
    _mutant("wrong", "crash2-in", "adopt", "loss_asks_raw"),
    _mutant("stuck", "crash2-in", "adopt"),
    _mutant("wrong", "crash-in", "pending"),
    _mutant("stuck", "crash2-in", "adopt_apart"),
    _mutant("not missed", "crash2-in", "open_any", "open_idle"),
    _mutant("stuck", "cut-in", "open_any", "open_idle"),
    _mutant("stuck", "cut-in", "ask_kafka"),
    _mutant("wrong", "crash2-in", "loss_asks_raw"),
    _mutant("stuck", "crash2-in", "loss_reads_raw"),
    _mutant("wrong", "crash-in", "loss_reads_certified"),
    _mutant("wrong", "crash2-in", "loss_reads_unknown"),
    _mutant("wrong", "expired-in", "loss_reads_expired"),
    _mutant("stuck", "expired-in", "adopt_expired"),
    _mutant("wrong", "loss3-in", "loss_waits"),
    _mutant("wrong", "cut3-in", "loss_below_end"),
    _mutant("stuck", "lost-in", "give_up"),
    _mutant("wrong", "lost-in", "give_up_asks_kafka"),
    _mutant("wrong", "foreign-in", "adopt_own"),
    _mutant("wrong", "foreign-in", "rebuild_own"),
    _mutant("wrong", "hung-in", "found_again"),
    _mutant("wrong", "loss-out", "lower_origin", "refuse", "marker"),
    _mutant("not missed", "loss-in", "lower_origin"),
    _mutant("wrong", "crash-in", "length"),
    _mutant("stuck", "crash2-in", "listing"),
    _mutant("wrong", "cut0-in", "epochs"),
    _mutant("wrong", "cut-loss-in", "unknown_epochs"),
    _mutant("endless", "returned-in", "last_landed"),
    _mutant("wrong", "moved-in", "settle_whole"),
    _mutant("not missed", "cut0-in", "cut_is_hole"),
    _mutant("wrong", "cut0-in", "landing_compares"),
    _mutant("wrong", "overwritten-in", "keep_diverged"),
    _mutant("stuck", "cut-in", "stray_is_conflict"),
    _mutant("wrong", "cut0-in", "decide_all"),
    _mutant("wrong", "cut0-in", "decided_late"),
    _mutant("wrong", "restore3-out", "fence"),
)
