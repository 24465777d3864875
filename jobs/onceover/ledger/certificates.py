"""Certificates: the stored proof that a window is right, with its result and its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.types.json import Jsonb

from onceover import __version__
from onceover.errors import TerminalError
from onceover.ledger.aggregates import Fingerprint
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.columns import digest_columns, parse_spans, read_count, read_digest, spans_as_json
from onceover.ledger.compactions import COMPACTED_COLUMNS, FROZEN, parse_compacted
from onceover.ledger.database import Connection
from onceover.ledger.landings import read_landings
from onceover.ledger.windows import lock_windows
from onceover.model.claim import ClaimedWindow
from onceover.model.digest import Digest
from onceover.model.log_history import EpochSpan


@dataclass(frozen=True, slots=True)
class Certificate:
    """One window as it was judged: the version, the landings that were used, and the result. `extras`
    are records that count though they have landed nowhere; the ledger alone certifies no window with one.

    One that is based on raw names its repair; its `by_value` records count by what their VALUE gave the repair, the
    others by the columns that ingest wrote into their lines. The repair announces the rows that it replaced."""

    window_start: datetime
    version: int
    landing_set: Sequence[int]
    frozen_length: int
    digest: Digest
    aggregates: Fingerprint
    who: str
    why: str
    extras: Sequence[EpochSpan] = ()
    repair_id: int | None = None
    by_value: int | None = None
    are_rows_replaced: bool = False


@dataclass(frozen=True, slots=True)
class StoredCertificate:
    """A certificate, with the facts to recompute it from."""

    claimed: ClaimedWindow
    extras: tuple[EpochSpan, ...]
    digest: Digest
    frozen_length: int
    is_valid: bool
    basis: str
    control: Digest | None


def certify(connection: Connection, registered: RegisteredPipeline, stated: Certificate) -> int:
    """Record the certificate of a window, inside the transaction that holds the window's row. Returns its ID.

    The certificate also states the window's accepted losses.
    """
    row = connection.execute(
        """
        WITH lost AS (
          SELECT coalesce(range_agg(int8range(loss_id, loss_id + 1)), '{}') AS ids FROM onceover.accepted_loss
          WHERE pipeline = %(pipeline)s AND first_window <= %(start)s AND %(start)s < end_window
            AND relanded_at IS NULL
        ), former AS (
          SELECT certificate_id, contract_version, aggregate_rows, aggregate_hash FROM onceover.certificate
          WHERE pipeline = %(pipeline)s AND window_start = %(start)s ORDER BY certificate_id DESC LIMIT 1
        ), fresh AS (
          INSERT INTO onceover.certificate (pipeline, window_start, version, basis, contract_version, code_version,
            last_landing, landings, frozen_length, records, high1, low1, high2, low2, aggregate_rows, aggregate_hash,
            repair_id, by_value, who, why, losses, extras, replaced_certificate)
          SELECT %(pipeline)s, %(start)s, %(version)s, %(basis)s, %(contract_version)s, %(code_version)s,
            %(last_landing)s, %(landings)s, %(frozen_length)s, %(records)s, %(high1)s, %(low1)s, %(high2)s, %(low2)s,
            %(rows)s, %(hash)s, %(repair_id)s, %(by_value)s, %(who)s, %(why)s, lost.ids, %(extras)s,
            (SELECT certificate_id FROM former WHERE NOT %(replaced)s AND contract_version = %(contract_version)s
              AND (aggregate_rows, aggregate_hash) IS DISTINCT FROM (%(rows)s::bigint, %(hash)s::text))
          FROM lost RETURNING certificate_id, basis, losses)
        UPDATE onceover."window" SET certificate_id = fresh.certificate_id, certified_version = %(version)s,
          certified_basis = CASE WHEN fresh.losses = '{}' THEN fresh.basis ELSE 'loss' END,
          tries = 0, blocked_at = NULL, blocked_why = NULL, overdue_reported_at = NULL, taking_id = NULL
        FROM fresh WHERE pipeline = %(pipeline)s AND window_start = %(start)s
        RETURNING fresh.certificate_id
        """,
        {
            "pipeline": registered.name,
            "start": stated.window_start,
            "version": stated.version,
            "basis": "ledger" if stated.repair_id is None else "raw",
            "contract_version": registered.contract_version,
            "code_version": __version__,
            "last_landing": max(stated.landing_set, default=0),
            "landings": len(stated.landing_set),
            "frozen_length": stated.frozen_length,
            **digest_columns(stated.digest),
            "rows": stated.aggregates.rows,
            "hash": stated.aggregates.hash,
            "repair_id": stated.repair_id,
            "by_value": stated.by_value,
            "who": stated.who,
            "why": stated.why,
            "extras": Jsonb(spans_as_json(stated.extras)),
            "replaced": stated.are_rows_replaced,
        },
    ).fetchone()
    return int(row["certificate_id"]) if row else 0


def read_certificate(connection: Connection, pipeline: str, window_start: datetime) -> StoredCertificate:
    """Return the window's certificate. Raises TerminalError if it has none, or its raw has expired."""
    row = connection.execute(
        f"""
        SELECT w.window_end, w.expired_at, w.version AS window_version, c.*, w.records AS w_records, w.high1 AS w_high1,
          w.low1 AS w_low1, w.high2 AS w_high2, w.low2 AS w_low2, {FROZEN} AS text_frozen, {COMPACTED_COLUMNS},
          ARRAY(SELECT landing_id FROM onceover.landing l WHERE l.pipeline = w.pipeline
            AND l.window_start = w.window_start AND l.landing_id <= c.last_landing) AS landing_ids
        FROM onceover."window" w JOIN onceover.certificate c ON c.certificate_id = w.certificate_id
        WHERE w.pipeline = %s AND w.window_start = %s
        """,
        [pipeline, window_start],
    ).fetchone()
    if row is None:
        raise TerminalError(
            f"window {window_start:%Y-%m-%dT%H:%MZ} of {pipeline} has no certificate that could be verified; see "
            f"`onceover explain {pipeline} {window_start:%Y-%m-%dT%H:%MZ}`"
        )
    if row["expired_at"]:
        raise TerminalError(
            f"window {window_start:%Y-%m-%dT%H:%MZ} of {pipeline} has expired: its certificate can no longer be "
            f"verified; `onceover explain {pipeline} {window_start:%Y-%m-%dT%H:%MZ}` says why it expired"
        )
    return StoredCertificate(
        claimed=ClaimedWindow(
            repair_id=0,
            window_start=window_start,
            window_end=row["window_end"],
            token=UUID(int=0),
            version=row["version"],
            landings=tuple(read_landings(connection, row["landing_ids"]).values()),
            certified=None,
            compacted=parse_compacted(row),
        ),
        extras=parse_spans(row["extras"]),
        digest=read_digest(row),
        frozen_length=row["text_frozen"],
        is_valid=row["version"] == row["window_version"],
        basis=row["basis"],
        control=read_count(row, "w_"),
    )


def reopen_certified(connection: Connection, pipeline: str, starts: Iterable[datetime]) -> None:
    """Give those of these windows whose certificate is valid a new version, so that detection judges them."""
    chosen = sorted(starts)
    if not chosen:
        return
    with connection.transaction():
        lock_windows(connection, pipeline, chosen)
        connection.execute(
            """
            UPDATE onceover."window" SET version = version + 1
            WHERE pipeline = %s AND window_start = ANY(%s) AND is_certified
            """,
            [pipeline, chosen],
        )


def revoke(connection: Connection, pipeline: str, certificate_id: int, why: str) -> None:
    """Revoke a certificate. Its window is judged from its landings alone, and its count becomes unknown, so that a
    repair follows."""
    connection.execute(
        "UPDATE onceover.certificate SET revoked_at = now(), revoked_why = %s WHERE certificate_id = %s",
        [why, certificate_id],
    )
    connection.execute(
        'UPDATE onceover."window" SET certificate_id = NULL, version = version + 1, records = NULL, high1 = NULL, '
        "low1 = NULL, high2 = NULL, low2 = NULL WHERE pipeline = %s AND certificate_id = %s",
        [pipeline, certificate_id],
    )
