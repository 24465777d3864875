"""HDFS by its own protocol, where it hangs, dies or loses an answer, and files that another writer has open."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partialmethod
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
from hdfs_native import Client
from tests.faults.proxy import CutError, Proxy

from onceover.config.endpoints import address, locate_hdfs
from onceover.errors import ConfigurationError, UnknownOutcomeError, UnreachableError
from onceover.raw import hdfs
from onceover.raw.hdfs_reading import HdfsReading
from onceover.raw.hdfs_store import HdfsStore
from onceover.raw.native_store import NativeStore, open_hdfs
from onceover.raw.store import LeaseHeldError
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack
FIRST, SECOND = b"first\n" * 1000, b"second\n" * 1000


@pytest.fixture
def store(stack: Stack) -> NativeStore:
    found = open_hdfs(locate_hdfs())
    assert isinstance(found, NativeStore)
    return found


@pytest.fixture
def path(store: NativeStore) -> str:
    """A file of the bytes FIRST."""
    path = f"/raw/t{uuid.uuid4().hex[:10]}/2026-03-01/1200.log"
    store.append(path, [FIRST])
    return path


class Between:
    """A proxy before the NameNode. What is done to the first call of that name that passes it: nothing, `hold`, which
    lasts until the block ends, or `lose` its answer."""

    def __init__(self, call: bytes, what: str) -> None:
        self._call, self._what, self._is_met, self._go_on = call, what, False, threading.Event()
        self._proxy = Proxy(urlsplit(address("hdfs")).netloc, self._see_request, self._see_answer)

    def __enter__(self) -> NativeStore:
        self._proxy.__enter__()
        return NativeStore(f"hdfs://{self._proxy.address}", address("webhdfs"))

    def __exit__(self, *_: object) -> None:
        self._go_on.set()
        self._proxy.__exit__(None, None, None)

    def _see_request(self, data: bytes) -> bytes:
        if self._call in data:
            self._is_met = True
            if self._what == "hold":
                self._go_on.wait()
        return data

    def _see_answer(self, data: bytes) -> bytes:
        if self._is_met and self._what == "lose":
            raise CutError
        return data


@contextmanager
def open_elsewhere(path: str) -> Iterator[None]:
    """Another writer has the file open, and has written to it."""
    writer = Client(address("hdfs")).append(path)
    writer.write(b"not yet closed\n")
    yield
    writer.close()


def read(store: NativeStore, path: str, end: int) -> bytes:
    content = bytearray(end)
    with closing(store.open(path, 0, end)) as reading:
        reading.fill(memoryview(content))
    return bytes(content)


def test_file_that_another_writer_has_open_can_be_read(store: NativeStore, path: str) -> None:
    with open_elsewhere(path):
        assert read(store, path, len(FIRST)) == FIRST
        assert b"".join(store.read_bytes(path, 6, 12)) == b"first\n"


def test_file_that_another_writer_has_open_is_not_appended(store: NativeStore, path: str) -> None:
    with open_elsewhere(path), pytest.raises(LeaseHeldError, match=path):
        store.append(path, [SECOND])
    assert store.append(path, [SECOND]).proved


def test_append_whose_answer_is_lost_is_made_once(store: NativeStore, path: str) -> None:
    with Between(b"complete", "lose") as other, pytest.raises(UnknownOutcomeError, match=f"{len(SECOND)} bytes"):
        other.append(path, [SECOND])
    assert read(store, path, store.read_length(path) or 0) == FIRST + SECOND


def test_append_goes_over_webhdfs_if_copies_are_unknown(
    store: NativeStore, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NativeStore, "get", partialmethod(_refuse_question, NativeStore.get))
    with patch.object(HdfsStore, "append", autospec=True, side_effect=HdfsStore.append) as append:
        assert store.append(path, [SECOND]).start == len(FIRST)
    append.assert_called_once()
    assert store.read(path) == FIRST + SECOND


def _refuse_question(store: NativeStore, get: Any, url: str, **query: Any) -> Any:
    """Ask as a NameNode or a gateway of before Hadoop 3.3 takes it."""
    return get(store, url, **(query | {"op": "ASKEDFOR"} if query["op"] == "GETFILEBLOCKLOCATIONS" else query))


def test_append_that_was_not_opened_has_a_known_outcome(store: NativeStore, path: str) -> None:
    with Between(b"append", "lose") as other, pytest.raises(UnreachableError, match="does not answer"):
        other.append(path, [SECOND])
    assert store.read_length(path) == len(FIRST)


def test_name_node_that_hangs_ends_the_call(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdfs, "TIMEOUT", (5.0, 2.0))
    with Between(b"complete", "hold") as other, pytest.raises(UnknownOutcomeError, match="no answer within 2 s"):
        other.append(path, [SECOND])
    with Between(b"getFileInfo", "hold") as other, pytest.raises(UnreachableError, match="does not answer"):
        other.read_length(path)


def test_failed_append_ends_where_the_name_node_hangs(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python closes a writer that it drops, in the thread that drops it."""
    monkeypatch.setattr(hdfs, "TIMEOUT", (5.0, 2.0))

    def send() -> Iterator[bytes]:
        yield SECOND
        raise UnreachableError("what is appended cannot be read")

    with Between(b"complete", "hold") as other, pytest.raises(UnreachableError, match="cannot be read"):
        other.append(path, send())


def test_file_is_read_elsewhere_while_the_protocol_hangs(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdfs, "TIMEOUT", (5.0, 2.0))
    with Between(b"getBlockLocations", "hold") as other:
        assert read(other, path, len(FIRST)) == FIRST
        assert isinstance(other.open(path, 0, 1), HdfsReading), "the next file waits for no deadline"


def test_addresses_of_two_hdfs_are_refused(store: NativeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.check("/raw")
    monkeypatch.setattr(NativeStore, "_find", lambda *_: None)
    with pytest.raises(ConfigurationError, match=r"ONCEOVER_HDFS=.* and ONCEOVER_WEBHDFS=.* are of two HDFS"):
        store.check("/raw")


def test_name_service_that_is_not_configured_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    with pytest.raises(ConfigurationError, match=r"ONCEOVER_HDFS=hdfs://nameservice names no NameNode .*HADOOP_CONF"):
        NativeStore("hdfs://nameservice", address("webhdfs"))


def test_name_node_that_is_away_is_named(stack: Stack) -> None:
    away = NativeStore("hdfs://127.0.0.1:1", address("webhdfs"))
    with pytest.raises(
        UnreachableError, match=r"HDFS at hdfs://127\.0\.0\.1:1 does not answer .*refused.*onceover stack"
    ):
        away.read_length("/raw")


@pytest.mark.rare
def test_file_is_read_without_the_datanode_that_died(stack: Stack, store: NativeStore, path: str) -> None:
    stack.kill_part("datanode1")
    try:
        with pytest.raises(UnreachableError, match=f"{path}|the DataNode at"):
            read(store, path, len(FIRST))
    finally:
        stack.start_part("datanode1")
    assert read(store, path, len(FIRST)) == FIRST
