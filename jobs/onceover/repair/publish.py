"""A repair's writes to a window: publish and certify in one transaction, or record why not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from onceover.errors import FencedError, TerminalError
from onceover.ledger import compactions, extras
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.certificates import Certificate, certify
from onceover.ledger.columns import count_columns, digest_columns, read_count
from onceover.ledger.database import Connection
from onceover.ledger.findings import note_finding, resolve_findings
from onceover.ledger.repair_requests import RepairRequest
from onceover.ledger.repair_tries import drop_claim, finish_try, leave
from onceover.model.claim import ClaimedWindow
from onceover.model.digest import EMPTY
from onceover.model.finding import Finding
from onceover.model.log_history import EpochSpan
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.window import format_moment
from onceover.model.wording import format_records

_STAGE_CLEARED: Final = "another process has cleared the stage, nothing is published"


class CountedTwiceError(TerminalError):
    """The certificate of another window counts the same extra."""


def publish(
    connection: Connection,
    registered: RegisteredPipeline,
    request: RepairRequest,
    claimed: ClaimedWindow,
    rebuilt: RebuiltWindow,
    findings: Iterable[Finding] = (),
) -> bool:
    """Overwrite one window's aggregates with those rebuilt from raw, which are proved, and certify it, in one
    transaction. Notes the findings, which do not refute it.

    Returns False and publishes nothing if the window changed since the claim, or one of its extras landed or may land
    soon, which the next detection judges again; or if a rebuild of the ledger found other rows without raw, which stay,
    and expire again. Raises CountedTwiceError for an extra of another window. Keeps
    replaced rows as a revision; rows that already equal raw are only certified. Text that proves the window without its
    compacted file takes that file's place. Raises FencedError for a lost claim.
    """
    table, start = registered.table, claimed.window_start
    with connection.transaction():
        row = connection.execute(
            'SELECT * FROM onceover."window" WHERE pipeline = %s AND window_start = %s FOR UPDATE',
            [registered.name, start],
        ).fetchone()
        if row is None or row["token"] != claimed.token:
            raise FencedError(f"window {start:%Y-%m-%dT%H:%MZ}: the claim was lost to another repair")
        if row["version"] != claimed.version:
            leave(connection, registered.name, claimed, "the window changed during the repair; it is judged again")
            return False
        if rebuilt.extras:
            if why := extras.explain_wait(connection, registered.name, rebuilt.extras):
                leave(connection, registered.name, claimed, why)
                return False
            _require_alone(connection, registered.name, start, rebuilt.extras)
        for finding in findings:
            note_finding(connection, registered.name, start, finding)
        staged = table.fingerprint(connection, start, request.stage)
        if bool(staged.rows) != bool(rebuilt.digest.records):
            raise FencedError(
                f"window {start:%Y-%m-%dT%H:%MZ}: {staged.rows} rows are staged for {rebuilt.digest.records} records; "
                f"{_STAGE_CLEARED}"
            )
        if row["kept_hash"] is not None and (row["kept_rows"], row["kept_hash"]) != (staged.rows, staged.hash):
            _expire_again(connection, registered.name, claimed, rebuilt)
            return False
        revision = int(row["revision"])
        if row["kept_hash"] is not None:
            table.set_revision(connection, [start], revision)  # raw has them again
        before = {"control": count_columns(read_count(row)), "revision": revision}
        if table.fingerprint(connection, start) != staged:
            table.keep(connection, start, revision)
            revision += 1
            if table.replace(connection, request.stage, start, revision) != staged.rows:
                raise FencedError(f"window {start:%Y-%m-%dT%H:%MZ}: {_STAGE_CLEARED}")
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
            version=claimed.version,
            landing_set=claimed.landing_set,
            frozen_length=rebuilt.frozen_length,
            digest=rebuilt.digest,
            aggregates=staged,
            who=request.who,
            why=request.why,
            extras=rebuilt.extras,
            repair_id=claimed.repair_id,
            by_value=rebuilt.by_value,
            are_rows_replaced=revision != int(row["revision"]),
        )
        certify(connection, registered, certificate)
        if claimed.compacted is not None and rebuilt.compacted == EMPTY:  # the text alone has proved the window
            compactions.forget_compaction(connection, registered.name, start)
        finish_try(connection, claimed, "published", None, rebuilt, before, after)
        resolve_findings(connection, registered.name, start, f"repaired from raw by repair {claimed.repair_id}")
    return True


def _require_alone(connection: Connection, pipeline: str, start: datetime, own: Sequence[EpochSpan]) -> None:
    if other := extras.find_other_window(connection, pipeline, start, own):
        window, offset = other
        raise CountedTwiceError(
            f"{offset} landed nowhere, and window {format_moment(window)} counts it already, as another version of the "
            "pipeline gave it another event time: repair both windows with --by-value"
        )


def _expire_again(connection: Connection, pipeline: str, claimed: ClaimedWindow, rebuilt: RebuiltWindow) -> None:
    """Expire a window again whose rows a rebuild of the ledger found without raw, because raw gives other rows now."""
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
    finish_try(connection, claimed, "failed", reason, rebuilt)
    drop_claim(connection, pipeline, claimed)
    resolve_findings(connection, pipeline, claimed.window_start, "expired again: raw gives other rows than were there")
