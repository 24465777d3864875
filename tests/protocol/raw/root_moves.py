"""Registration, the rebuild of a lost ledger, and a person's word that another ledger takes the root."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.raw.events import Action, Event
from tests.protocol.raw.facts import intact, is_behind, owns_root
from tests.protocol.raw.lines import OFFSETS, TAG, WINDOWS, Line, record_of
from tests.protocol.raw.state import NO_CUT, Landing, Move, Partition, Scenario, State
from tests.protocol.raw.transactions import accounted


def asked_offset(scenario: Scenario, state: State, partition: int) -> int:
    """The offset store's next offset, or else where the log starts today."""
    stored = state.ledger.partitions[partition].stored if scenario.stored_inside else state.stored[partition]
    return state.logs[partition].start if stored is None else stored


def root_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    rules, ledger = scenario.rules, state.ledger
    is_used = any(state.files) or any(ledger.rows)
    if not ledger.known and not state.rebuilding:
        if (state.marker is None or not rules.marker) and (not is_used or not rules.refuse):
            yield _registered(scenario, state)
        if (is_used or state.marker is not None) and state.driver is None:
            yield Action(Event.REBUILD_BEGUN), state._replace(rebuilding=True)
    if state.rebuilding and not ledger.known:
        yield _rebuilt(scenario, state)
    if state.rebuilding and state.left.crashes:
        left = state.left._replace(crashes=state.left.crashes - 1)
        yield Action(Event.REBUILD_KILLED), state._replace(rebuilding=False, left=left)
    if is_behind(scenario, state) and not state.rebuilding:
        empty = ledger.replaced()._replace(rows=ledger.rows)
        yield Action(Event.GIVEN_UP_LEDGER), state._replace(ledger=empty, driver=None, repair=None, releasing=None)
    if rules.marker and ledger.known and not owns_root(scenario, state) and not state.rebuilding:
        yield Action(Event.ROOT_TAKEN), state._replace(marker=ledger.ledger_id)


def _registered(scenario: Scenario, state: State) -> Move:
    origins = tuple(_origin(scenario, state, partition) for partition in range(len(state.logs)))
    known = state.ledger._replace(
        known=True, upgraded=state.upgraded, partitions=tuple(Partition(at, at) for at in origins)
    )
    marked = _begun(state, origins)._replace(ledger=known, marker=known.ledger_id)
    return Action(Event.REGISTERED), marked


def _origin(scenario: Scenario, state: State, partition: int) -> int:
    if scenario.rules.origin and state.origins is not None:
        return state.origins[partition]
    return min(asked_offset(scenario, state, partition), state.logs[partition].end)


def _begun(state: State, origins: tuple[int, ...]) -> State:
    """Raw learns where reading began, once."""
    return state._replace(
        origins=origins if state.origins is None else state.origins,
        born=origins if state.born is None else state.born,
    )


def _rebuilt(scenario: Scenario, state: State) -> Move:
    """One transaction: one batch of all that raw holds, each file and each window with rows has a window."""
    ledger = state.ledger
    lines = sorted({line for file in state.files for line in intact(scenario, file)})
    partitions = tuple(_rebuilt_partition(scenario, state, each, lines) for each in range(len(state.logs)))
    listed = tuple(bool(state.files[window] or ledger.rows[window]) for window in WINDOWS)
    known = ledger._replace(known=True, upgraded=state.upgraded, partitions=partitions, listed=listed)
    after = _begun(state, tuple(partition.origin for partition in partitions))
    after = after._replace(ledger=known, marker=ledger.ledger_id, rebuilding=False)
    batch = tuple(
        Landing(window, 0, len(file), tuple(sorted(_newest(scenario, state, window))))
        for window, file in enumerate(state.files)
        if file
    )
    return Action(Event.REBUILT, lines=tuple(lines)), accounted(after, batch) if batch else after


def _newest(scenario: Scenario, state: State, window: int) -> frozenset[Line]:
    """The lines of a file but for those that a newer version put into another."""
    lines = intact(scenario, state.files[window])
    if scenario.rules.newest_tag:
        newer = {
            line & ~TAG for other, file in enumerate(state.files) if other != window for line in file if line & TAG > 0
        }
        lines -= {line for line in newer if line | TAG not in state.files[window]}
    return lines


def _rebuilt_partition(scenario: Scenario, state: State, partition: int, lines: list[Line]) -> Partition:
    own = [line for line in lines if record_of(line) in range(partition * OFFSETS, (partition + 1) * OFFSETS)]
    offsets = [record_of(line) % OFFSETS for line in own]
    if scenario.rules.origin and state.origins is not None:
        origin = state.origins[partition]
    else:
        origin = offsets[0] if offsets else _origin(scenario, state, partition)
    origin = min([origin, *offsets[:1]])
    reach = max([origin, *(offset + 1 for offset in offsets)])
    cuts = [record_of(line) % OFFSETS for line in own if line & 1] if scenario.rules.epochs else []
    return Partition(origin, reach, reach if scenario.stored_inside else None, min(cuts, default=NO_CUT))
