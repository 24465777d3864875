"""Windows with every kind of damage, and the verdict on each ID for itself, in plain Python: the fold's reference."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random

import xxhash

from onceover.lines.reference import ContractLine, compute_digest, decode, encode
from onceover.model.digest import EMPTY, Digest
from onceover.model.line import CorruptLineError, Record
from onceover.model.offsets import LARGEST_END, KafkaPartition, OffsetRange

START, END = 120_000, 180_000
UNKNOWN = "V9-ffffffffffffffff"
CONTRACTS = ("V1-00c0ffee00c0ffee", "V2-0123456789abcdef", "R1-00c0ffee00c0ffee")
OWN = [KafkaPartition(generation, p) for generation in ("00c0ffee", "ffffffff") for p in (0, 99_999)]
STRANGERS = [KafkaPartition("00000000", 0), KafkaPartition("00c0ffee", 1)]
PENDING, BEYOND, FOREIGN, ORPHAN, UNSORTED = "pending", "beyond", "foreign", "orphan", "unsorted"
Id = tuple[KafkaPartition, int]


@dataclass
class World:
    """A window's file, and what the ledger, Kafka and persons say of it: ranges as lists, nothing cut or sorted."""

    lines: list[bytes]
    landings: list[tuple[list[OffsetRange], bool]]
    releases: list[list[OffsetRange]]
    decisions: dict[Id, str]
    accounted: list[OffsetRange] | None
    shared: list[OffsetRange]
    held: list[OffsetRange] | None
    known: list[OffsetRange] | None
    beyond: list[OffsetRange]
    cutovers: list[OffsetRange]  # from version 1 to 2

    def find_contract(self, each: Id) -> str:
        if holds(self.released(), each):
            return CONTRACTS[2]
        return CONTRACTS[0] if holds(self.cutovers, each) else CONTRACTS[1]

    def released(self) -> list[OffsetRange]:
        return [piece for ranges in self.releases for piece in ranges]


def holds(ranges: Iterable[OffsetRange], each: Id) -> bool:
    return any(r.source == each[0] and r.start <= each[1] < r.end for r in ranges)


def evaluate(line: ContractLine, contract: str) -> int | None:
    """Return the event time that the value gives under that contract, which reads a field of its own."""
    try:
        return int((line.record.value or b"").split(b",")[CONTRACTS.index(contract)])
    except (ValueError, IndexError):
        return None


def make_world(random: Random, ids: int, lines: int) -> World:
    """Return a world with that many offsets in each Kafka partition, at its start and at the largest ones."""

    def cut(source: KafkaPartition) -> OffsetRange:
        base = random.choice([0, 0, 0, LARGEST_END - ids])
        start, end = sorted((random.randint(0, ids), random.randint(0, ids)))
        return OffsetRange(source, base + start, base + end)

    def cut_some(most: int) -> list[OffsetRange]:
        return [cut(random.choice(OWN)) for _ in range(random.randint(0, most))]

    landings = [([cut(s) for s in random.sample(OWN, 3)], False) for _ in range(random.randint(0, 7))]
    for _ in range(random.randint(0, 2)):
        landings.append((_scatter(random, cut_some(3)), True))
    free = _scatter(random, cut_some(2))
    releases = [free[number::3] for number in range(3)]
    decisions = {}
    pool = [_make_line(random, ids) for _ in range(max(1, lines // 2))]
    for line in random.sample(pool, min(len(pool), random.choice([0, 0, 5, 100]))):
        record = line.record
        kept = f"{xxhash.xxh3_128_intdigest(encode_content_of(line)):032x}"
        decisions[record.source, record.offset] = random.choice([kept, kept, ""])
    landed = [r for ranges, _ in landings for r in ranges] + [r for ranges in releases for r in ranges]
    extra = cut_some(3)
    texts = [encode(line) for line in pool]
    texts = [_damage(random, text) if random.random() < 0.03 else text for text in texts]
    written = [*texts, *random.choices(texts, k=max(0, lines - len(texts)))]
    random.shuffle(written)
    return World(
        written, landings, releases, decisions,
        accounted=None if random.random() < 0.2 else [*landed, *extra],
        shared=cut_some(2),
        held=None if random.random() < 0.2 else cut_some(2),
        known=None if random.random() < 0.2 else [OffsetRange(s, 0, ids // 2) for s in OWN],
        beyond=[OffsetRange(s, ids // 2, LARGEST_END) for s in OWN],
        cutovers=[OffsetRange(s, 0, random.randint(0, ids)) for s in OWN[:2]],
    )  # fmt: skip


def encode_content_of(line: ContractLine) -> bytes:
    return b"\t".join(encode(line).split(b"\t")[:4])


def _scatter(random: Random, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    """Return some of the offsets of these ranges, each once, as ranges of one to three."""
    taken = {(r.source, n) for r in ranges for n in range(r.start, min(r.end, r.start + 80)) if random.random() < 0.4}
    found: list[OffsetRange] = []
    for source, offset in sorted(taken):
        if found and found[-1].source == source and found[-1].end == offset and len(found[-1]) < 3:
            found[-1] = OffsetRange(source, found[-1].start, offset + 1)
        else:
            found.append(OffsetRange(source, offset, offset + 1))
    random.shuffle(found)
    return found


def _make_line(random: Random, ids: int) -> ContractLine:
    source = random.choice(STRANGERS if random.random() < 0.03 else OWN)
    offset = random.randrange(ids) + (LARGEST_END - ids if random.random() < 0.1 else 0)
    seed = Random(f"{source}{offset}" + ("b" if random.random() < 0.02 else ""))
    times = [seed.choice([START, START + 1, END - 1]) for _ in CONTRACTS]
    if seed.random() < 0.9:
        times = [times[0]] * 3
    if seed.random() < 0.02:
        times[seed.randrange(3)] = seed.choice([END, START - 1, 0])
    record = Record(source, offset, 1, seed.choice([None, b"\\\t"]), (), b",".join(b"%d" % t for t in times))
    contract = random.choice(CONTRACTS) if random.random() < 0.05 else CONTRACTS[seed.choice([0, 1, 1, 2])]
    event_ms: int | None = times[CONTRACTS.index(contract)]
    if random.random() < 0.01:
        contract = UNKNOWN
    if random.random() < 0.03:
        event_ms = random.choice([START, END - 1, END, START - 1, 0, None])
    if event_ms is None:
        return ContractLine(record, None, contract, (b"why",))
    columns: tuple[bytes | None, ...] | None = (seed.choice([b"k", b"\\E", None]),)
    if random.random() < 0.03:
        columns = random.choice([None, (b"other",), (b"k", b"k")])
    return ContractLine(record, event_ms, contract, columns)


def _damage(random: Random, text: bytes) -> bytes:
    at = random.randrange(len(text))
    kind = random.randrange(5)
    if kind == 0:
        return text[: at + 1]
    if kind == 1:
        return text[:at] + bytes([text[at] ^ 1 << random.randrange(8)]).replace(b"\n", b"x") + text[at + 1 :]
    if kind == 2:
        return random.randbytes(random.randint(1, 99)).replace(b"\n", b"?")
    if kind == 3:
        return text + text
    return text.replace(b"\t", b" ")


@dataclass
class Expected:
    """The verdict on a world, in plain values."""

    numbers: Counter[str] = field(default_factory=Counter)
    unknown: set[str] = field(default_factory=set)
    counted: dict[Id, tuple[Digest, bool]] = field(default_factory=dict)  # and whether its columns come from VALUE
    landings: dict[tuple[int, KafkaPartition], Digest] = field(default_factory=dict)
    within: dict[tuple[int, KafkaPartition], Digest] = field(default_factory=dict)  # released, within a landing
    releases: dict[tuple[int, KafkaPartition], Digest] = field(default_factory=dict)
    runs: dict[str, list[tuple[OffsetRange, Digest]]] = field(default_factory=dict)
    contested: set[tuple[Id, str, int]] = field(default_factory=set)
    decided: set[tuple[Id, str, bool]] = field(default_factory=set)
    shared: set[tuple[Id, str, int]] = field(default_factory=set)


@cache
def _decode(text: bytes) -> ContractLine | None:
    try:
        return decode(text)
    except CorruptLineError:
        return None


@cache
def hash_content(record: Record) -> Digest:
    return compute_digest([record])


def name_content(record: Record) -> str:
    return "".join(f"{part:08x}" for part in hash_content(record).as_tuple()[1:])


def judge(world: World) -> Expected:
    """Judge each ID of the world for itself."""
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
        _judge_id(world, each, texts, result, loose)
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
    world: World, each: Id, texts: Counter[bytes], result: Expected, loose: dict[str, dict[Id, Digest]]
) -> None:
    kind, contract = _find_kind(world, each), world.find_contract(each)
    decoded = {text: line for text in texts if (line := _decode(text)) is not None}
    left: list[tuple[str, int, bool, Record]] = []
    for text, line in decoded.items():
        content = name_content(line.record)
        if kind != FOREIGN and line.contract not in CONTRACTS:
            result.unknown.add(line.contract)
        alike = [other for name, other in decoded.items() if name != text and _is_alike(other, line, contract)]
        is_doubtful = kind != FOREIGN and (line.contract != contract or bool(alike))
        by_value = evaluate(line, contract) if is_doubtful else line.event_ms
        if line.event_ms is None or not START <= line.event_ms < END or by_value != line.event_ms:
            result.numbers["misplaced"] += texts[text]
        elif world.decisions.get(each, content) != content:
            result.numbers["rejected"] += texts[text]
            result.decided.add((each, content, False))
        else:
            left.append((content, line.event_ms, not is_doubtful and line.columns is not None, line.record))
            number = {"counts": "counting", "stray": "stray"}.get(kind, "unlanded")
            result.numbers[number] += texts[text]
    if left:
        _count_id(world, each, kind, left, result, loose)


def _is_alike(other: ContractLine, line: ContractLine, contract: str) -> bool:
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
    for number, (ranges, _) in enumerate(world.landings):
        if holds(ranges, each):
            _add(result.within if released else result.landings, (number, each[0]), digest)


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
