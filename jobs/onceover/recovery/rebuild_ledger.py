"""Rebuild of a pipeline's batches, landings, windows and frontiers from a scan of raw.

The rebuild uses the steps of ingest: the n-th runs of all Kafka partitions are the n-th batch, which lands only if its
landings are exactly what it read. The content of the aggregates is unknown, so the next repair rebuilds each window
from raw and certifies it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest

from onceover.errors import UsageError
from onceover.ledger import batches, frontiers, releases
from onceover.ledger.catalog import RegisteredPipeline
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
    """The totals written, and the offsets that raw does not hold."""

    batches: int
    landings: int
    windows: int
    records: int
    holes: tuple[OffsetRange, ...]
    unreadable: int  # number of offsets that neither raw nor the log holds


def require_no_batches(connection: Connection, pipeline: str) -> None:
    """Raise UsageError for a pipeline with batches in the ledger: their rows are more precise than a rebuild."""
    row = connection.execute(
        "SELECT count(*) AS n FROM onceover.batch WHERE pipeline = %s AND state = 'landed'", [pipeline]
    ).fetchone()
    if row and row["n"]:
        raise UsageError(
            f"the ledger knows {row['n']:,} landed batches of {pipeline}; only a lost ledger is rebuilt. To rebuild "
            f"windows from raw: `onceover repair {pipeline} --from ... --to ... --force --reason ...`"
        )


def write_ledger(
    connection: Connection,
    epoch: Epoch,
    registered: RegisteredPipeline,
    files: Sequence[RawFile],
    runs: Sequence[Run],
    released: Sequence[Run],
    topic_ids: Mapping[str, str],
    origins: Mapping[KafkaPartition, int],
) -> RebuiltLedger:
    """Write the pipeline's part of the ledger in one transaction, as the pipeline's driver.

    `runs` and `released`, the runs from quarantine, are in order; `topic_ids` are by generation, where known; `origins`
    are the offsets that reading began at, where known. Raises UsageError if the ledger has batches already.
    """
    by_source = {source: list(group) for source, group in groupby(runs, key=lambda run: run.offsets.source)}
    rounds = [[run for run in several if run is not None] for several in zip_longest(*by_source.values())]
    together_released = [list(group) for _, group in groupby(released, key=lambda run: run.offsets.source.generation)]
    landings = _build_landings(files, [*rounds, *together_released])
    starts = sorted({landing.window_start for of_batch in landings for landing in of_batch if landing.window_start})
    minutes = registered.contract.window_minutes
    with connection.transaction():
        require_no_batches(connection, registered.name)
        connection.cursor().executemany(
            """
            INSERT INTO onceover."window" (pipeline, window_start, window_end, records, high1, low1, high2, low2)
            VALUES (%s, %s, %s, NULL, NULL, NULL, NULL, NULL)
            """,
            [(registered.name, start, Window.at(start, minutes).end) for start in starts],
        )
        for source, of_source in by_source.items():
            first, last = of_source[0].offsets.start, of_source[-1].offsets.end
            frontiers.register_kafka_partitions(
                connection,
                epoch,
                topic_ids.get(source.generation, f"unknown, of generation {source.generation}"),
                starts={source: Start(first, min(first, origins.get(source, first)))},
                ends={source: last},
            )
        for together, of_batch in zip(rounds, landings[: len(rounds)], strict=True):
            batch_id = batches.begin(
                connection, epoch, registered.contract_version, [run.offsets for run in together], None
            )
            read = [RangeRead(run.offsets, run.digest, run.max_event_time, run.oldest_record) for run in together]
            batches.land_batch(connection, epoch, batch_id, read, of_batch)
            batches.mark_committed(connection, epoch, batch_id)
        for together, of_batch in zip(together_released, landings[len(rounds) :], strict=True):
            batch_id = batches.begin(connection, epoch, registered.contract_version, (), None)
            whole = _sum_released(together)
            ids = [run.offsets for run in together]
            releases.land_release(
                connection, epoch, batch_id, whole, of_batch, ids, _WHO, "it stands in raw as released"
            )
            batches.mark_committed(connection, epoch, batch_id)
        return RebuiltLedger(
            batches=len(rounds) + len(together_released),
            landings=sum(map(len, landings)),
            windows=len(starts),
            records=sum(run.digest.records for run in runs),
            holes=tuple(frontiers.read_holes(connection, registered.name)),
            unreadable=sum(len(run.offsets) - run.digest.records for run in runs),
        )


def _sum_released(runs: Sequence[Run]) -> list[RangeRead]:
    """Return what was released of each Kafka partition, as the range from its first ID to its last."""
    sums: dict[KafkaPartition, RangeRead] = {}
    for run in runs:  # in order
        source, before = run.offsets.source, sums.get(run.offsets.source)
        whole = OffsetRange(source, before.offsets.start if before else run.offsets.start, run.offsets.end)
        digest = before.digest + run.digest if before else run.digest
        sums[source] = RangeRead(whole, digest, run.max_event_time, run.oldest_record)
    return list(sums.values())


def _build_landings(files: Sequence[RawFile], rounds: Sequence[Sequence[Run]]) -> list[list[Landing]]:
    """Return for each batch its landing in each file. Which append wrote which line is unknown, so a file's bytes are
    divided among its landings, which together cover the file."""
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
    batches_landings: list[list[Landing]] = []
    for of_batch in parts:
        landings: list[Landing] = []
        for place, held in sorted(of_batch.items()):
            file, number = files[place], dealt[place]
            start, end = (file.length * n // of_file[place] for n in (number, number + 1))
            dealt[place] += 1
            of_source = tuple(LandingPart(source, digest) for source, digest in sorted(held.items()))
            landings.append(Landing(file.window_start, file.quarantine_day, start, end, True, of_source))
        batches_landings.append(landings)
    return batches_landings
