"""What `onceover doctor` looks at: each part of the deployment, and what the ledger says of each pipeline."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

from onceover.cli.sentences import counted, listed, tell
from onceover.endpoints import address
from onceover.errors import OnceoverError, TerminalError, TransientError, UnreachableError, UsageError
from onceover.findings import Kind
from onceover.pipeline import Pipeline

if TYPE_CHECKING:
    from onceover.ledger.database import Connection

_MEND = {
    Kind.UNFINISHED_BATCH: "start ingest, it supersedes them",
    Kind.HOLE: "see with `onceover holes` whether Kafka still has them",
    Kind.TRUNCATED: "find out who cut the log; `onceover offsets` shows where it stands",
}
SECONDS = 5.0
JAVA = 17
POSTGRES = 15


@dataclass(frozen=True, slots=True)
class Outcome:
    """One thing looked at. `note` is worth knowing and nothing to mend; `wrong` says how to mend it."""

    check: str
    state: Literal["fine", "note", "wrong"]
    what: str


def java() -> Iterator[Outcome]:
    """The Java that the embedded stack finds on PATH, and the one that Spark prefers."""
    named = os.environ.get("JAVA_HOME")
    for where, file in (("PATH", shutil.which("java")), ("JAVA_HOME", str(Path(named) / "bin/java") if named else "")):
        if file == "":
            continue
        if file is None or not Path(file).exists():
            yield Outcome("Java", "wrong", f"there is no java on {where}; install Java {JAVA} and let {where} name it")
            continue
        # It prints its version on stderr.
        said = subprocess.run([file, "-version"], capture_output=True, text=True, timeout=SECONDS, check=False).stderr
        found = re.search(r'version "(\d+)', said)
        if found is None or int(found[1]) < JAVA:
            version = f"Java {found[1]}" if found else "of an unknown version"
            yield Outcome("Java", "wrong", f"{file} ({where}) is {version}; Kafka, HDFS and Spark need Java {JAVA}")
        else:
            yield Outcome("Java", "fine", f"{file} is Java {found[1]}")


def kafka(pipelines: Sequence[Pipeline]) -> Iterator[Outcome]:
    """Whether the cluster answers, and whether it has each pipeline's topic."""
    from onceover.kafka import Topic
    from onceover.kafka.client import Admin

    where = address("kafka")
    properties = pipelines[0].kafka if pipelines else {}
    admin = Admin(where, properties, SECONDS)
    nodes = admin.wait(admin.client.describe_cluster(request_timeout=SECONDS), "describe the cluster").nodes
    yield Outcome("Kafka", "fine", f"{where} answers, {counted(len(nodes), 'broker')}")
    for pipeline in pipelines:
        check = f"topic of {pipeline.name}"
        contract = pipeline.contract
        try:
            asked = Topic(where, contract.topic, pipeline.ingest.isolation, pipeline.kafka, timeout=SECONDS)
            with closing(asked) as topic:
                facts = topic.facts()
        except TerminalError as error:  # there is no such topic
            yield Outcome(check, "wrong" if _has_run(pipeline.name) else "note", str(error))
            continue
        except OnceoverError as error:
            yield Outcome(check, "wrong", str(error))
            continue
        held = sum(facts.end[p] - facts.earliest[p] for p in facts.end)
        yield Outcome(
            check, "fine", f"{contract.topic}: {counted(len(facts.end), 'Kafka partition')}, {held:,} offsets"
        )


def _has_run(name: str) -> bool:
    from onceover.operations import has_run

    try:
        return has_run(name)
    except OnceoverError:
        return True  # nobody can say: rather one alarm too many


def offsets(pipelines: Sequence[Pipeline]) -> Iterator[Outcome]:
    """Whether the stored offsets of each pipeline that has run can be read, and are of its topic."""
    from onceover.moving_offsets import look

    for pipeline in pipelines:
        check, store = f"offsets of {pipeline.name}", pipeline.ingest.offset_store
        try:
            seen = look(pipeline)
        except UsageError:
            continue  # it has not run yet
        except OnceoverError as error:
            if store in ("zookeeper", "hbase"):  # the other parts are asked for themselves
                yield Outcome(check, "wrong", str(error))
            continue
        if seen.trouble:
            yield Outcome(check, "wrong", f"{seen.trouble}; see `onceover offsets {pipeline.name} show`")
        else:
            left = sum(max(0, p.end - (p.earliest if p.stored is None else p.stored)) for p in seen.kafka_partitions)
            yield Outcome(check, "fine", f"in {store}, {left:,} left to read")


def hdfs(pipelines: Sequence[Pipeline]) -> Iterator[Outcome]:
    """Whether both doors of HDFS answer, and what the NameNode says of safe mode and its DataNodes. Writes nothing."""
    from onceover.window_files import Layout, WindowFiles

    where = address("webhdfs")
    yield from _namenode_rpc()
    root = pipelines[0].storage.raw_root if pipelines else "/"
    WindowFiles(where, Layout(root, "doctor")).length(root)
    try:
        state = get_json(f"{where}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState")["beans"][0]
        mode, living = str(state["FSState"]), int(state["NumLiveDataNodes"])
    except (OSError, ValueError, LookupError, TypeError):
        yield Outcome(
            "HDFS", "note", f"{where} answers; it does not tell of safe mode and DataNodes (no NameNode itself?)"
        )
        return
    if mode != "Operational":
        yield Outcome(
            "HDFS",
            "wrong",
            f"{where} is in safe mode and takes no writes; wait until its DataNodes have reported, or end it with "
            "`hdfs dfsadmin -safemode leave`",
        )
    if not living:
        yield Outcome("HDFS", "wrong", f"{where} has no living DataNode; start them (`onceover stack up`)")
    elif mode == "Operational":
        yield Outcome("HDFS", "fine", f"{where} takes writes, {counted(living, 'DataNode')}")


def _namenode_rpc() -> Iterator[Outcome]:
    """What Spark reads by. Only a problem is told; a name service of several NameNodes has no port to try."""
    try:
        where = urlsplit(address("hdfs"))
        if where.hostname and where.port:
            socket.create_connection((where.hostname, where.port), SECONDS).close()
    except OnceoverError as error:
        yield Outcome("HDFS", "wrong", str(error))
    except (OSError, ValueError) as error:
        what = f"Spark cannot read at {where.geturl()} ({error}); start it (`onceover stack up`) or set ONCEOVER_HDFS"
        yield Outcome("HDFS", "wrong", what)


def postgres(pipelines: Sequence[Pipeline]) -> Iterator[Outcome]:
    """Whether the database answers and its ledger is this code's; then what the ledger says of each pipeline."""
    from onceover.ledger.database import HEAD, connect, require_current

    where = address("postgres")
    with connect(where, "onceover doctor") as connection:
        version = connection.info.server_version // 10_000
        shown = f"PostgreSQL {version} at {connection.info.host}:{connection.info.port}"
        if version < POSTGRES:
            yield Outcome("PostgreSQL", "wrong", f"{shown} is too old; version {POSTGRES} or later is needed")
        else:
            yield Outcome("PostgreSQL", "fine", f"{shown} answers")
        require_current(connection)
        yield Outcome("ledger", "fine", f"at version {HEAD}")
        for pipeline in pipelines:
            yield from _of_pipeline(connection, pipeline)


def airflow() -> Iterator[Outcome]:
    """Whether the API server answers and says that each of Airflow's processes is healthy."""
    where = address("airflow")
    try:
        health = get_json(f"{where}/api/v2/monitor/health")
    except (OSError, ValueError) as error:
        why = error.reason if isinstance(error, URLError) else error
        raise UnreachableError(
            f"Airflow at {where} does not answer ({why}); start it (`onceover stack up`) or set ONCEOVER_AIRFLOW"
        ) from error
    sick = sorted(part for part, told in health.items() if told and told.get("status") not in ("healthy", None))
    if sick:
        names = ", ".join(part.replace("_", " ") for part in sick)
        yield Outcome("Airflow", "wrong", f"{where}: {names} not healthy; look into its log (`onceover stack status`)")
    else:
        yield Outcome("Airflow", "fine", f"{where} answers, every process is healthy")


def get_json(url: str) -> Any:
    """What the address answers, within `SECONDS`; a proxy of the environment has no business with loopback."""
    local = urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
    opener = build_opener(ProxyHandler({})) if local else build_opener()
    with opener.open(url, timeout=SECONDS) as answer:
        return json.load(answer)


def _of_pipeline(connection: Connection, pipeline: Pipeline) -> Iterator[Outcome]:
    from onceover.ledger.catalog import require_same_contract
    from onceover.ledger.reading import WindowState, list_windows
    from onceover.ledger.windows import snapshot
    from onceover.window import from_ms

    name = pipeline.name
    try:
        require_same_contract(connection, pipeline)
    except UsageError as error:
        yield Outcome(name, "note", str(error))
        return
    except TransientError:
        raise
    except OnceoverError as error:
        yield Outcome(name, "wrong", str(error))
        return
    nowhere = from_ms(0)  # a snapshot of no window: only what it says of the pipeline
    seen = snapshot(connection, name, nowhere, nowhere, False)
    blocked = [row["window_start"] for row in list_windows(connection, name, WindowState.BLOCKED)]
    failed = len(list_windows(connection, name, WindowState.FAILED))
    for finding in seen.findings:
        told = tell(finding.kind, finding.evidence)
        yield Outcome(name, "wrong", f"{finding.kind}: {told.what} {told.how} To mend it, {_MEND[finding.kind]}")
    if blocked:
        some = listed([f"{start:%Y-%m-%dT%H:%MZ}" for start in blocked], "window", 3)
        yield Outcome(name, "wrong", f"blocked: {some}; `onceover explain {name} WINDOW` says why and what to do")
    if failed:
        yield Outcome(name, "note", f"{counted(failed, 'failed window')} wait for the next repair")
    if not seen.findings and not blocked and not failed:
        yield Outcome(name, "fine", f"no window has failed, {seen.open_windows} open")
