"""A record of 32 MiB, each byte of which raw escapes, goes all the way; a larger one is refused by its offset."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.lane import Lanes
from tests.integration.lane_fixtures import put_on_hbase

from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.largest]


@pytest.mark.parametrize("store", ["hdfs", pytest.param("hbase", marks=pytest.mark.largest)])
def test_record_of_32_mib_is_landed_repaired_compacted_verified(lanes: Lanes, stack: Stack, store: str) -> None:
    make = lanes if store == "hdfs" else put_on_hbase(lanes, stack)
    lane = make(topic_config={"max.message.bytes": str(40 << 20)})
    ran = subprocess.run(
        [sys.executable, "-m", "tests.integration.largest_record", lane.name, str(lane.toml)],
        env=os.environ | {"PYSPARK_SUBMIT_ARGS": "--master local[2] --driver-memory 2g pyspark-shell"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()[-3000:]
