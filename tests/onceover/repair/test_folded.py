"""Windows folded by tasks from files on the real HDFS hold what was written, whatever else is in the files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.onceover.repair.folded_windows import (
    EPOCH,
    FIVE,
    STRANGER,
    Writer,
    claim,
    list_rows,
    make_dated,
    start_of,
    whole,
)
from tests.onceover.spark.contracts import NOON, read_payments

from onceover.config.endpoints import locate_hdfs
from onceover.lines import disjoint_units
from onceover.lines.line_format import compute_digest, decode, encode
from onceover.model.contract import Contracts
from onceover.model.digest import Digest
from onceover.model.log_history import EpochSpan
from onceover.model.offsets import LARGEST_END
from onceover.model.record import Record
from onceover.raw.frozen_file import FrozenText
from onceover.repair.folded import FoldedRebuild
from onceover.repair.proof import prove

pytestmark = [pytest.mark.stack, pytest.mark.rare, pytest.mark.usefixtures("interpreted")]
NUMBERS = ("lines", "corrupt_lines", "misplaced_lines", "stray_lines", "foreign_lines", "duplicates")
BESIDE = EpochSpan(whole(105, 106), EPOCH + 1)
SPARE = [whole(150, 151), whole(256, 258)]


def _spans(*bounds: tuple[int, int]) -> tuple[EpochSpan, ...]:
    return tuple(EpochSpan(whole(*each), EPOCH) for each in bounds)


def _digest(offsets: Iterable[int], plain: Mapping[int, Record]) -> Digest:
    return compute_digest(plain[offset] for offset in offsets)


@pytest.mark.largest
def test_damaged_windows_are_rebuilt_as_they_landed(
    spark: SparkSession, folder: Callable[[str, bytes], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = replace(read_payments(tmp_path), horizon_ms=None)
    contracts, writer = Contracts((contract,)), Writer(spark, contract)
    one, two = NOON + FIVE, NOON + 2 * FIVE
    plain = {n: [make_dated(o, NOON + n * FIVE + o) for o in range(100 * n, 100 * n + 60)] for n in range(4)}
    loose = {
        0: [make_dated(380, NOON), make_dated(7, NOON, cents=5), make_dated(8, NOON + 9)],
        1: [make_dated(o, one) for o in (500, 501, 503)],
        2: [
            *(make_dated(o, two) for o in (501, 502, 600)),
            *(make_dated(600, two, cents=1), make_dated(1, two, STRANGER)),
        ],
        3: [make_dated(1, one)],
    }
    texts: dict[int, bytes] = {}
    again = make_dated(105, one + 7, cents=3)  # what the log held under 105 after a cut
    other, *written_first = writer.write([again, *(each for n in plain for each in (*plain[n], *loose[n]))])
    all_written = iter(written_first)
    for n in plain:
        written = list(islice(all_written, len(plain[n])))
        lines = [*written, *islice(all_written, len(loose[n])), *written[10:20]]
        torn = [written[5][:50], b"foreign\tline", b"", b"\xff" * 60]
        end = written[1] if n else written[1][:-3]
        texts[n] = b"\n".join([*lines[:3], *torn, *lines[3:], end])
    texts[1] += b"\n" + encode(replace(decode(other), leader_epoch=EPOCH + 1))
    texts[4] = b""
    claimed = [
        claim(0, whole(0, 40), whole(20, 60)), claim(1, whole(100, 160)), claim(2, whole(200, 255)),
        claim(3, whole(300, 360)), claim(4),
    ]  # fmt: skip
    accounted, own = [whole(0, 400)], [whole(0, LARGEST_END)]
    files = {}
    for n, text in texts.items():
        # What was appended after the freeze is not read.
        files[start_of(n)] = FrozenText(folder(f"{n}.log", text + b"appended since\n"), len(text))
    files[start_of(5)] = FrozenText(files[start_of(1)].path + ".gone", 100)
    files[start_of(6)] = FrozenText(folder("6.log", b"short\n"), 100)
    windows = [*claimed, claim(5, whole(500, 501)), claim(6, whole(600, 601))]
    of_plain = {record.offset: record for n in plain for record, _ in plain[n]}
    of_600 = (loose[2][2], loose[2][3])
    extras = {1: loose[1], 2: [*loose[2][:2], min(of_600, key=lambda each: compute_digest([each[0]]).as_tuple())]}
    counted = [each for n in (1, 2, 3) for each in plain[n] if each[0].offset not in range(255, 260)]
    counted += [*extras[1], *extras[2]]
    without = [again, *(each for each in counted if each[0].offset != 150)]
    rows, rows_without = (list_rows(writer.aggregate(records), NOON) for records in (counted, without))
    cache = spark._jsparkSession.sharedState().cacheManager()
    cached = cache.numCachedEntries()
    for unit_bytes in (disjoint_units.UNIT_BYTES, 5_000):
        monkeypatch.setattr(disjoint_units, "UNIT_BYTES", unit_bytes)
        with closing(FoldedRebuild(spark, locate_hdfs(), contracts, windows, accounted, own, files)) as new:
            found = new.collect()
            assert new.failures.keys() == {start_of(5), start_of(6)}
            assert files[start_of(5)].path in new.failures[start_of(5)]
            assert "6.log ends before byte 100" in new.failures[start_of(6)]
            assert {start: window.frozen_length for start, window in found.items()} == {
                start_of(n): len(text) for n, text in texts.items()
            }
            assert [tuple(getattr(found[start_of(n)], name) for name in NUMBERS) for n in texts] == [
                (77, 4, 0, 1, 0, 12), (78, 3, 0, 1, 0, 11), (79, 3, 0, 5, 1, 12), (75, 3, 1, 0, 0, 11),
                (0, 0, 0, 0, 0, 0),
            ]  # fmt: skip
            assert [found[start_of(n)].strays for n in texts] == [
                _spans((380, 381)), (BESIDE,), _spans((255, 260)), (), (),
            ]  # fmt: skip
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
            listed = _spans((500, 502), (503, 504)), _spans((501, 503))
            assert [found[start_of(n)].extras for n in texts] == [(), *listed, (), ()]
            assert [found[start_of(n)].clashing for n in texts] == [_spans((7, 9)), (), _spans((600, 601)), (), ()]
            both = start_of(1), start_of(2)
            less = new.look_again({start: [BESIDE] for start in both}, dict.fromkeys(both, SPARE))
            assert [(w.spare_lines, w.strays, w.extras, w.duplicates) for _, w in sorted(less.items())] == [
                (1, (), (*listed[0], BESIDE), 11), (2, _spans((255, 256), (258, 260)), listed[1], 12),
            ]  # fmt: skip
            assert less[start_of(2)].digest == found[start_of(2)].digest
            assert less[start_of(1)].digest + _digest([150], of_plain) == (
                found[start_of(1)].digest + compute_digest([again[0]])
            )
            assert list_rows(new.aggregate(), NOON) == rows_without
            selected = new.select_lines([start_of(0), start_of(1)]).orderBy("window_ms", "offset").collect()
        assert cache.numCachedEntries() == cached, "rows that were replaced are dropped with those that are kept"
    assert [row.offset for row in selected] == sorted(
        [*range(60), *range(100, 150), 105, *range(151, 160), 500, 501, 503]
    )
    by_offset = {record.offset: (record, event_ms) for n in (0, 1) for record, event_ms in (*loose[n], *plain[n])}
    for row in (row for row in selected if row.offset not in (7, 8)):  # those have several contents
        line = decode(bytes(row.line))
        assert (line.record, line.event_ms) == (again if line.leader_epoch != EPOCH else by_offset[row.offset])
