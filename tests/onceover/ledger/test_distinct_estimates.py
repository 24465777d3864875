"""Estimates of distinct values in the real ledger's tables: near the truth, merged, and for several rows together."""

from __future__ import annotations

import math
import random
import re
import uuid
from collections.abc import Iterator

import numpy as np
import pytest
from bench.large_ledger import drop_pipeline, pipeline
from tests.onceover.ledger.noon_rows import BATCH, NOON, insert_noon

from onceover.ledger.catalog import RegisteredPipeline, register_pipeline
from onceover.ledger.database import Connection
from onceover.model.contract import Column, Columns, DerivedColumn
from onceover.model.measures import (
    DISTINCT,
    SKETCH_BYTES,
    SKETCH_COMPONENT_BITS,
    SKETCH_COMPONENTS,
    SKETCH_TYPE,
    Derived,
)

pytestmark = pytest.mark.stack
ESTIMATE = "SELECT aggregates.estimate_distinct(('x' || %s)::bit varying) AS n"


@pytest.fixture
def users(connection: Connection) -> Iterator[RegisteredPipeline]:
    """A pipeline with an estimate of users by country."""
    derived = DerivedColumn("bigint", Derived("users", DISTINCT))
    columns = Columns((Column("country", "text"),), (Column("users_sketch", SKETCH_TYPE, "bit_or"),), (derived,))
    registered = register_pipeline(connection, pipeline(f"d{uuid.uuid4().hex[:10]}"), columns)
    insert_noon(connection, registered)
    yield registered
    drop_pipeline(connection, registered)


def sketch(values: int, seed: int) -> bytes:
    """Return the sketch of so many values with random hashes."""
    random_ = np.random.default_rng(seed)
    shares = [2.0 ** -(min(n, SKETCH_COMPONENTS - 2) + 1) for n in range(SKETCH_COMPONENTS)]
    components = np.zeros((SKETCH_COMPONENTS, SKETCH_COMPONENT_BITS), bool)
    for bits, count in zip(components, random_.multinomial(values, shares), strict=True):
        bits[random_.integers(0, SKETCH_COMPONENT_BITS, min(count, 40 * SKETCH_COMPONENT_BITS))] = True
    return np.packbits(components, bitorder="little").tobytes()


def place_values(values: range) -> bytes:
    """Return the sketch of these values, each with a hash of its own."""
    found = np.zeros(SKETCH_BYTES, np.uint8)
    for value in values:
        draw = random.Random(value)
        component = min(SKETCH_COMPONENTS - 1, int(-math.log2(1 - draw.random())))
        place = component * SKETCH_COMPONENT_BITS + draw.randrange(SKETCH_COMPONENT_BITS)
        found[place >> 3] |= 1 << (place & 7)
    return found.tobytes()


@pytest.mark.parametrize("values", [10_000, 1_000_000, 10**9, 4 * 10**9])
def test_estimate_is_near_the_truth(connection: Connection, values: int) -> None:
    errors = []
    for seed in range(100):
        row = connection.execute(ESTIMATE, [sketch(values, seed).hex()]).fetchone()
        assert row is not None
        errors.append(row["n"] / values - 1)
    spread = math.sqrt(sum(error**2 for error in errors) / len(errors))
    assert 0.03 < spread < 0.064, "0.8 / sqrt(256) is 0.05"
    assert abs(sum(errors)) / len(errors) < 0.018 + 3 * spread / math.sqrt(len(errors)), "a simulation's bias is 1.8 %"


def test_few_values_are_counted_nearly_exactly(connection: Connection) -> None:
    for values, off in ((0, 0), (1, 0), (2, 0), (10, 0), (100, 8), (500, 50)):
        row = connection.execute(ESTIMATE, [place_values(range(values)).hex()]).fetchone()
        assert row is not None
        assert abs(row["n"] - values) <= off


def test_full_sketch_has_an_estimate(connection: Connection) -> None:
    row = connection.execute(ESTIMATE, ["ff" * SKETCH_BYTES]).fetchone()
    assert row is not None
    assert row["n"] > 10**10


def set_bits(places: range) -> bytes:
    return np.packbits(np.isin(np.arange(SKETCH_BYTES * 8), places), bitorder="little").tobytes()


def increment(connection: Connection, registered: RegisteredPipeline, **values: range) -> None:
    """Add values whose bits differ."""
    rows = ["\t".join([NOON.isoformat(), key, f"x{set_bits(each).hex()}"]) for key, each in values.items()]
    registered.table.stage(connection, BATCH, rows)
    registered.table.increment(connection, BATCH)


def read_users(connection: Connection, registered: RegisteredPipeline) -> dict[str, int]:
    rows = connection.execute(f"SELECT country, users FROM aggregates.{registered.name}").fetchall()
    return {row["country"]: row["users"] for row in rows}


def test_value_that_is_added_twice_counts_once(connection: Connection, users: RegisteredPipeline) -> None:
    increment(connection, users, NO=range(20), SE=range(5))
    increment(connection, users, NO=range(10, 30))
    assert read_users(connection, users) == {"NO": 32, "SE": 5}
    proved = users.table.fingerprint(connection, NOON)
    increment(connection, users, NO=range(30), SE=range(5))
    assert users.table.fingerprint(connection, NOON) == proved
    increment(connection, users, SE=range(6))
    assert users.table.fingerprint(connection, NOON) != proved


def test_other_bits_of_one_estimate_are_told_apart(connection: Connection, users: RegisteredPipeline) -> None:
    increment(connection, users, NO=range(20))
    other = "\t".join([NOON.isoformat(), "NO", f"x{set_bits(range(1, 21)).hex()}"])
    users.table.stage(connection, BATCH, [other])
    count, shown = users.table.compare(connection, BATCH, [NOON], 9)[NOON]
    assert count == 2
    assert re.sub(r"[0-9a-f]{8}", "HASH", " ".join(shown)) == "- (NO,HASH,21) + (NO,HASH,21)"
    assert shown[0].removeprefix("-") != shown[1].removeprefix("+")


def test_sketches_of_rows_are_one_sketch(connection: Connection, users: RegisteredPipeline) -> None:
    increment(connection, users, NO=range(20), SE=range(10, 30))
    together = f"SELECT aggregates.estimate_distinct(bit_or(users_sketch)) AS n FROM aggregates.{users.name}"
    assert connection.execute(together).fetchone() == {"n": 32}
