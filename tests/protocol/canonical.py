"""One state for all that can never differ again: dead processes are forgotten, compared values are ranked."""

from __future__ import annotations

from tests.protocol.mutant import Mutant
from tests.protocol.state import Driver, Landing, Repair, Scenario, State

from onceover.fault_points import Step


def canonical(scenario: Scenario, state: State) -> State:
    """Return the representative of all states with the same futures."""
    return _versions_ranked(_numbered(_forgotten(scenario, state)))


def _forgotten(scenario: Scenario, state: State) -> State:
    """Drop drivers and repairs that can only be refused, and offsets that are never read again."""
    drivers = [
        Driver(d.epoch) if d.step in (Step.OFFSETS_COMMITTED, Step.COMMITTED) and _is_last(scenario, d) else d
        for d in state.drivers
        if d.epoch == state.epoch or _may_write(scenario, d)
    ]
    any_version = scenario.has(Mutant.PUBLISH_AT_ANY_VERSION)
    repairs = [
        r._replace(token=0)
        for r in state.repairs
        if r.token == state.token[r.window] and (any_version or r.version == state.version[r.window])
    ]
    looks = [
        x
        for x in state.looks
        if scenario.has(Mutant.CERTIFY_AT_ANY_VERSION) or x.certificate.version == state.version[x.window]
    ]
    return state._replace(
        epoch=0,
        drivers=tuple(sorted((d._replace(epoch=-(d.epoch != state.epoch)) for d in drivers), key=_order)),
        batches=tuple(
            b._replace(epoch=-1 if b.state == "begun" and b.epoch != state.epoch else 0) for b in state.batches
        ),
        token=(0,) * len(state.token),
        repairs=tuple(repairs),
        looks=tuple(looks),
        skipped=state.skipped - {r for file in state.raw for r in file},
    )


def _is_last(scenario: Scenario, driver: Driver) -> bool:
    return driver.step is Step.COMMITTED or not scenario.has(Mutant.OFFSETS_FIRST)


def _may_write(scenario: Scenario, driver: Driver) -> bool:
    """A fenced driver still appends, and commits offsets if the epoch's check came just before."""
    if scenario.has(Mutant.OFFSETS_FIRST):
        return driver.halfway or driver.step in (Step.BEGUN, Step.OFFSETS_COMMITTED)
    return driver.step is Step.BEGUN or (driver.step is Step.LANDED and driver.halfway)


def _order(driver: Driver) -> tuple[int, str, int, bool, tuple[Landing, ...]]:
    return driver.epoch, driver.step or "", driver.batch, driver.halfway, driver.appended


def _numbered(state: State) -> State:
    """Drop invisible batches, and number batches and landings by their contents, not by time."""
    used = {d.batch for d in state.drivers} | {x.batch for x in state.landings}
    keep = [n for n, b in enumerate(state.batches) if n in used or b.state != "superseded"]
    if len(keep) > 1:
        # Two batches may be alike in everything but what they landed.
        first = {x.batch: x[1:3] for x in sorted(state.landings, key=lambda x: x[1:3], reverse=True)}
        keep.sort(key=lambda n: (state.batches[n], first.get(n, (-1, -1))))
    order = sorted(range(len(state.landings)), key=lambda n: state.landings[n][1:3])
    if keep == list(range(len(state.batches))) and order == list(range(len(state.landings))):
        return state
    batch = {old: new for new, old in enumerate(keep)} | {-1: -1}
    landing = {old: new for new, old in enumerate(order)}

    def renumbered(x: Landing) -> Landing:
        return Landing(batch[x.batch], *x[1:])

    def landing_set(numbers: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(landing[n] for n in numbers))

    return state._replace(
        batches=tuple(state.batches[n] for n in keep),
        landings=tuple(renumbered(state.landings[n]) for n in order),
        drivers=tuple(
            d._replace(batch=batch[d.batch], appended=tuple(map(renumbered, d.appended))) for d in state.drivers
        ),
        certificates=tuple(c and c._replace(landing_set=landing_set(c.landing_set)) for c in state.certificates),
        repairs=tuple(r._replace(landing_set=landing_set(r.landing_set)) for r in state.repairs),
        looks=tuple(
            x._replace(certificate=x.certificate._replace(landing_set=landing_set(x.certificate.landing_set)))
            for x in state.looks
        ),
    )


def _versions_ranked(state: State) -> State:
    """Rank the versions, which are only compared with each other; 0 keeps its meaning."""
    version, certificates = list(state.version), list(state.certificates)
    repairs: list[Repair] = list(state.repairs)
    looks = list(state.looks)
    for window, now in enumerate(version):
        seen = {0, now}
        certificate = certificates[window]
        if certificate is not None:
            seen.add(certificate.version)
        seen.update(r.version for r in repairs if r.window == window)
        seen.update(x.certificate.version for x in looks if x.window == window)
        if max(seen) == len(seen) - 1:
            continue
        rank = {v: n for n, v in enumerate(sorted(seen))}
        version[window] = rank[now]
        if certificate is not None:
            certificates[window] = certificate._replace(version=rank[certificate.version])
        repairs = [r._replace(version=rank[r.version]) if r.window == window else r for r in repairs]
        looks = [
            x._replace(certificate=x.certificate._replace(version=rank[x.certificate.version]))
            if x.window == window
            else x
            for x in looks
        ]
    return state._replace(
        version=tuple(version), certificates=tuple(certificates), repairs=tuple(repairs), looks=tuple(looks)
    )
