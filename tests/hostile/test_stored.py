"""Files, znodes and rows that another program wrote where ours are expected: refused with their place, or left out."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import Mock

import pytest
import xxhash
from tests.hostile.canaries import require_harmless
from tests.hostile.texts import make_text, make_value
from tests.hostile.tries import bounded_memory, few_or_all, is_refused

from onceover.lines.line_file import decode_file
from onceover.lines.read import read
from onceover.model.root_marker import parse_marker
from onceover.offset_stores.checkpoint import CheckpointOffsetStore
from onceover.offset_stores.file import LocalFileOffsetStore
from onceover.offset_stores.hbase import HBaseOffsetStore
from onceover.offset_stores.hdfs import HdfsOffsetStore
from onceover.offset_stores.zookeeper import ZooKeeperOffsetStore
from onceover.raw import hdfs, window_files
from onceover.raw.contract_files import read_contracts
from onceover.raw.hdfs_store import HdfsStore
from onceover.raw.layout import Layout
from onceover.raw.marker import MarkerFiles
from onceover.raw.window_files import WindowFiles

TRIES = 500
LAYOUT = Layout("/onceover/raw", "things")


class Stranger:
    """The answers of a server that holds what a stranger wrote. It replaces SmallFiles and the HDFS client."""

    def __init__(self, number: int, file: str) -> None:
        self._random, self._number, self._file, self._made = Random(f"stranger {number}"), number, file, 0

    def text(self) -> str:
        self._made += 1
        return make_text("stored", self._number * 50 + self._made, self._file)

    def name(self) -> str:
        known = ("0", "7", "1", "²", "1.json", "V1-00c0ffee00c0ffee.json", f"offsets-{7:020d}.json", "2013-01-01.log",
                 "2013-01-01", "20130101", "2013-W01-1.log", "0500.log", "٠٥٠٠.log", "٣")  # fmt: skip
        return self._random.choice(known) if self._random.random() < 0.7 else self.text().replace("/", "_")

    def content(self) -> bytes:
        value = make_value("stored value", self._number * 50 + self._made, self._file)
        whole: Any = self._random.choice((
            value, {"things": {self.text(): value}}, {"things": {"0": value}},
            {"version": 1, "topic": "t", "topic_id": value, "group": "g", "offsets": {"0": value}},
            {"format": 3, "ledger_id": value, "driver": value, "origins": value}, {"contract": value},
        ))  # fmt: skip
        line = json.dumps(whole, default=str).encode()
        return self._random.choice((
            line, b"v1\n" + line, b"v1\n{}\n" + line, b"\0v1\n" + line, b"v1\n" + line + b"\n" + line,
            self.text().encode("utf-8", "surrogatepass"), b"[" * 100_000, b'{"a":' * 100_000, b"\xff" * 1000, b"",
            b'{"offsets":{"0":' + b"9" * 5000 + b"}}", f"0 {self.text()}\n".encode("utf-8", "surrogatepass"),
        ))  # fmt: skip

    def names(self, folder: str) -> list[str]:
        return [] if folder.endswith("/state") else [self.name() for _ in range(self._random.randrange(6))]

    def read(self, path: str) -> bytes | None:
        return None if self._random.random() < 0.1 else self.content()


def try_file_stores(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> dict[str, Callable[[], object]]:
    monkeypatch.setattr(hdfs.SmallFiles, "names", lambda self, folder: stranger.names(folder))
    monkeypatch.setattr(HdfsStore, "list_files", lambda self, folder: [(name, 1) for name in stranger.names(folder)])
    monkeypatch.setattr(hdfs.SmallFiles, "read", lambda self, path: stranger.read(path))
    local = LocalFileOffsetStore(folder, "g", "t")
    Path(local.place).parent.mkdir(parents=True, exist_ok=True)
    body = stranger.content()
    Path(local.place).write_bytes(body + b"end %d %08x\n" % (len(body.splitlines()), zlib.crc32(body)))
    where = "http://127.0.0.1:1"
    return {
        "checkpoint": lambda: CheckpointOffsetStore(where, "/c", "things").load([0]),
        "hdfs": lambda: HdfsOffsetStore(where, "/o", "g", "t").load([0]),
        "file": lambda: local.load([0]),
        "marker": lambda: MarkerFiles(where, LAYOUT).read_newest(),
        "contracts": lambda: read_contracts(where, LAYOUT),
        "marker's text": lambda: parse_marker(stranger.content()),
    }


def try_servers(stranger: Stranger, monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], object]]:
    znodes = {stranger.name(): stranger.text().encode("utf-8", "replace") for _ in range(3)}
    client = Mock()
    client.get_children_async.return_value.get.return_value = list(znodes)
    client.get_async.side_effect = lambda path: Mock(get=lambda timeout: (znodes[path.rpartition("/")[2]], None))
    zookeeper = ZooKeeperOffsetStore("x:1", "g", "t")
    zookeeper._client = client
    hbase = HBaseOffsetStore("x:1", "g", "t")
    row = (
        f"t:g:{stranger.text()}".encode("utf-8", "replace"),
        {b"offsets:0": stranger.text().encode("utf-8", "replace")},
    )
    monkeypatch.setattr(hbase, "_table", Mock())
    hbase._table.open.return_value.scan.return_value = (each for each in [row])  # type: ignore[attr-defined]
    statuses = [(stranger.name(), {"length": 1, "childrenNum": 1, "type": "FILE"}) for _ in range(4)]
    files = WindowFiles("http://127.0.0.1:1", LAYOUT)
    monkeypatch.setattr(files._store, "_client", Mock(list=lambda *_, **__: statuses))
    monkeypatch.setattr(files._store, "list_files", lambda _: [(name, status["length"]) for name, status in statuses])

    def list_days() -> None:
        for day in files.list_quarantine_days():
            if f"{day.isoformat()}.log" not in dict(statuses):
                raise AssertionError(f"{day} is none of {sorted(dict(statuses))}")

    return {
        "zookeeper": lambda: zookeeper.load([0]),
        "hbase": lambda: hbase.load([0]),
        "days": list_days,
        "windows": files.list_window_files,
        "compacted": files.list_compacted_files,
    }


def make_lines(stranger: Stranger) -> bytes:
    """Return bytes of a raw file: fields of a line, some with a right hash, and rubbish."""
    start = b"5f3a0b1c-00000-0000000000000000001 00000001356998400000"
    lines = []
    for _ in range(4):
        fields = [start, *(stranger.text().encode("utf-8", "surrogatepass").replace(b"\n", b"\\n") for _ in range(6))]
        fields[4:6] = [b"1356998400000", b"V1-00c0ffee00c0ffee"]
        body = b"\t".join(fields)
        lines.append(body + b"\t%016x" % xxhash.xxh3_64_intdigest(body))
        lines.append(stranger.content())
    return b"\n".join(lines) + b"\n"


@few_or_all(TRIES)
def test_stored_value_of_a_stranger_is_refused_or_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    def attempt(number: int) -> str | None:
        stranger = Stranger(number, str(tmp_path / "canary"))
        tries = try_file_stores(stranger, monkeypatch, tmp_path) | try_servers(stranger, monkeypatch)
        data = make_lines(stranger)
        tries["lines"] = lambda: list(decode_file([data]))
        tries["kernels"] = lambda: read(memoryview(data))
        name = sorted(tries)[number % len(tries)]
        wrong = is_refused(tries[name])
        return f"{name}: {wrong}" if wrong else None

    with bounded_memory():
        require_harmless(attempt, count, tmp_path)


def test_names_of_windows_and_days_are_read_in_one_way_only() -> None:
    assert window_files._parse_day("2013-01-05.log") == datetime(2013, 1, 5, tzinfo=UTC).date()
    for name in ("20130105.log", "2013-W01-6.log", "٢٠١٣-01-05.log", "2013-01-05", "2013-1-5.log"):
        assert window_files._parse_day(name) is None, name
    assert re.fullmatch(r"\d", "٣"), "Python's \\d takes other digits, ours do not"
