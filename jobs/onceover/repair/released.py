"""Released IDs in a repair's query: their records count by the release, under the contract version that it had."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceover.model.claim import ClaimedWindow
from onceover.model.offsets import OffsetRange
from onceover.repair.pieces import ReleasePiece
from onceover.spark.range_join import looked_up


def add_releases(
    pieces: Sequence[ReleasePiece],
    first: int,
    claimed: Mapping[int, ClaimedWindow],
    decided: Collection[OffsetRange],
) -> Callable[[DataFrame], DataFrame]:
    """Add `released_piece`, from `first` on, and `released_version`, the contract version, of IDs that were released.
    `claimed` are windows by their start in ms. Of a decided ID, a content in a window that its release did not land in
    is another one, which was not released."""
    if not pieces:
        return lambda records: records
    numbered = list(enumerate(pieces, start=first))
    taken = [(ids, n) for n, piece in numbered for ids in piece.ids]
    versions = [
        F.when(F.col("released_piece").between(numbers[0], numbers[-1]), F.lit(version))
        for version, group in groupby(numbered, key=lambda item: item[1].release.version)
        if (numbers := [n for n, _ in group])
    ]
    landed = {(landing.release_id, ms) for ms, claim in claimed.items() for landing in claim.landings}
    single = frozenset(decided)
    others = [
        (n, ms)
        for n, piece in numbered
        if piece.span in single
        for ms in claimed
        if (piece.release.batch_id, ms) not in landed
    ]

    def add(records: DataFrame) -> DataFrame:
        found = records.transform(looked_up(taken, "released_piece")).transform(_drop_pieces(others))
        return found.withColumn("released_version", F.coalesce(*versions))

    return add


def _drop_pieces(others: Sequence[tuple[int, int]]) -> Callable[[DataFrame], DataFrame]:
    """Make `released_piece` null in the windows that these pairs of piece and window name."""
    if not others:
        return lambda records: records

    def drop(records: DataFrame) -> DataFrame:
        pairs = records.sparkSession.createDataFrame(
            [(*each, True) for each in others], "released_piece bigint, window_ms bigint, is_other boolean"
        )
        marked = records.join(F.broadcast(pairs), ["released_piece", "window_ms"], "left")
        piece = F.when(F.col("is_other").isNull(), F.col("released_piece"))
        return marked.withColumn("released_piece", piece).select(*records.columns)

    return drop
