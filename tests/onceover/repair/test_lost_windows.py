"""Windows whose records neither raw nor Kafka holds: which of them a person may give up, and what stays of them."""

from __future__ import annotations

import pytest
from bench import large_ledger
from bench.large_ledger import LargeLedger, start_of
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
        listed = list_lost(as_context(fake), ())
        assert [each.window_start for each in listed.declarable] == [start_of(5), start_of(9)]
        assert (listed.others, listed.changing) == ((), 0)
        assert give_up(as_context(fake), listed.declarable, "kim", "INC-42") == 2
        assert fake.files.expired.read() == {start_of(5), start_of(9)}, "a rebuilt ledger knows them"
        assert give_up(as_context(fake), listed.declarable, "kim", "again") == 0
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
    assert give_up(as_context(fake), list_declarable(fake), "kim", "INC-42") == 1
    assert (read_window(fake)["state"], read_window(fake)["blocked_why"]) == ("expired", None)


def test_nothing_is_given_up_while_datanodes_are_away(fake: Context) -> None:
    del fake.files.held[start_of(5)]
    listed = list_declarable(fake)
    fake.away = True
    with pytest.raises(UnreachableError):
        give_up(as_context(fake), listed, "kim", "INC-42")
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
    assert give_up(as_context(fake), listed, "kim", "INC-42") == 0


def test_window_given_up_is_not_read_again(fake: Context) -> None:
    del fake.files.held[start_of(5)]
    change_window(fake.ledger, NAME, start_of(5), "kept_rows = 1, kept_hash = 'a'")
    assert lost_windows.read_unclaimed(fake.ledger, NAME, start_of(5)) is not None
    assert give_up(as_context(fake), list_declarable(fake), "kim", "INC-42") == 1
    assert lost_windows.read_unclaimed(fake.ledger, NAME, start_of(5)) is None
