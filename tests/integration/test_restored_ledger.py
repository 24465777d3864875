"""A ledger restored from a backup that is older than compactions and expiries of raw: every window is certified again,
or declared expired, by the commands that `explain` names."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.compaction import (
    EACH,
    expire_text,
    list_states,
    make_certified_lane,
    read_compacted,
    spoil_rows,
)
from tests.integration.events import FIVE_PAST, NOON, event
from tests.integration.extras import accept_loss, repair
from tests.integration.lane import Lane, Lanes
from tests.integration.other_ledger import copy_ledger
from tests.integration.planted_failures import expire, lose_ledger, minutes
from tests.integration.program import as_json, run, succeed

from onceover.errors import UsageError

pytestmark = [pytest.mark.stack, pytest.mark.largest]


@pytest.fixture
def lane(lanes: Lanes) -> Lane:
    return make_certified_lane(lanes)


@pytest.fixture
def restore(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Back up the ledger of the certified lane; return a function that restores it, as another database."""
    backup = copy_ledger()

    def take_over() -> None:
        monkeypatch.setenv("ONCEOVER_POSTGRES", backup)
        succeed("ledger", "take-root", lane.name, "--reason", "restored from a backup")

    return take_over


def block_all(lane: Lane) -> None:
    """Do what schedules do with windows whose text is gone: sweep, and three repairs that fail."""
    assert len(lane.sweep().differing) == 2
    for _ in range(3):
        assert len(lane.repair_detected().failed) == 2
    assert list_states(lane) == ["blocked", "blocked"]


def test_file_compacted_after_the_backup_is_taken_over(lane: Lane, restore: Callable[[], None]) -> None:
    right = lane.aggregates()
    assert all(one.why is None for one in lane.compact())
    assert expire_text(lane) == 2
    restore()
    block_all(lane)
    assert f"onceover compact {lane.name}" in lane.explain_text(0)
    assert as_json("compact", lane.name, "--dry-run")["due"] == 2
    assert [(one.why, one.found) for one in lane.compact()] == [(None, True), (None, True)]
    assert lane.detect().certified == 2
    assert (lane.sweep().differing, list_states(lane)) == ((), ["certified", "certified"])

    spoil_rows(lane)
    assert len(lane.repair_detected(minutes(0, 10), force=True).confirmed) == 2
    assert lane.aggregates() == right, "rebuilt from the compacted files alone"
    assert lane.verify(0)["equal"]


def test_damaged_compacted_file_is_not_taken_over(lane: Lane, restore: Callable[[], None]) -> None:
    made = {one.due.window_start: one.due for one in lane.compact()}
    expire_text(lane)
    restore()
    path = lane.layout.compacted_file(NOON, made[NOON].digest)
    other = lane.layout.compacted_file(FIVE_PAST, made[FIVE_PAST].digest)
    with lane.hdfs().read(other) as reader:
        lane.overwrite(path, reader.read())
    taken, left = sorted(lane.compact(), key=lambda one: one.why or "")
    assert (taken.due.window_start, left.due.window_start) == (FIVE_PAST, NOON)
    assert "the file beside it reads back as" in (left.why or "")


def test_late_text_beside_a_found_compacted_file_counts_too(lane: Lane, restore: Callable[[], None]) -> None:
    lengths = lane.files().read_lengths([NOON])
    lane.compact()
    expire_text(lane)
    restore()
    lane.land([event(1, "late")] * 1_500)
    assert lane.files().read_lengths([NOON])[NOON] > lengths[NOON], "longer than the text that is gone"
    assert [one.found for one in lane.compact()] == [True, True]
    lane.land([event(6, "late")])
    assert lane.detect().certified == 2
    assert all(lane.verify(minute)["equal"] for minute in (0, 5))
    assert [lane.aggregates()[(minute, "late")][0] for minute in (0.0, 5.0)] == [1_500, 1]


def test_windows_that_expired_after_the_backup_are_declared(lane: Lane, restore: Callable[[], None]) -> None:
    right = lane.aggregates()
    assert expire_text(lane) == 2
    assert lane.raw() == {}
    restore()
    block_all(lane)
    assert f"onceover retention {lane.name} --adopt-missing" in lane.explain_text(0)
    planned = as_json("retention", lane.name, "--adopt-missing", "--dry-run")
    assert [(row["records"], row["why_not"]) for row in planned["missing"]] == [(EACH, None)] * 2
    lane.store().remove(lane.layout.expired_windows)  # as if a person had deleted the files
    refused = run("retention", lane.name, "--adopt-missing")
    assert (refused.returncode, "needs a reason" in refused.stderr) == (2, True)
    said = succeed("retention", lane.name, "--adopt-missing", "--reason", "restored from Tuesday's backup")
    assert "2 windows declared expired" in said
    assert list_states(lane) == ["expired", "expired"]
    assert lane.files().expired.read() == {NOON, FIVE_PAST}
    explained = lane.explain_text(0)
    assert "restored from Tuesday's backup" in explained
    assert "by the pipeline's retention" not in explained
    assert (lane.detect().judged, lane.sweep().compared, lane.aggregates()) == (0, 0, right)


def test_missing_text_of_changed_rows_is_not_declared(lane: Lane, restore: Callable[[], None]) -> None:
    assert all(one.why is None for one in lane.compact())
    assert expire_text(lane) == 2
    restore()
    lane.hdfs().delete(f"{lane.layout.raw_root}/{lane.name}/{min(read_compacted(lane))}")
    spoil_rows(lane)
    done = run("retention", lane.name, "--adopt-missing", "--reason", "restored", "--json")
    assert done.returncode == 1
    assert "Kafka still holds" in done.stdout
    assert f"run `onceover compact {lane.name}` first" in done.stdout
    assert list_states(lane) == ["certified", "certified"], "nothing is declared"


def test_record_in_an_unknown_compacted_file_is_no_loss(lane: Lane, restore: Callable[[], None]) -> None:
    lane.land([event(1, "late")] * 5)
    repair(lane)
    assert all(one.why is None for one in lane.compact())
    assert expire_text(lane) == 2
    expire(lane, EACH + 5)
    right = lane.aggregates()
    restore()
    lane.turn()
    with pytest.raises(UsageError, match=f"onceover ledger rebuild {lane.name}"):
        accept_loss(lane, EACH, EACH + 5)

    lose_ledger()
    assert lane.rebuild().written.records == 2 * EACH + 5
    lane.ingest()
    repair(lane)
    assert (lane.aggregates(), list_states(lane)) == (right, ["certified", "certified"])
