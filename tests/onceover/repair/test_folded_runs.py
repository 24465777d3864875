"""Windows with more orphans than a fold gives at once are adopted in rounds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest
from onceover.model.own_offsets import OwnOffsets
from pyspark.sql import SparkSession
from tests.onceover.repair.folded_windows import FIVE, SOURCE, claim, make_record, start_of, whole
from tests.onceover.spark.contracts import NOON, make_contract

from onceover.config.endpoints import address
from onceover.lines.contract_names import name_contracts
from onceover.lines.reference import Line, encode
from onceover.model.contract import Contracts, Measure
from onceover.model.offsets import OffsetRange
from onceover.raw.frozen_file import FrozenText
from onceover.repair.folded import FoldedRebuild
from onceover.spark import window_folder

pytestmark = [pytest.mark.stack, pytest.mark.rare, pytest.mark.usefixtures("interpreted")]


def test_sparse_orphans_are_found_in_rounds(
    spark: SparkSession, folder: Callable[[str, bytes], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_folder, "MOST_RUNS", 0)  # a thousand of each window
    contract = make_contract(measures=(Measure("n", "count", "*"),))
    contracts = Contracts((contract,))
    name = name_contracts(contracts)[0].decode()
    files = {}
    for n, rows in ((0, 1500), (1, 700)):
        at = NOON + n * FIVE
        lines = [encode(Line(make_record(2 * i + n, at), at, name, (b"1",))) for i in range(rows)]
        text = b"\n".join(lines)
        files[start_of(n)] = FrozenText(folder(f"{n}.log", text), len(text))
    own, ended, adopted = OwnOffsets((whole(0, 10_000),), ()), [], list[OffsetRange]()
    for _ in range(2):
        claimed = [claim(n, *adopted) for n in range(2)]
        with closing(FoldedRebuild(spark, address("webhdfs"), contracts, claimed, (), files)) as new:
            rebuilt = new.collect()
            assert rebuilt[start_of(0)].unaccounted_lines == 1500 - len(adopted)
            found, is_whole = new.collect_unlanded([OffsetRange(SOURCE, 1, 2)], own)
        ended.append((is_whole, {start: len(each.orphans) for start, each in found.items()}))
        adopted += found[start_of(0)].orphans
    assert ended == [(False, {start_of(0): 1000, start_of(1): 699}), (True, {start_of(0): 500, start_of(1): 699})]
