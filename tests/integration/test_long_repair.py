"""A repair of more windows than one group holds, as a person sees it in a terminal."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.integration.events import event
from tests.integration.lane import Lanes
from tests.integration.planted_failures import land_twice
from tests.integration.program import run

from onceover_demo.warm import QUICKLY

pytestmark = [pytest.mark.stack, pytest.mark.rare]
GROUPS_OF_ONE = "from onceover.repair import groups\ngroups.MAX_WINDOWS = 1\n"


@pytest.mark.largest
def test_repair_by_groups_says_in_the_terminal_what_is_left(
    lanes: Lanes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(GROUPS_OF_ONE)  # every Python process below the command loads it
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH")))))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--master local[2] {QUICKLY} pyspark-shell")
    lane = lanes()
    land_twice(lane, [event(n) for n in range(15)])
    noon = ("--from", "2026-03-01T12:00Z", "--to", "2026-03-01T12:15Z")
    done = run("repair", lane.name, *noon, "--reason", "a test")
    assert done.returncode == 0, done.stderr
    said = re.findall(r"done with (\d of 3) windows, (\d+) of 30 records; 0\.0 MiB read; about \d+ s left", done.stderr)
    assert said == [("1 of 3", "10"), ("2 of 3", "20")], done.stderr
