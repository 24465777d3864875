"""A clone as a new user makes it, where it is hardest: in a closed folder, under a long path with a blank and a letter
beyond ASCII, with nothing in its home. It runs as the user of the tests, root or not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.stack, pytest.mark.rare, pytest.mark.largest]


@pytest.fixture(scope="module")
def clone() -> Iterator[Path]:
    outside = Path(f"/var/tmp/onceover-clone-{os.getpid()}")
    folder = outside / "mit Blänk" / "/".join(f"a-folder-with-a-long-name-{n}" for n in range(5)) / "onceover"
    (outside / "home").mkdir(parents=True)
    outside.chmod(0o700)
    for name in subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).rstrip("\0").split("\0"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    yield folder
    make(folder, "down")
    program = "from onceover_local.stack import Stack; Stack().remove()"
    subprocess.run([folder / ".venv/bin/python", "-c", program], cwd=folder, env=environment(folder), check=True)
    shutil.rmtree(outside)


def environment(clone: Path) -> dict[str, str]:
    """Of this shell only how pip and jgo reach the files they fetch; no locale, as in a container, and nothing
    of a `make` that runs these tests, which would make the clone's `make` a nested one that names its folders."""
    others = ("ONCEOVER", "LC_", "LANG", "PY", "MAKE", "MFLAGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    home = next(each / "home" for each in clone.parents if (each / "home").is_dir())
    return {**kept, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}


def make(clone: Path, target: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", target], cwd=clone, env=environment(clone) | more, capture_output=True, text=True, check=False
    )


def test_failed_installation_shows_the_end_of_its_log(clone: Path) -> None:
    done = make(clone, "setup", PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert done.returncode != 0
    assert "onceover: installing failed; the end of .local/log/install.log:" in done.stderr
    assert "No matching distribution found" in done.stderr
    assert "check the network" in done.stderr


def test_new_user_brings_everything_up_with_one_command(clone: Path) -> None:
    done = make(clone, "up")
    assert done.returncode == 0, done.stdout + done.stderr
    terminal = done.stdout + done.stderr
    assert "3 of 3: keeping Spark's Java classes" in terminal
    assert "installed 190 of 190 packages" in terminal or "installed (after" in terminal
    assert not [word for word in ("DEPRECATION", "Deprecat", "WARN", "Using Spark's default log4j") if word in terminal]
    program = [str(clone / ".venv/bin/onceover"), "stack", "status", "--json"]
    status = subprocess.run(program, cwd=clone, env=environment(clone), stdout=subprocess.PIPE, check=False)
    states = {each["name"]: each["state"] for each in json.loads(status.stdout)}
    assert (set(states.values()), len(states), status.returncode) == ({"up"}, 8, 0), states


def test_second_make_says_nothing(clone: Path) -> None:
    done = make(clone, "setup")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
