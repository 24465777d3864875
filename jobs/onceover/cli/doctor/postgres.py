"""The check of PostgreSQL: its version, the ledger's, and the state of each pipeline in the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from onceover.cli.doctor.outcome import Outcome
from onceover.cli.doctor.zones import check_zone
from onceover.config.endpoints import address
from onceover.detection.evidence import find_incomplete_partitions
from onceover.errors import OnceoverError, TransientError, UsageError
from onceover.explain.finding_text import describe_finding
from onceover.explain.next_steps import list_pipeline_steps
from onceover.explain.page.ingest import read_ingest
from onceover.ledger.catalog import require_same_contract
from onceover.ledger.database import SCHEMA_VERSION, Connection, connect, require_current
from onceover.ledger.windows import WindowState, count_open_windows, find_next_log_expiry, list_windows
from onceover.model.pipeline import Pipeline
from onceover.model.window import format_moment
from onceover.model.wording import format_duration, format_list, pluralize
from onceover.observability.metric_values import DriverState

POSTGRES = 15
_MAJOR = 10_000


def check_postgres(pipelines: Sequence[Pipeline]) -> Iterator[Outcome]:
    """Check that the database answers and its ledger has this code's version; then each pipeline in the ledger."""
    where = address("postgres")
    with connect(where, "onceover doctor") as connection:
        version = connection.info.server_version
        shown = f"PostgreSQL {format_version(version)} at {connection.info.host}:{connection.info.port}"
        if version < POSTGRES * _MAJOR:
            yield Outcome("PostgreSQL", "wrong", f"{shown} is too old; version {POSTGRES} or later is needed")
        else:
            yield Outcome("PostgreSQL", "fine", f"{shown} answers")
        require_current(connection)
        yield Outcome("ledger", "fine", f"at version {SCHEMA_VERSION}")
        for pipeline in pipelines:
            yield from _check_pipeline(connection, pipeline)


def format_version(number: int) -> str:
    """Return a server's version with its minor one, which its security page is to be asked about: 180004 is 18.4."""
    return f"{number // _MAJOR}.{number % _MAJOR}"


def _check_pipeline(connection: Connection, pipeline: Pipeline) -> Iterator[Outcome]:
    name = pipeline.name
    try:
        registered = require_same_contract(connection, pipeline)
    except UsageError as error:
        yield Outcome(name, "note", str(error))
        return
    except TransientError:
        raise
    except OnceoverError as error:
        yield Outcome(name, "wrong", str(error))
        return
    blocked = [row["window_start"] for row in list_windows(connection, name, WindowState.BLOCKED)]
    damaged = [row["window_start"] for row in list_windows(connection, name, WindowState.DAMAGED)]
    failed = len(list_windows(connection, name, WindowState.FAILED))
    findings = find_incomplete_partitions(connection, name)
    for finding in findings:
        text = describe_finding(finding.kind, finding.evidence)
        steps = " ".join(f"{step.text} `{step.command}`" for step in list_pipeline_steps(name, [finding.kind]))
        yield Outcome(name, "wrong", f"{finding.kind}: {text.what} {text.how} {steps}")
    for state, starts in (("blocked", blocked), ("certified, but raw is damaged", damaged)):
        if starts:
            some = format_list(map(registered.windowing.show, starts), "window", 3)
            yield Outcome(name, "wrong", f"{state}: {some}; `onceover explain {name} WINDOW` says why and what to do")
    if failed:
        yield Outcome(
            name,
            "note",
            f"{pluralize(failed, 'failed window')} {'waits' if failed == 1 else 'wait'} for the next repair",
        )
    if pipeline.contract.window_zone:
        yield from check_zone(connection, name, registered.contract, pipeline.contract)
    if not (findings or blocked or damaged or failed):
        yield Outcome(name, "fine", f"no window has failed, {count_open_windows(connection, name)} open")
    yield from _check_ingest(connection, name)
    yield from _check_log(connection, name)


def _check_ingest(connection: Connection, name: str) -> Iterator[Outcome]:
    """Name a driver that is stalled, or dead: an alert wakes a person for both, who runs the doctor first."""
    ingest = read_ingest(connection, name)
    if ingest.advice and ingest.driver is not DriverState.STOPPED:
        state: Literal["note", "wrong"] = "wrong" if ingest.driver is DriverState.ALIVE else "note"
        yield Outcome(f"ingest of {name}", state, f"{ingest.sentence} {ingest.advice} `onceover ingest {name}`")


def _check_log(connection: Connection, name: str) -> Iterator[Outcome]:
    """Check that Kafka keeps a window's records until the window is certified."""
    first = find_next_log_expiry(connection, name)
    if first is None:
        return
    left, at = first["log_until"] - first["now"], format_moment(first["window_start"])
    judge = (
        f"see `onceover explain {name} {at}`, repair it, and raise the topic's retention.ms or retention.bytes if this "
        "happens again"
    )
    if left.total_seconds() <= 0:
        what = f"window {at} is not certified and Kafka has dropped records of it: only raw still holds them; {judge}"
        yield Outcome(name, "wrong", what)
    elif left < first["log_retention"] / 4:
        lasts = format_duration(left.total_seconds())
        yield Outcome(name, "note", f"window {at} is not certified and Kafka drops records of it in {lasts}; {judge}")
