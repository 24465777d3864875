"""The end of every fault: each record that was produced counts once, by the test's own count of them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from tests.integration.extras import require_counted
from tests.integration.lane import Lane

from onceover.config.endpoints import address
from onceover.offset_stores.kafka import KafkaOffsetStore
from onceover_demo.supervised import SupervisedJob
from onceover_local.stack.part import get_json
from onceover_local.stack.process import wait_for

TABLES = ('"window"', "batch", "certificate", "finding", "accepted_loss", "repair", "stored_offset")


def assert_counts_once(lane: Lane, produced: Iterable[int]) -> None:
    """Do what drivers and schedules do after a fault, and compare with what `extras.produce` has produced."""
    end_lease(lane)
    lane.ingest()
    require_counted(lane, produced)
    assert set(lane.ids()) == lane.log().keys()
    assert lane.detect().judged == 0


def go_on(lane: Lane, ingest: SupervisedJob, produced: Iterable[int]) -> None:
    """Require that the driver goes on by itself, to the end, and that each record counts once."""
    wait_for(lambda: "idle, every window closed" in ingest.read_log(), 180, "the driver to go on")
    assert ingest.stop() == 0
    assert_counts_once(lane, produced)


def fail_attempt(ingest: SupervisedJob) -> None:
    """Let the held driver go on until one of its attempts has failed."""
    ingest.resume()
    wait_for(lambda: "attempt 1 of 5 failed" in ingest.read_log(), 180, "an attempt to fail")


def end_lease(lane: Lane) -> None:
    """End the lease of a driver that is dead or cut off, as six seconds do."""
    lane.query("UPDATE onceover.driver SET expires_at = '-infinity' WHERE pipeline = %s", [lane.name])


def read_group_offset(lane: Lane) -> int | None:
    """Return the group's committed offset, read by another client."""
    with closing(KafkaOffsetStore(address("kafka"), lane.topic, lane.pipeline.ingest.group, {})) as store:
        return store.load([0]).offsets.get(0)


def read_everything(lane: Lane) -> object:
    """Return what neither a killed command nor a woken process may change."""
    rows = [
        lane.query(f"SELECT * FROM onceover.{table} WHERE pipeline = %s ORDER BY 1, 2", [lane.name]) for table in TABLES
    ]
    # The note of changed offsets comes first and may stay, so that no change is unsigned.
    acts = "SELECT * FROM onceover.action WHERE pipeline = %s AND kind <> 'set offsets' ORDER BY 1"
    rows.append(lane.query(acts, [lane.name]))
    return lane.aggregates(), rows, read_group_offset(lane)


def has_unread_request(port: int) -> bool:
    """Return whether bytes wait at that port which the server, stopped before, has not read."""
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            local, queues = line.split()[1], line.split()[4]
            if int(local.rpartition(":")[2], 16) == port and int(queues.rpartition(":")[2], 16) > 0:
                return True
    return False


def find_datanode() -> str:
    """Return host and port of the DataNode's web server."""
    (found,) = get_json(f"{address('webhdfs')}/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo")["beans"]
    return str(found["LiveNodes"]).partition('"infoAddr":"')[2].partition('"')[0]


def pad(value: bytes, size: int) -> bytes:
    """Return the record with so many bytes that no aggregate counts."""
    return value.removesuffix(b"}") + b', "pad": "%b"}' % (b"x" * size)
