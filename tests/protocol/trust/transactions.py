"""What several transactions of the ledger share: reopening windows, and accounting for what lands or is adopted."""

from __future__ import annotations

from collections.abc import Iterable

from tests.protocol.trust.facts import landed, lines_of, offsets_of, windows_of
from tests.protocol.trust.state import WINDOWS, Batch, Scenario, State, put, window_of


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


def accounted(scenario: Scenario, state: State, batch: Batch, *, compares: bool) -> State:
    """A batch lands or is adopted: reach, origin, losses and conflicts follow, and its windows are reopened."""
    rules, suspicions = scenario.rules, set(state.ledger.suspicions)
    ledger, windows, offsets = state.ledger, set(windows_of(batch)), offsets_of(batch)
    conflicts, losses = set(ledger.conflicts), ledger.losses
    if compares:
        before = landed(ledger.batches)
        for line in lines_of(batch):
            for other in before.get(line >> 1, ()):
                if other != line:
                    concerned = {window_of(line), window_of(other)}
                    windows |= concerned
                    if scenario.suspects:
                        suspicions.add(line >> 1)
                    else:
                        conflicts |= {(line >> 1, window) for window in concerned}
    if rules.found_again and offsets & set(losses):
        losses = tuple(offset for offset in losses if offset not in offsets)
        windows = set(WINDOWS)
    after = ledger._replace(
        batches=(*ledger.batches, batch),
        origin=min(ledger.origin, min(offsets)) if rules.lower_origin else ledger.origin,
        reach=max(ledger.reach, max(offsets) + 1),
        losses=losses,
        conflicts=tuple(sorted(conflicts)),
        suspicions=tuple(sorted(suspicions)),
        listed=tuple(known or window in windows_of(batch) for window, known in enumerate(ledger.listed)),
    )
    return reopened(state._replace(ledger=after), windows)
