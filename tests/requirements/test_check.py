"""`requirements/check` on machines that lack something; a machine is a PATH with doubles of programs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "requirements" / "check"
_TOOLS = (
    *("awk", "bash", "cat", "chmod", "df", "dirname", "find", "flock", "getconf", "getent", "grep", "head", "mkdir"),
    *("rm", "sed", "sha256sum", "tail"),
)
_JAVA = "echo 'openjdk version \"{}\" 2025-04-15' >&2"
_PYTHON = "case $2 in *'version_info[:2] != (3, 11))'*) exit 0 ;; esac; echo '{}'"
_LINUX = 'case $1 in -sm) echo "Linux x86_64" ;; esac'


class Machine:
    """A machine with a clone that passes every check until a test changes it."""

    def __init__(self, folder: Path) -> None:
        self.clone, self.path = folder / "clone", folder / "bin"
        (self.clone / "requirements").mkdir(parents=True)
        shutil.copy(CHECK, self.clone / "requirements" / "check")
        self.path.mkdir()
        for tool in _TOOLS:
            (self.path / tool).symlink_to(shutil.which(tool) or "/nowhere")
        self.has("uname", _LINUX)
        self.has("id", "echo 0")
        self.has("setpriv", "exit 0")
        self.has("java", _JAVA.format("17.0.15"))
        self.has("python3.11", _PYTHON.format("ran"))

    def has(self, program: str, script: str, folder: Path | None = None) -> None:
        """Put a program with this script on PATH."""
        file = (folder or self.path) / program
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_text(f"#!{shutil.which('bash')}\n{script}\n")
        file.chmod(0o755)

    def lacks(self, program: str) -> None:
        (self.path / program).unlink()

    def check(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the check on the machine."""
        return subprocess.run(
            [self.clone / "requirements" / "check"],
            env={"PATH": str(self.path), "HOME": str(self.clone), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def problem(self, **environment: str) -> str:
        """Return the only problem that the check names, with its remedy, on one line."""
        done = self.check(**environment)
        assert (done.returncode, done.stdout) == (1, "")
        assert "nothing was downloaded; 1 of the things" in done.stderr
        return " ".join(" ".join(done.stderr.splitlines()[1:]).split()).removeprefix("- ")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_complete_machine_passes_and_names_its_python(machine: Machine) -> None:
    done = machine.check()
    assert (done.returncode, done.stdout, done.stderr) == (0, "python3.11\n", "")
    assert [each.name for each in (machine.clone / ".local").iterdir()] == []


def test_real_machine_passes() -> None:
    done = subprocess.run([CHECK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_missing_parts_are_all_named_with_their_remedies(machine: Machine) -> None:
    for program in ("python3.11", "java", "setpriv", "flock"):
        machine.lacks(program)
    machine.has("df", "echo Avail; echo 1000000")
    machine.has("cat", "echo 1000000000")
    done = machine.check()
    lines = done.stderr.splitlines()
    assert done.returncode == 1
    assert lines[0] == "onceover: nothing was downloaded; 6 of the things that are needed are missing:"
    assert [line.split(";")[0] for line in lines[1::2]] == [
        "  - Python 3.11 is needed",
        "  - Java 17 is needed, no older and no newer one",
        "  - the program flock is needed",
        "  - root needs setpriv: PostgreSQL runs as nobody, never as root",
        "  - 6 GB of free disk are needed",
        "  - 4 GB of memory are needed",
    ]
    assert all(line.startswith("      ") for line in lines[2::2])
    assert "apt-get install python3.11-venv" in lines[2]
    assert re.search("apt-get install openjdk-17-jre-headless|there is one that PATH does not name first", lines[4])


JAVAS = ("21.0.2", "11.0.20", "1.8.0_392")
C_LIBRARY = ".*the GNU C library 2.34 or later is needed"
NO_SWITCH = "echo 'setpriv: setresuid failed: Invalid argument' >&2; exit 1"


@pytest.mark.parametrize(
    ("program", "script", "environment", "problem"),
    [
        *(("java", _JAVA.format(version), {}, f'.*`java` is openjdk version "{version}"') for version in JAVAS),
        ("python3.11", _PYTHON.format("venv ran"), {}, ".*python3.11 cannot make virtual environments"),
        ("python3.11", _PYTHON.format("loopback ran"), {}, ".*no connection to 127.0.0.1 can be made"),
        ("python3.11", _PYTHON.format("user ran"), {}, ".*has no name, and PostgreSQL and Hadoop ask for one"),
        (
            "python3.12",
            "exit 1",
            {"PYTHON": "python3.12"},
            "PYTHON=python3.12 is not a Python 3.11 name one: make PYTHON=",
        ),
        ("uname", "echo Darwin arm64", {}, "Linux on x86_64 or aarch64 is needed; this is Darwin arm64"),
        ("setpriv", NO_SWITCH, {}, "root may not switch to another user here, and PostgreSQL must run as one"),
        *(("getconf", f"echo '{version}'", {}, C_LIBRARY) for version in ("glibc 2.31", "glibc 2.4", "")),
    ],
)
def test_machine_that_cannot_run_the_project_is_refused(
    machine: Machine, program: str, script: str, environment: dict[str, str], problem: str
) -> None:
    machine.has(program, script)
    assert re.match(problem, machine.problem(**environment))


def test_java_17_that_is_not_first_on_path_is_the_remedy(machine: Machine, tmp_path: Path) -> None:
    machine.has("java", _JAVA.format("21"))
    machine.has("java", _JAVA.format("17.0.1"), tmp_path / "jdk" / "bin")
    found = machine.problem(JAVA_HOME=str(tmp_path / "jdk"))
    assert found.endswith(f'export PATH="{tmp_path}/jdk/bin:$PATH"')


def test_java_home_of_another_version_is_refused(machine: Machine, tmp_path: Path) -> None:
    machine.has("java", _JAVA.format("21"), tmp_path / "jdk" / "bin")
    assert "Spark prefers it to PATH unset JAVA_HOME" in machine.problem(JAVA_HOME=str(tmp_path / "jdk"))


def test_ordinary_user_needs_no_setpriv(machine: Machine) -> None:
    machine.lacks("setpriv")
    machine.has("id", "echo 1000")
    assert machine.check().returncode == 0


def test_folder_that_cannot_be_written_to_is_refused(machine: Machine) -> None:
    (machine.clone / ".local").touch()
    assert machine.problem().startswith(f"{machine.clone} cannot be written to")


def test_home_that_cannot_be_written_to_is_refused(machine: Machine) -> None:
    assert machine.problem(HOME="/nonexistent").startswith("HOME=/nonexistent cannot be written to; jars go to")


@pytest.mark.parametrize("version", ["glibc 2.34", "glibc 2.36", "glibc 2.41"])
def test_newer_c_libraries_pass(machine: Machine, version: str) -> None:
    machine.has("getconf", f"echo '{version}'")
    assert machine.check().returncode == 0
