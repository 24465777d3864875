"""A comparison of the ledger with the model after an action, in everything that both hold."""

from __future__ import annotations

from psycopg import sql
from tests.protocol import facts
from tests.protocol.facts import GENERATION, as_span, digest, source, window_start
from tests.protocol.replay import Replay, counted
from tests.protocol.state import State

from onceover.detection.evidence import read_evidence
from onceover.ledger import frontiers as ledger_frontiers
from onceover.ledger import refills
from onceover.ledger.digest_columns import read_digest
from onceover.model.digest import Digest
from onceover.model.finding import judge_window
from onceover.model.finding_kinds import Kind


def compare(replay: Replay, state: State) -> None:
    """Raise AssertionError where ledger and model differ."""
    _batches(replay, state)
    _offsets(replay, state)
    _windows(replay, state)
    _aggregates(replay, state)
    _findings(replay, state)


def _batches(replay: Replay, state: State) -> None:
    rows = replay.connection.execute(
        "SELECT state FROM onceover.batch WHERE pipeline = %s ORDER BY batch_id", [replay.name]
    )
    assert [row["state"] for row in rows] == [batch.state for batch in state.batches]


def _offsets(replay: Replay, state: State) -> None:
    frontiers = facts.progress(replay.scenario, state).frontiers
    assert ledger_frontiers.read_progress(replay.connection, replay.name, GENERATION) == {
        source(p): (frontier, reach) for p, (frontier, reach) in enumerate(zip(frontiers, state.reach, strict=True))
    }
    assert tuple(map(as_span, ledger_frontiers.read_holes(replay.connection, replay.name))) == facts.holes(state)
    assert tuple(map(as_span, refills.list_wanted(replay.connection, replay.name))) == state.wanted


def _windows(replay: Replay, state: State) -> None:
    rows = replay.connection.execute(
        """
        SELECT w.*, c.version AS c_version, c.landings, c.frozen_length, c.records AS c_records, c.high1 AS c_high1,
          c.low1 AS c_low1, c.high2 AS c_high2, c.low2 AS c_low2, ARRAY(
            SELECT landing_id FROM onceover.landing l WHERE l.pipeline = w.pipeline AND l.window_start = w.window_start
              AND l.landing_id <= c.last_landing ORDER BY 1) AS landing_set
        FROM onceover."window" w LEFT JOIN onceover.certificate c USING (certificate_id) WHERE w.pipeline = %s
        """,
        [replay.name],
    )
    found = {row["window_start"]: row for row in rows}
    assert set(found) == {window_start(w) for w, version in enumerate(state.version) if version}
    for window, certificate in enumerate(state.certificates):
        if row := found.get(window_start(window)):
            assert read_digest(row) == digest(state.control[window])
            assert row["token"] == replay.repairs.tokens.get((window, state.token[window]))
            assert row["tries"] == state.tries[window]
            assert (row["blocked_at"] is not None) == state.blocked[window]
            assert (row["c_version"] == row["version"]) == row["is_certified"] == facts.is_certified(state, window)
            assert (row["certificate_id"] is not None) == (certificate is not None)
            if certificate is not None:
                assert row["landing_set"] == [replay.landing_ids[n] for n in certificate.landing_set]
                assert row["landings"] == len(certificate.landing_set)
                assert row["frozen_length"] == certificate.frozen_length
                assert read_digest(row, "c_") == digest(certificate.counts)


def _aggregates(replay: Replay, state: State) -> None:
    rows = replay.connection.execute(
        sql.SQL("SELECT window_start, records, code FROM {}").format(replay.known.table.table)
    )
    found = {row["window_start"]: (row["records"], int(row["code"])) for row in rows}
    expected = {window_start(w): counted(rows) for w, rows in enumerate(state.rows) if any(rows)}
    assert found == expected


def _findings(replay: Replay, state: State) -> None:
    replay.register(state)
    replay.watermark(state)
    seen = read_evidence(replay.connection, replay.name, None, None, True)
    found = {
        evidence.window_start: {finding.kind for finding in judge_window(evidence, len(state.raw[w]))}
        for evidence in seen.evidence
        for w in [(evidence.window_start - facts.EPOCH) // facts.WINDOW]
    }
    expected = {}
    for window, is_closed in enumerate(facts.closed(replay.scenario, state)):
        if is_closed:
            expected[window_start(window)] = {
                finding.kind for finding in facts.findings(replay.scenario, state, window)
            }
            landings = facts.landing_set(state, window)
            if state.certificates[window] is None and replay.late.intersection(landings):
                expected[window_start(window)].add(Kind.LATE)
    assert found == expected
    assert (Kind.HOLE in {finding.kind for finding in seen.findings}) == bool(facts.holes(state))
    assert sum((e.landed_since for e in seen.evidence), Digest()).low1 == 0
