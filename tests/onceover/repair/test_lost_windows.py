"""Windows whose records neither raw nor Kafka holds: which of them a person may give up, and what stays of them."""

from __future__ import annotations

import pytest
from bench import large_ledger
from bench.large_ledger import LargeLedger, start_of
from psycopg.types.json import Jsonb
from tests.onceover.ledger.driven_pipeline import change_window
from tests.onceover.repair.lost_ledger import (
    NAME,
    Context,
    as_context,
    fail_repair,
    holds,
    list_declarable,
    read_window,
    refusals,
)

from onceover.errors import UnreachableError
from onceover.ledger import lost_windows
from onceover.repair.lost_windows import give_up, list_lost

pytestmark = pytest.mark.stack


def test_window_that_nothing_holds_is_given_up(ledger: LargeLedger, fake: Context) -> None:
    del fake.files.held[start_of(5)]
    fake.files.held[start_of(9)] -= 50
    fail_repair(fake, "landing 7: raw holds 4 of 5 of lost", fake.files.held[start_of(9)], window=9)
    fake.held = holds(1_000, 4_000)
    before = read_window(fake)
    with large_ledger.uncertified(fake.ledger, ledger, [start_of(9)]):
        listed = list_lost(as_context(fake))
        assert [each.window_start for each in listed.declarable] == [start_of(5), start_of(9)]
        assert (listed.others, listed.changing) == ((), 0)
        assert give_up(as_context(fake), listed.declarable, (), "kim", "INC-42") == (2, 0)
        assert fake.files.expired.read() == {start_of(5), start_of(9)}, "a rebuilt ledger knows them"
        assert give_up(as_context(fake), listed.declarable, (), "kim", "again") == (0, 0)
    after = read_window(fake)
    assert (before["state"], after["state"]) == ("certified", "expired")
    assert (after["records"], after["version"]) == (before["records"], before["version"] + 1)
    assert "declared by kim" in after["expired_why"]
    assert "(its file has 0 of " in after["expired_why"]
    assert after["expired_why"].endswith(": INC-42")
    assert refusals(fake) == []


def test_blocked_window_is_given_up(fake: Context) -> None:
    del fake.files.held[start_of(5)]
    change_window(
        fake.ledger, NAME, start_of(5), "blocked_at = now(), blocked_why = 'raw holds 0 of 5', version = version + 1"
    )
    assert give_up(as_context(fake), list_declarable(fake), (), "kim", "INC-42") == (1, 0)
    assert (read_window(fake)["state"], read_window(fake)["blocked_why"]) == ("expired", None)


def test_nothing_is_given_up_while_datanodes_are_away(fake: Context) -> None:
    del fake.files.held[start_of(5)]
    listed = list_declarable(fake)
    fake.away = True
    with pytest.raises(UnreachableError):
        give_up(as_context(fake), listed, (), "kim", "INC-42")
    assert read_window(fake)["state"] == "certified"


def test_open_and_held_windows_wait(fake: Context) -> None:
    del fake.files.held[start_of(5)]
    del fake.files.held[start_of(30)]
    change_window(fake.ledger, NAME, start_of(5), "claimed_by = 'me', claimed_until = now() + interval '1 hour'")
    fake.ledger.execute("UPDATE onceover.pipeline SET watermark = %s WHERE name = %s", [start_of(30), NAME])
    assert [(start, why.split()[0]) for start, why in refusals(fake)] == [(start_of(5), "a"), (start_of(30), "it")]


def test_window_that_changed_or_is_held_since_is_kept(fake: Context) -> None:
    del fake.files.held[start_of(5)]
    listed = list_declarable(fake)
    change_window(fake.ledger, NAME, start_of(5), "version = version + 1")
    assert give_up(as_context(fake), listed, (), "kim", "INC-42") == (0, 0)


def test_window_given_up_is_not_read_again(fake: Context) -> None:
    del fake.files.held[start_of(5)]
    change_window(fake.ledger, NAME, start_of(5), "kept_rows = 1, kept_hash = 'a'")
    assert lost_windows.read_unclaimed(fake.ledger, NAME, start_of(5)) is not None
    assert give_up(as_context(fake), list_declarable(fake), (), "kim", "INC-42") == (1, 0)
    assert lost_windows.read_unclaimed(fake.ledger, NAME, start_of(5)) is None


def test_windows_as_certified_keep_their_certificate(
    ledger: LargeLedger, fake: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_certified, changed, unsettled, compacted, landed = (start_of(n) for n in (5, 3, 4, 6, 7))
    for start in (as_certified, changed, unsettled, compacted, landed):
        del fake.files.held[start]
    state = "UPDATE onceover.certificate SET aggregate_rows = %s, aggregate_hash = %s WHERE pipeline = %s"
    (now,) = ledger.known.table.fingerprints(fake.ledger, [changed]).values()
    fake.ledger.execute(state, [now.rows, now.hash, NAME])
    fake.ledger.execute(f"{state} AND window_start = %s", [now.rows + 1, now.hash, NAME, changed])
    fake.ledger.execute(
        "UPDATE onceover.certificate SET extras = %s WHERE pipeline = %s AND window_start = %s",
        [Jsonb([["a generation that is not read", 0, 7, 8, None]]), NAME, unsettled],
    )
    fake.ledger.execute(
        "UPDATE onceover.certificate SET last_landing = last_landing - 1 WHERE pipeline = %s AND window_start = %s",
        [NAME, landed],
    )
    # As a window that was blocked since.
    fake.ledger.execute('UPDATE onceover."window" SET version = version + 1 WHERE pipeline = %s', [NAME])
    monkeypatch.setattr(fake.files, "read_compacted_lengths", lambda digests: {compacted: 1}, raising=False)
    fake.held = holds(0, 4_000)
    listed = list_lost(as_context(fake))
    assert [(lost.window_start, lost.keeps_certificate) for lost in listed.declarable] == [(as_certified, True)]
    assert [(lost.window_start, why.partition(":")[0]) for lost, why in listed.others] == [
        (changed, "Kafka still holds 100 offsets that may have them"),
        (unsettled, "Kafka still holds 100 offsets that may have them"),
        (compacted, "it has a compacted file"),
        (landed, "Kafka still holds 100 offsets that may have them"),
    ]
    before = read_window(fake)
    assert give_up(as_context(fake), listed.declarable, (), "kim", "INC-42") == (1, 0)
    after = read_window(fake)
    assert (after["state"], after["version"], after["certified_at"]) == (
        "expired", before["version"], before["certified_at"],
    )  # fmt: skip
