"""What every raw store does: HDFS by both protocols and HBase as real servers, and one that only tests know."""

from __future__ import annotations

import uuid
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from onceover.config.endpoints import address, locate_hdfs
from onceover.errors import BusyError, OnceoverError, TerminalError
from onceover.raw import zstd_file
from onceover.raw.frozen_file import FrozenFiles
from onceover.raw.layout import Layout
from onceover.raw.store import RawStore, make_address, open_store
from onceover.raw.window_files import WindowFiles
from onceover.raw.zstd_file import compress_lines
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack
LINES = b"".join(b"%07d %s\n" % (n, b"x" * (n % 90)) for n in range(60_000))  # over 3 MB: cells end between lines
UMLAUTS = "ÄÖÜ\n".encode()
LONG = b"y" * (33 << 20) + b"\n"  # longer than any record may be


@pytest.fixture(params=["hdfs", "webhdfs", "hbase", "folder"])
def where(request: pytest.FixtureRequest, stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ONCEOVER_RAW_STORES", "folder=tests.folder_store:FolderStore")
    if request.param == "hbase":
        stack.up(["hbase"])
    if request.param == "hdfs":
        return locate_hdfs()
    if request.param == "webhdfs":
        return address("webhdfs")
    return make_address(request.param, address("hbase") if request.param == "hbase" else str(tmp_path))


@pytest.fixture
def store(where: str) -> RawStore:
    return open_store(where)


@pytest.fixture
def root() -> str:
    return f"/raw/t{uuid.uuid4().hex[:10]}"


def read(store: RawStore, path: str) -> bytes:
    return b"".join(store.read_bytes(path, 0, store.read_length(path) or 0))


def test_appends_follow_each_other_and_their_bytes_are_proved(store: RawStore, root: str) -> None:
    path = f"{root}/2026-03-01/1200.log"
    assert store.read_length(path) is None
    assert read(store, path) == b""
    first = store.append(path, [b"\n", LINES[:700], memoryview(LINES)[700:]])
    assert (first.start, first.end, first.proved) == (0, len(LINES) + 1, True)
    second = store.append(path, [memoryview(pa.py_buffer(UMLAUTS)), LONG])
    assert (second.start, second.end, second.proved) == (first.end, first.end + len(UMLAUTS + LONG), True)
    assert store.read_length(path) == second.end
    assert read(store, path) == b"\n" + LINES + UMLAUTS + LONG
    assert b"".join(store.read_bytes(path, 5, 2_000_000)) == (b"\n" + LINES)[5:2_000_000]
    assert list(store.read_bytes(path, 0, second.end + 1)) == [], "the file is shorter"


def test_frozen_file_is_read_in_splits_of_whole_lines(where: str, root: str) -> None:
    path, files = f"{root}/2026-03-01/1200.log", FrozenFiles(where)
    end = open_store(where).append(path, [LINES]).end
    open_store(where).append(path, [b"later\n"])
    cuts = [0, 1, 1_048_576, 1_048_577, 2_500_000, end]
    splits = [b"".join(files.read_split(path, *cut, end))
              for cut in pairwise(cuts)]  # fmt: skip
    assert b"".join(splits) == LINES
    assert all(split.endswith(b"\n") for split in splits if split)
    assert b"".join(files.read_lines(path, end)) == LINES


def test_compacted_file_is_read_in_splits_of_whole_frames(
    where: str, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zstd_file, "FRAME", 1_000_000)
    path, files = f"{root}/2026-03-01/1200.0.zst", FrozenFiles(where)
    end = open_store(where).append(path, compress_lines([memoryview(LINES)])).end
    monkeypatch.setattr(zstd_file, "_TAIL", end // 3)
    cuts = [0, 1, end // 2, end]
    splits = [b"".join(files.read_split(path, *cut, end)) for cut in pairwise(cuts)]
    assert b"".join(splits) == b"".join(files.read_lines(path, end)) == LINES
    with pytest.raises(TerminalError, match=path):
        list(files.read_lines(path, end - 1))


def test_missing_and_short_files_are_named(store: RawStore, root: str) -> None:
    path = f"{root}/2026-03-01/1200.log"
    for content in (None, b"short\n"):
        if content:
            store.append(path, [content])
        with closing(store.open(path, 0, 100)) as reading, pytest.raises(TerminalError, match=path):
            reading.fill(memoryview(bytearray(100)))


def test_files_are_listed_by_folder(store: RawStore, root: str) -> None:
    paths = ["2026-03-01/1200.log", "2026-03-01/1205.log", "2026-03-02/0000.log", "other/a"]
    files = {path: b"x" * n for n, path in enumerate(paths, 1)}
    for path, content in files.items():
        store.append(f"{root}/{path}", [content])
    store.append(f"{root}/expired/2026-03-01/1210.log.1", [b"deeper down"])
    store.append(f"{root}x/2026-03-01/1200.log", [b"of another root"])
    assert list(store.walk(root, "2026-03-01", "2026-03-02")) == [
        ("2026-03-01", "1200.log", 1), ("2026-03-01", "1205.log", 2), ("2026-03-02", "0000.log", 3)]  # fmt: skip
    assert [each[0] for each in store.walk(root, "2026-03-02", "9999-12-31")] == ["2026-03-02"]
    assert sorted(store.list_files(f"{root}/2026-03-01")) == [("1200.log", 1), ("1205.log", 2)]
    assert store.list_files(f"{root}/2026-03-03") == []
    counted = store.count_files(root)
    assert (counted["2026-03-01"], counted["2026-03-02"], counted["other"]) == (2, 1, 1)


def test_created_file_is_whole_and_never_replaced(store: RawStore, root: str) -> None:
    path = f"{root}/marker/1.json"
    assert store.read(path) is None
    store.create(path, b"one")
    with pytest.raises(BusyError, match=r"marker/1\.json"):
        store.create(path, b"two")
    assert (store.read(path), store.list_files(f"{root}/marker")) == (b"one", [("1.json", 3)])
    assert store.remove(path)
    assert not store.remove(path)
    assert store.read(path) is None
    store.create(path, b"three")
    assert store.read(path) == b"three"


def test_move_keeps_all_bytes_and_replaces_nothing(store: RawStore, root: str) -> None:
    path, aside = f"{root}/2026-03-01/1200.log", f"{root}/expired/2026-03-01/1200.log.7"
    store.append(path, [LINES])
    assert store.move(path, aside)
    assert (store.read_length(path), read(store, aside)) == (None, LINES)
    store.append(path, [b"late\n"])
    assert not store.move(aside, path), "another file has taken its name"
    assert (read(store, path), read(store, aside)) == (b"late\n", LINES)
    store.remove(path)
    assert store.move(aside, path)
    assert (read(store, path), store.read_length(aside)) == (LINES, None)
    assert list(store.walk(root, "2026-03-01", "2026-03-01")) == [("2026-03-01", "1200.log", len(LINES))]
    store.append(path, [b"more\n"])
    assert read(store, path) == LINES + b"more\n"
    with pytest.raises(OnceoverError):
        store.move(f"{root}/nowhere", f"{root}/elsewhere")


def test_folder_is_removed_with_its_files(store: RawStore, root: str) -> None:
    for name in ("a", "b"):
        store.append(f"{root}/compacting/{name}", [b"x"])
    store.append(f"{root}/compacted", [b"y"])
    store.remove_folder(f"{root}/compacting")
    store.remove_folder(f"{root}/compacting")
    assert store.list_files(f"{root}/compacting") == []
    assert store.read_length(f"{root}/compacted") == 1


def test_intact_file_has_no_gap_and_says_when_it_was_written(store: RawStore, root: str) -> None:
    path = f"{root}/2026-03-01/1200.log"
    before = datetime.now(UTC) - timedelta(minutes=5)
    store.check(root)
    store.append(path, [LINES])
    assert b"".join(piece or b"?" for piece in store.read_intact(path, lambda path, start: True)) == LINES
    assert store.was_written_since(path, before)
    assert not store.was_written_since(path, before + timedelta(hours=1))
    assert not store.was_written_since(f"{root}/none", before)
    store.require_servers(path)


def test_expired_file_waits_aside_and_can_be_barred(where: str, root: str) -> None:
    files = WindowFiles(where, Layout(root, "p"))
    path = files.layout.window_file(datetime(2026, 3, 1, 12, tzinfo=UTC))
    files.append(path, [LINES])
    files.set_aside(path, 1)
    files.append(path, [b"late\n"])
    files.bring_back(path, 1)
    assert (files.read_length(path) or 0) >= len(LINES) + len(b"late\n")
    assert files.bar_aside(path, 2)
    assert not files.bar_aside(path, 2)
    with pytest.raises(TerminalError, match="is taken"):
        files.set_aside(path, 2)
    files.set_aside(path, 3)
    files.delete_aside(path, 3)
    files.delete_aside(path, 3)
    assert files.read_length(path) is None


def test_list_of_expired_windows_outlives_a_torn_append(where: str, root: str) -> None:
    files = WindowFiles(where, Layout(root, "p"))
    noon, later = (datetime(2026, 3, 1, hour, tzinfo=UTC) for hour in (12, 13))
    files.expired.add([])
    assert files.expired.read() == frozenset()
    files.expired.add([noon, later])
    files.append(files.layout.expired_windows, [b"\nexpired 2026-03-0"])  # the process was killed
    length = files.read_length(files.layout.expired_windows)
    files.expired.add([noon])
    assert files.read_length(files.layout.expired_windows) == length, "a move that is tried again adds no line"
    other = WindowFiles(where, files.layout).expired
    other.add([noon])
    assert other.read() == {noon, later}
    files.expired.remove([noon])
    assert files.expired.read() == {later}
    for name in ("1000.old.log", "1000.log.log", "1000", "2500.log"):
        files.append(f"{files.layout.day_folder(noon.date())}/{name}", [b"what a person left there"])
    assert files.list_files() == [], "none of these is raw"
