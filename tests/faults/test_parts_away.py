"""A part that is away, or refuses: one line that says what, where and what next, a non-zero exit, nothing half-done."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes

from onceover.config.endpoints import address, home
from onceover_local.stack import Stack
from onceover_local.stack.jars import fetch_class_path
from onceover_local.stack.part import find_java

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]
NOBODY = "127.0.0.1:1"


def ingest(pipeline: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(home() / "jobs" / "ingest.py"), "--pipeline", pipeline]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)


def read_error(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of its error, after asserting that there is one only."""
    assert done.returncode != 0
    lines = [text for text in done.stderr.splitlines() if text.startswith("ingest: ")]
    assert len(lines) == 1
    assert "Traceback" not in done.stderr
    return lines[0]


@pytest.fixture
def lane(lanes: Lanes) -> Lane:
    made = lanes()
    made.produce([event(0)])
    return made


@pytest.mark.parametrize(
    ("variable", "value", "remedy"),
    [
        ("ONCEOVER_KAFKA", NOBODY, "ONCEOVER_KAFKA"),
        ("ONCEOVER_WEBHDFS", f"http://{NOBODY}", "ONCEOVER_WEBHDFS"),
        ("ONCEOVER_HDFS", f"hdfs://{NOBODY}", "ONCEOVER_HDFS"),
        ("ONCEOVER_POSTGRES", f"postgresql://onceover@{NOBODY}/onceover", "ONCEOVER_POSTGRES"),
    ],
)
def test_ingest_names_the_server_that_does_not_answer(lane: Lane, variable: str, value: str, remedy: str) -> None:
    done = ingest(lane.name, **{"ONCEOVER_WEBHDFS": address("webhdfs"), variable: value})
    assert done.returncode == 75
    assert NOBODY in read_error(done)
    assert remedy in read_error(done)
    assert has_no_batch(lane)


def test_ingest_refuses_a_missing_topic(lane: Lane) -> None:
    lane.toml.write_text(lane.toml.read_text().replace(f'topic = "{lane.topic}"', 'topic = "never-created"'))
    assert "never-created" in read_error(ingest(lane.name))
    assert has_no_batch(lane)


def test_ingest_refuses_an_unknown_pipeline_and_a_malformed_toml(lane: Lane) -> None:
    assert ingest("no_such_pipeline").returncode == 2
    assert "there is no pipeline 'no_such_pipeline'" in read_error(ingest("no_such_pipeline"))
    lane.toml.write_text("[contract\n")
    assert ingest(lane.name).returncode == 78
    assert lane.toml.name in read_error(ingest(lane.name))


@pytest.fixture
def safe_mode(stack: Stack) -> Iterator[None]:
    def admin(action: str) -> None:
        tool = [*find_java(), "-cp", fetch_class_path("hdfs", lambda *_: None), "org.apache.hadoop.hdfs.tools.DFSAdmin"]
        subprocess.run([*tool, "-fs", address("hdfs"), "-safemode", action], check=True, capture_output=True)

    admin("enter")
    yield
    admin("leave")


def test_ingest_reports_hdfs_in_safe_mode(lane: Lane, safe_mode: None) -> None:
    done = ingest(lane.name)
    assert done.returncode == 75
    assert "safe mode" in read_error(done)
    assert has_no_batch(lane)


def has_no_batch(lane: Lane) -> bool:
    return lane.query("SELECT FROM onceover.batch WHERE pipeline = %s", [lane.name]) == []
