"""Which windows lack landed records, by what repairs and rereads of their files found."""

from __future__ import annotations

import pytest
from bench.large_ledger import MINUTES, LargeLedger, start_of
from tests.onceover.repair.lost_ledger import (
    NAME,
    OFFSETS_OF_5,
    Context,
    age_repairs,
    fail_repair,
    holds,
    list_declarable,
    refusals,
    reread,
)

from onceover.errors import TerminalError, UnreachableError
from onceover.ledger import lost_windows
from onceover.ledger.database import Connection
from onceover.model.repair_failure import RepairFailure

pytestmark = pytest.mark.stack


def test_records_that_kafka_holds_are_read_again_first(fake: Context) -> None:
    del fake.files.held[start_of(5)]
    fake.held = holds(340, 4_000)
    ((start, why),) = refusals(fake)
    assert (start, "Kafka still holds 10 offsets" in why) == (start_of(5), True)
    assert "`onceover reread lost 2025-01-01T00:25Z" in why
    fake.held = None
    assert "does not say whether it still holds" in refusals(fake)[0][1]


def test_offsets_read_again_in_vain_do_not_keep_a_window(fake: Context) -> None:
    """As where the log was cut: Kafka has other records under the window's offsets."""
    del fake.files.held[start_of(5)]
    fake.held = holds(0, 4_000)
    reread(fake, "appended")
    assert "Kafka still holds" in refusals(fake)[0][1], "no repair has looked since"
    fail_repair(fake, "landing 7: raw holds 0 of 5 of lost", 0)
    assert [each.window_start for each in list_declarable(fake)] == [start_of(5)]
    reread(fake, "wanted")
    assert "is to be read again for it, 1 range" in refusals(fake)[0][1]


def test_reread_that_a_certificate_followed_counts_no_more(fake: Context) -> None:
    fake.held = holds(0, 4_000)
    reread(fake, "appended")
    fake.ledger.execute(
        "UPDATE onceover.certificate SET created_at = clock_timestamp() WHERE pipeline = %s AND window_start = %s",
        [NAME, start_of(5)],
    )
    del fake.files.held[start_of(5)]
    fail_repair(fake, "landing 7: raw holds 0 of 5 of lost", 0)
    assert "Kafka still holds" in refusals(fake)[0][1], "raw had all that was read again, and lost it since"
    reread(fake, "appended")
    fail_repair(fake, "landing 7: raw holds 0 of 5 of lost", 0)
    assert len(list_declarable(fake)) == 1


def test_reread_lines_lost_with_the_file_are_read_again(fake: Context) -> None:
    fake.held = holds(0, 4_000)
    reread(fake, "appended")
    fail_repair(fake, "landing 7: raw holds 4 of 5 of lost", 60)
    del fake.files.held[start_of(5)]
    fail_repair(fake, "landing 7: raw holds 0 of 5 of lost", 0)
    assert "Kafka still holds" in refusals(fake)[0][1]


def test_file_changed_since_the_repair_is_read_again(fake: Context) -> None:
    fake.held = holds(0, 4_000)
    fake.files.held[start_of(5)] = 60
    reread(fake, "appended")
    fail_repair(fake, "landing 7: raw holds 1 of 5 of lost", 60)
    assert len(list_declarable(fake)) == 1
    del fake.files.held[start_of(5)]
    assert "Kafka still holds" in refusals(fake)[0][1]


def test_lines_that_a_repair_missed_count_as_lost(fake: Context) -> None:
    whole = fake.files.held[start_of(5)]
    fail_repair(fake, "landing 7: raw holds 4 of 5 of lost", whole)
    (lost,) = list_declarable(fake)
    assert (lost.window_start, lost.what) == (start_of(5), "landing 7: raw holds 4 of 5 of lost")
    both = (RepairFailure.TWO_CONTENTS, RepairFailure.LOST_LINE)
    fail_repair(
        fake, "1 ID with two contents under one leader epoch; landing 7: raw holds 4 of 5 of lost", whole, *both
    )
    assert refusals(fake) == [], "a person finds the wrong line first"


def test_file_that_can_be_read_again_is_not_lost(fake: Context) -> None:
    fail_repair(fake, "reading raw failed: Could not obtain block", None, RepairFailure.UNREADABLE_FILE)
    assert refusals(fake) == []
    fake.unreadable[start_of(5)] = TerminalError("no DataNode has the block")
    assert len(list_declarable(fake)) == 1
    fake.unreadable[start_of(5)] = UnreachableError("it hangs")
    assert "may pass" in refusals(fake)[0][1]
    age_repairs(fake)
    assert len(list_declarable(fake)) == 1


def test_file_that_is_merely_shorter_is_repaired_first(fake: Context) -> None:
    """It may lack nothing but second copies of its records."""
    fake.files.held[start_of(5)] -= 50
    length = fake.files.held[start_of(5)]
    assert "repair it first, as `onceover explain lost 2025-01-01T00:25Z`" in refusals(fake)[0][1]
    fail_repair(fake, "landing 7: raw holds 4 of 5 of lost", length + 1)
    assert "repair it first" in refusals(fake)[0][1], "it read another file"
    fail_repair(fake, "1 ID has more than one content", length, RepairFailure.TWO_CONTENTS)
    assert len(list_declarable(fake)) == 1, "it could not prove the file either"
    fail_repair(fake, "landing 7: raw holds 4 of 5 of lost", length)
    assert len(list_declarable(fake)) == 1


def test_file_that_may_have_been_put_back_is_repaired_first(fake: Context) -> None:
    fail_repair(fake, "landing 7: raw holds 4 of 5 of lost", fake.files.held[start_of(5)])
    assert len(list_declarable(fake)) == 1
    fake.put_back = True
    assert "repair it first" in refusals(fake)[0][1]
    fake.put_back = False
    age_repairs(fake)
    assert "repair it first" in refusals(fake)[0][1], "a rename keeps a file's time"


def test_interrupted_reread_is_finished_first(fake: Context) -> None:
    del fake.files.held[start_of(5)]
    fake.unfinished = ("damaged/part.readable",)
    assert "was interrupted: run `onceover reread lost 2025-01-01T00:25Z" in refusals(fake)[0][1]


def test_offsets_of_the_window_are_those_of_its_batches(connection: Connection, ledger: LargeLedger) -> None:
    window = lost_windows.read_unclaimed(connection, NAME, start_of(5))
    assert window is not None
    ids = [piece for landing in window.landings for piece in landing.ids if piece.source.kafka_partition == 0]
    assert (min(p.start for p in ids), max(p.end for p in ids)) == OFFSETS_OF_5
    assert len(ids) == 2 * MINUTES
