"""Failures planted in a large ledger at seeded places, far enough apart that none of them touches another."""

from __future__ import annotations

import random
from datetime import datetime

from bench.large_ledger import LINE, OWN_BYTES, SHOWS, LargeLedger, Planted, generation, start_of
from onceover.ledger.database import Connection
from onceover.ledger.windows import bump_versions

_UNCERTIFIED: tuple[Planted, ...] = ("duplicated", "unproved")


def plant(connection: Connection, ledger: LargeLedger, failures: int, seed: int) -> None:
    """Plant that many failures, each kind equally often, and a hole of the pipeline."""
    places = random.Random(seed).sample(range(1, ledger.windows // 4 - 1), failures)
    kinds = tuple(SHOWS)
    ledger.planted = {start_of(4 * place): kinds[n % len(kinds)] for n, place in enumerate(places)}
    by_kind = {kind: [start for start, what in ledger.planted.items() if what == kind] for kind in kinds}
    name = ledger.known.name
    with connection.transaction():
        # Each was touched since it was certified: by an increment at least.
        bump_versions(connection, name, list(ledger.planted))
        forget = [start for kind in _UNCERTIFIED for start in by_kind[kind]]
        connection.execute(
            'UPDATE onceover."window" SET certificate_id = NULL WHERE pipeline = %s AND window_start = ANY(%s)',
            [name, forget],
        )
        for start in (*by_kind["duplicated"], *by_kind["duplicated since"]):
            _land_again(connection, ledger, start)
        for start in by_kind["late"]:
            _land_late(connection, ledger, start)
        connection.execute(
            "UPDATE onceover.landing SET proved = false WHERE landing_id IN (SELECT min(landing_id) "
            "FROM onceover.landing WHERE pipeline = %s AND window_start = ANY(%s) GROUP BY window_start)",
            [name, by_kind["unproved"]],
        )
        for kind, change in (("digest", "low1 = low1 + 1"), ("count", "records = records + 3, high2 = high2 + 7")):
            connection.execute(
                f'UPDATE onceover."window" SET {change} WHERE pipeline = %s AND window_start = ANY(%s)',
                [name, by_kind[kind]],  # type: ignore[index]
            )
        connection.execute(
            "UPDATE onceover.kafka_partition SET reach = reach + 1000 WHERE pipeline = %s AND kafka_partition = 0",
            [name],
        )
    held = ledger.files.held
    for start in by_kind["unaccounted bytes"]:
        held[start] += 1 + LINE
    for start in by_kind["shorter"]:
        held[start] -= LINE
    for start in by_kind["gone"]:
        del held[start]


def _land_again(connection: Connection, ledger: LargeLedger, start: datetime) -> None:
    """Replay the window's first batch; only its part in this window matters."""
    _land(connection, ledger, start, "SELECT start_offset, end_offset FROM onceover.batch_range r "
          "WHERE r.batch_id = first.batch_id AND r.kafka_partition = 0", late=False)  # fmt: skip


def _land_late(connection: Connection, ledger: LargeLedger, start: datetime) -> None:
    """Land records that were never read before."""
    _land(connection, ledger, start, "SELECT frontier, frontier + 20 FROM onceover.kafka_partition k "
          "WHERE k.pipeline = first.pipeline AND k.kafka_partition = 0", late=True)  # fmt: skip


def _land(connection: Connection, ledger: LargeLedger, start: datetime, offsets: str, late: bool) -> None:
    """Add a batch and a landing, counted correctly: the control row and the file's length grow with it."""
    connection.execute(
        f"""
        WITH first AS (
          SELECT * FROM onceover.landing WHERE pipeline = %(name)s AND window_start = %(start)s
          ORDER BY landing_id LIMIT 1
        ), again AS (
          INSERT INTO onceover.batch (pipeline, epoch, contract_version, state, landed_at)
          VALUES (%(name)s, 1, 1, 'landed', clock_timestamp()) RETURNING batch_id
        ), ranged AS (
          INSERT INTO onceover.batch_range (batch_id, generation, kafka_partition, start_offset, end_offset)
          SELECT again.batch_id, %(generation)s, 0, o.a, o.z FROM again, first, LATERAL ({offsets}) o (a, z)
          RETURNING end_offset
        ), landed AS (
          INSERT INTO onceover.landing (batch_id, pipeline, window_start, byte_start, byte_end, proved, late, records,
            high1, low1, high2, low2)
          SELECT again.batch_id, %(name)s, %(start)s, %(length)s, %(length)s + first.byte_end - first.byte_start, true,
            %(late)s, first.records, first.high1, first.low1, first.high2, first.low2 FROM again, first
          RETURNING *
        ), parts AS (
          INSERT INTO onceover.landing_part (landing_id, generation, kafka_partition, records)
          SELECT landing_id, %(generation)s, 0, records FROM landed
        ), moved AS (
          UPDATE onceover.kafka_partition k SET frontier = greatest(frontier, r.end_offset),
            reach = greatest(reach, r.end_offset)
          FROM ranged r WHERE k.pipeline = %(name)s AND k.kafka_partition = 0
        )
        UPDATE onceover."window" w SET version = version + 1, records = w.records + l.records,
          high1 = w.high1 + l.high1, low1 = w.low1 + l.low1, high2 = w.high2 + l.high2, low2 = w.low2 + l.low2
        FROM landed l WHERE w.pipeline = %(name)s AND w.window_start = %(start)s
        """,
        {"name": ledger.known.name, "start": start, "generation": generation(ledger.known.name), "late": late,
         "length": ledger.files.held[start]},
    )  # fmt: skip
    ledger.files.held[start] += OWN_BYTES
