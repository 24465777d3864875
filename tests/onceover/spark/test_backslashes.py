"""The rule for backslashes that the pipeline reference gives: its two spellings are one regex."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.docs.pages import read

from onceover.config.mistakes import MistakesError
from onceover.config.pipeline_file import read_pipeline
from onceover.spark.contract_check import check_contract

from .contracts import interpret_values, make_keyed

pytestmark = pytest.mark.spark


def test_backslashes_of_the_pipeline_reference_are_right(spark: SparkSession, tmp_path: Path) -> None:
    section = read("docs/pipeline-reference.md").section("Backslashes in SQL")
    (block,) = re.findall(r"```toml\n(.*?)```", section, flags=re.DOTALL)
    (tmp_path / "log.toml").write_text(block)

    (row,) = interpret_values(spark, read_pipeline(tmp_path / "log.toml").contract, [b"server [80] [443]"])

    assert (row.k_port, row.k_port_in_double_quotes) == ("80", "80")


def test_one_backslash_too_few_names_the_key(spark: SparkSession) -> None:
    contract = make_keyed(r"regexp_extract(value, '\[(\\d+)\\]', 1)", format="text", schema="")

    with pytest.raises(MistakesError, match=r"contract\.keys\.it: Spark refuses the regex .* count its backslashes"):
        check_contract(spark, contract)
