"""A window with more extras than its certificate can name is counted, and refused."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest
from pyspark.sql import SparkSession
from tests.onceover.repair.folded_windows import FIVE, claim, make_dated, start_of, whole
from tests.onceover.spark.contracts import NOON, make_contract

from onceover.config.endpoints import locate_hdfs
from onceover.lines.contract_names import name_contracts
from onceover.lines.line_format import Line, encode
from onceover.model.contract import Contracts
from onceover.model.measures import Measure
from onceover.model.repair_failure import RepairFailure
from onceover.raw.frozen_file import FrozenText
from onceover.repair.folded import FoldedRebuild
from onceover.repair.proof import prove
from onceover.spark import window_folder

pytestmark = [pytest.mark.stack, pytest.mark.rare, pytest.mark.usefixtures("interpreted")]


def test_extras_that_a_certificate_cannot_name_are_refused(
    spark: SparkSession, folder: Callable[[str, bytes], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_folder, "MAX_RUNS", 0)  # a thousand of each window
    contract = make_contract(measures=(Measure("n", "count", "*"),))
    contracts = Contracts((contract,))
    name = name_contracts(contracts)[0].decode()
    files = {}
    for n, rows in ((0, 1500), (1, 700)):
        at = NOON + n * FIVE
        lines = [encode(Line(*make_dated(2 * i + n, at), name, (b"1",))) for i in range(rows)]
        text = b"\n".join(lines)
        files[start_of(n)] = FrozenText(folder(f"{n}.log", text), len(text))
    claimed = [claim(n) for n in range(2)]
    with closing(FoldedRebuild(spark, locate_hdfs(), contracts, claimed, (), [whole(0, 10_000)], files)) as new:
        many, few = (found for _, found in sorted(new.collect().items()))
    assert (many.digest.records, len(many.extras)) == (1500, 1000)
    assert prove(claimed[0], many).failures == {RepairFailure.TOO_MANY_EXTRAS}
    assert (few.digest.records, len(few.extras), prove(claimed[1], few).is_proved) == (700, 700, True)
