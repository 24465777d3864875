"""Quarantined lines that no landing accounts for, collected as runs: orphans and pending records."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession

from onceover.model.digest import HALVES, Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.own_offsets import OwnOffsets, find_own_offsets
from onceover.model.unlanded import Unlanded
from onceover.spark import unlanded
from onceover.spark.unlanded import collect_unlanded

pytestmark = pytest.mark.spark
COLUMNS = f"window_ms bigint, generation string, kafka_partition int, offset bigint, {' bigint, '.join(HALVES)} bigint"
KNOWN = ("V1-00c0ffee00c0ffee",)
SOURCE = KafkaPartition("0badcafe", 0)


def collect(
    spark: SparkSession,
    rows: Sequence[tuple[object, ...]],
    held: Sequence[OffsetRange],
    own: OwnOffsets,
    contracts: Sequence[str] = KNOWN,
) -> tuple[dict[int, Unlanded], bool]:
    """Collect these lines, which name these contracts in turn."""
    named = [(*row, contracts[n % len(contracts)]) for n, row in enumerate(rows)]
    return collect_unlanded(spark.createDataFrame(named, f"{COLUMNS}, contract string"), held, own, KNOWN)


def test_more_runs_than_can_be_collected_are_adopted_in_parts(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [(1, 0, 7), (1, 2, 7), (1, 4, 7), (2, 8, 7)]  # file, offset, content
    rows = [(window, SOURCE.generation, 0, offset, content, 0, 0, 0) for window, offset, content in lines]
    held, own = [OffsetRange(SOURCE, 8, 20)], find_own_offsets({SOURCE: 20}, (), ())
    found, is_whole = collect(spark, rows, held, own)
    assert is_whole
    assert found[1].orphans == tuple(OffsetRange(SOURCE, n, n + 1) for n in (0, 2, 4))
    assert found[2].pending == (OffsetRange(SOURCE, 8, 9),)
    monkeypatch.setattr(unlanded, "_MOST_RUNS", 2)
    some, is_whole = collect(spark, rows, held, own)
    assert (set(some), is_whole) == ({1}, False), "pending records wait until all orphans are adopted"
    (part,) = some[1].parts
    assert (len(some[1].orphans), part.digest) == (2, Digest(2, 14))


def test_quarantined_id_with_two_contents_is_an_orphan_once(spark: SparkSession) -> None:
    rows = [(1, SOURCE.generation, 0, 5, *digest) for digest in ((7, 1, 0, 0), (8, 0, 0, 0))]
    own = find_own_offsets({SOURCE: 20}, (), ())
    found, _ = collect(spark, rows, (), own)
    (part,) = found[1].parts
    assert part.digest == Digest(1, 7, 1), "of one of the contents, not a mixture"


def test_lines_of_a_log_never_read_are_foreign_not_orphans(spark: SparkSession) -> None:
    """One row for all of them in a window, so that they cannot crowd out the orphans of another."""
    other = "00c0ffee"
    lines = [(1, other, 0, 1), (1, other, 0, 3), (1, SOURCE.generation, 1, 5), (2, SOURCE.generation, 0, 6)]
    rows = [(*place, 7, 0, 0, 0) for place in lines]
    found, is_whole = collect(spark, rows, (), find_own_offsets({SOURCE: 9}, (), ()))
    assert (is_whole, found[1]) == (True, Unlanded(foreign=3))
    assert (found[2].orphans, found[2].foreign) == ((OffsetRange(SOURCE, 6, 7),), 0)


def test_line_beyond_every_end_of_the_log_is_no_orphan(spark: SparkSession) -> None:
    rows = [(1, SOURCE.generation, 0, offset, 7, 0, 0, 0) for offset in (19, 20, 10**15, 2**63 - 2)]
    log = [OffsetRange(SOURCE, 8, 10)]
    found, _ = collect(spark, rows, log, find_own_offsets({SOURCE: 20}, (), log))
    beyond = tuple(OffsetRange(SOURCE, n, n + 1) for n in (20, 10**15, 2**63 - 2))
    assert (found[1].pending, found[1].beyond) == ((), beyond)
    assert found[1].orphans == (OffsetRange(SOURCE, 19, 20),), "the ledger saw the log end after it, before it was cut"


def test_line_of_an_unknown_contract_is_no_orphan(spark: SparkSession) -> None:
    rows = [(1, SOURCE.generation, 0, offset, 7, 0, 0, 0) for offset in (4, 5, 5, 6, 19)]
    own, unknown = find_own_offsets({SOURCE: 20}, (), ()), "V2-0123456789abcdef"
    found, is_whole = collect(
        spark, rows, [OffsetRange(SOURCE, 19, 20)], own, [*KNOWN, *KNOWN, unknown, *KNOWN, unknown]
    )
    assert (is_whole, found[1].unknown) == (True, (unknown,))
    assert found[1].orphans == (OffsetRange(SOURCE, 4, 5), OffsetRange(SOURCE, 6, 7))
    assert found[1].pending == (OffsetRange(SOURCE, 19, 20),), "ingest reads it under the contract that it has"
