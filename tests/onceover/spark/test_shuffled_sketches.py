"""A million sets of values, each with repeats, in a random order, cut at random into batches: the bytes of their sketch
are those of the distinct values. Values become places by the contract's SQL, and sketches by the kernel of ingest."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from onceover.lines.grouping import Grouping
from onceover.model.measures import DISTINCT, SKETCH_BYTES, SKETCH_COMPONENT_BITS

from .contracts import interpret_values, make_measured
from .test_measure_input import find_place

pytestmark = [pytest.mark.spark, pytest.mark.largest]
log = logging.getLogger(__name__)
RUNS, TOGETHER = 1_000_000, 5_000
KNOWN_VALUES, MOST_VALUES, MOST_BATCHES = 200_000, 200, 8
SHARES_OF_NULL = {0.02: 0.8, 0.5: 0.15, 1: 0.05}
RUN = ("run", pa.int64())
BATCHES = Grouping({"m": "bit_or"}, pa.schema([RUN, ("batch", pa.int64()), ("m", pa.binary())]))
JOINED = Grouping({"m": "bit_or"}, pa.schema([RUN, ("m", pa.binary())]))


def test_a_million_shuffles_give_the_sketch_of_the_values(spark: SparkSession) -> None:
    numbers = random.Random(1).sample(range(2**31), KNOWN_VALUES)
    rows = interpret_values(spark, make_measured(DISTINCT, "value.a"), [b'{"a":%d}' % number for number in numbers])
    given = np.array([row.m_it for row in rows], np.int32)
    expected = np.array([find_place(str(number)) for number in numbers], np.int32)
    runs = differences = 0
    for joined, sketches in compare(given, expected, np.random.default_rng(1)):
        runs += len(sketches)
        differences += sum(a != b for a, b in zip(joined, sketches, strict=True))
    log.info("%s runs, %s differences", f"{runs:,}", f"{differences:,}")
    assert (runs, differences) == (RUNS, 0)


def compare(
    given: np.ndarray, expected: np.ndarray, draw: np.random.Generator
) -> Iterator[tuple[list[bytes | None], list[bytes | None]]]:
    """Yield, of TOGETHER runs each, the sketches that the kernel joins, and those of the distinct values: None of none.
    `given` and `expected` are the places of the known values, by the product and by its documentation."""
    component = expected // SKETCH_COMPONENT_BITS
    weight = 1 / len(expected) + 1 / np.bincount(component)[component]  # else the late components are hardly drawn
    for _ in range(0, RUNS, TOGETHER):
        run = np.repeat(np.arange(TOGETHER), np.exp(draw.uniform(0, np.log(MOST_VALUES), TOGETHER)).astype(int))
        value = draw.choice(len(expected), len(run), p=weight / weight.sum())
        shares = draw.choice(list(SHARES_OF_NULL), TOGETHER, p=list(SHARES_OF_NULL.values()))
        is_null = draw.random(len(run)) < shares[run]

        order = draw.permutation(np.repeat(np.arange(len(run)), draw.geometric(0.5, len(run))))
        batch = draw.integers(draw.integers(1, MOST_BATCHES + 1, TOGETHER)[run[order]])
        places = pa.array(given[value[order]], mask=is_null[order])
        batches = BATCHES.group(pa.table({"run": run[order], "batch": batch, "m": places}))
        joined = JOINED.group(batches.take(pa.array(draw.permutation(len(batches))))).sort_by("run")

        bits = np.zeros((TOGETHER, SKETCH_BYTES * 8), bool)
        bits[run[~is_null], expected[value[~is_null]]] = True
        sketches = np.packbits(bits, axis=1, bitorder="little")
        yield joined.column("m").to_pylist(), [row.tobytes() if row.any() else None for row in sketches]
