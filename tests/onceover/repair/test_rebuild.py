"""A repair's query says the same whether it is interpreted, as small ones are, or compiled, and by which contract."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock
from uuid import UUID

import pytest
from pyspark.sql import SparkSession
from tests.onceover.spark.contracts import NOON, make_contract, read_payments
from tests.raw_lines import date_record

from onceover.lines.reference import encode
from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.conflict import Decision
from onceover.model.contract import Contract, Contracts, Cutovers, Measure
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.record import Record
from onceover.model.release import Release
from onceover.repair.proof import prove
from onceover.repair.rebuild import Rebuild
from onceover.spark.session import COMPILED_FROM_BYTES, choose_codegen

pytestmark = pytest.mark.spark
SOURCE = KafkaPartition("0badcafe", 3)
WHOLE = OffsetRange(SOURCE, 0, 40)
START = datetime.fromtimestamp(NOON / 1000, UTC)


def test_rebuild_is_equal_interpreted_and_compiled(spark: SparkSession, tmp_path: Path) -> None:
    paid = b'{"payment":{"at_ms":%d,"amount":"%d.10"},"country":%s,"note":"\\u00e9\\t","cents":%d}'
    countries = (b'"NO"', b"null", b'"S\\\\E"')
    texts = [
        encode(
            date_record(
                Record(SOURCE, n, NOON + n, b"c%d" % (n % 2), (), paid % (NOON + n, n, countries[n % 3], n)), NOON + n
            )
        )
        for n in range(40)
    ]
    window_file = tmp_path / "1200.log"
    window_file.write_bytes(b"\n".join([*texts, *texts[5:15], texts[7][:50], b""]))  # a replay and a torn line
    landing = ClaimedLanding(1, ((WHOLE, Digest()),))
    claimed = ClaimedWindow(1, START, START + timedelta(minutes=5), UUID(int=1), 1, (landing,), None)
    contract = replace(read_payments(tmp_path), horizon_ms=None)

    shown = spark.read.text(str(window_file)).select("_metadata.file_path").first()
    assert shown

    def rebuilt() -> tuple[object, list[tuple[object, ...]]]:
        files = {START: shown.file_path}
        with closing(Rebuild(spark, Contracts((contract,)), [claimed], [WHOLE], files)) as rebuild:
            rows = rebuild.aggregate()
            assert rows is not None
            found = sorted(map(tuple, rows.collect()), key=str)
            plans.append(rows._jdf.queryExecution().executedPlan().toString())  # final once it has run
            return rebuild.collect()[START], found

    plans: list[str] = []
    with choose_codegen(spark, COMPILED_FROM_BYTES - 1):
        small = rebuilt()
    with choose_codegen(spark, COMPILED_FROM_BYTES):
        large = rebuilt()
    assert small == large
    assert ["*(1)" in plan for plan in plans] == [False, True], "they ran in the two ways"
    found, rows = small
    assert (found.lines, found.corrupt_lines, found.duplicates) == (51, 1, 10)  # type: ignore[attr-defined]
    assert found.digest != Digest()  # type: ignore[attr-defined]
    assert len(rows) == 6


def rebuild_under(
    spark: SparkSession, folder: Path, versions: tuple[Contract, ...], given: dict[int, int], landed: OffsetRange
) -> tuple[RebuiltWindow, list[tuple[int | None, ...]]]:
    """Raw's account of the window at noon, cut over to version 2 at offset 10 and to 3 at 15, and its aggregates;
    `given` are the event times of its lines, in ms after noon."""
    window_file = folder / "1200.log"
    lines = [
        encode(date_record(Record(SOURCE, n, NOON, None, (), b'{"at":%d,"n":%d}' % (NOON + n, n)), NOON + at))
        for n, at in given.items()
    ]
    window_file.write_bytes(b"\n".join([*lines, lines[0], b"torn", b""]))
    shown = spark.read.text(str(window_file)).select("_metadata.file_path").first()
    assert shown
    claimed = ClaimedWindow(
        1, START, START + timedelta(hours=1), UUID(int=1), 1, (ClaimedLanding(1, ((landed, Digest()),)),), None
    )
    contracts = Contracts(versions, Cutovers(len(versions), {SOURCE: {v: 5 * v for v in range(2, len(versions) + 1)}}))
    with closing(Rebuild(spark, contracts, [claimed], [WHOLE], {START: shown.file_path})) as rebuild:
        rows = rebuild.aggregate()
        assert rows is not None
        return rebuild.collect()[START], sorted(map(tuple, rows.drop("window_ms").collect()))


FIRST = make_contract(schema="at BIGINT, n INT", event_time="value.at", measures=(Measure("n", "sum", "value.n"),))
SECOND = replace(
    FIRST,
    event_time="value.at + 1000",
    measures=(Measure("least", "min", "value.n"), Measure("n", "sum", "value.n * 100")),
)


def test_window_across_two_cutovers_counts_each_by_its_contract(spark: SparkSession, tmp_path: Path) -> None:
    third = replace(SECOND, event_time="value.at + 2000", measures=(FIRST.measures[0], SECOND.measures[0]))
    times = {n: n + (n >= 10) * 1000 + (n >= 15) * 1000 for n in range(20)}
    found, rows = rebuild_under(spark, tmp_path, (FIRST, SECOND, third), times, WHOLE)
    assert (found.lines, found.corrupt_lines, found.duplicates, found.digest.records) == (22, 1, 1, 20)
    assert (found.misplaced_lines, found.stray_lines) == (0, 0)
    assert rows == [(sum(range(10)) + 100 * sum(range(10, 15)) + sum(range(15, 20)), 10)]


def test_window_before_the_cutover_has_no_new_measure(spark: SparkSession, tmp_path: Path) -> None:
    times, landed = {n: n for n in range(10)}, OffsetRange(SOURCE, 0, 10)
    before, rows = rebuild_under(spark, tmp_path, (FIRST,), times, landed)
    assert (before.digest.records, rows) == (10, [(45,)])
    assert rebuild_under(spark, tmp_path, (FIRST, SECOND), times, landed) == (before, [(None, 45)])


def test_line_of_the_other_contract_is_misplaced_or_a_stray(spark: SparkSession, tmp_path: Path) -> None:
    times = {**{n: n for n in range(10)}, 3: 1003, 12: 1012}
    found, _ = rebuild_under(spark, tmp_path, (FIRST, SECOND), times, OffsetRange(SOURCE, 0, 10))
    assert (found.misplaced_lines, found.stray_lines, found.digest.records) == (1, 1, 9)


def test_line_of_a_release_that_never_landed_is_misplaced(spark: SparkSession, tmp_path: Path) -> None:
    times = {**{n: n + 1000 for n in range(10, 20)}, 3: 1003, 4: 4}  # 3 and 4 have the first contract
    found, _ = rebuild_under(spark, tmp_path, (FIRST, SECOND), times, OffsetRange(SOURCE, 10, 20))
    assert (found.misplaced_lines, found.stray_lines, found.digest.records) == (1, 1, 10)


def test_planned_length_is_known_of_a_window_of_conflicts_only(spark: SparkSession, tmp_path: Path) -> None:
    files, claims, lengths = {}, [], {}
    for number in (0, 1):
        start, at = START + timedelta(hours=number), NOON + number * 3_600_000
        window_file = tmp_path / f"{number}.log"
        window_file.write_bytes(encode(date_record(Record(SOURCE, 7, NOON, None, (), b'{"at":%d}' % at), at)) + b"\n")
        shown = spark.read.text(str(window_file)).select("_metadata.file_path").first()
        assert shown
        files[start], lengths[start] = shown.file_path, window_file.stat().st_size
        landing = ClaimedLanding(number, ((WHOLE, Digest()),))
        claims.append(ClaimedWindow(1, start, start + timedelta(hours=1), UUID(int=1), 1, (landing,), None))
    with closing(Rebuild(spark, Contracts((FIRST,)), claims, [WHOLE], files)) as rebuild:
        rebuilt = rebuild.collect()
    assert {start: window.frozen_length for start, window in rebuilt.items()} == lengths
    assert [window.conflicts for window in rebuilt.values()] == [1, 1]


def test_option_set_by_spark_submit_stays() -> None:
    session = Mock()
    session.sparkContext.getConf.return_value.contains = {"spark.sql.codegen.wholeStage"}.__contains__
    with choose_codegen(session, 0):
        pass
    session.conf.set.assert_not_called()
    session.conf.unset.assert_not_called()


def test_session_option_is_restored_afterwards(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.codegen.wholeStage")
    with choose_codegen(spark, 0):
        assert spark.conf.get("spark.sql.codegen.wholeStage") == "false"
    assert spark.conf.get("spark.sql.codegen.wholeStage") == before


def test_released_content_of_an_id_decided_against_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    one, piece = START + timedelta(hours=1), OffsetRange(SOURCE, 7, 8)
    release = Release(90, 2, (piece,))
    files, claims = {}, []
    for start, n, shift in ((START, 7, 0), (one, 8, 1000)):  # read by the first contract; released by the second
        at = int(start.timestamp()) * 1000
        window_file = tmp_path / f"{n}.log"
        record = Record(SOURCE, 7, NOON, None, (), b'{"at":%d,"n":%d}' % (at, n))
        window_file.write_bytes(encode(date_record(record, at + shift)) + b"\n")
        shown = spark.read.text(str(window_file)).select("_metadata.file_path").first()
        assert shown
        files[start] = shown.file_path
        landing = ClaimedLanding(n, ((piece, Digest()),), release if start == one else None)
        claims.append(ClaimedWindow(1, start, start + timedelta(hours=1), UUID(int=1), 1, (landing,), None))
    contracts = Contracts((FIRST, SECOND), Cutovers(2, {SOURCE: {2: 100}}))

    def rebuild(*claimed: ClaimedWindow) -> tuple[dict[datetime, RebuiltWindow], list[tuple[int | None, ...]]]:
        held = {claim.window_start: files[claim.window_start] for claim in claimed}
        with closing(Rebuild(spark, contracts, claimed, [piece], held)) as rebuilding:
            rows = rebuilding.aggregate()
            assert rows is not None
            return rebuilding.collect(), [tuple(row) for row in rows.drop("window_ms").collect()]

    landed = []
    for claim in claims:
        rebuilt, _ = rebuild(claim)
        (held,) = rebuilt[claim.window_start].ranges
        parts = ((piece, held.digest),)
        landed.append(replace(claim, landings=(replace(claim.landings[0], parts=parts),)))
    first = landed[0].landings[0].parts[0][1].as_tuple()
    kept = Decision(SOURCE, 7, "".join(f"{half:08x}" for half in first[1:]))
    decided = [replace(claim, decisions=(kept,)) for claim in landed]
    rebuilt, rows = rebuild(*decided)
    verdicts = [prove(c, rebuilt[c.window_start]) for c in decided]
    assert [verdict.reasons for verdict in verdicts] == [(), ()]
    assert [rebuilt[claim.window_start].digest.records for claim in decided] == [1, 0]
    assert rows == [(None, 7)], "by the contract that the offset was read with"
