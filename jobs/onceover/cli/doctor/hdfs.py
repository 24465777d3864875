"""The check of HDFS: WebHDFS and RPC, safe mode, free space, and whether an append survives a DataNode's death."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from onceover.cli.doctor.datanodes import check_datanodes, read_bean
from onceover.cli.doctor.machine import check_space
from onceover.cli.doctor.namenodes import check_failover, find_active, read_states
from onceover.cli.doctor.outcome import SECONDS, Outcome
from onceover.config.endpoints import address, locate_hdfs, name_lease_server, start_or_set
from onceover.errors import OnceoverError, TerminalError
from onceover.model.pipeline import Pipeline
from onceover.model.window import format_moment
from onceover.model.wording import pluralize
from onceover.raw.hdfs_store import HdfsStore
from onceover.raw.kerberos import KEYTAB, find_keytab, read_ticket, uses_kerberos
from onceover.raw.layout import Layout
from onceover.raw.native_store import open_hdfs
from onceover.raw.window_files import WindowFiles


def check_hdfs(pipelines: Sequence[Pipeline]) -> Iterator[Outcome]:
    """Check that WebHDFS and the NameNode's RPC answer, safe mode, DataNodes, free space and the settings of writes.
    Writes nothing. Yield nothing if no pipeline needs HDFS."""
    if pipelines and not any(map(_needs_hdfs, pipelines)):
        return
    where = address("webhdfs")
    yield from _check_ticket(where)
    yield from _check_namenode_rpc()
    root = pipelines[0].storage.raw_root if pipelines else "/"
    WindowFiles(where, Layout(root, "doctor")).read_length(root)
    yield from _check_folders(where, pipelines)
    states = read_states(where)
    yield from check_failover(states)
    where = find_active(states)
    try:
        state = read_bean(where, "FSNamesystemState")
        mode, living = str(state["FSState"]), int(state["NumLiveDataNodes"])
        free, total = int(state["CapacityRemaining"]), int(state["CapacityTotal"])
    except (OSError, ValueError, LookupError, TypeError):
        what = f"{where} answers, but does not report safe mode and DataNodes; is it a gateway before the NameNode?"
        yield Outcome("HDFS", "note", what)
        return
    if mode != "Operational":
        what = (
            f"{where} is in safe mode and takes no writes; wait until its DataNodes have reported, or end safe mode "
            "with `hdfs dfsadmin -safemode leave`"
        )
        yield Outcome("HDFS", "wrong", what)
    if not living:
        yield Outcome("HDFS", "wrong", f"{where} has no live DataNode; start the DataNodes")
        return
    if mode == "Operational":
        yield Outcome("HDFS", "fine", f"{where} takes writes, {pluralize(living, 'DataNode')}")
    yield check_space("HDFS", "its DataNodes", free, total, "add a DataNode or a disk, or delete files")
    yield from check_datanodes(where, living)


def _check_ticket(where: str) -> Iterator[Outcome]:
    """Name the principal and the end of its ticket. Raise as `read_ticket`; yield nothing without Kerberos."""
    if not uses_kerberos():
        return
    ticket, keytab = read_ticket(where), find_keytab()
    end = format_moment((datetime.now(UTC) + timedelta(seconds=ticket.seconds)).replace(second=0, microsecond=0))
    if keytab is None:
        what = (
            f"{ticket.principal} logs in by a ticket that ends at {end}, and that nothing renews; set {KEYTAB} to a "
            "keytab where ingest and Airflow run"
        )
        yield Outcome("Kerberos", "note", what)
    elif not os.path.isfile(keytab):
        what = f"{KEYTAB}: {keytab} is no file, and the ticket of {ticket.principal} ends at {end}; correct it"
        yield Outcome("Kerberos", "wrong", what)
    elif os.stat(keytab).st_mode & stat.S_IROTH:
        what = f"every user of this machine may read the keytab {keytab}, and log in by it; `chmod o= {keytab}`"
        yield Outcome("Kerberos", "wrong", what)
    else:
        what = f"{ticket.principal} logs in by the keytab {keytab}, which renews its ticket; this one ends at {end}"
        yield Outcome("Kerberos", "fine", what)


def _needs_hdfs(pipeline: Pipeline) -> bool:
    return pipeline.storage.raw_store == "hdfs" or pipeline.ingest.offset_store in ("hdfs", "checkpoint")


def _check_folders(where: str, pipelines: Sequence[Pipeline]) -> Iterator[Outcome]:
    """Check that this user may read each pipeline's raw, and that HDFS appends there; yield only problems."""
    store = HdfsStore(where)
    for pipeline in pipelines:
        if pipeline.storage.raw_store == "hdfs":
            try:
                store.require_usable(pipeline.storage.raw_root)
                store.require_usable(f"{pipeline.storage.raw_root}/{pipeline.name}")
            except TerminalError as error:
                yield Outcome(f"raw of {pipeline.name}", "wrong", str(error))


def _check_namenode_rpc() -> Iterator[Outcome]:
    """Check the address by which raw is read and appended, and Spark asks for leases; yield only a problem. A name
    service of several NameNodes has no port to try."""
    try:
        where = urlsplit(name_lease_server(address("hdfs")))
        if where.hostname and where.port:
            socket.create_connection((where.hostname, where.port), SECONDS).close()
        open_hdfs(locate_hdfs()).read_length("/")
    except OnceoverError as error:
        yield Outcome("HDFS", "wrong", str(error))
    except (OSError, ValueError) as error:
        what = f"the NameNode does not answer at {where.geturl()} ({error}); {start_or_set('hdfs')}"
        yield Outcome("HDFS", "wrong", what)
