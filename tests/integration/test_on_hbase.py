"""The tests of other files once more, with raw on HBase: extras, audits, schemas, retention, rebuilds, rereads."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from random import randbytes

import happybase
import psutil
import pytest
from tests.integration import (
    test_audit,
    test_avro_topics,
    test_extras,
    test_ledger_rebuild,
    test_release,
    test_reread,
    test_retention,
)
from tests.integration.events import event
from tests.integration.lane import Lanes
from tests.integration.lane_fixtures import put_on
from tests.listening import LOOPBACKS, list_heard

from onceover.config.endpoints import address
from onceover.raw.store import make_address, open_store
from onceover_local.stack import Stack
from onceover_local.stack.process import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.largest]
lane = test_retention.lane
client = test_avro_topics.client
AGAIN = (
    test_audit.test_audit_agrees_after_repair_and_names_each_difference,
    test_avro_topics.test_schema_that_raw_lost_is_named_and_restored,
    test_avro_topics.test_values_are_read_by_what_wrote_them,
    test_extras.test_extra_with_two_contents_waits_for_a_person,
    test_extras.test_appended_and_lost_records_count_by_their_lines,
    test_ledger_rebuild.test_lost_ledger_is_rebuilt_from_raw_and_certifies_the_same,
    test_release.test_lost_ledger_is_rebuilt_with_its_releases,
    test_reread.test_truncated_window_is_read_again_from_kafka,
    test_retention.test_certified_windows_are_deleted_and_stay_expired,
    test_retention.test_killed_expiry_resumes_between_its_steps,
    test_retention.test_late_record_in_a_moved_file_is_brought_back,
    test_retention.test_kept_file_cannot_be_moved_by_a_paused_driver,
)
globals().update({test.__name__: test for test in AGAIN})


@pytest.fixture
def lanes(lanes: Lanes, stack: Stack) -> Lanes:
    """Return a maker of lanes whose raw is on HBase."""
    return put_on("hbase", lanes, stack)


@pytest.fixture
def table(lanes: Lanes) -> Iterator[happybase.Table]:
    """The table that has raw's rows, as any client of HBase sees it."""
    host, port = address("hbase").split(":")
    with closing(happybase.Connection(host, int(port), timeout=30_000)) as connection:
        yield connection.table("onceover_raw")


def test_table_that_outgrows_a_region_keeps_its_files(table: happybase.Table) -> None:
    store, root = open_store(make_address("hbase", address("hbase"))), f"/test/{uuid.uuid4().hex}"
    contents = {f"{root}/{n}.log": randbytes(1 << 20) for n in range(400)}
    for path, content in contents.items():
        assert store.append(path, [content]).proved
    wait_for(lambda: len(table.regions()) > 1, 120, "a second region")
    assert all(store.read(path) == content for path, content in contents.items())


def test_line_is_found_by_the_rows_that_the_docs_name(lanes: Lanes, table: happybase.Table) -> None:
    made = lanes(most=5)
    made.land([event(n) for n in range(10)])
    prefix = table.row(f"n:{made.window_file(0)}".encode())[b"d:b"].partition(b" ")[0]
    cells = [columns[b"d:b"] for _, columns in table.scan(row_prefix=prefix)]
    assert [cell.count(b'"amount": 1') for cell in cells] == [5], "whole lines"


def test_hbase_and_drivers_listen_on_loopback_only(lanes: Lanes, stack: Stack) -> None:
    stack.up(["zookeeper"])
    groups = {"hbase", "zookeeper"}
    up = [each.pid for each in stack.list_statuses() if each.group in groups and each.pid is not None]
    drivers = [each.pid for each in psutil.Process().children(recursive=True) if "java" in each.name()]
    heard = {pid: set(list_heard([pid])) for pid in (*up, *drivers)}
    assert len(up) >= 3
    assert drivers
    assert all(heard.values())
    assert set.union(*heard.values()) <= LOOPBACKS


def test_rows_that_another_program_put_stop_no_reader(lanes: Lanes) -> None:
    made = lanes()
    made.land([event(n) for n in range(10)])
    host, port = address("hbase").split(":")
    name = f"n:{made.window_file(0)}".encode()
    with closing(happybase.Connection(host, int(port), timeout=30_000)) as connection:
        for key in (name + b"\xff", name + b"\0", name.replace(b"1200.log", b"9999.log")):
            connection.table("onceover_raw").put(key, {b"d:b": b"\xff\xfe ?"})
    assert made.detect().certified == 2
    assert made.sweep().differing == ()
    assert made.audit()["differing"] == 0
