"""Windows with every kind of damage: what their files hold, and what ledger and persons say of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from random import Random

from onceover.lines.line_format import MAX_EPOCH, Line, encode
from onceover.model.log_history import NO_EPOCH, EpochSpan
from onceover.model.offsets import LARGEST_END, KafkaPartition, OffsetRange, intersect
from onceover.model.record import Record

START, END = 120_000, 180_000
UNKNOWN = "V9-ffffffffffffffff"
CONTRACTS = ("V1-00c0ffee00c0ffee", "V2-0123456789abcdef", "R1-00c0ffee00c0ffee")
OWN = [KafkaPartition(generation, p) for generation in ("00c0ffee", "ffffffff") for p in (0, 99_999)]
STRANGERS = [KafkaPartition("00000000", 0), KafkaPartition("00c0ffee", 1)]
EPOCHS = (NO_EPOCH, 0, 7, MAX_EPOCH)
Id = tuple[KafkaPartition, int]
Reading = tuple[KafkaPartition, int, int]


@dataclass
class World:
    """A window's file, and what the ledger says of it: ranges as lists, nothing cut or sorted. Landings and releases
    cover `spare` IDs, too; a landing is exact or not."""

    lines: list[bytes]
    landings: list[tuple[list[EpochSpan], bool]]
    releases: list[list[OffsetRange]]
    accounted: list[OffsetRange]
    own: list[OffsetRange]
    beside: list[EpochSpan]
    spare: list[OffsetRange]
    cutovers: list[OffsetRange]  # from version 1 to 2

    def find_reading(self, line: Line) -> Reading:
        """Return the ID with the epoch by which it is judged: NO_EPOCH where any landing of its source has none."""
        source, epoch = line.record.source, line.leader_epoch
        return source, line.record.offset, NO_EPOCH if epoch is None or source in self.blind else epoch

    @cached_property
    def blind(self) -> set[KafkaPartition]:
        return {span.offsets.source for spans, _ in self.landings for span in spans if span.leader_epoch is None}

    def find_contract(self, each: Id) -> str:
        if holds(self.released(), each):
            return CONTRACTS[2]
        return CONTRACTS[0] if holds(self.cutovers, each) else CONTRACTS[1]

    def list_releases(self, each: Id) -> list[int]:
        return [number for number, ranges in enumerate(self.releases) if holds(ranges, each)]

    def released(self) -> list[OffsetRange]:
        return [piece for ranges in self.releases for piece in ranges]


def holds(ranges: Iterable[OffsetRange], each: Id) -> bool:
    return any(r.source == each[0] and r.start <= each[1] < r.end for r in ranges)


def evaluate(line: Line, contract: str) -> int | None:
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

    def read(ranges: Iterable[OffsetRange]) -> list[EpochSpan]:
        return [span for each in ranges for span in _cut_at_epoch(random, each, known)]

    known = random.choice([0.9, 1.0, 1.0])  # share of ranges whose epochs are known
    landings = [(read(cut(s) for s in random.sample(OWN, 3)), False) for _ in range(random.randint(0, 7))]
    for _ in range(random.randint(0, 2)):
        landings.append((read(_scatter(random, cut_some(3))), True))
    free = _scatter(random, cut_some(2))
    releases = [free[number::3] for number in range(3)]
    pool = [_make_line(random, ids) for _ in range(max(1, lines // 2))]
    landed = [span.offsets for spans, _ in landings for span in spans] + [r for ranges in releases for r in ranges]
    accounted = [*landed, *cut_some(3)]
    texts = [encode(line) for line in pool]
    texts = [_damage(random, text) if random.random() < 0.03 else text for text in texts]
    written = [*texts, *random.choices(texts, k=max(0, lines - len(texts)))]
    random.shuffle(written)
    return World(
        written, landings, releases,
        accounted=accounted,
        own=[OffsetRange(s, random.choice([0, 0, ids // 3]), LARGEST_END) for s in OWN],
        beside=[EpochSpan(r, random.choice(EPOCHS)) for r in intersect(accounted, cut_some(4))],
        spare=list(intersect(accounted, cut_some(2))),
        cutovers=[OffsetRange(s, 0, random.randint(0, ids)) for s in OWN[:2]],
    )  # fmt: skip


def _cut_at_epoch(random: Random, whole: OffsetRange, known: float) -> Iterable[EpochSpan]:
    """Yield the range under one leader epoch, an unknown one, or two."""
    if random.random() >= known:
        yield EpochSpan(whole, None)
        return
    at = random.choice([whole.start, random.randint(whole.start, whole.end)])
    for start, end in ((whole.start, at), (at, whole.end)):
        yield EpochSpan(OffsetRange(whole.source, start, end), random.choice(EPOCHS))


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


def _make_line(random: Random, ids: int) -> Line:
    source = random.choice(STRANGERS if random.random() < 0.03 else OWN)
    offset = random.randrange(ids) + (LARGEST_END - ids if random.random() < 0.1 else 0)
    epoch = random.choice(EPOCHS)
    held = epoch if random.random() < 0.9 else 0  # the record of another epoch is there again, or two are under one
    seed = Random(f"{source}{offset} {held}")
    times = [seed.choice([START, START + 1, END - 1]) for _ in CONTRACTS]
    if seed.random() < 0.9:
        times = [times[0]] * 3
    if seed.random() < 0.02:
        times[seed.randrange(3)] = seed.choice([END, START - 1, 0])
    record = Record(source, offset, 1, seed.choice([None, b"\\\t"]), (), b",".join(b"%d" % t for t in times))
    contract = random.choice(CONTRACTS) if random.random() < 0.05 else CONTRACTS[seed.choice([0, 1, 1, 2])]
    event_ms: int | None = times[CONTRACTS.index(contract)]
    leader_epoch = None if epoch == NO_EPOCH else epoch
    if random.random() < 0.01:
        contract = UNKNOWN
    if random.random() < 0.03:
        event_ms = random.choice([START, END - 1, END, START - 1, 0, None])
    if event_ms is None:
        return Line(record, None, contract, (b"why",), leader_epoch)
    columns: tuple[bytes | None, ...] | None = (seed.choice([b"k", b"\\E", None]),)
    if random.random() < 0.03:
        columns = random.choice([None, (b"other",), (b"k", b"k")])
    return Line(record, event_ms, contract, columns, leader_epoch)


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
