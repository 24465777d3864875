"""Measures of a TOML that are kept as others: averages, and values by event time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.onceover.config.small_pipeline import SMALLEST, mistakes, written

from onceover.config.pipeline_file import read_pipeline
from onceover.model.contract import Contract
from onceover.model.measures import Derived, Measure


def add_measures(measures: str) -> str:
    text = SMALLEST.replace('{ count = "*" } }', f'{{ count = "*" }}, {measures} }}')
    return text.replace("[contract]", '[contract]\non_null = "skip"')


def test_averages_and_values_by_time_are_stored_as_parts(tmp_path: Path) -> None:
    text = add_measures('mean = { avg = "value.x", scale = 2 }, last = { max_by = "value.y" }')

    contract = read_pipeline(written(tmp_path, text)).contract

    assert contract.derived == (Derived("mean", "avg", 2), Derived("last", "max_by"))
    assert contract.measures[1:] == (
        Measure("mean_sum", "sum", "value.x"),
        Measure("mean_count", "count", "value.x"),
        Measure("last_record", "max_by", "value.y"),
        Measure("mean_skipped", "skipped", "mean_sum"),
        Measure("last_skipped", "skipped", "last_record"),
    )
    assert Contract.from_definition(json.loads(json.dumps(contract.definition()))) == contract


@pytest.mark.parametrize("taken", ["mean_sum", "mean_count", "mean_skipped"])
def test_a_part_of_an_average_has_its_name_alone(tmp_path: Path, taken: str) -> None:
    text = add_measures(f'mean = {{ avg = "value.x" }}, {taken} = {{ count = "*" }}')

    assert mistakes(tmp_path, text) == [
        f"pipelines/orders.toml: contract.measures.{taken}: another measure keeps its parts or what it "
        f"skips as {taken}; rename that column"
    ]
