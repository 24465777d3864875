"""A window of 2 GB is folded in the memory of a small executor."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from bench.window_text import write_large_window
from tests.onceover.repair.large_window import FoldTask

from onceover.config.endpoints import address, locate_hdfs
from onceover.model.digest import sum_digests
from onceover.raw.hdfs import connect_hdfs
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.rare, pytest.mark.largest]
MIB = 1024 + 384
APPENDS = 50  # of 40 MB


def test_window_of_2_gb_is_folded_in_a_small_executor(stack: Stack) -> None:
    client = connect_hdfs(address("webhdfs"))
    path = "/raw/large_window/1.log"
    try:
        written = write_large_window(client, path, APPENDS)
        assert written.bytes > 2 * 10**9
        ran = subprocess.run(
            [sys.executable, "-m", "tests.onceover.repair.large_window"],
            input=pickle.dumps(FoldTask(locate_hdfs(), written)),
            env=os.environ | {"PYSPARK_SUBMIT_ARGS": "--master local[2] --driver-memory 512m pyspark-shell"},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr.decode()[-3000:]
        found = json.loads(ran.stdout.splitlines()[-1])
    finally:
        client.delete("/raw/large_window", recursive=True)
    (claim,) = written.claimed
    whole = sum_digests(digest for landing in claim.landings for _, digest in landing.parts)
    assert (found["failures"], found["lines"]) == ([], written.lines)
    assert found["duplicates"] == written.lines - written.records
    assert tuple(found["digest"]) == whole.as_tuple()
    assert sum(row[1] for row in found["rows"]) == written.records
    assert sum(found["peaks"].values()) <= MIB, found["peaks"]
