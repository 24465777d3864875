"""What several transactions of the ledger share: reopening windows, landing a batch, recording a cut log."""

from __future__ import annotations

from collections.abc import Iterable

from tests.protocol.raw.facts import cut_at
from tests.protocol.raw.lines import OFFSETS, WINDOWS, record_of
from tests.protocol.raw.state import Batch, Scenario, State, put


def reopened(state: State, windows: Iterable[int]) -> State:
    """Bump the versions: certificates lose theirs, and a repair that claimed before would be refused."""
    certificates, repair = state.ledger.certificates, state.repair
    for window in windows:
        certificate = certificates[window]
        if certificate and certificate.valid:
            certificates = put(certificates, window, certificate._replace(valid=False))
        if repair and repair.window == window:
            repair = None
    return state._replace(ledger=state.ledger._replace(certificates=certificates), repair=repair)


def accounted(state: State, batch: Batch) -> State:
    """A batch lands: the reaches follow, and its windows are reopened."""
    ledger, windows = state.ledger, {landing.window for landing in batch} & set(WINDOWS)
    records = [record_of(line) for landing in batch for line in landing.lines]
    partitions = tuple(
        known._replace(reach=max([known.reach, *(r % OFFSETS + 1 for r in records if r // OFFSETS == partition)]))
        for partition, known in enumerate(ledger.partitions)
    )
    listed = tuple(is_listed or window in windows for window, is_listed in enumerate(ledger.listed))
    unread = tuple(record for record in ledger.unread if record not in records)  # it was read, by a batch under way
    after = ledger._replace(batches=(*ledger.batches, batch), partitions=partitions, listed=listed, unread=unread)
    return reopened(state._replace(ledger=after), windows)


def cut_recorded(scenario: Scenario, state: State) -> State:
    """From the cut on all is to be read, and nothing there is accepted as never read any more."""
    partitions, unread = state.ledger.partitions, state.ledger.unread
    for partition, log in enumerate(state.logs):
        cut = cut_at(scenario, state, partition)
        if cut is not None:
            reach = max(cut, log.start)
            partitions = put(partitions, partition, partitions[partition]._replace(cut=cut, reach=reach))
            unread = tuple(r for r in unread if r // OFFSETS != partition or r % OFFSETS < cut)
    return state._replace(ledger=state.ledger._replace(partitions=partitions, unread=unread))
