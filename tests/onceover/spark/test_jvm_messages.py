"""Spark's start is silent, and whatever else its JVM says reaches stderr."""

from __future__ import annotations

import subprocess
import sys
from subprocess import CompletedProcess

import pytest

NOISE = """WARNING: Using incubator modules: jdk.incubator.vector
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
Setting default log level to "WARN".
To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).
26/11/25 18:48:52 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform... using builtin-java
26/11/25 18:48:52 WARN Utils: Your hostname, here, resolves to a loopback address: 127.0.0.1; using 10.0.0.1 instead
26/11/25 18:48:52 WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address
"""
SPEAKING = """
import os, subprocess, sys
from onceover.spark.jvm_messages import filter_messages
with filter_messages() as stderr:
    child = subprocess.Popen(["/bin/sh", "-c", sys.argv[1]], stderr=stderr)
os.write(2, b"the process itself\\n")  # at once: `print` may write the end of the line later
child.wait()
import threading
for thread in threading.enumerate():
    if thread.daemon:
        thread.join(10)
"""
BUILDING = "from onceover.spark.session import build; build('a test').stop()"


def run(code: str, *arguments: str) -> CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def test_noise_is_left_out_and_the_rest_passed_on() -> None:
    said = f"cat >&2 <<'END'\n{NOISE}java.lang.OutOfMemoryError\n{NOISE}END\nprintf 'no end of line' >&2"
    lines = sorted(run(SPEAKING, said).stderr.splitlines())
    assert lines == ["java.lang.OutOfMemoryError", "no end of line", "the process itself"]


def test_long_line_is_passed_on_whole() -> None:
    said = run(SPEAKING, "head -c 300000 /dev/zero | tr '\\0' x >&2; echo y >&2").stderr
    assert said.replace("the process itself\n", "") == "x" * 300_000 + "y\n"


@pytest.mark.rare
@pytest.mark.spark
def test_start_of_spark_prints_nothing() -> None:
    assert run(BUILDING).stderr == ""
