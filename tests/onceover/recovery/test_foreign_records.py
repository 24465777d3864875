"""A rebuild of the ledger counts no record of a log that the root's marker does not name."""

from __future__ import annotations

from typing import cast

from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.raw_file import RawContents, Run
from onceover.model.root_marker import UnreadableMarkerError
from onceover.raw.marker import MarkerFiles
from onceover.recovery.job import _list_named
from onceover.recovery.rebuild_ledger import leave_out_foreign

OWN, FOREIGN = KafkaPartition("0a1b2c3d", 0), KafkaPartition("0badcafe", 0)


def run(source: KafkaPartition, start: int, end: int) -> Run:
    return Run(OffsetRange(source, start, end), ((0, Digest(end - start)),), None, None)


def test_rebuild_leaves_out_records_of_a_log_never_read() -> None:
    contents = RawContents(
        layers=((run(OWN, 0, 9), run(FOREIGN, 0, 5)), (run(FOREIGN, 3, 6),)),
        released=(run(FOREIGN, 6, 7), run(OWN, 2, 3)),
    )
    kept, foreign = leave_out_foreign(contents, {OWN})
    assert (kept.layers, kept.released, foreign) == (((run(OWN, 0, 9),),), (run(OWN, 2, 3),), 7)
    assert leave_out_foreign(contents, {OWN, FOREIGN}) == (contents, 0)


class Unreadable:
    """Markers of which the newest cannot be read."""

    def read_newest(self) -> None:
        raise UnreadableMarkerError("is cut off")


def test_rebuild_beside_an_unreadable_marker_leaves_out_none() -> None:
    assert _list_named(cast("MarkerFiles", Unreadable())) is None
