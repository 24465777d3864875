"""Windows of a zone on the real stack, against plain Python over the log: a day of 25 hours, and its neighbours."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from tests.integration.cutover import assert_proved
from tests.integration.events import EVENTS, NOON_MS, Rows, count_minutes
from tests.integration.lane import Lane, Lanes
from tests.integration.other_ledger import make_ledger
from tests.integration.planted_failures import replay
from tests.integration.program import run, succeed

from onceover.cli.doctor.outcome import Outcome
from onceover.cli.doctor.zones import check_zone
from onceover.config import zones
from onceover.ledger.announcements import offer_days
from onceover.model.window import WindowRange, format_moment

pytestmark = pytest.mark.stack
ZONE = "Europe/Berlin"
DAYS = EVENTS.replace("window_minutes = {minutes}", 'window = "{window}"\nwindow_zone = "' + ZONE + '"')
BEGIN = datetime(2026, 10, 24, 20, tzinfo=UTC)  # two hours before the day of 25 hours
SPAN = WindowRange(datetime(2026, 10, 23, 22, tzinfo=UTC), datetime(2026, 10, 26, 23, tzinfo=UTC))


def produce(lane: Lane, numbers: range) -> None:
    """Produce a record for each quarter of an hour from BEGIN on, in two Kafka partitions."""
    for number in numbers:
        at = BEGIN + number * timedelta(minutes=15)
        record = {"at": int(at.timestamp() * 1000), "kind": "ab"[number % 2], "amount": number}
        lane.produce([json.dumps(record).encode()], number % 2)


def find_start(at: datetime, hours: int) -> datetime:
    """Return the start of the window by the zone's own clock: none begins in the hour that comes twice."""
    local = at.astimezone(zones.open_zone(ZONE))
    return local.replace(hour=local.hour // hours * hours, minute=0, second=0, fold=0).astimezone(UTC)


def compute(lane: Lane, hours: int = 24) -> Rows:
    rows: dict[tuple[object, ...], list[int]] = {}
    for _, value in lane.log().values():
        record = json.loads(value or b"")
        start = find_start(datetime.fromtimestamp(record["at"] / 1000, UTC), hours)
        rows.setdefault((count_minutes(start), record["kind"]), []).append(record["amount"])
    return {place: (len(amounts), sum(amounts), max(amounts)) for place, amounts in rows.items()}


def list_windows(lane: Lane) -> list[dict[str, Any]]:
    return lane.query('SELECT * FROM onceover."window" WHERE pipeline = %s ORDER BY window_start', [lane.name])


@pytest.mark.parametrize(("window", "hours"), [("1d", 24), pytest.param("6h", 6, marks=pytest.mark.rare)])
def test_days_of_a_zone_are_exact_and_proved(lanes: Lanes, window: str, hours: int) -> None:
    lane = lanes(DAYS, partitions=2, window=window)
    produce(lane, range(100))
    lane.turn()
    assert lane.aggregates() == compute(lane, hours)
    produce(lane, range(100, 180))
    replay(lane)
    assert lane.aggregates() != compute(lane, hours), "a batch counted twice"
    lane.ingest()
    assert lane.repair_detected().failed == ()
    assert lane.aggregates() == compute(lane, hours)
    assert lane.repair_detected(SPAN, by_value=True, force=True).failed == ()
    assert lane.aggregates() == compute(lane, hours)
    held = list_windows(lane)
    assert_proved(lane, *(int(count_minutes(row["window_start"])) for row in held))
    assert all(before["window_end"] == after["window_start"] for before, after in pairwise(held))
    lengths = {(row["window_end"] - row["window_start"]) / timedelta(hours=1) for row in held}
    assert lengths == ({24, 25} if hours == 24 else {6, 7})


def test_both_times_are_shown_and_typed(lanes: Lanes) -> None:
    lane = lanes(DAYS, partitions=2, window="1d")
    produce(lane, range(0, 100, 2))
    lane.ingest()
    listed = succeed("windows", lane.name)
    assert "2026-10-24T22:00Z (2026-10-25T00:00+02:00 Europe/Berlin)" in listed
    told = succeed("explain", lane.name, "2026-10-25T00:00+02:00")
    assert "window 2026-10-24T22:00Z (2026-10-25T00:00+02:00 Europe/Berlin) to 2026-10-25T23:00Z" in told
    planned = succeed("repair", lane.name, "--from", "2026-10-25T00:00+02:00", "--to", "2026-10-26T00:00+01:00",
                      "--force", "--dry-run")  # fmt: skip
    assert "2026-10-24T22:00Z (2026-10-25T00:00+02:00 Europe/Berlin)" in planned
    assert succeed("pipelines", "check", lane.name).count("1440 min in Europe/Berlin") == 1


@pytest.mark.rare
def test_answers_show_both_times(lanes: Lanes) -> None:
    lane = lanes(DAYS, partitions=2, window="1d")
    produce(lane, range(180))
    replay(lane)
    lane.ingest()
    day, both = "2026-10-25T00:00+02:00", "2026-10-24T22:00Z (2026-10-25T00:00+02:00 Europe/Berlin)"
    windows = ("--from", day, "--to", "2026-10-26T00:00+01:00")
    succeed("take", lane.name, *windows, "--ticket", "INC-1")
    assert both in succeed("take", lane.name)
    lane.repair_detected()
    assert both in succeed("audit", lane.name, *windows)
    assert f"window {both} of {lane.name}: equal" in succeed("verify", lane.name, day)
    assert both in succeed("compact", lane.name, *windows, "--older-than", "1s", "--dry-run")
    assert f"window {both} holds the 2 rows" in succeed("restore", lane.name, day, "--reason", "a test")
    lane.repair_detected(SPAN, force=True)
    lane.query(f"UPDATE aggregates.{lane.name} SET amount_sum = 9")  # a name of the test's own making
    assert both in run("sweep", lane.name, "--dry-run").stdout
    swept = run("sweep", lane.name, "--json")
    assert {each["local"] for each in json.loads(swept.stdout)["differing"]} >= {f"{day} {ZONE}"}


@pytest.mark.rare
def test_lost_ledger_finds_the_same_days(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = lanes(DAYS, partitions=2, window="1d")
    produce(lane, range(180))
    replay(lane)
    lane.ingest()
    lane.repair_detected()
    right, windows = lane.aggregates(), list_windows(lane)
    assert right == compute(lane)
    assert len(lane.compact()) == len(windows)
    monkeypatch.setenv("ONCEOVER_POSTGRES", make_ledger())
    lane.rebuild()
    lane.ingest()
    lane.repair_detected(SPAN, force=True)
    assert lane.aggregates() == right
    spans = [(row["window_start"], row["window_end"], row["day"]) for row in windows]
    assert [(row["window_start"], row["window_end"], row["day"]) for row in list_windows(lane)] == spans
    assert_proved(lane, *(int(count_minutes(row["window_start"])) for row in windows))
    with lane.ledger() as ledger:
        offered = offer_days(ledger, "a run", [lane.name])
    assert {row["day"] for row in offered} <= {"2026-10-24", "2026-10-25", "2026-10-26"}


@pytest.mark.rare
def test_days_of_the_zone_are_announced(lanes: Lanes) -> None:
    lane = lanes(DAYS, partitions=2, window="6h")
    produce(lane, range(0, 60))
    replay(lane)
    lane.ingest()
    lane.repair_detected()
    with lane.ledger() as ledger:
        offered = offer_days(ledger, "a run", [lane.name])
    found = {(row["day"], format_moment(row["start"])) for row in offered}
    assert found == {
        ("2026-10-24", "2026-10-24T16:00Z"),
        *(("2026-10-25", f"2026-10-{at}Z") for at in ("24T22:00", "25T05:00")),
    }


@pytest.mark.rare
def test_other_zone_data_never_moves_a_window(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = lanes(DAYS, partitions=2, window="1d")
    produce(lane, range(100))
    lane.ingest()
    known = zones.read_changes(ZONE)
    autumn = int(datetime(2026, 10, 25, 1, tzinfo=UTC).timestamp())
    spring = next(second for second, _ in known if second > autumn)
    for without, version in ((autumn, 1), (spring, 2)):
        other = tuple(change for change in known if change[0] != without)
        monkeypatch.setattr("onceover.config.pipeline_file.read_changes", lambda _, other=other: other)
        monkeypatch.setattr("onceover.config.pipeline_file.read_version", lambda: "2027a")
        produce(lane, range(100 * version, 100 * version + 20))
        lane.turn()
        assert lane.migrate().new == version
        lane.ingest()
        lane.repair_detected(SPAN, force=True)
        assert lane.aggregates() == compute(lane)
    assert lane.registered().contract.zone_data == "2027a"
    assert "days by time zone data 2027a" in succeed("explain", lane.name, "2026-10-25T00:00+02:00")
    monkeypatch.undo()
    lane.turn()  # by what the ledger keeps, whatever this machine has
    monkeypatch.setenv("ONCEOVER_POSTGRES", make_ledger())
    lane.rebuild()
    lane.ingest()
    lane.repair_detected()
    assert lane.aggregates() == compute(lane)
    assert lane.registered().contract.zone_data == "2027a"


@pytest.mark.rare
def test_doctor_compares_postgresqls_data(lanes: Lanes) -> None:
    lane = lanes(DAYS, window="1d")

    def check(**changes: Any) -> Outcome:
        contract = replace(lane.pipeline.contract, **changes)
        with lane.ledger() as ledger:
            (outcome,) = check_zone(ledger, lane.name, contract, contract)
        return outcome

    assert check().state == "fine"
    lane.turn()
    assert "itself followed Java's 20" in check().what
    assert check(window_zone="Mars/Olympus").what.startswith("PostgreSQL does not know the zone Mars/Olympus")
    moved = tuple((second + 3600 * (second > NOON_MS // 1000), offset) for second, offset in zones.read_changes(ZONE))
    told = check(zone_changes=moved)
    assert (told.state, "first at 2026-03-29T01:59:59Z" in told.what) == ("wrong", True)
    with lane.ledger() as ledger:
        kept = lane.pipeline.contract
        other, fine = check_zone(ledger, lane.name, kept, replace(kept, zone_changes=moved, zone_data="2027a"))
    assert (other.state, fine.state) == ("note", "fine")
    assert "time zone data 2027a of this machine differ from the contract's 2026f" in other.what
