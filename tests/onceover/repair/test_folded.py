"""Windows folded by tasks from files on the real HDFS are what today's query rebuilds from the same lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from uuid import UUID

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.onceover.spark.contracts import NOON, read_payments

from onceover.config.endpoints import address
from onceover.lines.contract_names import name_contracts
from onceover.lines.reference import Line, encode
from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.contract import Contract, Contracts
from onceover.model.digest import EMPTY
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.own_offsets import OwnOffsets
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.record import Record
from onceover.repair.folded import FoldedRebuild, FrozenText
from onceover.repair.proof import prove
from onceover.repair.rebuild import Rebuild
from onceover.spark import shuffled_lines, window_folder
from onceover.spark.interpret import interpret
from onceover.spark.session import choose_codegen

pytestmark = [pytest.mark.stack, pytest.mark.rare]
SOURCE, STRANGER = KafkaPartition("0badcafe", 3), KafkaPartition("00000000", 3)
FIVE = 300_000
PAID = b'{"payment":{"at_ms":%d,"amount":"%d.10"},"country":%s,"note":%s,"cents":%d}'
COUNTRIES, NOTES = (b'"NO"', b"null", b'"S\\\\\\tE"', b'"\\u00e9"'), (b"null", b'"a\\nb"', b'"\\\\N"')


def _record(offset: int, event_ms: int, source: KafkaPartition = SOURCE, cents: int = 0) -> Record:
    value = PAID % (event_ms, offset % 2000, COUNTRIES[offset % 4], NOTES[offset % 3], cents)
    return Record(source, offset, NOON, (None, b"c1", b"c\t2")[offset % 3], (), value)


class Writer:
    """Writes records as ingest does, with columns by Spark."""

    def __init__(self, spark: SparkSession, contract: Contract) -> None:
        self._spark, self._contract = spark, contract
        (self._name, _) = name_contracts(Contracts((contract,)))

    def write(self, records: Sequence[tuple[Record, int]]) -> list[bytes]:
        rows = self._spark.createDataFrame(
            [(n, r.offset, r.kafka_timestamp, r.key, bytearray(), bytearray(r.value or b""))
             for n, (r, _) in enumerate(records)],
            "kafka_partition int, offset bigint, kafka_timestamp bigint, key binary, headers binary, value binary",
        ).transform(interpret(self._contract))  # fmt: skip
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


def _compare(old: RebuiltWindow, new: RebuiltWindow) -> None:
    names = ("lines", "corrupt_lines", "misplaced_lines", "unaccounted_lines", "stray_lines", "conflicts", "misdated",
             "rejected_lines", "duplicates", "strays")  # fmt: skip
    assert {n: getattr(new, n) for n in names} == {n: getattr(old, n) for n in names}
    by_range = (
        {(r.offsets, r.release_id, r.exact_id): r.digest.records if old.conflicts else r.digest for r in w.ranges}
        for w in (new, old)
    )
    found, expected = by_range
    assert found == expected


def _list_contested(windows: Mapping[datetime, RebuiltWindow]) -> dict[datetime, list[object]]:
    return {
        start: [(c.source, c.offset, sorted(c.contents)) for c in window.contested] for start, window in windows.items()
    }


@pytest.fixture(autouse=True)
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Interpret the queries of few lines, as a repair does, which takes a third of the time."""
    with choose_codegen(spark, 0):
        yield


def test_damaged_windows_are_rebuilt_as_by_todays_query(
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
    old_files, new_files = {}, {}
    for n, text in texts.items():
        (tmp_path / f"{n}.log").write_bytes(text)
        if text:
            shown = spark.read.text(str(tmp_path / f"{n}.log")).select("_metadata.file_path").first()
            assert shown
            old_files[_at(n)] = shown.file_path
        # What was appended after the freeze is not read.
        new_files[_at(n)] = FrozenText(folder(f"{n}.log", text + b"appended since\n"), len(text))
    new_files[_at(5)] = FrozenText(new_files[_at(1)].path + ".gone", 100)
    new_files[_at(6)] = FrozenText(folder("6.log", b"short\n"), 100)
    more = [_claim(5, _whole(500, 501)), _claim(6, _whole(600, 601))]
    with closing(Rebuild(spark, contracts, claimed, accounted, old_files)) as old:
        before, unlanded = old.collect(), old.collect_unlanded(held, own)
        assert unlanded[1]
        contested, found_beside = _list_contested(old.add_contested_ids(before)), old.collect_beside(beside)
        # Of the first window, which has a conflict, today's query counts both contents.
        rows = _list_rows(old.aggregate(), NOON)
    for largest, split in ((window_folder.LARGE_BYTES, shuffled_lines.SPLIT_BYTES), (0, 5_000)):
        monkeypatch.setattr(window_folder, "LARGE_BYTES", largest)
        monkeypatch.setattr(shuffled_lines, "SPLIT_BYTES", split)
        windows = [*claimed, *more]
        with closing(FoldedRebuild(spark, address("webhdfs"), contracts, windows, accounted, new_files)) as new:
            after = new.collect()
            assert after.keys() == before.keys()
            for start in before:
                _compare(before[start], after[start])
            lengths = {_at(n): len(text) for n, text in texts.items()}
            assert {start: window.frozen_length for start, window in after.items()} == lengths
            reasons = [prove(c, after[c.window_start]).reasons for c in claimed]
            assert [any("raw holds" in reason for reason in of) for of in reasons] == [True, True, True, True, False]
            assert new.failures.keys() == {_at(5), _at(6)}
            assert new_files[_at(5)].path in new.failures[_at(5)]
            assert "6.log ends before byte 100" in new.failures[_at(6)]
            assert _list_rows(new.aggregate(), NOON) == rows
            found, is_whole = new.collect_unlanded(held, own)
            assert is_whole
            assert found == unlanded[0]
            assert {start: len(each.orphans) for start, each in found.items()} == {_at(1): 2, _at(2): 1}
            assert _list_contested(new.add_contested_ids(after)) == contested
            assert new.collect_beside(beside) == found_beside
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
