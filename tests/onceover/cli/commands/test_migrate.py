"""`onceover pipelines migrate`, against a library that only remembers what it was asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from onceover.context import PipelineContext
from onceover.ingest import cutover
from onceover.ingest.cutover import Check, Migration
from onceover.model.offsets import KafkaPartition

Asked = list[tuple[str, str, bool]]
DONE = Migration("things", 1, 2, ("event_time", "measures"), ("big",), ((KafkaPartition("5f3a0b1c", 0), 1200),))


@pytest.fixture
def asked(home: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    found: Asked = []

    def migrate(context: PipelineContext, check: Check, who: str, why: str, *, write: bool) -> Migration:
        found.append((context.name, why, write))
        return DONE

    monkeypatch.setattr(cutover, "migrate_contract", migrate)
    return found


def test_migration_reports_changes_cutover_and_next_step(run: Any, asked: Asked) -> None:
    done = run("pipelines", "migrate", "things", "--reason", "INC-42:  also big ones")
    assert done.exit_code == 0
    assert asked == [("things", "INC-42: also big ones", True)]
    assert done.stdout.splitlines()[:2] == [
        "version 2 of things's contract follows version 1",
        "changed: event_time, measures",
    ]
    assert "new measures: big" in done.stdout
    assert "5f3a0b1c" in done.stdout
    assert "1,200" in done.stdout
    assert done.stdout.splitlines()[-1] == "Start ingest again: `onceover ingest things`"


def test_dry_run_needs_no_reason_and_writes_nothing(run: Any, asked: Asked) -> None:
    done = run("pipelines", "migrate", "things", "--dry-run")
    assert (done.exit_code, asked) == (0, [("things", "a dry run", False)])
    assert "would follow" in done.stdout
    assert done.stdout.splitlines()[-1] == "Nothing was written."
    output = json.loads(run("pipelines", "migrate", "things", "--dry-run", "--json").stdout)
    assert output["cutovers"] == [{"generation": "5f3a0b1c", "kafka_partition": 0, "first_offset": 1200}]
    assert (output["dry_run"], output["old_version"], output["new_version"]) == (True, 1, 2)


def test_unchanged_contract_is_reported_and_no_failure(run: Any, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutover, "migrate_contract", lambda context, *_, **__: Migration(context.name, 2, 2))
    done = run("pipelines", "migrate", "things", "--reason", "again")
    assert (done.exit_code, done.stdout) == (
        0, "nothing to migrate: the contract in things's TOML equals version 2, which is in force\n"
    )  # fmt: skip
