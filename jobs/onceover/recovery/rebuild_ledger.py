"""Rebuild of a pipeline's batches, landings, windows and frontiers from a scan of raw.

What raw holds has landed, and nothing else: each batch has exactly the offset ranges that raw holds, each file is
covered whole by landings, and what is missing between origin and the largest offset is a hole. The content of the
aggregates is unknown, so the next repair rebuilds each window from raw and certifies it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import groupby, zip_longest

from onceover.errors import UsageError
from onceover.ledger import batches, frontiers, rebuilt_rows, releases
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.model.batch import Landing, LandingPart, RangeRead
from onceover.model.digest import EMPTY, Digest
from onceover.model.offsets import LARGEST_END, KafkaPartition, OffsetRange, coalesce, span_sources, subtract
from onceover.model.raw_file import LONGEST_RUN, CompactedFile, RawContents, RawFile, Run
from onceover.model.rollup import join_ranges

WHO = "onceover ledger rebuild"
WHY = "found when the ledger was rebuilt"
RUNS_A_BATCH = 1_000
"""Runs of one Kafka partition in one batch: a repair of a window reads all ranges of its batches."""
OFFSETS_A_BATCH = 10 * LONGEST_RUN
"""Offsets of one Kafka partition that a batch spans, about: what is found of one may concern all its windows."""
_Place = tuple[datetime | None, date | None]  # a window's start, or a day of quarantine


@dataclass(frozen=True, slots=True)
class RebuiltLedger:
    """The totals written, and the offsets that raw does not hold."""

    batches: int
    landings: int
    windows: int
    expired: int
    records: int
    holes: tuple[OffsetRange, ...]


def require_no_batches(connection: Connection, pipeline: str) -> None:
    """Raise UsageError for a pipeline with batches in the ledger: their rows are more precise than a rebuild."""
    if number := rebuilt_rows.count_landed_batches(connection, pipeline):
        raise UsageError(
            f"the ledger knows {number:,} landed batches of {pipeline}; only a lost ledger is rebuilt. To rebuild "
            f"windows from raw: `onceover repair {pipeline} --from ... --to ... --force --reason ...`"
        )


@dataclass(frozen=True, slots=True)
class KnownLogs:
    """What is known of Kafka's logs besides raw: topic IDs by generation, the offsets at which accounting begins, and
    the `empty` offsets without a record."""

    topic_ids: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[KafkaPartition, int] = field(default_factory=dict)
    empty: Sequence[OffsetRange] = ()


def write_ledger(
    connection: Connection,
    epoch: Epoch,
    registered: RegisteredPipeline,
    files: Sequence[RawFile],
    contents: RawContents,
    logs: KnownLogs,
    without_text: Collection[datetime] = (),
) -> RebuiltLedger:
    """Write the pipeline's part of the ledger, as the pipeline's driver; the caller's transaction holds all of it. The
    files of windows `without_text` hold only what landed after their text had expired.

    Raises UsageError if the ledger has batches already."""
    name = registered.name
    rounds = [several for layer in contents.layers for several in _deal(layer)]
    released = [list(group) for _, group in groupby(contents.released, key=_get_release)]
    landings = _build_landings(files, [*rounds, *released])
    starts = {file.window_start for file in files if file.window_start is not None}
    with connection.transaction():
        require_no_batches(connection, name)
        rebuilt_rows.forget_losses(connection, name)
        rebuilt_rows.skip_expiry_ids(connection)
        rebuilt_rows.insert_windows(connection, registered, starts)
        _put_partitions(connection, epoch, contents, logs)
        empty = registered.cutovers.cut_by_version(logs.empty)
        for version, ranges in empty.items():
            rebuilt_rows.land_found(connection, epoch, version, [RangeRead(r, EMPTY, None) for r in ranges], ())
        for together, of_batch in zip(rounds, landings[: len(rounds)], strict=True):
            read = [
                RangeRead(run.offsets, run.digest, run.max_event_time, run.oldest_record, run.leader_epochs)
                for run in together
            ]
            rebuilt_rows.land_found(connection, epoch, together[0].version, read, of_batch)
        for together, of_batch in zip(released, landings[len(rounds) :], strict=True):
            batch_id = batches.begin(connection, epoch, together[0].version, (), None)
            ids = [run.offsets for run in together]
            whole = join_ranges(RangeRead(run.offsets, run.digest, None) for run in together)
            releases.land_release(connection, epoch, batch_id, whole, of_batch, ids, WHO, "raw holds it as released")
            batches.mark_committed(connection, epoch, batch_id)
        _record_compacted_files(connection, name, files, contents)
        # After the landings: what is read again lifts an expiry, and these are no such batches.
        expired = rebuilt_rows.expire_rows_without_raw(connection, registered, starts.difference(without_text))
        return RebuiltLedger(
            batches=len(rounds) + len(released) + len(empty),
            landings=sum(map(len, landings)),
            windows=len(starts),
            expired=len(expired),
            records=sum(len(each) for each in coalesce(run.offsets for layer in contents.layers for run in layer)),
            holes=tuple(frontiers.read_holes(connection, name)),
        )


def leave_out_foreign(contents: RawContents, own: Collection[KafkaPartition]) -> tuple[RawContents, int]:
    """Return the contents without the records of Kafka partitions that are not `own`, and the number of those records'
    IDs."""

    def keep(runs: Sequence[Run]) -> tuple[Run, ...]:
        return tuple(run for run in runs if run.offsets.source in own)

    layers = tuple(filter(None, map(keep, contents.layers)))
    runs = [*(run for layer in contents.layers for run in layer), *contents.released]
    foreign = coalesce(run.offsets for run in runs if run.offsets.source not in own)
    kept = replace(
        contents,
        layers=layers,
        released=keep(contents.released),
        unknown=tuple(each for each in contents.unknown if each.source in own),
    )
    return kept, sum(map(len, foreign))


def find_read_nowhere(contents: RawContents) -> tuple[OffsetRange, ...]:
    """Return the IDs of released records that are in no other place: quarantine no longer holds what was read."""
    read = coalesce(run.offsets for layer in contents.layers for run in layer)
    return subtract(coalesce(run.offsets for run in contents.released), read)


def find_spans(contents: RawContents, origins: Mapping[KafkaPartition, int]) -> list[OffsetRange]:
    """Return for each Kafka partition in raw the range from its known origin, or the smallest offset if that is
    smaller, to the largest offset."""
    spans = span_sources(run.offsets for layer in contents.layers for run in layer)
    return [OffsetRange(each.source, min(each.start, origins.get(each.source, each.start)), each.end) for each in spans]


def find_missing(contents: RawContents, origins: Mapping[KafkaPartition, int]) -> tuple[OffsetRange, ...]:
    """Return the offsets that raw lacks within these spans."""
    return subtract(find_spans(contents, origins), (run.offsets for layer in contents.layers for run in layer))


def _group_by_source(contents: RawContents) -> dict[KafkaPartition, list[Run]]:
    runs: dict[KafkaPartition, list[Run]] = {}
    for layer in contents.layers:
        for run in layer:
            runs.setdefault(run.offsets.source, []).append(run)
    return runs


def _put_partitions(connection: Connection, epoch: Epoch, contents: RawContents, logs: KnownLogs) -> None:
    runs = _group_by_source(contents)
    for span in find_spans(contents, logs.origins):
        source, of_source = span.source, runs[span.source]
        held = [run.offsets for run in of_source]
        frontier = subtract([OffsetRange(source, span.start, LARGEST_END)], [*held, *logs.empty])[0].start
        newest = [r.max_event_time for r in of_source if r.max_event_time is not None and r.offsets.end <= frontier]
        rebuilt_rows.put_partition(
            connection,
            epoch,
            source,
            logs.topic_ids.get(source.generation, f"unknown, of generation {source.generation}"),
            origin=span.start,
            frontier=frontier,
            reach=span.end,
            max_event_time=max(newest, default=None),
        )


def _deal(layer: Sequence[Run]) -> Iterator[list[Run]]:
    """Yield a layer's runs in order by batch, each of one version, with at most RUNS_A_BATCH of every Kafka partition,
    of about OFFSETS_A_BATCH offsets."""
    for _, of_version in groupby(layer, key=lambda run: run.version):
        by_source = groupby(of_version, key=lambda run: run.offsets.source)
        chunks = [list(_cut_into_chunks(list(of_source))) for _, of_source in by_source]
        for several in zip_longest(*chunks, fillvalue=[]):
            yield [run for chunk in several for run in chunk]


def _get_release(run: Run) -> tuple[int, str]:
    return run.version, run.offsets.source.generation


def _cut_into_chunks(runs: Sequence[Run]) -> Iterator[list[Run]]:
    chunk: list[Run] = []
    for run in runs:
        if chunk and (len(chunk) == RUNS_A_BATCH or run.offsets.end - chunk[0].offsets.start > OFFSETS_A_BATCH):
            yield chunk
            chunk = []
        chunk.append(run)
    if chunk:
        yield chunk


def _build_landings(files: Sequence[RawFile], rounds: Sequence[Sequence[Run]]) -> list[list[Landing]]:
    """Return for each batch its landing in each window and day of quarantine. Which append wrote which line is unknown,
    so a text file's bytes are divided among its landings, which together cover the file; records that only a
    compacted file holds land without bytes."""
    text = {_get_place(file): file.length for file in files if not file.is_compacted}
    parts: list[dict[_Place, dict[KafkaPartition, Digest]]] = []
    for together in rounds:
        of_batch: dict[_Place, dict[KafkaPartition, Digest]] = {}
        for run in together:
            for number, digest in run.held:
                held = of_batch.setdefault(_get_place(files[number]), {})
                held[run.offsets.source] = held.get(run.offsets.source, EMPTY) + digest
        parts.append(of_batch)
    of_place = Counter(place for of_batch in parts for place in of_batch)
    dealt: Counter[_Place] = Counter()
    batches_landings: list[list[Landing]] = []
    for of_batch in parts:
        landings: list[Landing] = []
        for place, held in of_batch.items():
            length, number = text.get(place, 0), dealt[place]
            start, end = (length * n // of_place[place] for n in (number, number + 1))
            dealt[place] += 1
            of_source = tuple(LandingPart(source, digest) for source, digest in sorted(held.items()))
            landings.append(Landing(*place, start, end, True, of_source))
        batches_landings.append(landings)
    return batches_landings


def _get_place(file: RawFile) -> _Place:
    return file.window_start, file.quarantine_day


def _record_compacted_files(connection: Connection, name: str, files: Sequence[RawFile], contents: RawContents) -> None:
    used = {place for layer in (*contents.layers, contents.released) for run in layer for place, _ in run.held}
    kept: dict[datetime, CompactedFile] = {}
    for number, digest in sorted((contents.compacted or {}).items(), key=lambda item: item[1].records):
        start = files[number].window_start
        if start is not None:  # the largest file of a window is the last
            kept[start] = CompactedFile(digest, files[number].length)
    replacing = {files[place].window_start for place in used if files[place].is_compacted}
    rebuilt_rows.record_compacted_files(connection, name, kept, {start for start in replacing if start})
