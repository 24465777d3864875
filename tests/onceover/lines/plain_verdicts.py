"""The verdict on each reading of a window for itself, in plain Python: what the fold is tested against."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from tests.onceover.lines.worlds import CONTRACTS, END, START, Id, Reading, World, evaluate, holds

from onceover.lines.escapes import CorruptLineError
from onceover.lines.line_format import Line, compute_digest, decode
from onceover.model.digest import EMPTY, Digest
from onceover.model.log_history import NO_EPOCH, EpochSpan
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.record import Record

LANDED, EXTRA, STRAY, SPARE, FOREIGN, CLASHING = "landed", "extra", "stray", "spare", "foreign", "clashing"
COUNTING = (LANDED, EXTRA)
NUMBERS = ("lines", "corrupt", "misplaced", STRAY, SPARE, FOREIGN, "repeated")
Content = tuple[int, ...]


class Counted(NamedTuple):
    """A record that counts: whether its columns come from VALUE, and the epoch of the reading that it comes from."""

    digest: Digest
    by_value: bool
    epoch: int


@dataclass
class Expected:
    """The verdict on a world, in plain values."""

    numbers: Counter[str] = field(default_factory=Counter)
    unknown: set[str] = field(default_factory=set)
    counted: dict[tuple[Id, Content], Counted] = field(default_factory=dict)
    landings: dict[tuple[int, KafkaPartition], Digest] = field(default_factory=dict)
    within: dict[tuple[int, KafkaPartition], Digest] = field(default_factory=dict)  # released, within a landing
    releases: dict[tuple[int, KafkaPartition], Digest] = field(default_factory=dict)
    releases_of: dict[Reading, list[int]] = field(default_factory=dict)
    runs: dict[str, list[EpochSpan]] = field(default_factory=dict)

    @property
    def digest(self) -> Digest:
        return sum((each.digest for each in self.counted.values()), EMPTY)


@cache
def decode_or_none(text: bytes) -> Line | None:
    try:
        return decode(text)
    except CorruptLineError:
        return None


@cache
def hash_content(record: Record) -> Content:
    return compute_digest([record]).as_tuple()


def judge(world: World, *, every: bool = False) -> Expected:
    """Judge each reading of the world for itself; with `every`, VALUE is evaluated of all lines."""
    result = Expected()
    lines: dict[Reading, Counter[bytes]] = defaultdict(Counter)
    for text in world.lines:
        result.numbers["lines"] += 1
        line = decode_or_none(text)
        if line is None:
            result.numbers["corrupt"] += 1
        else:
            lines[world.find_reading(line)][text] += 1
    loose: dict[str, list[Reading]] = defaultdict(list)
    named = {reading for reading, texts in lines.items() if any(map(_is_of_release, texts))}
    others = {reading for reading in lines if reading[:2] in {each[:2] for each in named}} - named
    for reading, texts in sorted(lines.items()):
        result.releases_of[reading] = [] if reading in others else world.list_releases(reading[:2])
        _judge_reading(world, reading, texts, result, loose, every=every)
    result.runs = {kind: _join(found) for kind, found in loose.items()}
    return result


def _has(world: World, spans: Collection[EpochSpan], reading: Reading) -> bool:
    """Return whether the spans have the ID under that leader epoch; of a blind source they have every one."""
    blind = world.blind
    of_epoch = (s.offsets for s in spans if s.offsets.source in blind or s.leader_epoch == reading[2])
    return holds(of_epoch, reading[:2])


def _is_of_release(text: bytes) -> bool:
    line = decode_or_none(text)
    return line is not None and line.contract.startswith("R")


def _find_kind(world: World, reading: Reading, releases: Collection[int]) -> str:
    each = reading[:2]
    is_spare = holds(world.spare, each)
    has_landed = any(_has(world, spans, reading) for spans, _ in world.landings) or bool(releases)
    if has_landed and not is_spare:
        return LANDED
    if any(span.leader_epoch == reading[2] and holds([span.offsets], each) for span in world.beside):
        return EXTRA
    if holds(world.accounted, each):
        return SPARE if is_spare else STRAY
    return EXTRA if holds(world.own, each) else FOREIGN


def _judge_reading(
    world: World,
    reading: Reading,
    texts: Counter[bytes],
    result: Expected,
    loose: dict[str, list[Reading]],
    *,
    every: bool,
) -> None:
    kind = _find_kind(world, reading, result.releases_of[reading])
    contract = world.find_contract(reading[:2])
    decoded = {text: line for text in texts if (line := decode_or_none(text)) is not None}
    left: list[tuple[Content, int, bool]] = []
    for text, line in decoded.items():
        is_unknown = kind == EXTRA and line.contract not in CONTRACTS
        alike = [other for name, other in decoded.items() if name != text and _is_alike(other, line, contract)]
        is_doubtful = kind != FOREIGN and not is_unknown and (line.contract != contract or bool(alike))
        is_asked = every and kind != FOREIGN and not is_unknown
        by_value = evaluate(line, contract) if is_doubtful or is_asked else line.event_ms
        if line.event_ms is None or not is_inside(line) or by_value != line.event_ms:
            result.numbers["misplaced"] += texts[text]
            continue
        if is_unknown:
            result.unknown.add(line.contract)
        left.append((hash_content(line.record), line.event_ms, is_doubtful or line.columns is None))
        result.numbers["counting" if kind in COUNTING else kind] += texts[text]
    if left:
        _count(world, reading, kind, left, result, loose)


def is_inside(line: Line) -> bool:
    return line.event_ms is not None and START <= line.event_ms < END


def _is_alike(other: Line, line: Line, contract: str) -> bool:
    return other.contract == contract and other.record == line.record and is_inside(other)


def _count(
    world: World,
    reading: Reading,
    kind: str,
    left: Collection[tuple[Content, int, bool]],
    result: Expected,
    loose: dict[str, list[Reading]],
) -> None:
    is_clashing = kind in COUNTING and len({content for content, *_ in left}) > 1
    if is_clashing or kind in (EXTRA, STRAY):
        loose[CLASHING if is_clashing else kind].append(reading)
    if kind not in COUNTING:
        return
    each, (content, _, by_value) = reading[:2], min(left)
    digest = Digest(*content)
    result.numbers["repeated"] += (each, content) in result.counted
    result.counted.setdefault((each, content), Counted(digest, by_value, reading[2]))
    if kind == EXTRA:
        return
    released = result.releases_of[reading]
    for number in released:
        _add(result.releases, (number, each[0]), digest)
    for number, (spans, _) in enumerate(world.landings):
        if _has(world, spans, reading):
            _add(result.within if released else result.landings, (number, each[0]), digest)


def _add(sums: dict[tuple[int, KafkaPartition], Digest], key: tuple[int, KafkaPartition], digest: Digest) -> None:
    sums[key] = sums.get(key, EMPTY) + digest


def _join(found: list[Reading]) -> list[EpochSpan]:
    runs: list[EpochSpan] = []
    for source, offset, epoch in sorted(found, key=lambda each: (each[0], each[2], each[1])):
        start, last = offset, runs[-1] if runs else EpochSpan(OffsetRange(source, 0, 0), NO_EPOCH - 1)
        if (last.offsets.source, last.offsets.end, last.leader_epoch) == (source, offset, epoch):
            start = runs.pop().offsets.start
        runs.append(EpochSpan(OffsetRange(source, start, offset + 1), epoch))
    return runs
