"""Raw on HDFS shared by three users of one group: ingest, Airflow and a person. A stranger may do nothing to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from tests.integration.compaction import carry_out_all
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import append, backdate, count_certified, land_twice, minutes, skip_to, spoil
from tests.integration.program import as_json, run
from tests.integration.releases import accept_nameless, compute_expected, make_nameless, release

from onceover.config.endpoints import address
from onceover.errors import DENIED, AccessDeniedError

pytestmark = [pytest.mark.stack, pytest.mark.rare]
ActAs = Callable[[str], AbstractContextManager[None]]


@pytest.fixture(params=["hdfs", "webhdfs"])
def lane(request: pytest.FixtureRequest, lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> Lane:
    """A pipeline whose raw root belongs to ingest and its group."""
    if request.param == "webhdfs":
        monkeypatch.setenv("ONCEOVER_WEBHDFS", address("webhdfs"))
    made = lanes(more='[storage]\nraw_root = "/shared/{topic}"\nretention = "30d"')
    made.toml.write_text(made.toml.read_text().replace("{topic}", made.topic))
    made.hdfs().makedirs(made.layout.raw_root)
    made.hdfs().set_owner(made.layout.raw_root, "ingest", "onceover")
    made.hdfs().set_permission(made.layout.raw_root, "775")
    return made


@pytest.fixture
def act_as(lane: Lane) -> ActAs:
    """Return what lets the block act on HDFS as that user: in this process, in Spark's JVM, and in its workers."""
    jvm: Any = lane.spark.sparkContext._jvm
    login = jvm.org.apache.hadoop.security.UserGroupInformation

    @contextmanager
    def act_as(user: str) -> Iterator[None]:
        before = login.getLoginUser()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HADOOP_USER_NAME", user)
            patch.setitem(lane.spark.sparkContext.environment, "HADOOP_USER_NAME", user)
            login.setLoginUser(login.createRemoteUser(user))
            try:
                yield
            finally:
                login.setLoginUser(before)

    return act_as


def leave_open(lane: Lane, minute: int) -> None:
    """Have a client of its own, as a dead process had, hold that window's file open, with half a line in it."""
    jvm: Any = lane.spark.sparkContext._jvm
    hadoop = jvm.org.apache.hadoop.fs
    configuration = lane.spark.sparkContext._jsc.hadoopConfiguration()
    writer = hadoop.FileSystem.newInstance(hadoop.Path(address("hdfs")).toUri(), configuration)
    stream = writer.append(hadoop.Path(lane.window_file(minute)))
    stream.write(bytearray(b"half a li"))
    stream.hflush()


def list_made(lane: Lane) -> dict[str, tuple[str, str, str]]:
    """Return kind, group and mode of all below the raw root."""
    return {
        path.removeprefix(lane.layout.raw_root): (status["type"], status["group"], status["permission"])
        for (folder, _), names, files in lane.hdfs().walk(lane.layout.raw_root, status=True)
        for name, status in (*names, *files)
        for path in [f"{folder}/{name}"]
    }


def list_owners(lane: Lane, folder: str = "") -> set[str]:
    root = f"{lane.layout.raw_root}/{lane.name}{folder}"
    return {status["owner"] for _, _, files in lane.hdfs().walk(root, status=True) for _, status in files}


def list_tries(lane: Lane) -> list[tuple[int, bool]]:
    query = 'SELECT tries, blocked_at FROM onceover."window" WHERE pipeline = %s ORDER BY window_start'
    return [(row["tries"], row["blocked_at"] is not None) for row in lane.query(query, [lane.name])]


def repair_all(lane: Lane) -> None:
    """Detect and repair, as the schedule does."""
    confirmation = lane.repair_detected()
    assert (confirmation.failed, confirmation.left) == ((), ())


def test_three_users_of_one_group_share_raw(lane: Lane, act_as: ActAs) -> None:
    with act_as("ingest"):
        land_twice(lane, [make_nameless(n, n) if n % 4 == 3 else event(n, amount=n) for n in range(20)])
        lane.produce([make_nameless(29), *(event(n, amount=n) for n in range(20, 29))])
        skip_to(lane, 30)
        lane.produce([event(31)])
        lane.turn()
        leave_open(lane, 0)
    with act_as("airflow"):
        repair_all(lane)  # closes the file; reads a hole again, into files of its own and into ingest's quarantine
    with act_as("ingest"):
        lane.land([event(28)])
    assert list_owners(lane) == {"ingest", "airflow"}
    with act_as("airflow"):
        repair_all(lane)

    spoil(lane, lane.window_file(10))
    with act_as("oncall"):
        _, reread = lane.reread(10)
        assert reread is not None
        assert reread.confirmed == ("2026-03-01T12:10Z",)
        accept_nameless(lane)
        release(lane)
    with act_as("ingest"):
        lane.land([event(3), make_nameless(33)])
    with act_as("airflow"):
        assert lane.detect().request_id is None, "all is certified"
    assert lane.aggregates() == compute_expected(lane)
    with act_as("oncall"):
        assert [each.why for each in lane.compact()] == [None] * count_certified(lane)
        backdate(lane)
        assert as_json("retention", lane.name, "--reason", "room")["left"] == 0
    made = list_made(lane)
    assert {kind for kind in made if kind.endswith(".zst")}
    assert set(made.values()) == {("DIRECTORY", "onceover", "775"), ("FILE", "onceover", "664")}
    assert list_owners(lane) == {"ingest", "airflow", "oncall"}

    lane.query("UPDATE onceover.expiry SET moved_at = moved_at - interval '2 days' WHERE pipeline = %s", [lane.name])
    with act_as("ingest"):
        assert carry_out_all(lane), "what a person expired, ingest deletes"
        lane.land([event(41)])
    with act_as("airflow"):
        assert lane.detect().failed == ()
        assert lane.sweep().differing == ()
    assert lane.aggregates() == compute_expected(lane)


def make_wrong(lane: Lane) -> int:
    """Land each record twice, nameless ones in quarantine too, and request the repair of the four windows."""
    land_twice(lane, [make_nameless(n) if n % 7 == 6 else event(n) for n in range(20)])
    request_id = lane.detect().request_id
    assert request_id is not None
    return request_id


def require_denied(lane: Lane, right: str, below: str, message: str, user: str = "stranger") -> None:
    """Require one line with user, right, path and remedy."""
    start = f"{DENIED} by HDFS: user {user} may not {right} {lane.layout.raw_root}{below}"
    assert start in message
    assert message.endswith("docs/deployment.md says which rights each process needs, and how to give them")
    assert "\n" not in message


def test_stranger_may_not_write_and_no_try_is_lost(lane: Lane, act_as: ActAs) -> None:
    with act_as("ingest"):
        request_id = make_wrong(lane)
        lane.repair(request_id)
        append(lane, 15, b"rubbish\n")
        request_id = lane.detect(minutes(15, 20)).request_id or 0
        leave_open(lane, 15)
        accept_nameless(lane)
        lane.ingest()
        lane.overwrite(lane.window_file(5), lane.read(lane.window_file(5))[:150])
        lane.produce([event(25)])
    tries, before = list_tries(lane), lane.raw()
    backdate(lane)
    own = f"/{lane.name}"
    refused: dict[str, tuple[str, Callable[[], object]]] = {
        "ingest": (own, lane.turn),
        "repair": (f"{own}/2026-03-01/1215.log", lambda: lane.repair(request_id)),
        "reread": (own, lambda: lane.reread(5)),
        "release": (own, lambda: release(lane)),
        "compact": (own, lane.compact),
    }
    for path, action in refused.values():
        with act_as("stranger"), pytest.raises(AccessDeniedError) as denied:
            action()
        require_denied(lane, "WRITE", path, str(denied.value))
    with act_as("stranger"):
        done = run("retention", lane.name, "--reason", "room")
    assert done.returncode == 1
    require_denied(lane, "WRITE", own, done.stderr.strip())
    assert (list_tries(lane), lane.raw()) == (tries, before)


def test_task_that_may_not_open_a_file_costs_no_try(lane: Lane, act_as: ActAs) -> None:
    with act_as("ingest"):
        request_id = make_wrong(lane)
    file = lane.window_file(5)
    (name,) = lane.hdfs().list(f"{lane.layout.raw_root}/{lane.name}/quarantine")
    held = f"{lane.layout.raw_root}/{lane.name}/quarantine/{name}"
    for path in (file, held):
        lane.hdfs().set_permission(path, "640")
    tries = list_tries(lane)
    refused: list[tuple[str, Callable[[], object]]] = [
        (file, lambda: lane.repair(request_id)),
        (file, lambda: lane.reread(5)),
        (held, lambda: release(lane)),
    ]
    for path, action in refused:
        with act_as("stranger"), pytest.raises(AccessDeniedError) as denied:
            action()
        require_denied(lane, "READ", path.removeprefix(lane.layout.raw_root), str(denied.value))
    lane.produce([event(6)])
    with act_as("airflow"), pytest.raises(AccessDeniedError) as denied:
        lane.turn()
    require_denied(lane, "WRITE", file.removeprefix(lane.layout.raw_root), str(denied.value), "airflow")
    assert list_tries(lane) == tries
    lane.hdfs().set_permission(file, "664")
    with act_as("airflow"):
        lane.ingest()
        repair_all(lane)
    assert count_certified(lane) == 4


def test_commands_name_a_missing_right_before_spark(lane: Lane, act_as: ActAs) -> None:
    with act_as("ingest"):
        make_wrong(lane)
    lane.hdfs().set_permission(lane.layout.raw_root, "770")
    tries, noon = list_tries(lane), ("2026-03-01T12:00Z", "2026-03-01T12:05Z")
    for arguments in (
        ("repair", lane.name, "--from", noon[0], "--to", noon[1], "--reason", "test"),
        ("reread", lane.name, noon[0], "--reason", "test"),
        ("sweep", lane.name),
    ):
        with act_as("stranger"):
            done = run(*arguments)
        assert done.returncode == 1, arguments
        (line,) = (each for each in (done.stdout + done.stderr).splitlines() if DENIED in each)
        require_denied(lane, "EXECUTE", "", line)
    assert list_tries(lane) == tries
