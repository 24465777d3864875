"""A driver's next moves: plan, the six steps of a batch in their order, and every failure of one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from tests.protocol.facts import GENERATION, as_range, as_span
from tests.protocol.mutant import Mutant
from tests.protocol.state import TORN, Action, Batch, Driver, Event, Landing, Move, Scenario, Span, State, added, put
from tests.protocol.state import without as left_out

from onceover.fault_points import Step
from onceover.model.batch_plan import plan_ranges, plan_refills
from onceover.model.offsets import subtract

ORDER = (Step.BEGUN, Step.APPENDED, Step.INCREMENTED, Step.LANDED, Step.OFFSETS_COMMITTED, Step.COMMITTED)
OFFSETS_FIRST = (Step.BEGUN, Step.OFFSETS_COMMITTED, Step.APPENDED, Step.INCREMENTED, Step.LANDED, Step.COMMITTED)


def driver_moves(scenario: Scenario, state: State, at: int) -> Iterator[Move]:
    """Yield everything that may happen to one driver next."""
    driver = state.drivers[at]
    yield from _steps(scenario, state, at)
    if state.left.faults:
        spent = state._replace(left=state.left._replace(faults=state.left.faults - 1))
        yield Action(Event.CRASHED, at, f"after {driver.step}"), _gone(spent, at)
        # After landing nothing fails for good: the offsets' commit is tried again before the next plan.
        if driver.epoch == state.epoch and driver.step in (Step.BEGUN, Step.APPENDED, Step.INCREMENTED):
            yield Action(Event.ATTEMPT_FAILED, at, f"after {driver.step}"), _idle(spent, at)
        if driver.step is not None and _next(scenario, driver) is Step.APPENDED:
            yield from _torn(scenario, spent, at)


def _next(scenario: Scenario, driver: Driver) -> Step:
    order = OFFSETS_FIRST if scenario.has(Mutant.OFFSETS_FIRST) else ORDER
    return order[0] if driver.step is None else order[order.index(driver.step) + 1]


def _steps(scenario: Scenario, state: State, at: int) -> Iterator[Move]:
    driver = state.drivers[at]
    upcoming = _next(scenario, driver)
    # Between the epoch's check and the commit to another system nothing can fence a driver.
    checked = driver.halfway and upcoming is Step.OFFSETS_COMMITTED
    match upcoming:
        case Step.BEGUN:
            yield from _turn(scenario, state, at)
        case Step.APPENDED:
            yield Action(Step.APPENDED, at), _appended(scenario, state, at)
        case _ if driver.epoch != state.epoch and not checked:
            yield Action(Event.FENCED, at), _gone(state, at)
        case Step.INCREMENTED:
            yield _incremented(scenario, state, at)
        case Step.LANDED:
            yield Action(Step.LANDED, at), _landed(scenario, state, at)
        case Step.OFFSETS_COMMITTED if not driver.halfway:
            yield Action(Event.BEATEN, at), _with(state, at, driver._replace(halfway=True))
        case Step.OFFSETS_COMMITTED:
            yield Action(Step.OFFSETS_COMMITTED, at), _committed(state, at)
        case Step.COMMITTED:
            yield Action(Step.COMMITTED, at), _idle(state, at)


def _turn(scenario: Scenario, state: State, at: int) -> Iterator[Move]:
    """Supersede what failed and register where reading goes on; then a refill if one is wanted, else what is next."""
    driver = state.drivers[at]
    if driver.epoch != state.epoch:
        yield Action(Event.FENCED, at), _gone(state, at)
        return
    planned = state._replace(reach=tuple(map(max, state.reach, state.stored)))
    if not scenario.has(Mutant.ATTEMPTS_STAY_BEGUN):
        planned = planned._replace(
            batches=tuple(
                b._replace(state="superseded") if b.state == "begun" and b.epoch == driver.epoch else b
                for b in state.batches
            )
        )
    if planned != state:
        yield Action(Event.PLANNED, at), planned
        return
    if state.wanted:
        for spans in _refills(scenario, state.wanted):
            yield _begun(state, at, spans, refill=True)
        return
    for spans in _choices(scenario, state.stored):
        yield _begun(state, at, spans, refill=False)


@cache
def _choices(scenario: Scenario, stored: tuple[int, ...]) -> tuple[tuple[Span, ...], ...]:
    """Yield the ranges that the product's own plan would read next, for each size of a batch."""
    starts, ends = dict(enumerate(stored)), {p: len(log) for p, log in enumerate(scenario.logs)}
    plans = (tuple(map(as_span, plan_ranges(GENERATION, starts, ends, most))) for most in scenario.batch_sizes)
    return tuple(spans for spans in dict.fromkeys(plans) if spans)


@cache
def _refills(scenario: Scenario, wanted: tuple[Span, ...]) -> tuple[tuple[Span, ...], ...]:
    """Yield the ranges that the product's own plan would read again, for each size of a batch."""
    ranges = tuple(map(as_range, wanted))
    plans = (tuple(map(as_span, plan_refills(ranges, most))) for most in scenario.batch_sizes)
    return tuple(dict.fromkeys(plans))


def _begun(state: State, at: int, spans: tuple[Span, ...], *, refill: bool) -> Move:
    epoch, number = state.drivers[at].epoch, len(state.batches)
    after = state._replace(batches=(*state.batches, Batch(epoch, spans, "begun", refill)))
    note = f"batch {number}" + "".join(f" {s.kafka_partition}[{s.start}, {s.end})" for s in spans)
    return Action(Step.BEGUN, at, note), _with(after, at, Driver(epoch, Step.BEGUN, number))


@cache
def delivered(scenario: Scenario, batch: Batch) -> dict[int, tuple[int, ...]]:
    """Return the records that a batch reads, by their file."""
    records = scenario.records(batch.spans)
    if batch.refill and scenario.has(Mutant.REFILL_STATES_MORE):
        records = records[:1]
    by_file: dict[int, tuple[int, ...]] = {}
    for record in records:
        file = scenario.file_of(record)
        by_file[file] = (*by_file.get(file, ()), record)
    return dict(sorted(by_file.items()))


def _appended(scenario: Scenario, state: State, at: int) -> State:
    driver, raw, landings = state.drivers[at], state.raw, []
    for file, records in delivered(scenario, state.batches[driver.batch]).items():
        landings.append(Landing(driver.batch, file, len(raw[file]), records))
        raw = put(raw, file, raw[file] + records)
    moved = driver._replace(step=Step.APPENDED, appended=tuple(landings))
    return _with(state._replace(raw=raw), at, moved)


def _torn(scenario: Scenario, state: State, at: int) -> Iterator[Move]:
    """End one file's append early or in an unknown outcome; files before it are whole, files after it untouched."""
    driver = state.drivers[at]
    raw = state.raw
    for file, records in delivered(scenario, state.batches[driver.batch]).items():
        if file in scenario.torn:
            whole_lines = [records[:n] for n in range(1, len(records) + 1)]
            cut_lines = [(*records[:n], TORN) for n in range(len(records))]
            for arrived in whole_lines + cut_lines:
                after = state._replace(raw=put(raw, file, raw[file] + arrived))
                note = f"file {file} got {arrived}"
                yield Action(Event.TORN_CRASHED, at, note), _gone(after, at)
                if driver.epoch == state.epoch:
                    yield Action(Event.TORN_FAILED, at, note), _idle(after, at)
                if raw is state.raw:
                    yield Action(Event.TORN_RETRIED, at, note), _appended(scenario, after, at)
        raw = put(raw, file, raw[file] + records)


def _incremented(scenario: Scenario, state: State, at: int) -> Move:
    driver = state.drivers[at]
    rows, control, version = state.rows, state.control, state.version
    apart = scenario.has(Mutant.CONTROL_ROW_APART)
    for window, records in delivered(scenario, state.batches[driver.batch]).items():
        if window == scenario.windows:
            continue  # quarantine is accounted, and counts for no window
        if not driver.halfway:
            rows = put(rows, window, added(rows[window], records))
        if driver.halfway or not apart:
            control = put(control, window, added(control[window], records))
        version = put(version, window, version[window] + 1)
    after = state._replace(rows=rows, control=control, version=version)
    if apart and not driver.halfway:
        return Action(Event.ROWS_ADDED, at), _with(after, at, driver._replace(halfway=True))
    return Action(Step.INCREMENTED, at), _with(after, at, driver._replace(step=Step.INCREMENTED, halfway=False))


def _landed(scenario: Scenario, state: State, at: int) -> State:
    driver = state.drivers[at]
    batch = state.batches[driver.batch]
    version, reach = state.version, state.reach
    for landing in driver.appended:
        if landing.file < len(version):
            version = put(version, landing.file, version[landing.file] + 1)
    for span in batch.spans:
        reach = put(reach, span.kafka_partition, max(reach[span.kafka_partition], span.end))
    after = state._replace(
        batches=put(state.batches, driver.batch, batch._replace(state="landed")),
        landings=state.landings + driver.appended,
        version=version,
        reach=reach,
        wanted=_still_wanted(scenario, state.wanted, batch.spans),
    )
    return _with(after, at, driver._replace(step=Step.LANDED, appended=()))


@cache
def _still_wanted(scenario: Scenario, wanted: tuple[Span, ...], landed: tuple[Span, ...]) -> tuple[Span, ...]:
    """Return what is left to be read again: a refill may land in parts, and what landed of it is done."""
    if scenario.has(Mutant.REFILL_STAYS_WHOLE):
        return tuple(w for w in wanted if subtract([as_range(w)], map(as_range, landed)))
    return tuple(map(as_span, subtract(map(as_range, wanted), map(as_range, landed))))


def _committed(state: State, at: int) -> State:
    driver, stored = state.drivers[at], state.stored
    batch = state.batches[driver.batch]
    for span in () if batch.refill else batch.spans:
        stored = put(stored, span.kafka_partition, max(stored[span.kafka_partition], span.end))
    moved = driver._replace(step=Step.OFFSETS_COMMITTED, halfway=False)
    return _with(state._replace(stored=stored), at, moved)


def taken_over(scenario: Scenario, state: State) -> Move:
    """Start a new driver: batches that older epochs began and did not land can never count."""
    lost = ("begun", "landed") if scenario.has(Mutant.LANDED_SUPERSEDED) else ("begun",)
    after = state._replace(
        epoch=state.epoch + 1,
        drivers=(*state.drivers, Driver(state.epoch + 1)),
        batches=tuple(b._replace(state="superseded") if b.state in lost else b for b in state.batches),
    )
    return Action(Event.TAKEN_OVER, state.epoch + 1), after


def _with(state: State, at: int, driver: Driver) -> State:
    return state._replace(drivers=put(state.drivers, at, driver))


def _gone(state: State, at: int) -> State:
    return state._replace(drivers=left_out(state.drivers, at))


def _idle(state: State, at: int) -> State:
    return _with(state, at, Driver(state.drivers[at].epoch))
