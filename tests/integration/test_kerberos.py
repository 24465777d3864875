"""Raw on an HDFS that asks for tickets, by both protocols: landed, repaired, compacted and expired; what a login that
fails says, and that there is no way around it."""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest
import requests
from tests.integration.compaction import expire_text, spoil_rows
from tests.integration.events import event
from tests.integration.job_runs import (
    Jobs,
    end_ingest,
    end_well,
    land,
    list_failed,
    open_jobs,
    require_counted,
    start_compaction,
    start_repair,
)
from tests.integration.lane import Lanes
from tests.integration.planted_failures import minutes
from tests.integration.program import ONCEOVER
from tests.integration.secured_hdfs import (
    NAME_SERVICE,
    describe,
    get_kdc,
    secured,
    set_login,
    shorten_tickets,
    spoil_keytab,
    take_ticket,
)

from onceover.cli.doctor.hdfs import check_hdfs
from onceover.config.endpoints import address, locate_hdfs
from onceover.errors import AccessDeniedError, ConfigurationError
from onceover.raw.kerberos import find_failure
from onceover.raw.native_client import NativeClient
from onceover.raw.native_store import open_hdfs
from onceover_demo.warm import WarmJobs
from onceover_local.stack import Stack
from onceover_local.stack.kerberos import REALM, read_keytab
from onceover_local.stack.process import wait_for

__all__ = ["secured"]
pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]


@pytest.fixture(scope="module")
def spark_session() -> None:
    """Return None: the jobs have a Spark of their own, which knows Kerberos."""


@pytest.fixture(scope="module")
def warm(secured: Stack, stack: Stack) -> Iterator[WarmJobs]:
    with closing(WarmJobs(stack.local / "log" / "warm-kerberos.log")) as jobs:
        yield jobs


@pytest.fixture
def jobs(tmp_path: Path, warm: WarmJobs) -> Iterator[Jobs]:
    with open_jobs(tmp_path, warm) as start:
        yield start


@pytest.fixture(autouse=True)
def login(secured: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test log in by itself, as the user `onceover`."""
    set_login(monkeypatch, get_kdc(secured).get_keytab("onceover"))


@pytest.fixture(params=["hdfs", pytest.param("webhdfs", marks=pytest.mark.largest)])
def protocol(secured: Stack, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The protocol by which raw is appended and read."""
    if request.param == "webhdfs":
        monkeypatch.setenv("ONCEOVER_HDFS", f"webhdfs://{NAME_SERVICE}")


@pytest.mark.usefixtures("protocol")
def test_raw_on_secured_hdfs_lives_its_whole_life(lanes: Lanes, jobs: Jobs) -> None:
    lane = land(lanes, jobs)
    spoil_rows(lane)
    request_id = lane.detect(minutes(0, 10), force=True).request_id
    end_well(start_repair(lane, jobs, request_id))
    assert list_failed(lane, request_id) == ()
    end_well(start_compaction(lane, jobs))
    require_counted(lane, jobs)
    assert expire_text(lane) == 2
    assert [name[-4:] for name in lane.raw() if name.startswith("2026")] == [".zst", ".zst"]


@pytest.mark.largest
def test_dead_writers_lease_is_recovered_by_the_keytab(secured: Stack, lanes: Lanes, jobs: Jobs) -> None:
    """Leases are asked for by Spark's own client, which logs in by itself."""
    lane = land(lanes, jobs)
    held = NativeClient(address("hdfs")).call(lambda client: client.append(lane.window_file(0)))
    lane.produce([event(0, amount=1000)])
    end_ingest(jobs("ingest.py", "--pipeline", lane.name))
    assert lane.aggregates()[0.0, "a"][2] == 1000
    del held


def test_no_request_without_a_ticket_is_answered(secured: Stack) -> None:
    web = address("webhdfs")
    (datanode,) = (each.address for each in secured.list_statuses() if each.name == "datanode1")
    for where in (
        f"{web}/webhdfs/v1/?op=LISTSTATUS&user.name=onceover",
        f"{web}/jmx",
        f"{web}/conf",
        f"{datanode}/conf",
    ):
        assert requests.get(where, timeout=10).status_code == requests.codes.unauthorized, where
    direct = requests.get(f"{datanode}/webhdfs/v1/a?op=OPEN&user.name=onceover&offset=0", timeout=10)
    assert not direct.ok, "a DataNode asks for the NameNode's token"


def test_stranger_with_a_ticket_has_no_rights(secured: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    open_hdfs(locate_hdfs()).append("/own/a.log", [b"a\n"])
    set_login(monkeypatch, get_kdc(secured).get_keytab("stranger"))
    for where in (locate_hdfs(), address("webhdfs")):
        with pytest.raises(AccessDeniedError, match="user stranger may not WRITE /own/a"):
            open_hdfs(where).append("/own/a.log", [b"b\n"])


@pytest.fixture(params=["hdfs", "webhdfs"])
def read(secured: Stack, request: pytest.FixtureRequest) -> Callable[[], object]:
    """Return what reads from HDFS by a client of that protocol, made now."""
    return lambda: open_hdfs(locate_hdfs() if request.param == "hdfs" else address("webhdfs")).read_length("/none")


def test_wrong_keytab_is_a_line_with_principal_and_remedy(
    secured: Stack, read: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = spoil_keytab(get_kdc(secured), "ingest", tmp_path / "old.keytab")
    set_login(monkeypatch, wrong)
    error, line = describe(read)
    assert error is AccessDeniedError
    assert line.startswith("access denied by Kerberos: ")
    remedy = f"for ingest@{REALM}; make the keytab {wrong} again, or set KRB5_CLIENT_KTNAME to the right one"
    assert line.endswith(remedy)


def test_missing_keytab_is_a_line_with_its_variable(
    secured: Stack, read: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keytab = tmp_path / "none.keytab"
    for content in (None, b"rubbish" * 40):
        if content is not None:
            keytab.write_bytes(content)
        set_login(monkeypatch, keytab)
        error, line = describe(read)
        assert error is ConfigurationError
        assert line == f"KRB5_CLIENT_KTNAME: {keytab} is no keytab that this process may read; correct it"


@pytest.mark.largest
def test_ended_ticket_is_a_line_with_principal_and_remedy(
    secured: Stack, read: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRB5_CONFIG", str(shorten_tickets(get_kdc(secured), 5)))
    set_login(monkeypatch, get_kdc(secured).get_keytab("ingest"))
    cache = tmp_path / "cache"
    take_ticket(cache)
    set_login(monkeypatch, None, cache)
    assert read() is None, "a ticket of a cache opens HDFS"
    wait_for(lambda: find_failure(address("webhdfs")) is not None, 30, "the ticket to end")
    error, line = describe(read)
    assert error is AccessDeniedError
    assert line == (
        f"access denied by Kerberos: Ticket expired, for ingest@{REALM}; run `kinit ingest@{REALM}`, or set "
        "KRB5_CLIENT_KTNAME to a keytab, which renews its tickets"
    )


def test_host_that_kerberos_does_not_know_is_named(secured: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = address("webhdfs").replace("127.0.0.1", "localhost")
    error, line = describe(lambda: open_hdfs(elsewhere).read_length("/none"))
    assert error is AccessDeniedError
    assert f"Server HTTP/localhost@{REALM} not found in Kerberos database" in line
    assert "let ONCEOVER_WEBHDFS name localhost as Kerberos does" in line


@pytest.mark.parametrize("locate", [locate_hdfs, lambda: address("webhdfs")], ids=["hdfs", "webhdfs"])
def test_process_without_a_login_is_asked_for_one(
    secured: Stack, monkeypatch: pytest.MonkeyPatch, locate: Callable[[], str]
) -> None:
    where = locate()
    monkeypatch.setenv("ONCEOVER_HDFS_AUTH", "simple")
    monkeypatch.delenv("HADOOP_CONF_DIR")
    error, line = describe(lambda: open_hdfs(where).read_length("/none"))
    assert error is ConfigurationError
    assert line.endswith("asks for a login; set ONCEOVER_HDFS_AUTH=kerberos")


def test_doctor_names_the_principal_and_its_tickets_end(
    secured: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keytab = get_kdc(secured).get_keytab("onceover")
    outcomes = [*check_hdfs([])]
    assert {each.state for each in outcomes} == {"fine"}, outcomes
    (login,) = (each.what for each in outcomes if each.check == "Kerberos")
    sentence = f"onceover@{REALM} logs in by the keytab {keytab}, which renews its ticket; this one ends at "
    assert re.fullmatch(re.escape(sentence) + r"\d{4}-\d\d-\d\dT\d\d:\d\dZ", login)
    shown = tmp_path / "shown.keytab"
    shown.write_bytes(keytab.read_bytes())
    for mode, states in ((0o640, []), (0o644, [("Kerberos", "wrong")])):
        shown.chmod(mode)
        set_login(monkeypatch, shown)
        assert [(each.check, each.state) for each in check_hdfs([]) if each.state != "fine"] == states
    take_ticket(tmp_path / "cache")
    set_login(monkeypatch, None, tmp_path / "cache")
    (note,) = (each for each in check_hdfs([]) if each.state != "fine")
    assert (note.check, note.state) == ("Kerberos", "note")
    assert note.what.startswith(f"onceover@{REALM} logs in by a ticket that ends at ")


def test_ingest_says_a_wrong_keytab_in_one_line_without_a_secret(
    secured: Stack, lanes: Lanes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane, kdc = lanes(), get_kdc(secured)
    set_login(monkeypatch, spoil_keytab(kdc, "ingest", tmp_path / "old.keytab"))
    done = subprocess.run([ONCEOVER, "ingest", lane.name], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert f"for ingest@{REALM}; make the keytab {tmp_path}/old.keytab again" in line


def test_keys_are_in_no_command_line_and_no_log(secured: Stack) -> None:
    kdc = get_kdc(secured)
    secrets = [entry[-20:-4] for entry in read_keytab(kdc.get_keytab("onceover")).values()]
    secrets += [entry[-20:-4] for entry in read_keytab(kdc.get_keytab("servers")).values()]
    texts = {each for secret in secrets for each in (secret, secret.hex().encode(), base64.b64encode(secret)[:20])}
    texts.add((secured.local / "secrets" / "hdfs-http").read_bytes())
    shown = [file.read_bytes() for file in (secured.local / "log").iterdir()]
    shown += [" ".join(psutil.Process(each.pid).cmdline()).encode() for each in secured.list_statuses() if each.pid]
    assert len(shown) == 6
    assert not [text for text in texts for each in shown if text in each]
    assert {file.stat().st_mode & 0o077 for file in kdc.folder.glob("*.keytab")} == {0}
    assert kdc.folder.stat().st_mode & 0o077 == 0
