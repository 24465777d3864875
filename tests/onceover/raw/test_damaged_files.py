"""Replacements of damaged window files on the real HDFS, killed between any two steps."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from onceover.config.endpoints import address, locate_hdfs
from onceover.errors import BusyError, UnreachableError
from onceover.raw.damaged_files import DamagedFiles
from onceover.raw.hdfs import connect_hdfs
from onceover.raw.layout import Layout
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.rare]
FIRST, SECOND = b"a" * 1024**2, b"b" * 100


class Damaged:
    """A window file of two blocks, of which the second is lost on every disk; `files` replaces it."""

    def __init__(self) -> None:
        self.layout = Layout("/raw", f"t{uuid.uuid4().hex[:10]}")
        self.path = self.layout.window_file(datetime(2026, 3, 1, 12, tzinfo=UTC))
        self.files = DamagedFiles(locate_hdfs(), self.layout)
        self.client: Any = connect_hdfs(address("webhdfs"))
        self.client.write(self.path, data=FIRST + SECOND, blocksize=len(FIRST))
        for block in (Path(os.environ["ONCEOVER_LOCAL"]) / "hdfs").rglob("blk_*"):
            with suppress(FileNotFoundError):  # a block of another test's file, which HDFS deletes meanwhile
                if block.suffix != ".meta" and block.stat().st_size == len(SECOND) and block.read_bytes() == SECOND:
                    block.write_bytes(b"?" * len(SECOND))

    def read(self) -> bytes:
        with self.client.read(self.path) as reader:
            content: bytes = reader.read()
        return content

    def list_kept(self) -> list[str]:
        folder = self.layout.damaged(self.path).rpartition("/")[0]
        return sorted(name for name, _ in self.files.store.list_files(folder))


@pytest.fixture
def damaged(stack: Stack) -> Damaged:
    return Damaged()


def lost(path: str, start: int) -> bool:
    return False


def interrupt_at(damaged: Damaged, monkeypatch: pytest.MonkeyPatch, renames: int) -> None:
    """Replace the file, and be killed before the rename of that number."""
    move, done = damaged.files.store.move, [0]

    def count(source: str, target: str) -> bool:
        if done[0] == renames:
            raise KeyboardInterrupt
        done[0] += 1
        return move(source, target)

    monkeypatch.setattr(damaged.files.store, "move", count)
    with pytest.raises(KeyboardInterrupt):
        damaged.files.replace(damaged.path, lost)
    monkeypatch.undo()


def test_readable_part_replaces_a_damaged_file(damaged: Damaged) -> None:
    kept = damaged.files.replace(damaged.path, lost)
    assert kept is not None
    assert damaged.read() == FIRST + b"\n"
    assert damaged.list_kept() == [kept.rpartition("/")[2]]
    assert damaged.files.replace(damaged.path, lost) is None, "a whole file stays as it is"


@pytest.mark.parametrize("renames", [0, 1, 2])
def test_killed_replacement_is_continued(damaged: Damaged, monkeypatch: pytest.MonkeyPatch, renames: int) -> None:
    interrupt_at(damaged, monkeypatch, renames)
    damaged.files.replace(damaged.path, lost)
    assert damaged.read().replace(b"\n", b"") in (FIRST, FIRST * 2), "no readable byte is lost"
    assert not damaged.files.list_unfinished(damaged.path)


def test_readable_part_joins_a_file_made_meanwhile(damaged: Damaged, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt_at(damaged, monkeypatch, 2)
    damaged.client.write(damaged.path, data=b"\nlate\n")
    assert len(damaged.files.list_unfinished(damaged.path)) == 1
    assert damaged.files.replace(damaged.path, lost) is None
    assert damaged.read() == b"\nlate\n\n" + FIRST + b"\n"
    assert not damaged.files.list_unfinished(damaged.path)


def test_block_that_hdfs_still_lists_is_not_given_up(damaged: Damaged) -> None:
    with pytest.raises(UnreachableError, match="HDFS lists a copy of the block at 1048576"):
        damaged.files.replace(damaged.path, lambda path, start: True)
    assert damaged.client.status(damaged.path)["length"] == len(FIRST + SECOND)
    assert damaged.list_kept() == []


def test_file_is_kept_while_datanodes_are_down(damaged: Damaged, monkeypatch: pytest.MonkeyPatch) -> None:
    class Answer:
        def json(self) -> dict[str, Any]:
            return {"beans": [{"NumDeadDataNodes": 2, "NumDecomDeadDataNodes": 1, "NumStaleDataNodes": 0}]}

    monkeypatch.setattr(damaged.files.store, "get", lambda *_, **__: Answer())
    with pytest.raises(UnreachableError, match="1 DataNodes of HDFS do not answer"):
        damaged.files.replace(damaged.path, lost)
    with pytest.raises(UnreachableError, match="1 DataNodes of HDFS do not answer"):
        damaged.files.set_aside(damaged.path)
    assert damaged.client.status(damaged.path)["length"] == len(FIRST + SECOND)


def test_file_that_grew_meanwhile_is_not_replaced(damaged: Damaged) -> None:
    def grow(path: str, start: int) -> bool:
        damaged.client.write(path, data=b"late", overwrite=True)
        return False

    with pytest.raises(BusyError, match="changed while it was read"):
        damaged.files.replace(damaged.path, grow)
    assert damaged.read() == b"late"


def test_fenced_driver_replaces_nothing(damaged: Damaged) -> None:
    def refuse() -> None:
        raise BusyError("fenced")

    files = DamagedFiles(locate_hdfs(), damaged.layout, refuse)
    with pytest.raises(BusyError, match="fenced"):
        files.replace(damaged.path, lost)
    assert damaged.client.status(damaged.path)["length"] == len(FIRST + SECOND)
