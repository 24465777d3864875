"""A failed query's windows are tried alone, unless no window is to blame."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.errors import PySparkException

from onceover.errors import DENIED, AccessDeniedError
from onceover.spark.failure import isolate_failures

SAID = f"{DENIED} by HDFS: user dave may not WRITE /raw, which is ingest:onceover:drwxr-xr-x; ask"
TRACEBACK = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "hdfs_store.py", line 65, in append
onceover.errors.{}

"""


def run_to(error: str) -> list[str]:
    def fail(windows: Sequence[int]) -> str:
        if 3 in windows:
            raise PySparkException(TRACEBACK.format(error))
        return f"{windows}"

    return list(isolate_failures([1, 2, 3], fail, lambda window, reason: f"{window}: {reason}"))


def test_failed_query_names_the_window_to_blame() -> None:
    assert run_to("TerminalError: gone") == ["[1]", "[2]", "3: onceover.errors.TerminalError: gone"]


def test_missing_right_of_a_task_blames_no_window() -> None:
    with pytest.raises(AccessDeniedError) as denied:
        run_to(f"AccessDeniedError: {SAID}")
    assert str(denied.value) == SAID
