"""What has landed, by leader epoch, where a record was released out of an accepted loss."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pytest
from tests.onceover.ledger.driven_pipeline import NOON, ONE, SOURCE, drive, insert_window, of, register

from onceover.ledger import batches, losses
from onceover.ledger.database import Connection
from onceover.ledger.extras import list_landed_spans
from onceover.ledger.landed_offsets import read_accounted
from onceover.ledger.releases import land_release
from onceover.model.batch import Landing, LandingPart, RangeRead
from onceover.model.digest import Digest
from onceover.model.log_history import EpochSpan
from onceover.model.offsets import OffsetRange

pytestmark = pytest.mark.stack


def test_release_out_of_a_loss_has_landed(connection: Connection) -> None:
    name = register(connection).name
    epoch = drive(connection, name)
    insert_window(connection, name)

    def read(offsets: OffsetRange, *leader_epochs: tuple[int, int]) -> tuple[RangeRead, LandingPart]:
        digest = Digest(len(offsets), 1, 2, 3, 4)
        return RangeRead(offsets, digest, None, None, leader_epochs), LandingPart(SOURCE, digest)

    def land(offsets: OffsetRange, *leader_epochs: tuple[int, int]) -> None:
        batch_id, (piece, part) = batches.begin(connection, epoch, 1, [offsets]), read(offsets, *leader_epochs)
        quarantined = [Landing(None, date(2026, 3, 1), 0, 10, True, (part,))]
        batches.land_batch(connection, epoch, batch_id, [piece], quarantined)

    def list_landed(*offsets: OffsetRange) -> Sequence[EpochSpan]:
        return list_landed_spans(connection, name, offsets)

    land(of(0, 10), (1, 0), (2, 5))
    land(of(20, 30), (2, 20))
    losses.record_loss(connection, name, [of(10, 20)], NOON, ONE, "me", "a test")
    assert (read_accounted(connection, name), list_landed(of(10, 20))) == ([of(0, 10), of(20, 30)], [])
    batch_id, (piece, part) = batches.begin(connection, epoch, 1, (), None), read(of(15, 16))
    landings = [Landing(NOON, None, 0, 10, True, (part,))]
    land_release(connection, epoch, batch_id, [piece], landings, [piece.offsets], "me", "a test")
    assert read_accounted(connection, name) == [of(0, 10), of(15, 16), of(20, 30)]
    assert set(list_landed(of(4, 8), of(9, 22))) == {
        EpochSpan(of(4, 5), 1), EpochSpan(of(5, 8), 2), EpochSpan(of(9, 10), 2), EpochSpan(of(15, 16), None),
        EpochSpan(of(20, 22), 2),
    }  # fmt: skip
