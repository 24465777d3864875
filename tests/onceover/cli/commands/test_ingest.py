"""`onceover ingest`, where no server answers: a process for each TOML, read once, and an end by SIGTERM."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_ingest_all_names_each_pipeline_and_ends_on_sigterm(home: Path) -> None:
    (home / "pipelines" / "broken.toml").write_text("[contract\n")
    command = [str(Path(sys.executable).with_name("onceover")), "ingest", "--all"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        said: dict[str, list[str]] = {"broken": [], "things": []}
        while not all("it starts again" in "".join(lines) for lines in said.values()):
            name, _, line = process.stdout.readline().partition(" | ")
            said[name].append(line)
        process.terminate()
        process.stdout.read()

    assert process.returncode == 0
    assert any("pipelines/broken.toml: not TOML" in line for line in said["broken"])
    assert any("ONCEOVER_KAFKA is not set" in line for line in said["things"])


def test_ingest_leaves_reading_the_toml_to_the_job(home: Path) -> None:
    (home / "pipelines" / "broken.toml").write_text("[contract\n")
    command = [str(Path(sys.executable).with_name("onceover")), "ingest", "broken"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.startswith("ingest: pipelines/broken.toml: not TOML")) == (78, True)
