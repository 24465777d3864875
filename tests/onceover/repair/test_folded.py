"""Windows folded by tasks from files on the real HDFS are what today's query rebuilds from the same lines."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from uuid import UUID

import pytest
from pyspark.sql import SparkSession
from tests.onceover.repair.folded_windows import (
    FIVE,
    SOURCE,
    STRANGER,
    Writer,
    claim,
    compare,
    list_contested,
    list_rows,
    make_record,
    start_of,
    whole,
)
from tests.onceover.spark.contracts import NOON, make_contract, read_payments

from onceover.config.endpoints import address
from onceover.lines.contract_names import name_contracts
from onceover.lines.reference import Line, encode
from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.contract import Contracts, Cutovers, Measure
from onceover.model.digest import EMPTY
from onceover.model.own_offsets import OwnOffsets
from onceover.model.record import Record
from onceover.model.window import from_ms
from onceover.repair.folded import FoldedRebuild, FrozenText
from onceover.repair.proof import prove
from onceover.repair.rebuild import Rebuild
from onceover.spark import line_splits, window_folder

pytestmark = [pytest.mark.stack, pytest.mark.rare, pytest.mark.usefixtures("interpreted")]


def test_damaged_windows_are_rebuilt_as_by_todays_query(
    spark: SparkSession, folder: Callable[[str, bytes], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = replace(read_payments(tmp_path), horizon_ms=None)
    contracts, writer = Contracts((contract,)), Writer(spark, contract)
    plain = {n: [(make_record(offset, NOON + n * FIVE + offset), NOON + n * FIVE + offset)
                 for offset in range(100 * n, 100 * n + 60)] for n in range(4)}  # fmt: skip
    loose = {
        0: [
            (make_record(380, NOON), NOON),
            (make_record(7, NOON, cents=5), NOON),
            (make_record(8, NOON + 9), NOON + 9),
        ],
        1: [(make_record(o, NOON + FIVE), NOON + FIVE) for o in (500, 501, 503, 700, 901)],
        2: [(make_record(o, NOON + 2 * FIVE), NOON + 2 * FIVE) for o in (501, 502, 600, 900)]
        + [
            (make_record(600, NOON + 2 * FIVE, cents=1), NOON + 2 * FIVE),
            (make_record(1, NOON + 2 * FIVE, STRANGER), NOON + 2 * FIVE),
        ],
        3: [(make_record(1, NOON + FIVE), NOON + FIVE)],
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
        claim(0, whole(0, 40), whole(20, 60)), claim(1, whole(100, 160)), claim(2, whole(200, 255)),
        claim(3, whole(300, 360)), claim(4),
    ]  # fmt: skip
    accounted = [whole(0, 400)]
    held, own = [whole(700, 701)], OwnOffsets((whole(0, 900),), (whole(900, 10_000),))
    beside = [whole(5, 10), whole(150, 151), whole(380, 381)]
    old_files, new_files = {}, {}
    for n, text in texts.items():
        (tmp_path / f"{n}.log").write_bytes(text)
        if text:
            shown = spark.read.text(str(tmp_path / f"{n}.log")).select("_metadata.file_path").first()
            assert shown
            old_files[start_of(n)] = shown.file_path
        # What was appended after the freeze is not read.
        new_files[start_of(n)] = FrozenText(folder(f"{n}.log", text + b"appended since\n"), len(text))
    new_files[start_of(5)] = FrozenText(new_files[start_of(1)].path + ".gone", 100)
    new_files[start_of(6)] = FrozenText(folder("6.log", b"short\n"), 100)
    more = [claim(5, whole(500, 501)), claim(6, whole(600, 601))]
    with closing(Rebuild(spark, contracts, claimed, accounted, old_files)) as old:
        before, unlanded = old.collect(), old.collect_unlanded(held, own)
        assert unlanded[1]
        contested, found_beside = list_contested(old.add_contested_ids(before)), old.collect_beside(beside)
        # Of the first window, which has a conflict, today's query counts both contents.
        rows = list_rows(old.aggregate(), NOON)
    for largest, split in ((window_folder.LARGE_BYTES, line_splits.SPLIT_BYTES), (0, 5_000)):
        monkeypatch.setattr(window_folder, "LARGE_BYTES", largest)
        monkeypatch.setattr(line_splits, "SPLIT_BYTES", split)
        windows = [*claimed, *more]
        with closing(FoldedRebuild(spark, address("webhdfs"), contracts, windows, accounted, new_files)) as new:
            after = new.collect()
            assert after.keys() == before.keys()
            for start in before:
                compare(before[start], after[start])
            lengths = {start_of(n): len(text) for n, text in texts.items()}
            assert {start: window.frozen_length for start, window in after.items()} == lengths
            reasons = [prove(c, after[c.window_start]).reasons for c in claimed]
            assert [any("raw holds" in reason for reason in of) for of in reasons] == [True, True, True, True, False]
            assert new.failures.keys() == {start_of(5), start_of(6)}
            assert new_files[start_of(5)].path in new.failures[start_of(5)]
            assert "6.log ends before byte 100" in new.failures[start_of(6)]
            assert list_rows(new.aggregate(), NOON) == rows
            found, is_whole = new.collect_unlanded(held, own)
            assert is_whole
            assert found == unlanded[0]
            assert {start: len(each.orphans) for start, each in found.items()} == {start_of(1): 2, start_of(2): 1}
            assert list_contested(new.add_contested_ids(after)) == contested
            assert new.collect_beside(beside) == found_beside
            records = new.select_records([start_of(0), start_of(2)]).orderBy("window_ms", "offset").collect()
    assert [row.offset for row in records] == [*range(60), *range(200, 255)]
    by_offset = {record.offset: (record, event_ms) for n in (0, 2) for record, event_ms in plain[n]}
    for row in (row for row in records if row.offset not in (7, 8)):  # those have several contents
        record, event_ms = by_offset[row.offset]
        assert (row.generation, row.kafka_partition, row.event_ms) == (SOURCE.generation, 3, event_ms)
        assert (row.key, row.headers, row.value) == (record.key, b"", record.value)


FIRST = make_contract(schema="at BIGINT, n INT", event_time="value.at", measures=(Measure("n", "sum", "value.n"),))
SECOND = replace(FIRST, measures=(Measure("least", "min", "value.n"), Measure("n", "sum", "value.n * 100")))


def test_records_of_another_contract_count_by_their_value(
    spark: SparkSession, folder: Callable[[str, bytes], str]
) -> None:
    contracts = Contracts((FIRST, SECOND), Cutovers(2, {SOURCE: {2: 10}}))
    one, two, _, _ = (name.decode() for name in name_contracts(contracts))
    hour, other = timedelta(hours=1), "V9-ffffffffffffffff"
    files, claimed = {}, []
    for n in range(5):
        first = NOON + n * 3_600_000

        def line(offset: int, contract: str, *columns: bytes | None, at: int = first, late: int = 0) -> bytes:
            record = Record(SOURCE, offset, NOON, None, (), b'{"at":%d,"n":%d}' % (at + offset, offset))
            return encode(Line(record, at + offset + late, contract, columns or None))

        plain = [line(o, one, b"%d" % o) for o in range(10)]
        plain += [line(o, two, b"%d" % o, b"%d" % (100 * o)) for o in range(10, 15)]
        by_value = [line(o, one, b"%d" % o) for o in range(15, 20)]
        lines = [
            [*plain, *by_value, line(3, two, b"3", b"300"), line(6, two, b"6", b"600", late=7), plain[9][:-1]],
            [*plain, *by_value, line(5, one, b"500")],  # differs in its column alone
            [*plain[:4], line(4, one), *plain[5:], *by_value],  # its columns were left out
            [*plain, line(15, other, b"1")],
            plain,
        ][n]
        start = datetime.fromtimestamp(first / 1000, UTC)
        data = b"\n".join(lines) + b"\n"
        files[start] = FrozenText(folder(f"{n}.log", data), len(data))
        landing = ClaimedLanding(n, ((whole(0, 20), EMPTY),))
        claimed.append(ClaimedWindow(1, start, start + hour, UUID(int=1), 1, (landing,), None))
    starts = list(files)
    with closing(FoldedRebuild(spark, address("webhdfs"), contracts, claimed, [whole(0, 20)], files)) as new:
        found, rows = new.collect(), new.aggregate()
        assert rows is not None
        measures = {from_ms(row.window_ms): (row.n, row.least) for row in rows.collect()}
    assert new.failures.keys() == {starts[3]}
    assert other in new.failures[starts[3]]
    full = (sum(range(10)) + 100 * sum(range(10, 20)), 10)
    assert measures == {**dict.fromkeys(starts[:3], full), starts[4]: (sum(range(10)) + 100 * sum(range(10, 15)), 10)}
    numbers = [(w.digest.records, w.corrupt_lines, w.misplaced_lines, w.duplicates, w.conflicts + w.misdated)
               for _, w in sorted(found.items())]  # fmt: skip
    assert numbers == [(20, 1, 1, 1, 0), (20, 0, 0, 1, 0), (20, 0, 0, 0, 0), (15, 0, 0, 0, 0)]
