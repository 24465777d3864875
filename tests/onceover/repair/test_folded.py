"""Windows folded by tasks from files on the real HDFS hold what was written, whatever else is in the files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path

import pytest
from onceover.model.own_offsets import OwnOffsets
from onceover.model.unlanded import Unlanded
from pyspark.sql import SparkSession
from tests.onceover.repair.folded_windows import (
    FIVE,
    SOURCE,
    STRANGER,
    Writer,
    claim,
    list_rows,
    make_record,
    start_of,
    whole,
)
from tests.onceover.spark.contracts import NOON, read_payments
from xxhash import xxh3_128_hexdigest

from onceover.config.endpoints import address
from onceover.lines import units
from onceover.lines.reference import compute_digest, decode, encode_content
from onceover.model.batch import LandingPart
from onceover.model.contract import Contracts
from onceover.model.digest import Digest
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.record import Record
from onceover.raw.frozen_file import FrozenText
from onceover.repair.folded import FoldedRebuild
from onceover.repair.proof import prove

pytestmark = [pytest.mark.stack, pytest.mark.rare, pytest.mark.usefixtures("interpreted")]
NUMBERS = ("lines", "corrupt_lines", "misplaced_lines", "unaccounted_lines", "stray_lines", "conflicts", "misdated",
           "duplicates")  # fmt: skip
ORPHANS = {1: (500, 503), 2: (502,)}


def _digest(offsets: Iterable[int], plain: Mapping[int, Record]) -> Digest:
    return compute_digest(plain[offset] for offset in offsets)


def _list_contested(windows: Mapping[datetime, RebuiltWindow]) -> dict[datetime, list[tuple[int, object]]]:
    return {
        start: [(each.offset, sorted(each.contents)) for each in window.contested] for start, window in windows.items()
    }


def _name_contents(*records: tuple[Record, int]) -> tuple[int, object]:
    return records[0][0].offset, sorted((xxh3_128_hexdigest(encode_content(r)), ms) for r, ms in records)


@pytest.mark.largest
def test_damaged_windows_are_rebuilt_as_they_landed(
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
    files = {}
    for n, text in texts.items():
        # What was appended after the freeze is not read.
        files[start_of(n)] = FrozenText(folder(f"{n}.log", text + b"appended since\n"), len(text))
    files[start_of(5)] = FrozenText(files[start_of(1)].path + ".gone", 100)
    files[start_of(6)] = FrozenText(folder("6.log", b"short\n"), 100)
    windows = [*claimed, claim(5, whole(500, 501)), claim(6, whole(600, 601))]
    of_plain = {record.offset: record for n in plain for record, _ in plain[n]}
    of_loose = {(n, record.offset): record for n in loose for record, _ in reversed(loose[n])}
    counted = {n: [each for each in plain[n] if each[0].offset not in range(255, 260)] for n in (1, 2, 3)}
    rows = list_rows(writer.aggregate([each for n in counted for each in counted[n]]), NOON)
    for unit_bytes in (units.UNIT_BYTES, 5_000):
        monkeypatch.setattr(units, "UNIT_BYTES", unit_bytes)
        with closing(FoldedRebuild(spark, address("webhdfs"), contracts, windows, accounted, files)) as new:
            found = new.collect()
            assert new.failures.keys() == {start_of(5), start_of(6)}
            assert files[start_of(5)].path in new.failures[start_of(5)]
            assert "6.log ends before byte 100" in new.failures[start_of(6)]
            assert {start: window.frozen_length for start, window in found.items()} == {
                start_of(n): len(text) for n, text in texts.items()
            }
            assert [tuple(getattr(found[start_of(n)], name) for name in NUMBERS) for n in texts] == [
                (77, 4, 0, 0, 1, 2, 2, 12), (79, 3, 0, 5, 0, 0, 0, 11), (80, 3, 0, 6, 5, 0, 0, 11),
                (75, 3, 1, 0, 0, 0, 0, 11), (0, 0, 0, 0, 0, 0, 0, 0),
            ]  # fmt: skip
            assert [found[start_of(n)].strays for n in texts] == [(whole(380, 381),), (), (whole(255, 260),), (), ()]
            held_by = {n: {r.offsets: r.digest for r in found[start_of(n)].ranges} for n in texts}
            assert {piece: digest.records for piece, digest in held_by.pop(0).items()} == dict.fromkeys(
                [whole(0, 20), whole(20, 40), whole(40, 60)], 20
            )
            pieces = {1: whole(100, 160), 2: whole(200, 255), 3: whole(300, 360)}
            of_landings = {n: {p: _digest(range(p.start, p.end), of_plain)} for n, p in pieces.items()}
            assert held_by == {**of_landings, 4: {}}
            reasons = [prove(c, found[c.window_start]).reasons for c in claimed]
            assert [any("raw holds" in reason for reason in of) for of in reasons] == [True, True, True, True, False]
            assert list_rows(new.aggregate(), NOON) == rows
            unlanded, is_whole = new.collect_unlanded(held, own)
            assert is_whole
            parts = [LandingPart(SOURCE, compute_digest(of_loose[n, o] for o in each)) for n, each in ORPHANS.items()]
            assert unlanded == {
                start_of(1): Unlanded((whole(700, 701),), (whole(500, 501), whole(503, 504)), (parts[0],), 1,
                                 (whole(901, 902),)),
                start_of(2): Unlanded((), (whole(502, 503),), (parts[1],), 2, (whole(900, 901),), 1),
            }  # fmt: skip
            twice = _name_contents(loose[1][1], loose[2][0])
            assert _list_contested(new.add_contested_ids(found)) == {
                start_of(0): [_name_contents(plain[0][o], loose[0][n]) for o, n in ((7, 1), (8, 2))],
                start_of(1): [twice],
                start_of(2): [twice, _name_contents(loose[2][2], loose[2][4])],
                start_of(3): [],
                start_of(4): [],
            }
            of_first = compute_digest([*(of_plain[offset] for offset in (5, 6, 9)), of_loose[0, 380]])
            assert new.collect_beside(beside) == {
                start_of(0): Unlanded(orphans=(whole(5, 7), whole(9, 10), whole(380, 381)),
                                 parts=(LandingPart(SOURCE, of_first),), conflicts=2),
                start_of(1): Unlanded(orphans=(whole(150, 151),),
                                      parts=(LandingPart(SOURCE, _digest([150], of_plain)),)),
            }  # fmt: skip
            selected = new.select_lines([start_of(0), start_of(2)]).orderBy("window_ms", "offset").collect()
    assert [row.offset for row in selected] == [*range(60), *range(200, 255)]
    by_offset = {record.offset: (record, event_ms) for n in (0, 2) for record, event_ms in plain[n]}
    for row in (row for row in selected if row.offset not in (7, 8)):  # those have several contents
        line = decode(bytes(row.line))
        assert (line.record, line.event_ms) == by_offset[row.offset]
