"""Decided IDs in a proof: a landing holds, of each, the content that it read, which need not be the one that counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from onceover.model.claim import ClaimedWindow
from onceover.model.digest import Digest, sum_digests
from onceover.model.offsets import OffsetRange, intersect
from onceover.model.rebuilt_window import DecidedContent, RebuiltRange, RebuiltWindow

_FEW = 12  # contents of which every choice is tried


class DecidedIds:
    """The decided IDs of one window, with all contents of them that its files hold, or that landed and were rejected
    before a compacted file replaced the text."""

    def __init__(self, claimed: ClaimedWindow, rebuilt: RebuiltWindow) -> None:
        self._offsets = {decision.offsets for decision in claimed.decisions}
        self._newest = {(d.offsets, d.newest) for d in claimed.decisions}
        contents = {(content.offsets, content.hash): content for content in rebuilt.decided}
        if claimed.compacted is not None:  # its file keeps the contents that count, and no other
            for d in claimed.decisions:
                rejected = (DecidedContent(d.offsets, each, counts=False) for each in d.contents if each != d.kept)
                contents = {(content.offsets, content.hash): content for content in rejected} | contents
        self._contents = [content for _, content in sorted(contents.items(), key=lambda item: item[0])]

    def drop_pieces(self, ranges: Iterable[RebuiltRange]) -> tuple[RebuiltRange, ...]:
        """Return the ranges without those of decided IDs."""
        return tuple(piece for piece in ranges if piece.offsets not in self._offsets)

    def explain(self, ids: Iterable[OffsetRange], actual: Digest, expected: Digest) -> bool:
        """Return whether a landing of these IDs holds exactly `actual`, the records of its other IDs, and contents of
        decided IDs."""
        decided = {
            OffsetRange(piece.source, n, n + 1)
            for piece in intersect(ids, self._offsets)
            for n in range(piece.start, piece.end)
        }
        if not decided:
            return False
        missing = tuple(a - b for a, b in zip(expected.as_tuple(), actual.as_tuple(), strict=True))
        within = [content for content in self._contents if content.offsets in decided]
        return any(sum_digests(c.digest for c in chosen).as_tuple() == missing for chosen in self._list_choices(within))

    def _list_choices(self, contents: Sequence[DecidedContent]) -> Iterator[Iterable[DecidedContent]]:
        """Yield the choices that a landing can have made: all of one reading of the log, or any of a few."""
        yield contents
        yield [c for c in contents if c.counts]
        yield [c for c in contents if not c.counts]
        yield [c for c in contents if (c.offsets, c.hash) in self._newest]
        yield [c for c in contents if (c.offsets, c.hash) not in self._newest]
        if len(contents) <= _FEW:
            for size in range(len(contents) + 1):
                yield from combinations(contents, size)
        else:
            yield ()
