"""History restated on the real stack: windows of the past under a later contract, proved, and kept by raw."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.integration.cutover import assert_proved, list_cutovers
from tests.integration.events import NOON_MS, Rows, event, moment
from tests.integration.lane import Lane, Lanes
from tests.integration.other_ledger import make_ledger
from tests.integration.planted_failures import minutes, replay
from tests.integration.program import run, succeed
from tests.integration.test_airflow import list_states, read_result, run_dag, wait_for_end

from onceover.audit import store as audit_store
from onceover.audit.restatement_job import preview_restatement
from onceover.errors import BusyError, ChangedPlanError, UsageError
from onceover.fault_points import FaultPoint
from onceover.ingest.restatements import share_restatements
from onceover.ledger import repair_requests
from onceover.model.window import WindowRange
from onceover.raw.restatement_files import keep_restatements, read_restatements
from onceover.repair.confirmation import Confirmation
from onceover.repair.groups import repair_groups
from onceover.repair.restate import restate_range
from onceover_local.airflow_rest import AirflowRest

pytestmark = pytest.mark.stack


def correct(lane: Lane) -> None:
    """Correct key and sum of the contract, and add a measure."""
    text = lane.toml.read_text()
    for old, new in (
        ('kind = "value.kind"', 'kind = "upper(value.kind)"'),
        ('amount_sum = { sum = "value.amount" }', 'amount_sum = { sum = "value.amount * 100" }'),
        ("[contract.bounds]", 'big = { count_if = "value.amount >= 5" }\n[contract.bounds]'),
    ):
        assert old in text
        text = text.replace(old, new)
    lane.toml.write_text(text)


def compute(lane: Lane, cutovers: Mapping[int, int], restated: range) -> Rows:
    """Return the log's rows: by the corrected contract from the cutover on, and in restated minutes."""
    rows: dict[tuple[object, ...], tuple[int, int, int, int | None]] = {}
    for (kafka_partition, offset), (_, value) in lane.log().items():
        record = json.loads(value or b"")
        minute = (record["at"] - NOON_MS) // 300_000 * 5
        new = offset >= cutovers[kafka_partition] or minute in restated
        amount: int = record["amount"]
        key = (float(minute), record["kind"].upper() if new else record["kind"])
        events, total, largest, big = rows.get(key, (0, 0, amount, None))
        rows[key] = (
            events + 1,
            total + amount * (100 if new else 1),
            max(largest, amount),
            (big or 0) + (amount >= 5) if new else big,
        )
    return dict(rows)


def produce(lane: Lane, start: int, end: int) -> None:
    for kafka_partition in (0, 1):
        values = [event(n % 40, amount=n % 7, kind="ab"[n % 3 == 0]) for n in range(start, end)]
        lane.produce(values, kafka_partition)


def certify_and_correct(lane: Lane) -> Mapping[int, int]:
    """Certify windows, and migrate to the corrected contract; return its first offsets, by Kafka partition."""
    produce(lane, 0, 40)
    lane.ingest()
    lane.detect()
    correct(lane)
    return list_cutovers(lane.migrate())


def preview(lane: Lane, window_range: WindowRange) -> Mapping[str, Any]:
    """Return the result of `onceover restate --dry-run`."""
    start, end = window_range.start, window_range.end
    with lane.open() as context:
        audit_id = audit_store.record_request(context.ledger, lane.name, "restatement", start, end, "test")
        audit, _ = audit_store.read_audit(context.ledger, lane.name, audit_id)
        result = preview_restatement(lane.spark, context, context.read_registration(), audit)
        audit_store.record_result(context.ledger, audit_id, result)
    return result


def restate(lane: Lane, window_range: WindowRange) -> Confirmation:
    """Do as `onceover restate` does, on this process's session."""
    token = preview(lane, window_range)["token"]
    with lane.open() as context:
        restate_range(context, context.read_registration(), window_range, "me", "a test", token)
    return lane.repair_detected(window_range)


def test_restated_windows_are_of_the_new_contract(lanes: Lanes) -> None:
    lane = lanes(partitions=2)
    at = certify_and_correct(lane)
    assert restate(lane, minutes(0, 20)).failed == ()
    assert lane.aggregates() == compute(lane, at, range(20))
    assert lane.explain(0)["state"] == "certified"


@pytest.mark.rare
def test_restated_windows_are_previewed_and_proved(lanes: Lanes) -> None:
    lane = lanes(partitions=2)
    produce(lane, 0, 40)
    replay(lane)
    lane.ingest()
    lane.repair_detected()
    with pytest.raises(UsageError, match="has had one contract since its start"):
        preview(lane, minutes(0, 20))
    correct(lane)
    at = list_cutovers(lane.migrate())
    before = lane.aggregates()
    assert before == compute(lane, at, range(0))

    shown = preview(lane, minutes(0, 20))
    assert (shown["windows"], shown["changing"], shown["refused"]) == (4, 4, [])
    new = {"amount_sum": 400, "amount_max": 4, "events": 4, "big": 0}  # minutes 0 and 3, twice
    assert {"key": {"kind": "B"}, "now": None, "then": {**new, "amount_sum": 600, "amount_max": 3}} in (
        shown["rows"][0]["rows"]
    )
    assert lane.aggregates() == before, "a preview publishes nothing"
    assert restate(lane, minutes(0, 20)).failed == ()
    assert lane.aggregates() == compute(lane, at, range(20))
    assert lane.explain(0)["state"] == "certified"
    assert_proved(lane, 0, 25)
    assert preview(lane, minutes(0, 20))["changing"] == 0

    produce(lane, 40, 60)  # late, of the new contract, also in a restated window
    lane.ingest()
    assert {str(each.kind) for each in lane.detect(minutes(0, 5)).failed[0].findings} == {"restated", "late"}
    lane.repair_detected()
    assert lane.aggregates() == compute(lane, at, range(20))
    assert_proved(lane, 0)


@pytest.mark.rare
def test_killed_restatement_is_finished_by_detection(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = lanes(partitions=2)
    at = certify_and_correct(lane)
    token = preview(lane, minutes(0, 20))["token"]
    with lane.open() as context:
        registered = context.read_registration()
        with pytest.raises(ChangedPlanError, match="look again with --dry-run"):
            restate_range(context, registered, minutes(0, 25), "me", "a test", token)
        with monkeypatch.context() as patch:
            patch.setattr("onceover.repair.restate.keep_restatements", die)
            with pytest.raises(KeyboardInterrupt):
                restate_range(context, registered, minutes(0, 20), "me", "a test", token)
        assert read_restatements(context.raw_address, context.layout) == {}
        restate_range(context, context.read_registration(), minutes(0, 20), "me", "again", token)
        assert len(context.read_registration().restatements) == 1, "run twice, it is one fact"
        with pytest.raises(ChangedPlanError, match="not that of a dry run"):
            restate_range(context, context.read_registration(), minutes(0, 20), "me", "again", "0" * 64)
        stale = lane.detect()
        assert len(stale.failed) == 4
        request = repair_requests.read_request(context.ledger, lane.name, stale.request_id or 0)
        with pytest.raises(BusyError, match="restated meanwhile"):
            repair_groups(lane.spark, context, registered, request, FaultPoint())
        for _ in range(2):
            lane.store().remove(f"{context.layout.restatement_folder}/1.json")
            share_restatements(context)
            assert [each.why for each in read_restatements(context.raw_address, context.layout).values()] == ["a test"]
        strange = replace(context.read_registration().restatements[0], number=2, version=3)
        keep_restatements(context.raw_address, context.layout, [strange])
        with pytest.raises(UsageError, match="under version 3 of the contract, and the ledger has 2"):
            share_restatements(context)
        lane.store().remove(f"{context.layout.restatement_folder}/2.json")
    lane.repair(stale.request_id)
    right = compute(lane, at, range(20))
    assert lane.aggregates() == right
    assert_proved(lane, 0)

    # The records before the cutover are read again, and count by their own contract near real time.
    lane.set_offsets({0: 0, 1: 0})
    lane.ingest()
    assert lane.aggregates() != right
    lane.repair_detected()
    assert lane.aggregates() == right
    lane.compact()
    assert lane.repair_detected(minutes(0, 20), by_value=True, force=True).failed == ()
    assert lane.aggregates() == right
    assert_proved(lane, 0)

    monkeypatch.setenv("ONCEOVER_POSTGRES", make_ledger())
    lane.rebuild()
    lane.ingest()
    lane.repair_detected()
    assert lane.aggregates() == right
    assert_proved(lane, 0)


def die(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.rare
def test_contract_that_dates_otherwise_is_refused(lanes: Lanes) -> None:
    lane = lanes(partitions=2)
    produce(lane, 0, 40)
    lane.ingest()
    before = lane.aggregates()
    text = lane.toml.read_text()
    later = 'event_time = "value.at + if(value.amount = 3 AND value.at < 1772366700000, 1, 0)"'
    text = text.replace('sum = "value.amount"', 'sum = "value.amount * 100"')
    lane.toml.write_text(text.replace('event_time = "value.at"', later))
    lane.migrate()

    shown = preview(lane, minutes(0, 20))
    assert (shown["token"], shown["refused_windows"], shown["windows"]) == (None, 1, 4)
    (refused,) = shown["refused"]
    assert (refused["window"], refused["refused"]) == ("2026-03-01T12:00Z", "2 lines dated otherwise or quarantined")
    assert [each[8:] for each in sorted(refused["examples"])] == [
        f"-{at}:3: event time 2026-03-01T12:03:00.001+00:00" for at in (0, 1)
    ]
    assert preview(lane, minutes(5, 20))["token"]
    with lane.open() as context, pytest.raises(ChangedPlanError):
        restate_range(context, context.read_registration(), minutes(0, 20), "me", "a test", "0" * 64)
    assert lane.aggregates() == before
    assert lane.detect().failed == ()

    span = ["--from", "2026-03-01T12:00Z", "--to", "2026-03-01T12:20Z"]
    shown_on = run("restate", lane.name, *span, "--reason", "a test")
    assert (shown_on.returncode, lane.aggregates()) == (1, before)
    assert "2026-03-01T12:00Z refused: 2 lines dated otherwise or quarantined" in shown_on.stdout
    assert "1 window refused; nothing can be restated: choose a range without them" in shown_on.stdout
    span[1] = "2026-03-01T12:05Z"
    assert "version 2 of the contract changes 3 of 3 windows" in succeed("restate", lane.name, *span, "--dry-run")
    succeed("restate", lane.name, *span, "--reason", "INC-43")
    assert lane.aggregates() != before
    explained = lane.explain_text(5)
    assert "Restated under contract 2 at" in explained
    assert "contract 2." in explained, "the certificate names the version that counts"
    assert "these rows are of an older contract" in succeed(
        "restore", lane.name, "2026-03-01T12:05Z", "--reason", "a test"
    )


@pytest.mark.airflow
@pytest.mark.rare
def test_dag_restates_what_its_dry_run_showed(lanes: Lanes, airflow: AirflowRest) -> None:
    lane = lanes(partitions=2)
    at = certify_and_correct(lane)
    airflow.wait_for_choice("restate_history", "pipeline", lane.name)
    conf = {"pipeline": lane.name, "from": "2026-03-01T12:00Z", "to": "2026-03-01T12:20Z"}
    before = lane.aggregates()

    dry = run_dag(airflow, "restate_history", {**conf, "dry_run": True})
    shown = read_result(airflow, "restate_history", dry, lane.name, "restate")
    assert list_states(airflow, "restate_history", dry)["repair"] == "skipped"
    assert lane.aggregates() == before
    wrong = airflow.trigger("restate_history", {**conf, "plan": "0" * 64, "reason": "a test"})
    wait_for_end(airflow, "restate_history", wrong, "failed")
    assert lane.aggregates() == before
    run_dag(airflow, "restate_history", {**conf, "plan": shown["token"], "reason": "cents, INC-43"})
    assert lane.aggregates() == compute(lane, at, range(20))
    (kept,) = lane.query("SELECT who, why FROM onceover.restatement WHERE pipeline = %s", [lane.name])
    assert kept == {"who": "admin", "why": "cents, INC-43"}


@pytest.mark.largest
def test_a_year_of_hours_is_restated(lanes: Lanes, caplog: pytest.LogCaptureFixture) -> None:
    lane, year = lanes(minutes=60), WindowRange(moment(0), moment(60 * 8_760))
    lane.produce([event(60 * hour + n, amount=n) for hour in range(8_760) for n in (0, 7)])
    lane.ingest()
    lane.detect()
    correct(lane)
    lane.migrate()

    caplog.set_level("INFO", "onceover.repair.progress")
    confirmation = restate(lane, year)
    assert (len(confirmation.confirmed), confirmation.failed) == (8_760, ())
    assert lane.aggregates() == {(60.0 * hour, "A"): (2, 700, 7, 1) for hour in range(8_760)}
    assert caplog.text.count("left") == 8_760 // 500 + 8_760 // 2_000, "an estimate after each group but the last"
