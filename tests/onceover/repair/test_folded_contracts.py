"""Windows with records of several contracts, rebuilt from files on the real HDFS: each record counts by its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from pyspark.sql import SparkSession
from tests.onceover.spark.contracts import NOON, make_contract

from onceover.config.endpoints import locate_hdfs
from onceover.lines.contract_names import name_contracts
from onceover.lines.line_format import Line, encode
from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.contract import Contract, Contracts, Cutovers
from onceover.model.digest import EMPTY
from onceover.model.log_history import NO_EPOCH, EpochSpan
from onceover.model.measures import Measure
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.record import Record
from onceover.model.release import Release
from onceover.model.window import to_ms
from onceover.raw.frozen_file import FrozenText
from onceover.repair.folded import FoldedRebuild

pytestmark = [pytest.mark.stack, pytest.mark.rare, pytest.mark.usefixtures("interpreted")]
SOURCE = KafkaPartition("0badcafe", 3)
START, HOUR = datetime.fromtimestamp(NOON / 1000, UTC), timedelta(hours=1)
FIRST = make_contract(schema="at BIGINT, n INT", event_time="value.at", measures=(Measure("n", "sum", "value.n"),))
SECOND = replace(
    FIRST,
    event_time="value.at + 1000",
    measures=(Measure("least", "min", "value.n"), Measure("n", "sum", "value.n * 100")),
)
Write = Callable[[str, bytes], str]
Rows = list[tuple[datetime | int | None, ...]]


def _whole(start: int, end: int) -> OffsetRange:
    return OffsetRange(SOURCE, start, end)


def _contracts(*versions: Contract) -> Contracts:
    """Cut over to version 2 at offset 10 and to version 3 at 15."""
    return Contracts(versions, Cutovers(len(versions), {SOURCE: {v: 5 * v for v in range(2, len(versions) + 1)}}))


def _line(
    contract: bytes, offset: int, event_ms: int, columns: tuple[bytes, ...] | None = None, at: int = NOON
) -> bytes:
    """Return a line; without columns, VALUE decides."""
    record = Record(SOURCE, offset, NOON, None, (), b'{"at":%d,"n":%d}' % (at + offset, offset))
    return encode(Line(record, event_ms, contract.decode(), columns))


def _claim(start: datetime, number: int, landed: OffsetRange, release: Release | None = None) -> ClaimedWindow:
    landing = ClaimedLanding(number, ((landed, EMPTY),), release)
    return ClaimedWindow(1, start, start + HOUR, UUID(int=1), 1, (landing,), None)


def _rebuild(
    spark: SparkSession,
    contracts: Contracts,
    claimed: Sequence[ClaimedWindow],
    files: Mapping[datetime, FrozenText],
    *,
    by_value: bool = False,
) -> tuple[dict[datetime, RebuiltWindow], Rows, dict[datetime, str]]:
    """Return the windows, their rows, and the failures."""
    claimed = [replace(claim, by_value=by_value) for claim in claimed]
    with closing(
        FoldedRebuild(spark, locate_hdfs(), contracts, claimed, [_whole(0, 40)], [_whole(0, 50)], files)
    ) as rebuild:
        found, rows = rebuild.collect(), rebuild.aggregate()
        return found, sorted(tuple(row) for row in rows.collect()), rebuild.failures


def _rebuild_one(
    spark: SparkSession, write: Write, versions: tuple[Contract, ...], given: Mapping[int, tuple[int, int]],
    landed: OffsetRange,
) -> tuple[RebuiltWindow, Rows]:  # fmt: skip
    """Rebuild the window at noon of lines with no columns; `given` are by offset the version that each line names, and
    its event time in ms after noon."""
    contracts = _contracts(*versions)
    names = name_contracts(contracts)
    lines = [_line(names[version - 1], offset, NOON + at) for offset, (version, at) in given.items()]
    data = b"\n".join([*lines, lines[0], b"torn", b""])
    text = FrozenText(write("1200.log", data), len(data))
    found, rows, failures = _rebuild(spark, contracts, [_claim(START, 1, landed)], {START: text})
    assert not failures
    return found[START], [row[1:] for row in rows]


def test_window_across_two_cutovers_counts_each_by_its_contract(spark: SparkSession, folder: Write) -> None:
    third = replace(SECOND, event_time="value.at + 2000", measures=(FIRST.measures[0], SECOND.measures[0]))
    given = {n: (1 + (n >= 10) + (n >= 15), n + 1000 * ((n >= 10) + (n >= 15))) for n in range(20)}
    found, rows = _rebuild_one(spark, folder, (FIRST, SECOND, third), given, _whole(0, 40))
    assert (found.lines, found.corrupt_lines, found.duplicates, found.digest.records) == (22, 1, 1, 20)
    assert (found.misplaced_lines, found.stray_lines, found.by_value) == (0, 0, 20)
    assert rows == [(sum(range(10)) + 100 * sum(range(10, 15)) + sum(range(15, 20)), 10)]


def test_window_before_the_cutover_has_no_new_measure(spark: SparkSession, folder: Write) -> None:
    given, landed = {n: (1, n) for n in range(10)}, _whole(0, 10)
    found, rows = _rebuild_one(spark, folder, (FIRST, SECOND), given, landed)
    assert (found.digest.records, rows) == (10, [(None, 45)])


def test_line_of_the_other_contract_is_misplaced_or_a_stray(spark: SparkSession, folder: Write) -> None:
    given = {**{n: (1, n) for n in range(10)}, 3: (2, 1003), 12: (2, 1012)}
    found, _ = _rebuild_one(spark, folder, (FIRST, SECOND), given, _whole(0, 10))
    assert (found.misplaced_lines, found.stray_lines, found.digest.records) == (1, 1, 9)


def test_line_of_a_release_that_never_landed_is_misplaced(spark: SparkSession, folder: Write) -> None:
    given = {**{n: (2, n + 1000) for n in range(10, 20)}, 3: (4, 1003), 4: (1, 4)}  # `R2`; both have the first contract
    found, _ = _rebuild_one(spark, folder, (FIRST, SECOND), given, _whole(10, 20))
    assert (found.misplaced_lines, found.stray_lines, found.digest.records) == (1, 1, 10)


def test_records_of_another_contract_count_by_their_value(spark: SparkSession, folder: Write) -> None:
    contracts, other = _contracts(FIRST, replace(SECOND, event_time="value.at")), b"V9-ffffffffffffffff"
    one, two, _, _ = name_contracts(contracts)
    files, claimed = {}, []
    for n in range(6):
        first = NOON + n * 3_600_000

        def line(offset: int, contract: bytes, *columns: bytes, at: int = first, late: int = 0) -> bytes:
            return _line(contract, offset, at + offset + late, columns or None, at)

        plain = [line(o, one, b"%d" % o) for o in range(10)]
        plain += [line(o, two, b"%d" % o, b"%d" % (100 * o)) for o in range(10, 15)]
        by_value = [line(o, one, b"%d" % o) for o in range(15, 20)]
        lines = [
            [*plain, *by_value, line(3, two, b"3", b"300"), line(6, two, b"6", b"600", late=7), plain[9][:-1]],
            [*plain, *by_value, line(5, one, b"500")],  # differs in its column alone
            [*plain[:4], line(4, one), *plain[5:], *by_value],  # its columns were left out
            [*plain, line(15, other, b"1")],  # landed, and of a contract that the ledger does not know
            plain,
            [*plain[:4], line(4, one, b"999"), *plain[5:]],  # as if ingest had evaluated it wrongly
        ][n]
        start, data = START + n * HOUR, b"\n".join(lines) + b"\n"
        files[start] = FrozenText(folder(f"{n}.log", data), len(data))
        claimed.append(_claim(start, 1, _whole(0, 20)))
    claimed.append(_claim(START + 6 * HOUR, 1, _whole(0, 20)))  # without a file
    starts = list(files)
    full, some = sum(range(10)) + 100 * sum(range(10, 20)), sum(range(10)) + 100 * sum(range(10, 15))
    for every, wrong in ((False, 995), (True, 0)):
        found, rows, failures = _rebuild(spark, contracts, claimed, files, by_value=every)
        assert not failures
        sums = {**dict.fromkeys(starts[:3], full), starts[3]: some + 1500, starts[4]: some, starts[5]: some + wrong}
        assert rows == [(to_ms(start), 10, n) for start, n in sums.items()]
        numbers = [(w.digest.records, w.corrupt_lines, w.misplaced_lines, w.duplicates, len(w.clashing))
                   for _, w in sorted(found.items())]  # fmt: skip
        assert numbers == [
            (20, 1, 1, 1, 0), (20, 0, 0, 1, 0), (20, 0, 0, 0, 0), (16, 0, 0, 0, 0), (15, 0, 0, 0, 0), (15, 0, 0, 0, 0),
            (0, 0, 0, 0, 0),
        ]  # fmt: skip
        of_value = [window.by_value for _, window in sorted(found.items())]
        assert of_value == ([20, 20, 20, 16, 15, 15, 0] if every else [20, 20, 20, 16, 0, 0, 0])


def test_extra_of_an_unknown_contract_is_named(spark: SparkSession, folder: Write) -> None:
    contracts, other = _contracts(FIRST), b"V2-ffffffffffffffff"
    (one, _) = name_contracts(contracts)
    lines = [_line(one, offset, NOON + offset) for offset in range(10)]
    lines += [_line(other, offset, NOON + 1000 + offset) for offset in (40, 41)]  # by VALUE another event time
    lines.append(_line(other, 42, NOON + 3_600_000))  # belongs to another window, as it says itself
    data = b"\n".join(lines) + b"\n"
    text = FrozenText(folder("1200.log", data), len(data))
    found = _rebuild(spark, contracts, [_claim(START, 1, _whole(0, 40))], {START: text})[0][START]
    assert (found.digest.records, found.extras, found.misplaced_lines) == (
        12,
        (EpochSpan(_whole(40, 42), NO_EPOCH),),
        1,
    )
    assert found.unknown == (other.decode(),)
