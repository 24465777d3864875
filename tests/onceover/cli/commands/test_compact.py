"""`onceover compact`, against a library and an application that only remember what they were asked."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from onceover.cli import spark_entry
from onceover.cli.app import app
from onceover.cli.arguments import get_user
from onceover.cli.commands import compact
from onceover.context import PipelineContext
from onceover.errors import UsageError
from onceover.ledger.compactions import CompactionDue
from onceover.model.digest import Digest
from onceover.model.window import WindowRange

START = datetime(2013, 1, 1, 5, tzinfo=UTC)
DUE = [
    CompactionDue(START, Digest(10, 1, 2, 3, 4), 2_000),
    CompactionDue(START.replace(hour=6), Digest(20, 1, 2, 3, 4), 4_000),
]
DONE = [
    {"window": "2013-01-01T05:00Z", "records": 10, "text_bytes": 2_000, "bytes": 300, "why": None},
    {"window": "2013-01-01T06:00Z", "records": 20, "text_bytes": 4_000, "bytes": 500, "why": None},
]
RANGE = ("--from", "2013-01-01T05:00Z", "--to", "2013-01-01T07:00Z")


class Asked:
    """Requests to the ledger and to Spark, and their answers."""

    def __init__(self) -> None:
        self.due: list[CompactionDue] = DUE
        self.done: list[dict[str, Any]] = DONE
        self.code = 0
        self.of_ledger: list[tuple[str, int, WindowRange | None]] = []
        self.of_spark: list[Sequence[str]] = []

    def list_due(
        self, context: PipelineContext, older_than_ms: int, window_range: WindowRange | None
    ) -> list[CompactionDue]:
        self.of_ledger.append((context.name, older_than_ms, window_range))
        return self.due

    def run(self, command: Sequence[str], stdout: int) -> int:
        self.of_spark.append(command[2:])
        if not self.code:
            os.write(stdout, b"something of Spark's\n" + json.dumps(self.done).encode() + b"\n")
        return self.code


@pytest.fixture
def asked(home: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    found = Asked()
    monkeypatch.setattr(compact, "_list_due", found.list_due)
    monkeypatch.setattr(spark_entry, "run_entry", found.run)
    return found


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["compact", "things", *arguments])


def test_due_windows_are_compacted_and_reported_with_sizes(asked: Asked) -> None:
    done = run("--older-than", "90d", *RANGE, "--reason", "-- room; $(rm)")
    assert done.exit_code == 0, done.output
    assert done.stdout.endswith("2 windows compacted, 30 records: 6,000 bytes of text, 800 compacted\n")
    whole = WindowRange(START, START.replace(hour=7))
    assert asked.of_ledger == [("things", 90 * 86_400_000, whole)]
    (words,) = asked.of_spark
    assert words == ["--pipeline", "things", "--older-than-ms", "7776000000", *RANGE,
                     f"--who={get_user()}", "--why=-- room; $(rm)"]  # fmt: skip


def test_dry_run_starts_no_spark(asked: Asked) -> None:
    done = run("--dry-run")
    assert (done.exit_code, asked.of_spark) == (0, [])
    assert done.stdout.endswith("2 certified windows would be compacted\n")
    assert asked.of_ledger == [("things", 30 * 86_400_000, None)], "older than a month by default"


def test_compaction_with_nothing_due_starts_no_spark(asked: Asked) -> None:
    asked.due = []
    done = run("--json")
    assert (done.exit_code, asked.of_spark) == (0, [])
    assert json.loads(done.stdout)["windows"] == []


def test_window_that_is_not_compacted_is_named_and_is_a_failure(asked: Asked) -> None:
    asked.done = [DONE[0], {**DONE[1], "bytes": None, "why": "raw is not what its certificate says"}]
    done = run()
    assert done.exit_code == 1
    assert "2013-01-01T06:00Z" in done.stdout
    assert "raw is not what its certificate says" in done.stdout
    assert "1 window compacted, 10 records" in done.stdout
    out = json.loads(run("--json").stdout)
    assert (out["due"], out["compacted"], out["failed"], out["text_bytes"], out["bytes"]) == (2, 1, 1, 2_000, 300)


def test_compact_exits_with_the_code_of_its_spark_job(asked: Asked) -> None:
    asked.code = 75
    done = run("--json")
    assert (done.exit_code, done.stdout) == (75, "")


@pytest.mark.parametrize(
    "arguments",
    [("--from", "2013-01-01T05:00Z"), ("--older-than", "soon"), ("--older-than", "9999d"), ("--reason", "")],
)
def test_malformed_arguments_start_nothing(asked: Asked, arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.exit_code == UsageError.exit_code
    assert (asked.of_ledger, asked.of_spark) == ([], [])
