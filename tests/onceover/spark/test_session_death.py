"""A JVM that dies while Spark starts, and an application that its cluster ends: one line that says so, and the exit
code of a failure that may pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_JOB = "from onceover.entrypoint import run; from onceover.spark.session import build; run('job', lambda _: build('x'))"

_NAMES_A_MASTER = ("PYSPARK_SUBMIT_ARGS", "MASTER", "PYSPARK_GATEWAY_PORT", "HADOOP_CONF_DIR", "YARN_CONF_DIR")


@pytest.mark.parametrize("after", ["", "sleep 0.5; "])
def test_jvm_killed_at_its_start_is_one_line_and_75(tmp_path: Path, after: str) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{after}kill -KILL $$\n")
    java.chmod(0o755)
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}

    done = subprocess.run(
        [sys.executable, "-c", _JOB], capture_output=True, text=True, env=environment, timeout=120, check=False
    )

    assert done.returncode == 75, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("job: Spark's JVM died while it started; ")


_ENDED = """
from onceover.entrypoint import run
from onceover.spark.failure import isolate_failures
from onceover.spark.session import open_session

def repair(_):
    with open_session("repair") as spark:
        spark.sparkContext._jsc.sc().stop()  # as the thread does that watches an application on YARN
        list(isolate_failures(["a", "b"], lambda windows: DOES, lambda window, reason: print(window, "is to blame")))

run("job", repair)
"""


@pytest.mark.parametrize("does", ["spark.conf.set('spark.sql.x', '1')", "spark.range(3).count()"])
def test_application_ended_by_its_cluster_blames_no_window(does: str) -> None:
    given = {**os.environ, "PYSPARK_SUBMIT_ARGS": "--master local[1] pyspark-shell"}

    done = subprocess.run(
        [sys.executable, "-c", _ENDED.replace("DOES", does)],
        capture_output=True, text=True, env=given, timeout=120, check=False
    )  # fmt: skip

    assert done.returncode == 75, done.stderr
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("job: the cluster has ended Spark's application")


def test_yarn_without_its_settings_is_refused() -> None:
    given = {key: value for key, value in os.environ.items() if key not in _NAMES_A_MASTER}

    done = subprocess.run(
        [sys.executable, "-c", _JOB], capture_output=True, text=True, timeout=120, check=False,
        env={**given, "ONCEOVER_SPARK": "yarn", "SPARK_CONF_DIR": "/"},
    )  # fmt: skip

    assert done.returncode == 78, done.stderr
    assert done.stderr.startswith("job: ONCEOVER_SPARK=yarn needs HADOOP_CONF_DIR")
