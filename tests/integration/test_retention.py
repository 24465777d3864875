"""Raw that is older than its pipeline keeps it: certified windows expire; records that arrived since stay."""

from __future__ import annotations

import pytest
from psycopg.types.json import Jsonb
from tests.integration.compaction import carry_out_all
from tests.integration.events import FIVE_PAST, NOON, event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import append, backdate, land_twice
from tests.integration.planted_failures import expire as expire_log
from tests.integration.program import as_json, run

from onceover.errors import FencedError, TerminalError, UnreachableError, UsageError
from onceover.ledger import drivers, expiries, frontiers
from onceover.ledger.certificates import read_certificate
from onceover.model.window import WindowRange
from onceover.model.windowing import Windowing
from onceover.repair import revisions
from onceover.retention import removal
from onceover.retention.removal import carry_out

pytestmark = pytest.mark.stack


@pytest.fixture
def lane(lanes: Lanes) -> Lane:
    """Three windows: two certified, one that failed; and a record in quarantine. All landed 40 days ago."""
    made = lanes(more='[storage]\nretention = "30d"')
    made.land([event(1), event(6), b"rubbish"])
    made.detect()
    land_twice(made, [event(11), event(11)])
    backdate(made)
    return made


def list_states(lane: Lane) -> list[str]:
    return [row["state"] for row in as_json("windows", lane.name)]


def list_files(lane: Lane) -> set[str]:
    return {name for name in lane.raw() if not name.startswith(("quarantine", "marker"))}


def mark_due(lane: Lane) -> int:
    """Decide, as retention does first, that all that is old enough expires; return the number of noon's expiry."""
    with lane.ledger() as ledger:
        due = expiries.list_expirable(ledger, lane.name, 30 * 86_400_000)
        assert expiries.mark_expired(ledger, lane.name, due, "me", "why") == 3
        assert expiries.mark_expired(ledger, lane.name, due, "me", "why") == 0, "by two at once: once"
        return next(
            each.expiry_id for each in expiries.list_files_to_move(ledger, lane.name, 10) if each.window_start == NOON
        )


def change_noon(lane: Lane) -> None:
    change = 'UPDATE onceover."window" SET version = version + 1 WHERE pipeline = %s AND window_start = %s'
    lane.query(change, [lane.name, NOON])


def make_hour() -> WindowRange:
    return Windowing(5).parse_range("2026-03-01T12:00Z", "2026-03-01T13:00Z")


def test_certified_windows_are_deleted_and_stay_expired(lane: Lane) -> None:
    before = lane.aggregates()
    wait = "UPDATE onceover.certificate SET extras = %s WHERE pipeline = %s AND window_start = %s"
    with lane.ledger() as ledger:
        (generation,) = frontiers.list_generations(ledger, lane.name)
        for end, kept_back in ((6, 2), (5, 1)):  # the frontier is 5
            ledger.execute(wait, [Jsonb([[generation, 0, 4, end, -1]]), lane.name, NOON])
            assert as_json("retention", lane.name, "--dry-run")["kept_back"] == kept_back, "it may still land"
    planned = as_json("retention", lane.name, "--dry-run")
    assert (planned["windows"], planned["quarantine_days"], planned["kept_back"]) == (2, 1, 1)
    assert list_files(lane) == {"2026-03-01/1200.log", "2026-03-01/1205.log", "2026-03-01/1210.log"}, "a dry run"
    done = as_json("retention", lane.name, "--reason", "room")
    assert (done["expired"], done["left"]) == (3, 0)
    aside = {name.rpartition(".")[0] for name in list_files(lane) if name.startswith("expired/2026")}
    assert aside == {"expired/2026-03-01/1200.log", "expired/2026-03-01/1205.log"}
    assert {name for name in list_files(lane) if not name.startswith("expired")} == {"2026-03-01/1210.log"}
    assert as_json("retention", lane.name)["expired"] == 0, "run again it finds nothing"
    lane.query("UPDATE onceover.expiry SET moved_at = moved_at - interval '25 hours' WHERE pipeline = %s", [lane.name])
    as_json("retention", lane.name)
    assert list_files(lane) == {"2026-03-01/1210.log"}, "deleted a day later"
    assert lane.files().expired.read() == {NOON, FIVE_PAST}, "a rebuilt ledger knows them"
    detection = lane.detect()
    assert [str(failed.window) for failed in detection.failed] == ["2026-03-01T12:10Z"]
    lane.repair(detection.request_id)
    assert list_states(lane) == ["expired", "expired", "certified"]
    assert {key: value for key, value in lane.aggregates().items() if key[0] != 10} == {
        key: value for key, value in before.items() if key[0] != 10
    }
    with lane.ledger() as ledger:
        kept = ledger.execute(
            "SELECT who, why, state FROM onceover.expiry WHERE pipeline = %s AND window_start IS NOT NULL", [lane.name]
        ).fetchall()
        assert {(row["why"], row["state"]) for row in kept} == {("room", "deleted")}
        with pytest.raises(TerminalError, match="has expired"):
            read_certificate(ledger, lane.name, NOON)
        with pytest.raises(UsageError, match="has expired"):
            revisions.restore_revision(ledger, lane.registered(), NOON, None, "me", "why")
    with pytest.raises(UsageError, match="cannot be repaired"):
        lane.detect(Windowing(5).parse_range("2026-03-01T12:00Z", "2026-03-01T12:10Z"), force=True)
    assert len(lane.detect(make_hour(), force=True).failed) == 1, "of a range that reaches back there, the rest"
    assert "Its raw has expired" in lane.explain_text(0)
    audited = lane.audit()
    assert (audited["equal"], audited["expired"]) == (True, 0), "Kafka holds all of the expired windows"
    assert [row["window"][-6:] for row in audited["rows"]] == ["antine", "12:00Z", "12:05Z", "12:10Z"]
    expire_log(lane, 3)
    audited = lane.audit()
    assert (audited["equal"], audited["expired"]) == (True, 2)
    assert [row["window"] for row in audited["rows"]] == ["2026-03-01T12:10Z"]


@pytest.mark.rare
def test_records_appended_after_expiry_began_keep_their_raw(lane: Lane) -> None:
    mark_due(lane)
    change_noon(lane)
    assert carry_out_all(lane) == 3
    assert list_states(lane)[:2] == ["closed", "expired"]
    assert "2026-03-01/1200.log" in list_files(lane)


@pytest.mark.rare
def test_late_record_in_an_expired_window_is_kept_and_counted(lane: Lane) -> None:
    as_json("retention", lane.name)
    lane.land([event(2)])
    assert lane.aggregates()[(0.0, "a")][0] == 2
    assert "2026-03-01/1200.log" in list_files(lane)
    assert as_json("retention", lane.name)["expired"] == 0, "uncertified windows stay"
    assert list_states(lane)[0] == "expired"


@pytest.mark.rare
def test_killed_expiry_resumes_between_its_steps(lane: Lane) -> None:
    lane.files().set_aside(lane.window_file(0), mark_due(lane))  # and the driver dies before noting that
    change_noon(lane)
    lane.turn()
    assert {name for name in list_files(lane) if "expired" not in name} == {"2026-03-01/1210.log"}
    with lane.ledger() as ledger:
        assert expiries.count_files_to_move(ledger, lane.name) == 0
    assert list_states(lane)[0] == "expired", "its file was away already, with no more in it than had expired"


def fail_to_expire(*_: object) -> int:
    raise UnreachableError("HDFS does not answer")


@pytest.mark.rare
@pytest.mark.parametrize("is_recorded", [False, True])
def test_late_record_in_a_moved_file_is_brought_back(
    lane: Lane, monkeypatch: pytest.MonkeyPatch, *, is_recorded: bool
) -> None:
    path = lane.window_file(0)
    noon = mark_due(lane)
    lane.produce([event(2)])
    with monkeypatch.context() as patch:
        patch.setattr(removal, "carry_out", fail_to_expire)
        lane.ingest()
    lane.files().expired.add([NOON])
    lane.files().set_aside(path, noon)  # by a driver that was paused before, and is fenced since
    if is_recorded:
        with lane.ledger() as ledger, drivers.as_driver(ledger, lane.name, "test") as epoch:
            expiries.mark_moved(ledger, epoch, noon)
            ledger.execute("UPDATE onceover.expiry SET moved_at = moved_at - interval '2 days'")
    carry_out_all(lane)
    assert "2026-03-01/1200.log" in list_files(lane)
    assert lane.files().expired.read() == {FIVE_PAST}
    lane.repair_detected()
    assert list_states(lane)[0] == "certified"
    assert lane.aggregates()[(0.0, "a")][0] == 2
    assert lane.query("SELECT state FROM onceover.expiry WHERE expiry_id = %s", [noon]) == [{"state": "dropped"}]


@pytest.mark.rare
@pytest.mark.parametrize("is_barred", [False, True], ids=["at once", "after a crash halfway"])
def test_kept_file_cannot_be_moved_by_a_paused_driver(lane: Lane, *, is_barred: bool) -> None:
    append(lane, 0, b"bytes that no landing accounts for\n")
    noon = mark_due(lane)
    if is_barred:
        assert lane.files().bar_aside(lane.window_file(0), noon)
    carry_out_all(lane)
    assert list_states(lane)[0] == "closed", "its file holds more than was certified, so it is judged again"
    assert lane.files().expired.read() == {FIVE_PAST}
    with pytest.raises(TerminalError, match=r"cannot be moved aside: .* is taken"):
        lane.files().set_aside(lane.window_file(0), noon)
    assert "2026-03-01/1200.log" in list_files(lane)
    lane.repair_detected()
    assert list_states(lane)[0] == "certified"


@pytest.mark.rare
def test_replaced_driver_records_no_expiry(lane: Lane) -> None:
    with lane.ledger() as ledger:
        old = drivers.acquire(ledger, lane.name, "old")
        drivers.end_epoch(ledger, old)
        new = drivers.acquire(ledger, lane.name, "new")
        expiries.mark_expired(ledger, lane.name, expiries.list_expirable(ledger, lane.name, 0), "me", "why")
        with pytest.raises(FencedError):
            carry_out(ledger, old, lane.files())
        drivers.end_epoch(ledger, new)
    assert "2026-03-01/1200.log" in list_files(lane)


@pytest.mark.rare
def test_pipeline_that_keeps_raw_for_ever_expires_nothing(lanes: Lanes) -> None:
    done = run("retention", lanes().name, "--dry-run")
    assert done.returncode == 2
    assert "keeps raw for ever" in done.stderr
