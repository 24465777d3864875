"""A record of 32 MiB, each byte of which raw escapes, goes all the way; a larger one is refused by its offset."""

from __future__ import annotations

import os

import pytest
from tests.integration.lane import Lanes
from tests.integration.lane_fixtures import put_on
from tests.programs import run_python

from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.largest]


@pytest.mark.parametrize("store", ["hdfs", "hbase"])
def test_record_of_32_mib_is_landed_repaired_compacted_verified(lanes: Lanes, stack: Stack, store: str) -> None:
    lane = put_on(store, lanes, stack)(topic_config={"max.message.bytes": str(40 << 20)})
    environment = os.environ | {"PYSPARK_SUBMIT_ARGS": "--master local[2] --driver-memory 2g pyspark-shell"}
    run_python("-m", "tests.integration.largest_record", lane.name, str(lane.toml), environment=environment)
