"""Windows folded by tasks from files on the real HDFS hold what was written, whatever else is in the files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from uuid import UUID

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.onceover.spark.contracts import NOON, read_payments
from xxhash import xxh3_128_hexdigest

from onceover.config.endpoints import address
from onceover.lines.contract_names import name_contracts
from onceover.lines.reference import Line, compute_digest, encode, encode_content
from onceover.model.batch import LandingPart
from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.contract import Contract, Contracts
from onceover.model.digest import EMPTY, Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.own_offsets import OwnOffsets
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.record import Record
from onceover.model.unlanded import Unlanded
from onceover.repair.folded import FoldedRebuild, FrozenText
from onceover.repair.proof import prove
from onceover.spark import shuffled_lines, window_folder
from onceover.spark.aggregate import aggregate
from onceover.spark.interpret import interpret
from onceover.spark.session import choose_codegen

pytestmark = [pytest.mark.stack, pytest.mark.rare]
SOURCE, STRANGER = KafkaPartition("0badcafe", 3), KafkaPartition("00000000", 3)
FIVE = 300_000
PAID = b'{"payment":{"at_ms":%d,"amount":"%d.10"},"country":%s,"note":%s,"cents":%d}'
NUMBERS = ("lines", "corrupt_lines", "misplaced_lines", "unaccounted_lines", "stray_lines", "conflicts", "misdated",
           "duplicates")  # fmt: skip
ORPHANS = {1: (500, 503), 2: (502,)}
COUNTRIES, NOTES = (b'"NO"', b"null", b'"S\\\\\\tE"', b'"\\u00e9"'), (b"null", b'"a\\nb"', b'"\\\\N"')


def _record(offset: int, event_ms: int, source: KafkaPartition = SOURCE, cents: int = 0) -> Record:
    value = PAID % (event_ms, offset % 2000, COUNTRIES[offset % 4], NOTES[offset % 3], cents)
    return Record(source, offset, NOON, (None, b"c1", b"c\t2")[offset % 3], (), value)


class Writer:
    """Writes records as ingest does, with columns by Spark."""

    def __init__(self, spark: SparkSession, contract: Contract) -> None:
        self._spark, self._contract = spark, contract
        (self._name, _) = name_contracts(Contracts((contract,)))

    def interpret(self, records: Sequence[tuple[Record, int]]) -> DataFrame:
        return self._spark.createDataFrame(
            [(n, r.offset, r.kafka_timestamp, r.key, bytearray(), bytearray(r.value or b""))
             for n, (r, _) in enumerate(records)],
            "kafka_partition int, offset bigint, kafka_timestamp bigint, key binary, headers binary, value binary",
        ).transform(interpret(self._contract))  # fmt: skip

    def write(self, records: Sequence[tuple[Record, int]]) -> list[bytes]:
        rows = self.interpret(records)
        names = [name for name in rows.columns if name.startswith(("k_", "m_"))]
        columns = {
            row[0]: row[1:]
            for row in rows.selectExpr("kafka_partition", *(f"cast({n} AS string)" for n in names)).collect()
        }
        return [
            encode(Line(record, event_ms, self._name.decode(),
                        tuple(None if c is None else c.encode() for c in columns[n])))
            for n, (record, event_ms) in enumerate(records)
        ]  # fmt: skip


def _at(n: int) -> datetime:
    return datetime.fromtimestamp((NOON + n * FIVE) / 1000, UTC)


def _claim(n: int, *landed: OffsetRange) -> ClaimedWindow:
    landings = tuple(ClaimedLanding(10 * n + i, ((piece, EMPTY),)) for i, piece in enumerate(landed))
    return ClaimedWindow(1, _at(n), _at(n) + timedelta(minutes=5), UUID(int=1), 1, landings, None)


def _whole(start: int, end: int) -> OffsetRange:
    return OffsetRange(SOURCE, start, end)


def _digest(offsets: Iterable[int], plain: Mapping[int, Record]) -> Digest:
    return compute_digest(plain[offset] for offset in offsets)


def _list_contested(windows: Mapping[datetime, RebuiltWindow]) -> dict[datetime, list[tuple[int, object]]]:
    return {
        start: [(each.offset, sorted(each.contents)) for each in window.contested] for start, window in windows.items()
    }


def _name_contents(*records: tuple[Record, int]) -> tuple[int, object]:
    return records[0][0].offset, sorted((xxh3_128_hexdigest(encode_content(r)), ms) for r, ms in records)


@pytest.fixture(autouse=True)
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Interpret the queries of few lines, as a repair does, which takes a third of the time."""
    with choose_codegen(spark, 0):
        yield


def test_damaged_windows_are_rebuilt_as_they_landed(
    spark: SparkSession, folder: Callable[[str, bytes], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = replace(read_payments(tmp_path), horizon_ms=None)
    contracts, writer = Contracts((contract,)), Writer(spark, contract)
    plain = {n: [(_record(offset, NOON + n * FIVE + offset), NOON + n * FIVE + offset)
                 for offset in range(100 * n, 100 * n + 60)] for n in range(4)}  # fmt: skip
    loose = {
        0: [(_record(380, NOON), NOON), (_record(7, NOON, cents=5), NOON), (_record(8, NOON + 9), NOON + 9)],
        1: [(_record(o, NOON + FIVE), NOON + FIVE) for o in (500, 501, 503, 700, 901)],
        2: [(_record(o, NOON + 2 * FIVE), NOON + 2 * FIVE) for o in (501, 502, 600, 900)]
        + [
            (_record(600, NOON + 2 * FIVE, cents=1), NOON + 2 * FIVE),
            (_record(1, NOON + 2 * FIVE, STRANGER), NOON + 2 * FIVE),
        ],
        3: [(_record(1, NOON + FIVE), NOON + FIVE)],
    }
    texts: dict[int, bytes] = {}
    all_written = iter(writer.write([each for n in plain for each in (*plain[n], *loose[n])]))
    for n in plain:
        written = list(islice(all_written, len(plain[n])))
        lines = [*written, *islice(all_written, len(loose[n])), *written[10:20]]
        torn = [written[5][:50], b"foreign\tline", b"", b"\xff" * 60]
        end = written[1] if n else written[1][:-3]
        texts[n] = b"\n".join([*lines[:3], *torn, *lines[3:], end])
    texts[4] = b""
    claimed = [
        _claim(0, _whole(0, 40), _whole(20, 60)), _claim(1, _whole(100, 160)), _claim(2, _whole(200, 255)),
        _claim(3, _whole(300, 360)), _claim(4),
    ]  # fmt: skip
    accounted = [_whole(0, 400)]
    held, own = [_whole(700, 701)], OwnOffsets((_whole(0, 900),), (_whole(900, 10_000),))
    beside = [_whole(5, 10), _whole(150, 151), _whole(380, 381)]
    files = {}
    for n, text in texts.items():
        # What was appended after the freeze is not read.
        files[_at(n)] = FrozenText(folder(f"{n}.log", text + b"appended since\n"), len(text))
    files[_at(5)] = FrozenText(files[_at(1)].path + ".gone", 100)
    files[_at(6)] = FrozenText(folder("6.log", b"short\n"), 100)
    windows = [*claimed, _claim(5, _whole(500, 501)), _claim(6, _whole(600, 601))]
    of_plain = {record.offset: record for n in plain for record, _ in plain[n]}
    of_loose = {(n, record.offset): record for n in loose for record, _ in reversed(loose[n])}
    counted = {n: [each for each in plain[n] if each[0].offset not in range(255, 260)] for n in (1, 2, 3)}
    rows = _list_rows(
        writer.interpret([each for n in counted for each in counted[n]]).transform(aggregate(contract)), NOON
    )
    for largest, split in ((window_folder.LARGE_BYTES, shuffled_lines.SPLIT_BYTES), (0, 5_000)):
        monkeypatch.setattr(window_folder, "LARGE_BYTES", largest)
        monkeypatch.setattr(shuffled_lines, "SPLIT_BYTES", split)
        with closing(FoldedRebuild(spark, address("webhdfs"), contracts, windows, accounted, files)) as new:
            found = new.collect()
            assert new.failures.keys() == {_at(5), _at(6)}
            assert files[_at(5)].path in new.failures[_at(5)]
            assert "6.log ends before byte 100" in new.failures[_at(6)]
            assert {start: window.frozen_length for start, window in found.items()} == {
                _at(n): len(text) for n, text in texts.items()
            }
            assert [tuple(getattr(found[_at(n)], name) for name in NUMBERS) for n in texts] == [
                (77, 4, 0, 0, 1, 2, 2, 12), (79, 3, 0, 5, 0, 0, 0, 11), (80, 3, 0, 6, 5, 0, 0, 11),
                (75, 3, 1, 0, 0, 0, 0, 11), (0, 0, 0, 0, 0, 0, 0, 0),
            ]  # fmt: skip
            assert [found[_at(n)].strays for n in texts] == [(_whole(380, 381),), (), (_whole(255, 260),), (), ()]
            held_by = {n: {r.offsets: r.digest for r in found[_at(n)].ranges} for n in texts}
            assert {piece: digest.records for piece, digest in held_by.pop(0).items()} == dict.fromkeys(
                [_whole(0, 20), _whole(20, 40), _whole(40, 60)], 20
            )
            pieces = {1: _whole(100, 160), 2: _whole(200, 255), 3: _whole(300, 360)}
            of_landings = {n: {p: _digest(range(p.start, p.end), of_plain)} for n, p in pieces.items()}
            assert held_by == {**of_landings, 4: {}}
            reasons = [prove(c, found[c.window_start]).reasons for c in claimed]
            assert [any("raw holds" in reason for reason in of) for of in reasons] == [True, True, True, True, False]
            assert _list_rows(new.aggregate(), NOON) == rows
            unlanded, is_whole = new.collect_unlanded(held, own)
            assert is_whole
            parts = [LandingPart(SOURCE, compute_digest(of_loose[n, o] for o in each)) for n, each in ORPHANS.items()]
            assert unlanded == {
                _at(1): Unlanded((_whole(700, 701),), (_whole(500, 501), _whole(503, 504)), (parts[0],), 1,
                                 (_whole(901, 902),)),
                _at(2): Unlanded((), (_whole(502, 503),), (parts[1],), 2, (_whole(900, 901),), 1),
            }  # fmt: skip
            twice = _name_contents(loose[1][1], loose[2][0])
            assert _list_contested(new.add_contested_ids(found)) == {
                _at(0): [_name_contents(plain[0][o], loose[0][n]) for o, n in ((7, 1), (8, 2))],
                _at(1): [twice],
                _at(2): [twice, _name_contents(loose[2][2], loose[2][4])],
                _at(3): [],
                _at(4): [],
            }
            of_first = compute_digest([*(of_plain[offset] for offset in (5, 6, 9)), of_loose[0, 380]])
            assert new.collect_beside(beside) == {
                _at(0): Unlanded(orphans=(_whole(5, 7), _whole(9, 10), _whole(380, 381)),
                                 parts=(LandingPart(SOURCE, of_first),), conflicts=2),
                _at(1): Unlanded(orphans=(_whole(150, 151),), parts=(LandingPart(SOURCE, _digest([150], of_plain)),)),
            }  # fmt: skip
    records = new.select_records([_at(0), _at(2)]).orderBy("window_ms", "offset").collect()
    assert [row.offset for row in records] == [*range(60), *range(200, 255)]
    by_offset = {record.offset: (record, event_ms) for n in (0, 2) for record, event_ms in plain[n]}
    for row in (row for row in records if row.offset not in (7, 8)):  # those have several contents
        record, event_ms = by_offset[row.offset]
        assert (row.generation, row.kafka_partition, row.event_ms) == (SOURCE.generation, 3, event_ms)
        assert (row.key, row.headers, row.value) == (record.key, b"", record.value)


def _list_rows(aggregated: DataFrame | None, after_ms: int) -> tuple[list[str], list[tuple[object, ...]]]:
    """Return the columns' types, and the rows of windows that begin after that."""
    assert aggregated is not None
    rows = sorted(map(tuple, aggregated.where(f"window_ms > {after_ms}").collect()), key=str)
    assert len(rows) > 30
    return [f"{field.name} {field.dataType}" for field in aggregated.schema], rows
