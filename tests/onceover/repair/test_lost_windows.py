"""Windows whose records neither raw nor Kafka holds: which of them a person may give up, and what stays of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

import pytest
from bench import large_ledger
from bench.large_ledger import MINUTES, LargeLedger, generation, start_of

from onceover.context import PipelineContext
from onceover.errors import OnceoverError, TerminalError, UnreachableError
from onceover.ledger import rereads
from onceover.ledger.database import Connection
from onceover.ledger.windows import list_windows
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.raw.damaged_files import DamagedFiles
from onceover.raw.layout import Layout
from onceover.repair.lost_windows import give_up, list_lost

pytestmark = pytest.mark.stack
NAME = "lost"
OFFSETS_OF_5 = (250, 350)  # of its own five batches, and of the next five


@dataclass
class Context:
    """A double of a pipeline's context: `held` is what Kafka's log holds, None if Kafka does not answer."""

    ledger: Connection
    files: Any
    held: tuple[OffsetRange, ...] | None = ()
    away: bool = False
    unreadable: dict[datetime, OnceoverError] = field(default_factory=dict)
    put_back: bool = False
    unfinished: tuple[str, ...] = ()
    name: str = NAME
    layout: Layout = field(default_factory=lambda: Layout("/large", NAME))

    def require_own_root(self) -> None: ...
    def address(self, part: str) -> str:
        return "http://127.0.0.1:9"

    def read_held(self, wanted: str) -> tuple[OffsetRange, ...] | None:
        return self.held


@pytest.fixture
def ledger(connection: Connection) -> Iterator[LargeLedger]:
    built = large_ledger.build(connection, NAME, 40)
    yield built
    for table in ("reread", "repair", "suspicion"):
        connection.execute(f"DELETE FROM onceover.{table} WHERE pipeline = %s", [NAME])
    connection.execute("DELETE FROM onceover.repair_request WHERE pipeline = %s", [NAME])
    large_ledger.drop(connection, built)


@pytest.fixture
def fake(connection: Connection, ledger: LargeLedger, monkeypatch: pytest.MonkeyPatch) -> Context:
    made = Context(connection, ledger.files)

    def read_window(start: datetime) -> Iterator[bytes]:
        if start in made.unreadable:
            raise made.unreadable[start]
        yield b""

    def require_datanodes(self: object, path: str) -> None:
        if made.away:
            raise UnreachableError("1 DataNodes of HDFS do not answer")

    monkeypatch.setattr(ledger.files, "read_window", read_window, raising=False)
    monkeypatch.setattr(DamagedFiles, "require_datanodes", require_datanodes)
    monkeypatch.setattr(DamagedFiles, "was_written_since", lambda self, path, moment: made.put_back)
    monkeypatch.setattr(DamagedFiles, "list_unfinished", lambda self, path: list(made.unfinished))
    return made


def as_context(fake: Context) -> PipelineContext:
    return cast("PipelineContext", fake)


def holds(start: int, end: int) -> tuple[OffsetRange, ...]:
    return (OffsetRange(KafkaPartition(generation(NAME), 0), start, end),)


def fail_repair(connection: Connection, window: int, reason: str, length: int | None) -> None:
    """Record a repair that failed for that reason, as the window is now."""
    connection.execute(
        """
        WITH request AS (INSERT INTO onceover.repair_request (pipeline, who, why) VALUES (%(name)s, 'me', 'a test')
          RETURNING request_id)
        INSERT INTO onceover.repair (request_id, pipeline, window_start, state, reason, findings, started_at,
          finished_at, bytes_read)
        SELECT request_id, %(name)s, %(start)s, 'failed', %(reason)s, '[]', clock_timestamp(), clock_timestamp(),
          %(length)s FROM request
        """,
        {"name": NAME, "start": start_of(window), "reason": reason, "length": length},
    )
    connection.execute(
        'UPDATE onceover."window" SET tries = 1 WHERE pipeline = %s AND window_start = %s', [NAME, start_of(window)]
    )


def age_repairs(connection: Connection) -> None:
    """Have all repairs be more than an hour old."""
    connection.execute(
        "UPDATE onceover.repair SET started_at = started_at - interval '2 hours' WHERE pipeline = %s", [NAME]
    )


def reread(connection: Connection, window: int, start: int, end: int, state: str) -> None:
    connection.execute(
        """
        WITH request AS (INSERT INTO onceover.repair_request (pipeline, who, why) VALUES (%(name)s, 'me', 'a test')
          RETURNING request_id)
        INSERT INTO onceover.reread (pipeline, window_start, contract_version, generation, kafka_partition,
          start_offset, end_offset, request_id, state, finished_at)
        SELECT %(name)s, %(at)s, 1, %(generation)s, 0, %(start)s, %(end)s, request_id, %(state)s, clock_timestamp()
        FROM request
        """,
        {"name": NAME, "at": start_of(window), "generation": generation(NAME), "start": start, "end": end,
         "state": state},
    )  # fmt: skip


@contextmanager
def unclosed(connection: Connection, window: int) -> Iterator[None]:
    """Have that window and all later ones open, and not certified."""
    connection.execute("UPDATE onceover.pipeline SET watermark = %s WHERE name = %s", [start_of(window), NAME])
    yield


def read_window(connection: Connection, window: int) -> Any:
    (row,) = list_windows(connection, NAME, None, start_of(window), start_of(window + 1))
    return row


def refusals(fake: Context) -> list[tuple[datetime, str]]:
    listed = list_lost(as_context(fake), ())
    assert listed.declarable == ()
    return [(lost.window_start, why) for lost, why in listed.others]


def test_window_that_nothing_holds_is_given_up(connection: Connection, ledger: LargeLedger, fake: Context) -> None:
    del ledger.files.held[start_of(5)]
    ledger.files.held[start_of(9)] -= 50
    fail_repair(connection, 9, "landing 7: raw holds 4 of 5 of lost", ledger.files.held[start_of(9)])
    fake.held = holds(1_000, 4_000)
    before = read_window(connection, 5)
    with large_ledger.uncertified(connection, ledger, [start_of(9)]):
        listed = list_lost(as_context(fake), ())
        assert [each.window_start for each in listed.declarable] == [start_of(5), start_of(9)]
        assert (listed.others, listed.changing, listed.is_cut) == ((), 0, False)
        assert give_up(as_context(fake), listed.declarable, "kim", "INC-42") == 2
        assert give_up(as_context(fake), listed.declarable, "kim", "again") == 0
    after = read_window(connection, 5)
    assert (before["state"], after["state"]) == ("certified", "expired")
    assert (after["records"], after["version"]) == (before["records"], before["version"] + 1)
    assert "declared by kim" in after["expired_why"]
    assert "(its file has 0 of " in after["expired_why"]
    assert after["expired_why"].endswith(": INC-42")
    assert refusals(fake) == []


def test_blocked_window_is_given_up(connection: Connection, ledger: LargeLedger, fake: Context) -> None:
    del ledger.files.held[start_of(5)]
    connection.execute(
        "UPDATE onceover.\"window\" SET blocked_at = now(), blocked_why = 'raw holds 0 of 5', version = version + 1 "
        "WHERE pipeline = %s AND window_start = %s",
        [NAME, start_of(5)],
    )
    assert give_up(as_context(fake), list_lost(as_context(fake), ()).declarable, "kim", "INC-42") == 1
    assert (read_window(connection, 5)["state"], read_window(connection, 5)["blocked_why"]) == ("expired", None)


def test_records_that_kafka_holds_are_read_again_first(ledger: LargeLedger, fake: Context) -> None:
    del ledger.files.held[start_of(5)]
    fake.held = holds(340, 4_000)
    ((start, why),) = refusals(fake)
    assert (start, "Kafka still holds 10 offsets" in why) == (start_of(5), True)
    assert "`onceover reread lost 2025-01-01T00:25Z" in why
    fake.held = None
    assert "does not say whether it still holds" in refusals(fake)[0][1]


def test_offsets_read_again_in_vain_do_not_keep_a_window(
    connection: Connection, ledger: LargeLedger, fake: Context
) -> None:
    """As where the log was cut: Kafka has other records under the window's offsets."""
    del ledger.files.held[start_of(5)]
    fake.held = holds(0, 4_000)
    reread(connection, 5, *OFFSETS_OF_5, "appended")
    assert "Kafka still holds" in refusals(fake)[0][1], "no repair has looked since"
    fail_repair(connection, 5, "landing 7: raw holds 0 of 5 of lost", 0)
    assert [each.window_start for each in list_lost(as_context(fake), ()).declarable] == [start_of(5)]
    reread(connection, 5, *OFFSETS_OF_5, "wanted")
    assert "is to be read again for it, 1 range" in refusals(fake)[0][1]


def test_reread_that_a_certificate_followed_counts_no_more(
    connection: Connection, ledger: LargeLedger, fake: Context
) -> None:
    fake.held = holds(0, 4_000)
    reread(connection, 5, *OFFSETS_OF_5, "appended")
    connection.execute(
        "UPDATE onceover.certificate SET created_at = clock_timestamp() WHERE pipeline = %s AND window_start = %s",
        [NAME, start_of(5)],
    )
    del ledger.files.held[start_of(5)]
    fail_repair(connection, 5, "landing 7: raw holds 0 of 5 of lost", 0)
    assert "Kafka still holds" in refusals(fake)[0][1], "raw had all that was read again, and lost it since"
    reread(connection, 5, *OFFSETS_OF_5, "appended")
    fail_repair(connection, 5, "landing 7: raw holds 0 of 5 of lost", 0)
    assert len(list_lost(as_context(fake), ()).declarable) == 1


def test_reread_lines_lost_with_the_file_are_read_again(
    connection: Connection, ledger: LargeLedger, fake: Context
) -> None:
    fake.held = holds(0, 4_000)
    reread(connection, 5, *OFFSETS_OF_5, "appended")
    fail_repair(connection, 5, "landing 7: raw holds 4 of 5 of lost", 60)
    del ledger.files.held[start_of(5)]
    fail_repair(connection, 5, "landing 7: raw holds 0 of 5 of lost", 0)
    assert "Kafka still holds" in refusals(fake)[0][1]


def test_file_changed_since_the_repair_is_read_again(
    connection: Connection, ledger: LargeLedger, fake: Context
) -> None:
    fake.held = holds(0, 4_000)
    ledger.files.held[start_of(5)] = 60
    reread(connection, 5, *OFFSETS_OF_5, "appended")
    fail_repair(connection, 5, "landing 7: raw holds 1 of 5 of lost", 60)
    assert len(list_lost(as_context(fake), ()).declarable) == 1
    del ledger.files.held[start_of(5)]
    assert "Kafka still holds" in refusals(fake)[0][1]


def test_lines_that_a_repair_missed_count_as_lost(connection: Connection, ledger: LargeLedger, fake: Context) -> None:
    whole = ledger.files.held[start_of(5)]
    fail_repair(connection, 5, "landing 7: raw holds 4 of 5 of lost", whole)
    (lost,) = list_lost(as_context(fake), ()).declarable
    assert (lost.window_start, lost.what) == (start_of(5), "landing 7: raw holds 4 of 5 of lost")
    assert list_lost(as_context(fake), {start_of(5)}).declarable == (), "known already"
    fail_repair(connection, 5, "1 IDs have more than one content; landing 7: raw holds 4 of 5 of lost", whole)
    assert refusals(fake) == [], "a decision comes first"


def test_contents_that_are_still_to_be_compared_are_not_lost(
    connection: Connection, ledger: LargeLedger, fake: Context
) -> None:
    reason = "landing 7: raw holds 5 of 5 of lost, with another digest"
    fail_repair(connection, 5, reason, ledger.files.held[start_of(5)])
    connection.execute(
        "INSERT INTO onceover.suspicion (pipeline, generation, kafka_partition, start_offset, end_offset, windows, "
        "created_at) VALUES (%s, %s, 0, 250, 260, %s, clock_timestamp())",
        [NAME, generation(NAME), [start_of(5), start_of(6)]],
    )
    assert refusals(fake) == []
    fail_repair(connection, 5, reason, ledger.files.held[start_of(5)])
    assert len(list_lost(as_context(fake), ()).declarable) == 1, "the next repair has compared them, and still fails"


def test_file_that_can_be_read_again_is_not_lost(connection: Connection, fake: Context) -> None:
    fail_repair(connection, 5, "reading raw failed: Could not obtain block", None)
    assert refusals(fake) == []
    fake.unreadable[start_of(5)] = TerminalError("no DataNode has the block")
    assert len(list_lost(as_context(fake), ()).declarable) == 1
    fake.unreadable[start_of(5)] = UnreachableError("it hangs")
    assert "may pass" in refusals(fake)[0][1]
    age_repairs(connection)
    assert len(list_lost(as_context(fake), ()).declarable) == 1


def test_file_that_is_merely_shorter_is_repaired_first(
    connection: Connection, ledger: LargeLedger, fake: Context
) -> None:
    """It may lack nothing but second copies of its records."""
    ledger.files.held[start_of(5)] -= 50
    length = ledger.files.held[start_of(5)]
    assert "repair it first, as `onceover explain lost 2025-01-01T00:25Z`" in refusals(fake)[0][1]
    fail_repair(connection, 5, "landing 7: raw holds 4 of 5 of lost", length + 1)
    assert "repair it first" in refusals(fake)[0][1], "it read another file"
    fail_repair(connection, 5, "1 IDs have more than one content", length)
    assert len(list_lost(as_context(fake), ()).declarable) == 1, "it could not prove the file either"
    fail_repair(connection, 5, "landing 7: raw holds 4 of 5 of lost", length)
    assert len(list_lost(as_context(fake), ()).declarable) == 1


def test_file_that_may_have_been_put_back_is_repaired_first(
    connection: Connection, ledger: LargeLedger, fake: Context
) -> None:
    fail_repair(connection, 5, "landing 7: raw holds 4 of 5 of lost", ledger.files.held[start_of(5)])
    assert len(list_lost(as_context(fake), ()).declarable) == 1
    fake.put_back = True
    assert "repair it first" in refusals(fake)[0][1]
    fake.put_back = False
    age_repairs(connection)
    assert "repair it first" in refusals(fake)[0][1], "a rename keeps a file's time"


def test_interrupted_reread_is_finished_first(ledger: LargeLedger, fake: Context) -> None:
    del ledger.files.held[start_of(5)]
    fake.unfinished = ("damaged/part.readable",)
    assert "was interrupted: run `onceover reread lost 2025-01-01T00:25Z" in refusals(fake)[0][1]


def test_nothing_is_given_up_while_datanodes_are_away(
    connection: Connection, ledger: LargeLedger, fake: Context
) -> None:
    del ledger.files.held[start_of(5)]
    listed = list_lost(as_context(fake), ()).declarable
    fake.away = True
    with pytest.raises(UnreachableError):
        give_up(as_context(fake), listed, "kim", "INC-42")
    assert read_window(connection, 5)["state"] == "certified"


def test_open_and_held_windows_wait(connection: Connection, ledger: LargeLedger, fake: Context) -> None:
    del ledger.files.held[start_of(5)]
    del ledger.files.held[start_of(30)]
    claim = "UPDATE onceover.\"window\" SET claimed_by = 'me', claimed_until = now() + %s::interval WHERE pipeline = %s"
    connection.execute(f"{claim} AND window_start = %s", ["1 hour", NAME, start_of(5)])
    with unclosed(connection, 30):
        assert [(start, why.partition(" ")[0]) for start, why in refusals(fake)] == [
            (start_of(5), "a"), (start_of(30), "it"),
        ]  # fmt: skip


def test_window_that_changed_or_is_held_since_is_kept(
    connection: Connection, ledger: LargeLedger, fake: Context
) -> None:
    del ledger.files.held[start_of(5)]
    listed = list_lost(as_context(fake), ()).declarable
    connection.execute(
        'UPDATE onceover."window" SET version = version + 1 WHERE pipeline = %s AND window_start = %s',
        [NAME, start_of(5)],
    )
    assert give_up(as_context(fake), listed, "kim", "INC-42") == 0


def test_window_given_up_is_no_side_of_a_suspicion(connection: Connection, ledger: LargeLedger, fake: Context) -> None:
    del ledger.files.held[start_of(5)]
    connection.execute(
        "UPDATE onceover.\"window\" SET kept_rows = 1, kept_hash = 'a' WHERE pipeline = %s AND window_start = %s",
        [NAME, start_of(5)],
    )
    assert rereads.read_unclaimed(connection, NAME, start_of(5)) is not None
    assert give_up(as_context(fake), list_lost(as_context(fake), ()).declarable, "kim", "INC-42") == 1
    assert rereads.read_unclaimed(connection, NAME, start_of(5)) is None


def test_cut_log_is_compared_first(connection: Connection, ledger: LargeLedger, fake: Context) -> None:
    del ledger.files.held[start_of(5)]
    connection.execute("UPDATE onceover.kafka_partition SET diverged_from = 7 WHERE pipeline = %s", [NAME])
    listed = list_lost(as_context(fake), ())
    assert (listed.declarable, listed.is_cut) == ((), True)


def test_offsets_of_the_window_are_those_of_its_batches(connection: Connection, ledger: LargeLedger) -> None:
    window = rereads.read_unclaimed(connection, NAME, start_of(5))
    assert window is not None
    ids = [piece for landing in window.landings for piece in landing.ids if piece.source.kafka_partition == 0]
    assert (min(p.start for p in ids), max(p.end for p in ids)) == OFFSETS_OF_5
    assert len(ids) == 2 * MINUTES
