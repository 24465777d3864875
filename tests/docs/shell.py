"""The commands that README and docs show, line by line, and a reader's shell that runs them on its own pipelines."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil
import psycopg
import pytest
from psycopg import sql
from tests.docs.pages import DOCS, README, ROOT, Page

from onceover.config.endpoints import address
from onceover_local.stack.process import wait_for

PROGRAMS: Final = (
    *("airflow", "createdb", "curl", "make", "onceover", "pg_dump", "pg_restore", "python", "source", "sudo", "tar"),
    ".venv/bin/python",
)
PATIENCE_SECONDS: Final = 300.0
_ASSIGNMENT: Final = re.compile(r"[A-Z_]+=")
_COMMENT: Final = re.compile(r"\s{2,}#\s.*$")
_PLACEHOLDER: Final = re.compile(
    r"\b(?:WINDOW|TIME|RANGE|REQUEST|PORT|WEBHDFS)\b|/onceover/raw|(?<= )\.\.\.(?= )|2026-03-01"
)


def lines(page: Page) -> list[str]:
    """Return the commands of a page's blocks, without comments, and with `flights` for PIPELINE."""
    return [
        _COMMENT.sub("", line).replace("PIPELINE", "flights")
        for block in page.blocks
        if is_shell(block[0])
        for line in block
    ]


def is_shell(line: str) -> bool:
    """Return whether a block that begins with this line shows commands."""
    return line.split()[0] in PROGRAMS or _ASSIGNMENT.match(line) is not None


LINES: Final = frozenset(line for page in (README, *DOCS) for line in lines(page))


@dataclass(frozen=True, slots=True)
class Step:
    """A line as it is shown, and what its reader sees: the exit code, and what stdout and stderr match.

    `values` are what a reader puts for WINDOW, TIME and `...`, in their order; `until`: see `Shell.run`.
    """

    line: str
    says: str
    code: int = 0
    values: tuple[str, ...] = ()
    until: str | None = None
    before: Callable[[Shell], None] | None = None

    def __str__(self) -> str:
        return self.line


@dataclass(slots=True)
class Shell:
    """A reader's shell, with pipelines in `folder` and a database of its own on the session's stack."""

    folder: Path
    postgres: str
    values: dict[str, str] = field(default_factory=dict)
    cwd: Path = ROOT

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "ONCEOVER_PIPELINES": str(self.folder),
            "ONCEOVER_POSTGRES": self.postgres,
            "AIRFLOW_HOME": str(self.folder),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.folder}/airflow.db",
        }

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Give this process the shell's environment."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.environment.items():
                patch.setenv(name, value)
            yield

    def follow(self, step: Step) -> None:
        """Run the step's line as it is shown, but for its placeholders, and check its exit code and what it prints."""
        if step.before:
            with self.entered():
                step.before(self)
        code, said = self.run(self._filled(step), step.until)
        assert code == step.code, said
        assert re.search(step.says, said), said

    def _filled(self, step: Step) -> str:
        own = iter(step.values)
        return _PLACEHOLDER.sub(lambda found: self.values.get(found[0]) or next(own), step.line)

    def run(self, line: str, until: str | None = None) -> tuple[int, str]:
        """Run a line; return its exit code and what it printed. A command that does not end by itself gets SIGTERM once
        its output matches `until`; a command that stops itself (SIGSTOP) is killed."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, **self.environment, "PATH": path, "COLUMNS": "500"}
        output = self.folder / "output"
        with output.open("wb") as both:
            process = subprocess.Popen(
                ["bash", "-c", line], cwd=self.cwd, env=environment, stdin=subprocess.DEVNULL, stdout=both, stderr=both,
                start_new_session=True,
            )  # fmt: skip
        try:
            wait_for(lambda: _is_to_be_ended(process, output, until), PATIENCE_SECONDS, line)
            held = process.poll() is None and psutil.Process(process.pid).status() == psutil.STATUS_STOPPED
            if process.poll() is None and not held:
                process.terminate()
                process.wait(60)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return process.wait(30), output.read_text(errors="replace")


def _is_to_be_ended(process: subprocess.Popen[bytes], output: Path, until: str | None) -> bool:
    if process.poll() is not None or psutil.Process(process.pid).status() == psutil.STATUS_STOPPED:
        return True
    return until is not None and re.search(until, output.read_text(errors="replace")) is not None


@contextmanager
def shell(folder: Path, name: str, changed: Mapping[str, str]) -> Iterator[Shell]:
    """Make a shell with two pipelines: the checkout's `flights`, with these replacements in its TOML, and the README's
    `payments`. The topic and raw root of `flights` and the shell's database have this name."""
    folder.mkdir()
    text = (ROOT / "pipelines" / "flights.toml").read_text()
    own = {'topic = "flights"': f'topic = "{name}"', '"/onceover/raw"': f'"/onceover/{name}"', "2_500": "10_000"}
    for old, new in {**own, **changed}.items():
        assert old in text, old
        text = text.replace(old, new)
    (folder / "flights.toml").write_text(text)
    (folder / "payments.toml").write_text(README.fenced("toml")[0])
    found = Shell(folder, address("postgres").replace("/onceover?", f"/{name}?"))
    found.values["PORT"] = address("kafka").rpartition(":")[2]
    found.values |= {"WEBHDFS": address("webhdfs"), "/onceover/raw": f"/onceover/{name}"}
    superuser = address("postgres").replace("//onceover@", "//postgres@").replace("/onceover?", "/postgres?")
    database = sql.Identifier(name)
    with psycopg.connect(superuser, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {} OWNER onceover").format(database))
        yield found
        server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))
