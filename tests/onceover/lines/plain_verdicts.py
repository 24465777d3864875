"""The verdict on each ID of a window for itself, in plain Python: what the fold is tested against."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from tests.onceover.lines.worlds import CONTRACTS, END, START, Id, World, evaluate, holds

from onceover.lines.escapes import CorruptLineError
from onceover.lines.reference import Line, compute_digest, decode
from onceover.model.digest import EMPTY, Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.record import Record

PENDING, BEYOND, FOREIGN, ORPHAN, UNSORTED = "pending", "beyond", "foreign", "orphan", "unsorted"


@dataclass
class Expected:
    """The verdict on a world, in plain values."""

    numbers: Counter[str] = field(default_factory=Counter)
    unknown: set[str] = field(default_factory=set)
    counted: dict[Id, tuple[Digest, bool]] = field(default_factory=dict)  # and whether its columns come from VALUE
    landings: dict[tuple[int, KafkaPartition], Digest] = field(default_factory=dict)
    within: dict[tuple[int, KafkaPartition], Digest] = field(default_factory=dict)  # released, within a landing
    adopted: dict[tuple[int, KafkaPartition], Digest] = field(default_factory=dict)  # exact IDs, within a range
    releases: dict[tuple[int, KafkaPartition], Digest] = field(default_factory=dict)
    runs: dict[str, list[tuple[OffsetRange, Digest]]] = field(default_factory=dict)
    contested: set[tuple[Id, str, int]] = field(default_factory=set)
    decided: set[tuple[Id, str, bool]] = field(default_factory=set)
    shared: set[tuple[Id, str, int]] = field(default_factory=set)


@cache
def _decode(text: bytes) -> Line | None:
    try:
        return decode(text)
    except CorruptLineError:
        return None


@cache
def hash_content(record: Record) -> Digest:
    return compute_digest([record])


def name_content(record: Record) -> str:
    return "".join(f"{part:08x}" for part in hash_content(record).as_tuple()[1:])


def judge(world: World, *, every: bool = False) -> Expected:
    """Judge each ID of the world for itself; with `every`, VALUE is evaluated of all lines."""
    result = Expected()
    lines: dict[Id, Counter[bytes]] = defaultdict(Counter)
    for text in world.lines:
        result.numbers["lines"] += 1
        line = _decode(text)
        if line is None:
            result.numbers["corrupt"] += 1
        else:
            lines[line.record.source, line.record.offset][text] += 1
    loose: dict[str, dict[Id, Digest]] = defaultdict(dict)
    for each, texts in sorted(lines.items()):
        _judge_id(world, each, texts, result, loose, every=every)
    result.runs = {kind: _join(found) for kind, found in loose.items()}
    return result


def _find_kind(world: World, each: Id) -> str:
    is_accounted = world.accounted is not None and holds(world.accounted, each)
    landed = any(holds(ranges, each) for ranges, _ in world.landings) or holds(world.released(), each)
    if each in world.decisions and (world.accounted is None or is_accounted):
        return "counts"
    if landed and each not in world.decisions:
        return "counts"
    if is_accounted:
        return "stray"
    if world.held is None:
        return UNSORTED
    if holds(world.held, each):
        return PENDING
    if world.known is None or holds(world.known, each):
        return ORPHAN
    return BEYOND if holds(world.beyond, each) else FOREIGN


def _judge_id(
    world: World, each: Id, texts: Counter[bytes], result: Expected, loose: dict[str, dict[Id, Digest]], *, every: bool
) -> None:
    kind, contract = _find_kind(world, each), world.find_contract(each)
    decoded = {text: line for text in texts if (line := _decode(text)) is not None}
    left: list[tuple[str, int, bool, Record]] = []
    for text, line in decoded.items():
        content = name_content(line.record)
        is_unknown = kind not in ("counts", "stray", FOREIGN) and line.contract not in CONTRACTS
        alike = [other for name, other in decoded.items() if name != text and _is_alike(other, line, contract)]
        is_doubtful = kind != FOREIGN and not is_unknown and (line.contract != contract or bool(alike))
        is_asked = every and kind != FOREIGN and not is_unknown
        by_value = evaluate(line, contract) if is_doubtful or is_asked else line.event_ms
        if line.event_ms is None or not START <= line.event_ms < END or by_value != line.event_ms:
            result.numbers["misplaced"] += texts[text]
            continue
        if is_unknown and kind != UNSORTED:
            result.unknown.add(line.contract)
        if world.decisions.get(each, content) != content:
            result.numbers["rejected"] += texts[text]
            result.decided.add((each, content, False))
        else:
            left.append((content, line.event_ms, not is_doubtful and line.columns is not None, line.record))
            number = {"counts": "counting", "stray": "stray"}.get(kind, "unlanded")
            result.numbers[number] += texts[text]
    if left:
        _count_id(world, each, kind, left, result, loose)


def _is_alike(other: Line, line: Line, contract: str) -> bool:
    return other.contract == contract and (other.record, other.event_ms) == (line.record, line.event_ms)


def _count_id(
    world: World,
    each: Id,
    kind: str,
    left: Sequence[tuple[str, int, bool, Record]],
    result: Expected,
    loose: dict[str, dict[Id, Digest]],
) -> None:
    contents, times = {content for content, *_ in left}, {ms for _, ms, *_ in left}
    first, earliest = min((content, ms) for content, ms, *_ in left)
    digest = next(hash_content(record) for content, _, _, record in left if content == first)
    if kind not in ("stray", FOREIGN) and len({(content, ms) for content, ms, *_ in left}) > 1:
        result.contested |= {(each, content, ms) for content, ms, *_ in left}
    if kind == FOREIGN:
        result.numbers["foreign"] += 1
    elif kind == ORPHAN and len(contents) > 1:
        result.numbers["unlanded_conflicts"] += 1
    elif kind != "counts":
        loose[kind][each] = digest
    if kind != "counts":
        return
    result.numbers["conflicts"] += len(contents) > 1
    result.numbers["misdated"] += len(times) > 1
    believed = any(is_own for content, ms, is_own, _ in left if (content, ms) == (first, earliest))
    result.counted[each] = digest, not believed
    if holds(world.shared, each):
        result.shared |= {(each, content, ms) for content, ms, *_ in left}
    if each in world.decisions:
        result.decided |= {(each, content, True) for content in contents}
        return
    released = [n for n, ranges in enumerate(world.releases) if holds(ranges, each)]
    for number in released:
        _add(result.releases, (number, each[0]), digest)
    is_exact = any(holds(ranges, each) for ranges, exact in world.landings if exact)
    for number, (ranges, exact) in enumerate(world.landings):
        if holds(ranges, each):
            _add(result.within if released else result.landings, (number, each[0]), digest)
            if is_exact and not exact and not released:
                _add(result.adopted, (number, each[0]), digest)


def _add(sums: dict[tuple[int, KafkaPartition], Digest], key: tuple[int, KafkaPartition], digest: Digest) -> None:
    sums[key] = sums.get(key, EMPTY) + digest


def _join(found: dict[Id, Digest]) -> list[tuple[OffsetRange, Digest]]:
    runs: list[tuple[OffsetRange, Digest]] = []
    for (source, offset), digest in sorted(found.items()):
        if runs and runs[-1][0].source == source and runs[-1][0].end == offset:
            runs[-1] = OffsetRange(source, runs[-1][0].start, offset + 1), runs[-1][1] + digest
        else:
            runs.append((OffsetRange(source, offset, offset + 1), digest))
    return runs
