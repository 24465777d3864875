"""The KDC that dies or hangs, and the stack that starts one by an option."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from tests.integration.program import ONCEOVER
from tests.integration.secured_hdfs import (
    VARIABLES,
    describe,
    get_kdc,
    secured,
    set_login,
)

from onceover.config.endpoints import address, locate_hdfs
from onceover.errors import AccessDeniedError, UnreachableError
from onceover.raw.native_store import open_hdfs
from onceover_local.stack import Stack
from onceover_local.stack.kerberos import REALM

__all__ = ["secured"]
pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.largest]


@pytest.fixture(autouse=True)
def login(secured: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test log in by itself, as the user `onceover`."""
    set_login(monkeypatch, get_kdc(secured).get_keytab("onceover"))


@pytest.fixture(params=["hdfs", "webhdfs"])
def read(secured: Stack, request: pytest.FixtureRequest) -> Callable[[], object]:
    """Return what reads from HDFS by a client of that protocol, made now."""
    return lambda: open_hdfs(locate_hdfs() if request.param == "hdfs" else address("webhdfs")).read_length("/none")


def test_kdc_that_is_away_is_an_outage(
    secured: Stack, read: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed, it comes back with new keys, and HDFS with them: an old ticket is no more than refused."""
    keytab = get_kdc(secured).get_keytab("ingest")
    set_login(monkeypatch, keytab)
    open_hdfs(address("webhdfs")).read_length("/none")
    cache = os.environ["KRB5CCNAME"]
    secured.kill_part("kdc")
    try:
        set_login(monkeypatch, keytab)
        error, line = describe(read)
        assert error is UnreachableError
        assert line.startswith(f"Kerberos does not answer for ingest@{REALM} (Cannot contact any KDC")
    finally:
        assert set(secured.up({"hdfs"})) == {"kdc", "namenode", "datanode1"}
    monkeypatch.setenv("KRB5CCNAME", cache)
    with pytest.raises(AccessDeniedError, match=f"it does not take the ticket of ingest@{REALM}"):
        open_hdfs(address("webhdfs")).read_length("/none")
    set_login(monkeypatch, get_kdc(secured).get_keytab("ingest"))
    assert read() is None


def test_kdc_that_hangs_stops_no_other_thread(secured: Stack) -> None:
    """HDFS's own client looks for a ticket while no other thread of Python may run; another call does so first."""
    kdc = psutil.Process(secured.find_pid("kdc"))
    kdc.suspend()
    try:
        with ThreadPoolExecutor() as pool:
            looks = [time.monotonic()]
            waiting = pool.submit(lambda: open_hdfs(locate_hdfs()).read_length("/none"))
            while not waiting.done():
                wait([waiting], 0.1)
                looks.append(time.monotonic())
        assert isinstance(waiting.exception(), UnreachableError)
        assert looks[-1] - looks[0] > 10 > max(after - before for before, after in pairwise(looks))
    finally:
        kdc.resume()


def test_stack_up_by_option_prints_how_to_log_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCEOVER_LOCAL", str(tmp_path / ".local"))
    for name in (*VARIABLES, "ONCEOVER_HDFS", "ONCEOVER_WEBHDFS"):
        monkeypatch.delenv(name)
    (tmp_path / "pipelines").mkdir()
    monkeypatch.setenv("ONCEOVER_PIPELINES", str(tmp_path / "pipelines"))
    try:
        done = subprocess.run(
            [ONCEOVER, "stack", "up", "hdfs", "--kerberos"], capture_output=True, text=True, check=True
        )
        (line,) = (each for each in done.stdout.splitlines() if "source" in each)
        assert line == f"HDFS asks for a ticket: `source {tmp_path}/.local/kerberos/environment`"
        shell = "source .local/kerberos/environment && onceover doctor --json"
        path = f"{Path(ONCEOVER).parent}:{os.environ['PATH']}"
        doctor = subprocess.run(["bash", "-c", shell], cwd=tmp_path, env={**os.environ, "PATH": path},
                                capture_output=True, text=True, check=False)  # fmt: skip
        seen = {(each["check"], each["state"]) for each in json.loads(doctor.stdout)}
        assert {("Kerberos", "fine"), ("HDFS", "fine")} <= seen
        assert ("HDFS", "wrong") not in seen
        hbase = subprocess.run([ONCEOVER, "stack", "up", "hbase"], capture_output=True, text=True, check=False)
        assert (hbase.returncode, len(hbase.stderr.strip().splitlines())) == (2, 1), hbase.stderr
        assert "HBase does not start on an HDFS with Kerberos here" in hbase.stderr
    finally:
        subprocess.run([ONCEOVER, "stack", "down"], check=True, capture_output=True)
