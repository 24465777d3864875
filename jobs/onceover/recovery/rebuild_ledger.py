"""A pipeline's batches, landings, windows and frontiers written anew from what raw was found to hold.

It goes the way of a batch: the n-th runs of all Kafka partitions are the n-th batch, which lands only if its landings
are exactly what it read. What the aggregates count nobody knows, so each window is rebuilt from raw and certified by
the next repair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest

from onceover.errors import UsageError
from onceover.ledger import batches, frontiers, releases
from onceover.ledger.catalog import Registered
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.model.batch import Landing, LandingPart, RangeRead
from onceover.model.batch_plan import Start
from onceover.model.digest import EMPTY, Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.raw_file import RawFile, Run
from onceover.model.window import Window

_WHO = "onceover ledger rebuild"


@dataclass(frozen=True, slots=True)
class RebuiltLedger:
    """What was written, and which offsets raw does not hold."""

    batches: int
    landings: int
    windows: int
    records: int
    holes: tuple[OffsetRange, ...]
    unreadable: int  # offsets that neither raw holds nor the log


def require_no_batches(connection: Connection, pipeline: str) -> None:
    """Raise UsageError for a pipeline that the ledger knows batches of: what it says of them is worth more."""
    row = connection.execute(
        "SELECT count(*) AS n FROM onceover.batch WHERE pipeline = %s AND state = 'landed'", [pipeline]
    ).fetchone()
    if row and row["n"]:
        raise UsageError(
            f"the ledger knows {row['n']:,} landed batches of {pipeline}; it is written anew only where it was lost. "
            "To have windows rebuilt from raw: `onceover repair --force`"
        )


def write_ledger(
    connection: Connection,
    epoch: Epoch,
    known: Registered,
    files: Sequence[RawFile],
    runs: Sequence[Run],
    released: Sequence[Run],
    topic_ids: Mapping[str, str],
    origins: Mapping[KafkaPartition, int],
) -> RebuiltLedger:
    """All of it in one transaction, as the pipeline's driver.

    `runs` are in order, those that were `released` from quarantine too; `topic_ids` are of generations that are known;
    `origins` say from which offset on a Kafka partition was to be read, where that is known. Raises UsageError where
    batches are known already.
    """
    by_source = {source: list(of_it) for source, of_it in groupby(runs, key=lambda run: run.offsets.source)}
    rounds = [[run for run in several if run is not None] for several in zip_longest(*by_source.values())]
    together_released = [list(of_it) for _, of_it in groupby(released, key=lambda run: run.offsets.source.generation)]
    landings = _build_landings(files, [*rounds, *together_released])
    starts = sorted({landing.window_start for of_batch in landings for landing in of_batch if landing.window_start})
    minutes = known.contract.window_minutes
    with connection.transaction():
        require_no_batches(connection, known.name)
        connection.cursor().executemany(
            """
            INSERT INTO onceover."window" (pipeline, window_start, window_end, records, high1, low1, high2, low2)
            VALUES (%s, %s, %s, NULL, NULL, NULL, NULL, NULL)
            """,
            [(known.name, start, Window.at(start, minutes).end) for start in starts],
        )
        for source, of_it in by_source.items():
            first, last = of_it[0].offsets.start, of_it[-1].offsets.end
            frontiers.register_kafka_partitions(
                connection,
                epoch,
                topic_ids.get(source.generation, f"unknown, of generation {source.generation}"),
                starts={source: Start(first, min(first, origins.get(source, first)))},
                ends={source: last},
            )
        for together, of_batch in zip(rounds, landings[: len(rounds)], strict=True):
            batch_id = batches.begin(connection, epoch, known.contract_version, [run.offsets for run in together], None)
            read = [RangeRead(run.offsets, run.digest, run.max_event_time, run.oldest_record) for run in together]
            batches.land_batch(connection, epoch, batch_id, read, of_batch)
            batches.committed(connection, epoch, batch_id)
        for together, of_batch in zip(together_released, landings[len(rounds) :], strict=True):
            batch_id = batches.begin(connection, epoch, known.contract_version, (), None)
            whole = _sum_released(together)
            ids = [run.offsets for run in together]
            releases.land_release(
                connection, epoch, batch_id, whole, of_batch, ids, _WHO, "it stands in raw as released"
            )
            batches.committed(connection, epoch, batch_id)
        return RebuiltLedger(
            batches=len(rounds) + len(together_released),
            landings=sum(map(len, landings)),
            windows=len(starts),
            records=sum(run.digest.records for run in runs),
            holes=tuple(frontiers.read_holes(connection, known.name)),
            unreadable=sum(len(run.offsets) - run.digest.records for run in runs),
        )


def _sum_released(runs: Sequence[Run]) -> list[RangeRead]:
    """What was released of each Kafka partition, from its first ID to its last."""
    found: dict[KafkaPartition, RangeRead] = {}
    for run in runs:  # in order
        source, before = run.offsets.source, found.get(run.offsets.source)
        whole = OffsetRange(source, before.offsets.start if before else run.offsets.start, run.offsets.end)
        digest = before.digest + run.digest if before else run.digest
        found[source] = RangeRead(whole, digest, run.max_event_time, run.oldest_record)
    return list(found.values())


def _build_landings(files: Sequence[RawFile], rounds: Sequence[Sequence[Run]]) -> list[list[Landing]]:
    """For each batch, its landing in each file. Nobody knows any more which append wrote which line: a file's bytes are
    dealt out to its landings, so that together they are the file."""
    parts: list[dict[int, dict[KafkaPartition, Digest]]] = []
    for together in rounds:
        of_batch: dict[int, dict[KafkaPartition, Digest]] = {}
        for run in together:
            for place, digest in run.held:
                held = of_batch.setdefault(place, {})
                held[run.offsets.source] = held.get(run.offsets.source, EMPTY) + digest
        parts.append(of_batch)
    of_file = Counter(place for of_batch in parts for place in of_batch)
    dealt: Counter[int] = Counter()
    found: list[list[Landing]] = []
    for of_batch in parts:
        landings: list[Landing] = []
        for place, held in sorted(of_batch.items()):
            file, number = files[place], dealt[place]
            start, end = (file.length * n // of_file[place] for n in (number, number + 1))
            dealt[place] += 1
            of_source = tuple(LandingPart(source, digest) for source, digest in sorted(held.items()))
            landings.append(Landing(file.window_start, file.quarantine_day, start, end, True, of_source))
        found.append(landings)
    return found
