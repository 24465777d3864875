"""The repairs of a replayed trace: claims, rebuilds and publishes on the real ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

import pytest
from tests.protocol import facts
from tests.protocol.facts import as_range, window_start
from tests.protocol.state import Action, Event, Scenario, State

from onceover.errors import FencedError
from onceover.fault_points import RepairStep
from onceover.ledger import repair_requests
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.model.claim import ClaimedWindow
from onceover.model.offsets import OffsetRange, coalesce
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.repair import publish
from onceover.repair.proof import Verdict, prove


@dataclass(slots=True)
class Held:
    """One claim, with what its repairer holds."""

    request: repair_requests.RepairRequest
    claimed: ClaimedWindow
    accounted: tuple[OffsetRange, ...]
    rebuilt: RebuiltWindow | None = None
    verdict: Verdict | None = None


@dataclass(slots=True)
class RepairReplay:
    """The claims that are out, in step with the model's; `landing_ids` are the replay's, by the model's numbers."""

    connection: Connection
    scenario: Scenario
    known: RegisteredPipeline
    landing_ids: list[int]
    held: list[Held] = field(default_factory=list)
    tokens: dict[tuple[int, int], UUID] = field(default_factory=dict)  # by window and the model's counter

    def follow(self, action: Action, before: State, after: State) -> None:
        """Do what a repair's step does in the model."""
        match action.did:
            case RepairStep.CLAIMED:
                self._claim(action, after)
            case RepairStep.STAGED:
                held, repair = self.held[action.at], after.repairs[action.at]
                lines = after.raw[repair.window][: repair.frozen]
                held.rebuilt = facts.rebuilt_of(self.scenario, held.claimed, repair.accounted, lines)
                held.verdict = prove(held.claimed, held.rebuilt)
                found = held.rebuilt.digest
                rows = [f"{held.claimed.window_start.isoformat()}\t{found.records}\t{found.high1}"]
                self.known.table.stage(self.connection, held.request.stage, rows if found.records else [])
            case _:
                assert self._publish(action.at)

    def _claim(self, action: Action, after: State) -> None:
        start = window_start(action.at)
        # A claim that is out was not renewed, and has run out.
        self.connection.execute(
            "UPDATE onceover.\"window\" SET claimed_until = '-infinity' "
            "WHERE pipeline = %s AND window_start = %s AND claimed_until IS NOT NULL",
            [self.known.name, start],
        )
        request_id = repair_requests.create_request(
            self.connection, self.known.name, "model", "a claim", {start: ()}, unblock=bool(action.note)
        )
        request = repair_requests.read_request(self.connection, self.known.name, request_id)
        (claimed,), accounted = repair_requests.claim(self.connection, request)
        modelled = after.repairs[-1]
        expected = facts.claimed_of(self.scenario, after, modelled)
        assert claimed.token not in self.tokens.values()  # never used twice
        self.tokens[modelled.window, modelled.token] = claimed.token
        assert claimed.landing_set == tuple(self.landing_ids[n] for n in modelled.landing_set)
        assert [sorted(x.parts) for x in claimed.landings] == [sorted(x.parts) for x in expected.landings]
        assert claimed.certified == expected.certified
        assert accounted == coalesce(map(as_range, facts.landed(after.batches)))
        self.held.append(Held(request, claimed, accounted))

    def _publish(self, at: int) -> bool:
        held = self.held.pop(at)
        assert held.rebuilt is not None
        assert held.verdict is not None
        assert held.verdict.is_proved
        try:
            proved = publish.ProvedWindow(held.claimed, held.rebuilt, held.accounted)
            return publish.publish(self.connection, self.known, held.request, proved)
        finally:
            self.known.table.unstage(self.connection, held.request.stage)

    def fail(self, action: Action, before: State, after: State) -> None:
        """End a try that fails, or that is refused at its publish."""
        repair = before.repairs[action.at]
        is_held = repair.token == before.token[repair.window]
        if action.did is Event.TRY_FAILED:
            held = self.held.pop(action.at)
            blocked = publish.record_failed_try(
                self.connection, self.known, held.claimed, action.note, self.scenario.max_tries
            )
            assert blocked == (is_held and after.blocked[repair.window])
        elif is_held:
            assert not self._publish(action.at)
        else:
            with pytest.raises(FencedError):
                self._publish(action.at)
