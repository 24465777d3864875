"""HDFS with permissions: a user who lacks a right hears which one, for which path; and folders that take no appends."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest
from hdfs.client import _Request as Request

from onceover.config.endpoints import address, locate_hdfs
from onceover.errors import AccessDeniedError, TerminalError, is_denied
from onceover.raw.hdfs_store import HdfsStore
from onceover.raw.native_store import open_hdfs
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack


@pytest.fixture(params=["hdfs", "webhdfs"])
def log_in(request: pytest.FixtureRequest, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], HdfsStore]:
    """Return a maker of stores of these users."""

    def log_in(user: str) -> HdfsStore:
        monkeypatch.setenv("HADOOP_USER_NAME", user)
        store = open_hdfs(locate_hdfs() if request.param == "hdfs" else address("webhdfs"))
        assert store.read_length("/none") is None, "the user is read with the first request"
        return store

    return log_in


def test_lack_of_a_right_names_user_right_and_path(log_in: Callable[[str], HdfsStore]) -> None:
    root, ingest, airflow = (log_in(user) for user in ("root", "ingest", "airflow"))
    own = f"/rights/t{uuid.uuid4().hex[:10]}"
    day, file = f"{own}/2026-03-01", f"{own}/2026-03-01/1200.log"
    root.check(own)
    root._client.set_owner(own, "ingest")
    ingest.append(file, [b"first\n"])
    airflow.check(own)
    assert airflow.read(file) == b"first\n"

    def require(right: str, path: str, action: Callable[[], object]) -> None:
        with pytest.raises(AccessDeniedError) as denied:
            action()
        assert is_denied(str(denied.value))
        assert f"user airflow may not {right} {path}, which is ingest:" in str(denied.value)

    require("WRITE", file, lambda: airflow.append(file, [b"second\n"]))
    require("WRITE", file, lambda: airflow.append(file, [bytes(1 << 20)] * 8))
    require("WRITE", day, lambda: airflow.append(f"{day}/1205.log", [b"first\n"]))
    require("WRITE", day, lambda: airflow.append(f"{day}/1205.log", [bytes(1 << 20)] * 8))
    require("WRITE", own, lambda: airflow.create(f"{own}/marker/1", b"a marker"))
    require("WRITE", day, lambda: airflow.remove(file))
    root._client.set_permission(file, "600")
    require("READ", file, lambda: airflow.read(file))
    require("READ", file, lambda: airflow.open(file, 0, 6).fill(memoryview(bytearray(6))))
    root._client.set_permission(day, "700")
    require("READ_EXECUTE", day, lambda: airflow.read_lengths([file]))
    require("EXECUTE", day, lambda: airflow.read_length(file))
    root._client.set_permission(own, "700")
    require("READ_EXECUTE", own, lambda: airflow.check(own))
    assert ingest.read(file) == b"first\n", "nothing was changed"


def test_user_of_one_group_changes_what_another_made(log_in: Callable[[str], HdfsStore]) -> None:
    root, ingest, airflow = (log_in(user) for user in ("root", "ingest", "airflow"))
    own = f"/rights/t{uuid.uuid4().hex[:10]}"
    file, moved = f"{own}/raw/2026-03-01/1200.log", f"{own}/raw/expired/2026-03-01/1200.log.1"
    root.check(own)
    root._client.set_owner(own, "ingest", "onceover")
    ingest.check(f"{own}/raw")
    ingest.append(file, [b"first\n"])
    assert airflow.append(file, [b"second\n"]).proved
    airflow.create(f"{own}/raw/marker/1", b"a marker")
    assert airflow.move(file, moved)
    assert ingest.append(moved, [b"third\n"]).proved
    made = [status for _, folders, files in root._client.walk(own, status=True) for _, status in (*folders, *files)]
    assert {(each["type"], each["group"], each["permission"]) for each in made} == {
        ("DIRECTORY", "onceover", "775"),
        ("FILE", "onceover", "664"),
    }
    ingest.remove(f"{own}/raw/marker/1")
    ingest.remove(moved)
    assert airflow.list_files(own) == [("raw", 0)]


def test_folder_that_takes_no_appends_is_refused(log_in: Callable[[str], HdfsStore]) -> None:
    store, coded = log_in("root"), f"/coded/t{uuid.uuid4().hex[:10]}"
    store.check(coded)
    for operation in ("ENABLEECPOLICY", "SETECPOLICY"):
        Request("PUT").to_method(operation)(store._client, coded, ecpolicy="RS-6-3-1024k")

    with pytest.raises(TerminalError, match=r"is erasure-coded \(RS-6-3-1024k\), and HDFS appends to no such file"):
        store.check(f"{coded}/flights")
    Request("PUT").to_method("SETECPOLICY")(store._client, f"{coded}/flights", ecpolicy="replication")
    store.check(f"{coded}/flights")
