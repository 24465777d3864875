"""Certificates that detection writes: of windows that the ledger's numbers alone prove right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.certificates import Certificate, certify
from onceover.ledger.database import Connection
from onceover.ledger.findings import record_findings, resolve_findings
from onceover.ledger.windows import cut_into_chunks
from onceover.model.finding import Evidence, Finding


def certify_from_ledger(
    connection: Connection,
    registered: RegisteredPipeline,
    right: Iterable[tuple[Evidence, Sequence[Finding]]],
    who: str,
    why: str,
) -> list[datetime]:
    """Certify windows from the ledger, each only if its version is still the one it was judged at.

    Returns the windows certified. The next detection judges those that changed meanwhile, which is all of them if the
    pipeline's contract changed. Each chunk of windows
    is a transaction of its own, so that ingest never waits long for a window. Certificates state the rows in the table
    too, so that a sweep detects later changes by hand.
    """
    judged = {evidence.window_start: (evidence, findings) for evidence, findings in right}
    certified: list[datetime] = []
    for chunk in cut_into_chunks(judged):
        with connection.transaction():
            rows = connection.execute(
                """
                SELECT w.window_start, w.version
                FROM onceover."window" w JOIN onceover.pipeline p ON p.name = w.pipeline
                WHERE p.name = %s AND p.contract_version = %s AND w.window_start = ANY(%s)
                ORDER BY w.window_start FOR UPDATE OF w
                """,
                [registered.name, registered.contract_version, chunk],
            ).fetchall()
            same = [row["window_start"] for row in rows if row["version"] == judged[row["window_start"]][0].version]
            fingerprints = registered.table.fingerprints(connection, same)
            for start in same:
                evidence, findings = judged[start]
                stated = Certificate(
                    window_start=start,
                    version=evidence.version,
                    landing_set=evidence.landing_set,
                    frozen_length=evidence.expected_length,
                    digest=evidence.expected,
                    aggregates=fingerprints[start],
                    who=who,
                    why=why,
                )
                certify(connection, registered, stated)
                record_findings(connection, registered.name, {start: findings})
                resolve_findings(connection, registered.name, start, "certified from the ledger")
                certified.append(start)
    return certified
