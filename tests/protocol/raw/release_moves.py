"""A release: a person has a record of the quarantine appended to the window where a newer contract dates it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.raw.events import Action, Event
from tests.protocol.raw.facts import intact, landed_in, tagged
from tests.protocol.raw.lines import QUARANTINE, RELEASED, record_of
from tests.protocol.raw.state import Landing, Move, Scenario, State, put
from tests.protocol.raw.transactions import accounted


def release_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    """Each version dates it into another window. What has landed in any is not released again."""
    left, quarantined = state.left, intact(scenario, state.files[QUARANTINE])
    if state.releasing:
        yield _landed(state, *state.releasing)
    elif left.releases and not state.driver:
        batches = state.ledger.batches
        released = {record_of(line) for window in (0, 1) for line in landed_in(batches, window) if line >= RELEASED}
        for line in sorted(landed_in(batches, QUARANTINE) & quarantined):
            if record_of(line) not in released:
                yield _appended(state, line | RELEASED)


def _appended(state: State, line: int) -> Move:
    window = int(state.upgraded)
    at = len(state.files[window])
    files = put(state.files, window, (*state.files[window], *tagged(state, (line,))))
    left = state.left._replace(releases=state.left.releases - 1)
    after = state._replace(files=files, releasing=(window, at, line), left=left)
    return Action(Event.RELEASE_BEGUN, window, lines=(line,)), after


def _landed(state: State, window: int, at: int, line: int) -> Move:
    landing = Landing(window, at, 1, (line,))
    return Action(Event.RELEASE_LANDED, window), accounted(state, (landing,))._replace(releasing=None)
