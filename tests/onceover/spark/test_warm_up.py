"""What a brief job's session does beside its start."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from onceover.spark import warm_up

pytestmark = pytest.mark.spark
QUERIED = """
import sys
import threading
import pyarrow as pa
from onceover.spark.session import build

spark = build("test", is_brief=True)
for thread in threading.enumerate():
    if thread.name == "warm-up":
        thread.join()

def look(batches):
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"loaded": ["onceover.lines.folded_window" in sys.modules]})

print(spark.range(0, 1, 1, 1).mapInArrow(look, "loaded boolean").collect()[0].loaded)
"""


def test_worker_that_starts_beside_serves_the_first_query() -> None:
    done = subprocess.run([sys.executable, "-c", QUERIED], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_functions_loaded_beside_are_in_this_spark(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    def work_here(work: Callable[[], object]) -> None:
        assert work() is not None

    monkeypatch.setattr(warm_up, "_begin", work_here)
    warm_up.load_functions()
