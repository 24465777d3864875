"""Windows with every kind of damage: what their files hold, and what ledger, Kafka and persons say of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

import xxhash

from onceover.lines.reference import Line, encode, encode_content
from onceover.model.offsets import LARGEST_END, KafkaPartition, OffsetRange
from onceover.model.record import Record

START, END = 120_000, 180_000
UNKNOWN = "V9-ffffffffffffffff"
CONTRACTS = ("V1-00c0ffee00c0ffee", "V2-0123456789abcdef", "R1-00c0ffee00c0ffee")
OWN = [KafkaPartition(generation, p) for generation in ("00c0ffee", "ffffffff") for p in (0, 99_999)]
STRANGERS = [KafkaPartition("00000000", 0), KafkaPartition("00c0ffee", 1)]
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

    landings = [([cut(s) for s in random.sample(OWN, 3)], False) for _ in range(random.randint(0, 7))]
    for _ in range(random.randint(0, 2)):
        landings.append((_scatter(random, cut_some(3)), True))
    free = _scatter(random, cut_some(2))
    releases = [free[number::3] for number in range(3)]
    decisions = {}
    pool = [_make_line(random, ids) for _ in range(max(1, lines // 2))]
    for line in random.sample(pool, min(len(pool), random.choice([0, 0, 5, 100]))):
        record = line.record
        kept = f"{xxhash.xxh3_128_intdigest(encode_content(record)):032x}"
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
        return Line(record, None, contract, (b"why",))
    columns: tuple[bytes | None, ...] | None = (seed.choice([b"k", b"\\E", None]),)
    if random.random() < 0.03:
        columns = random.choice([None, (b"other",), (b"k", b"k")])
    return Line(record, event_ms, contract, columns)


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
