"""What lines say of the version of the contract that read them, or released them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from onceover.lines.contract_names import name_contracts
from onceover.model.contract import Contract, Contracts
from onceover.recovery.scan import add_versions
from onceover.spark.session import choose_codegen

pytestmark = pytest.mark.spark


def test_lines_were_read_or_released_under_a_version_or_none(spark: SparkSession) -> None:
    contracts = Contracts(tuple(Contract("t", 5, "json", "", (), at, "", (), (), None, None) for at in ("a", "b")))
    one, two, _, released = (name.decode() for name in name_contracts(contracts))
    rows = [(name,) for name in (one, two, released, "V3-0123456789abcdef", "V2-0")]
    with choose_codegen(spark, 0):
        lines = spark.createDataFrame(rows, "contract string").transform(add_versions(contracts)).collect()
    found = {row.contract: (row.line_version, row.line_released, row.unknown) for row in lines}
    assert (found[one], found[two], found[released]) == ((1, None, None), (2, None, None), (None, 2, None))
    assert found["V2-0"] == (None, None, "V2-0")
    assert found["V3-0123456789abcdef"] == (None, None, "V3-0123456789abcdef")
