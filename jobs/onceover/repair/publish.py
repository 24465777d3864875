"""A repair's writes to a window: publish and certify in one transaction, or record why not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from onceover.errors import FencedError, TerminalError
from onceover.ledger import compactions, extras
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.certificates import Certificate, RawProof, certify
from onceover.ledger.database import Connection
from onceover.ledger.digest_columns import count_columns, digest_columns, read_count
from onceover.ledger.findings import note_finding, record_failed_scan, resolve_findings
from onceover.ledger.repair_requests import RepairRequest
from onceover.model.claim import ClaimedWindow
from onceover.model.digest import EMPTY
from onceover.model.finding import Finding
from onceover.model.log_history import EpochSpan
from onceover.model.offsets import OffsetRange
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.repair_failure import RepairFailure
from onceover.model.window import format_moment
from onceover.model.wording import format_records


@dataclass(frozen=True, slots=True)
class ProvedWindow:
    """A claimed window that was rebuilt and proved, with the `accounted` ranges that the proof knew, and the findings
    that do not refute it."""

    claimed: ClaimedWindow
    rebuilt: RebuiltWindow
    accounted: Sequence[OffsetRange]
    findings: Sequence[Finding] = ()


class CountedTwiceError(TerminalError):
    """The certificate of another window counts the same extra."""


def publish(
    connection: Connection, registered: RegisteredPipeline, request: RepairRequest, proved: ProvedWindow
) -> bool:
    """Overwrite one window's aggregates with those rebuilt from raw and certify it, in one transaction.

    Returns False and publishes nothing if the window changed since the claim, or one of its extras landed or may land
    soon, which the next detection judges again; or if a rebuild of the ledger found other rows without raw, which stay,
    and expire again. Raises CountedTwiceError for an extra of another window. Keeps
    replaced rows as a revision; rows that already equal raw are only certified. Text that proves the window without its
    compacted file takes that file's place. Raises FencedError for a lost claim.
    """
    claimed, rebuilt = proved.claimed, proved.rebuilt
    table, start = registered.table, claimed.window_start
    with connection.transaction():
        row = connection.execute(
            'SELECT * FROM onceover."window" WHERE pipeline = %s AND window_start = %s FOR UPDATE',
            [registered.name, start],
        ).fetchone()
        if row is None or row["token"] != claimed.token:
            raise FencedError(f"window {start:%Y-%m-%dT%H:%MZ}: the claim was lost to another repair")
        if row["version"] != claimed.version:
            _finish(connection, claimed, "left", "the window changed during the repair; it is judged again")
            _drop_claim(connection, registered.name, claimed)
            return False
        if rebuilt.extras:
            if why := extras.explain_wait(connection, registered.name, rebuilt.extras):
                _finish(connection, claimed, "left", why)
                _drop_claim(connection, registered.name, claimed)
                return False
            _require_alone(connection, registered.name, start, rebuilt.extras)
        for finding in proved.findings:
            note_finding(connection, registered.name, start, finding)
        staged = table.fingerprint(connection, start, request.stage)
        if bool(staged.rows) != bool(rebuilt.digest.records):
            raise FencedError(
                f"window {start:%Y-%m-%dT%H:%MZ}: {staged.rows} rows are staged for {rebuilt.digest.records} records; "
                "another process has cleared the stage, nothing is published"
            )
        if row["kept_hash"] is not None and (row["kept_rows"], row["kept_hash"]) != (staged.rows, staged.hash):
            _expire_again(connection, registered.name, proved)
            return False
        revision = int(row["revision"])
        if row["kept_hash"] is not None:
            table.set_revision(connection, [start], revision)  # raw has them again
        before = {"control": count_columns(read_count(row)), "revision": revision}
        if table.fingerprint(connection, start) != staged:
            connection.execute(
                "INSERT INTO onceover.revision (pipeline, window_start, revision, repair_id) VALUES (%s, %s, %s, %s)",
                [registered.name, start, revision, claimed.repair_id],
            )
            table.keep(connection, start, revision)
            revision += 1
            table.replace(connection, request.stage, start, revision)
        after = {"control": digest_columns(rebuilt.digest), "revision": revision}
        connection.execute(
            """
            UPDATE onceover."window" SET revision = %(revision)s, claimed_by = NULL, claimed_until = NULL,
              kept_rows = NULL, kept_hash = NULL, expired_why = NULL,
              records = %(records)s, high1 = %(high1)s, low1 = %(low1)s, high2 = %(high2)s, low2 = %(low2)s
            WHERE pipeline = %(pipeline)s AND window_start = %(start)s
            """,
            {"revision": revision, "pipeline": registered.name, "start": start, **digest_columns(rebuilt.digest)},
        )
        certificate = Certificate(
            window_start=start,
            window_end=claimed.window_end,
            version=claimed.version,
            landing_set=claimed.landing_set,
            accounted=proved.accounted,
            frozen_length=rebuilt.frozen_length,
            digest=rebuilt.digest,
            aggregates=staged,
            who=request.who,
            why=request.why,
            raw=RawProof(claimed.repair_id, rebuilt.lines, rebuilt.duplicates, rebuilt.by_value, before, after),
            extras=rebuilt.extras,
        )
        certify(connection, registered, certificate)
        if claimed.compacted is not None and rebuilt.compacted == EMPTY:  # the text alone has proved the window
            compactions.forget_compaction(connection, registered.name, start)
        _finish(connection, claimed, "published", None, rebuilt, before, after)
        resolve_findings(connection, registered.name, start, f"repaired from raw by repair {claimed.repair_id}")
    return True


def record_failed_try(
    connection: Connection,
    registered: RegisteredPipeline,
    claimed: ClaimedWindow,
    reason: str,
    max_tries: int,
    failures: Collection[RepairFailure] = (),
    findings: Iterable[Finding] = (),
    rebuilt: RebuiltWindow | None = None,
) -> bool:
    """Count a failed try; after `max_tries`, block the window with the reason. Returns whether it is blocked now."""
    with connection.transaction():
        row = connection.execute(
            """
            UPDATE onceover."window" SET tries = tries + 1, claimed_by = NULL, claimed_until = NULL,
              blocked_at = CASE WHEN tries + 1 >= %(most)s THEN coalesce(blocked_at, clock_timestamp()) END,
              blocked_why = CASE WHEN tries + 1 >= %(most)s THEN %(reason)s END
            WHERE pipeline = %(pipeline)s AND window_start = %(start)s AND token = %(token)s
            RETURNING tries
            """,
            {
                "most": max_tries,
                "reason": reason,
                "pipeline": registered.name,
                "start": claimed.window_start,
                "token": claimed.token,
            },
        ).fetchone()
        if row is None:
            return False  # the claim was lost: the repair that holds it judges the window
        blocked = bool(row["tries"] >= max_tries)
        _finish(connection, claimed, "failed", reason, rebuilt, blocked=blocked, failures=failures)
        record_failed_scan(connection, registered.name, claimed.window_start, findings, rebuilt is not None)
    return blocked


def leave(connection: Connection, claimed: ClaimedWindow, reason: str) -> None:
    """Record that the window could not be judged now; the next repair tries again, and no try is counted."""
    _finish(connection, claimed, "left", reason)


def reopen(connection: Connection, claimed: ClaimedWindow, reason: str) -> None:
    """Record that the window changed or its claim was lost, so that it is judged again; no try is counted."""
    _finish(connection, claimed, "unneeded", reason)


def _finish(
    connection: Connection,
    claimed: ClaimedWindow,
    state: str,
    reason: str | None,
    rebuilt: RebuiltWindow | None = None,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
    blocked: bool = False,
    failures: Collection[RepairFailure] = (),
) -> None:
    connection.execute(
        """
        UPDATE onceover.repair SET state = %s, reason = %s, failures = %s, finished_at = clock_timestamp(),
          lines_read = %s, duplicates = %s, bytes_read = %s, before = %s, after = %s, blocked = %s
        WHERE repair_id = %s AND token = %s
        """,
        [
            state,
            reason,
            sorted(failures),
            rebuilt.lines if rebuilt else None,
            rebuilt.duplicates if rebuilt else None,
            rebuilt.frozen_length if rebuilt else None,
            Jsonb(before) if before else None,
            Jsonb(after) if after else None,
            blocked,
            claimed.repair_id,
            claimed.token,  # a later run of the same request writes its own outcome
        ],
    )


def _require_alone(connection: Connection, pipeline: str, start: datetime, own: Sequence[EpochSpan]) -> None:
    if other := extras.find_other_window(connection, pipeline, start, own):
        window, offset = other
        raise CountedTwiceError(
            f"{offset} landed nowhere, and window {format_moment(window)} counts it already, as another version of the "
            "pipeline gave it another event time: repair both windows with --by-value"
        )


def _expire_again(connection: Connection, pipeline: str, proved: ProvedWindow) -> None:
    """Expire a window again whose rows a rebuild of the ledger found without raw, because raw gives other rows now."""
    claimed, rebuilt = proved.claimed, proved.rebuilt
    reason = (
        f"raw gives {format_records(rebuilt.digest.records)}, and not the rows that were there without raw when the "
        "ledger was rebuilt; those stay"
    )
    connection.execute(
        """
        UPDATE onceover."window" SET expired_at = clock_timestamp(), tries = 0, blocked_at = NULL, blocked_why = NULL
        WHERE pipeline = %s AND window_start = %s
        """,
        [pipeline, claimed.window_start],
    )
    _finish(connection, claimed, "failed", reason, rebuilt)
    _drop_claim(connection, pipeline, claimed)
    resolve_findings(connection, pipeline, claimed.window_start, "expired again: raw gives other rows than were there")


def _drop_claim(connection: Connection, pipeline: str, claimed: ClaimedWindow) -> None:
    connection.execute(
        'UPDATE onceover."window" SET claimed_by = NULL, claimed_until = NULL '
        "WHERE pipeline = %s AND window_start = %s AND token = %s",
        [pipeline, claimed.window_start, claimed.token],
    )
