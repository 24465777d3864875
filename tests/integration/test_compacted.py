"""Windows whose text has expired: their compacted files prove and repair as well as text did."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.compaction import (
    EACH,
    carry_out_all,
    decompress,
    expire_text,
    list_states,
    make_certified_lane,
    read_certificate,
    read_compacted,
    spoil_rows,
)
from tests.integration.events import FIVE_PAST, NOON, event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import append, backdate, copy_line, land_twice, minutes

from onceover.ledger import expiries
from onceover.model.finding_kinds import Kind
from onceover.observability.lineage import read_lineage
from onceover.raw.zstd_file import compress_lines

pytestmark = [pytest.mark.stack, pytest.mark.largest]
DAMAGED = "the compacted file that replaced the window's text is missing or damaged:"


@pytest.fixture
def lane(lanes: Lanes) -> Lane:
    return make_certified_lane(lanes)


def test_window_without_text_is_proved_and_repaired(lane: Lane) -> None:
    assert all(one.why is None for one in lane.compact())
    right, was = lane.aggregates(), [read_certificate(lane, start) for start in (NOON, FIVE_PAST)]
    with lane.ledger() as ledger:
        assert [one.compacted for one in expiries.list_expirable(ledger, lane.name, 86_400_000)] == [True, True]
    assert expire_text(lane) == 2
    assert lane.raw().keys() == read_compacted(lane).keys(), "all the text"
    assert list_states(lane) == ["certified", "certified"]
    assert lane.detect().judged == 0
    verified = lane.verify(0)
    assert (verified["equal"], verified["differences"], verified["raw"]["duplicates"]) == (True, [], 0)
    audited = lane.audit()
    assert (audited["equal"], [row["raw"] for row in audited["rows"]]) == (True, [EACH, EACH])

    spoil_rows(lane)
    assert not lane.verify(0)["equal"]
    detection = lane.detect(minutes(0, 10), force=True)
    assert len(lane.repair(detection.request_id).confirmed) == 2
    assert lane.aggregates() == right
    with lane.open() as context:
        read, root = read_lineage(context, detection.request_id or 0), f"{lane.layout.raw_root}/{lane.name}/"
    assert [file.removeprefix(root) for file in read.files] == sorted(read_compacted(lane))
    assert read.bytes == sum(map(len, read_compacted(lane).values()))
    assert [read_certificate(lane, start) for start in (NOON, FIVE_PAST)] == was
    assert lane.compact() == []
    assert expire_text(lane) == 0
    assert "the text before it has expired" in lane.explain_text(0)


def test_late_text_is_certified_and_repaired_with_the_file(lane: Lane) -> None:
    lane.compact()
    expire_text(lane)
    lane.land([event(1, "late")])
    assert lane.detect().certified == 1, "counted rightly, nothing is read"
    assert (lane.verify(0)["equal"], read_certificate(lane, NOON)["records"]) == (True, EACH + 1)
    land_twice(lane, [event(2, "late")])
    assert lane.aggregates()[(0.0, "late")][0] == 3, "one too many"
    append(lane, 0, copy_line(lane, EACH))
    detection = lane.detect()
    assert [str(failed.window) for failed in detection.failed] == ["2026-03-01T12:00Z"]
    assert len(lane.repair(detection.request_id).confirmed) == 1
    assert lane.aggregates()[(0.0, "late")][0] == 2
    assert (lane.verify(0)["equal"], read_certificate(lane, NOON)["records"]) == (True, EACH + 2)
    assert lane.audit()["equal"]
    assert lane.detect().judged == 0


def test_text_stays_while_its_compacted_file_is_missing(lane: Lane) -> None:
    (first, _) = lane.compact()
    delete(lane, lane.layout.compacted_file(NOON, first.due.digest))
    expire_text(lane)
    assert lane.window_file(0).removeprefix(f"{lane.layout.raw_root}/{lane.name}/") in lane.raw()
    assert lane.verify(0)["equal"]
    assert [one.due.window_start for one in lane.compact()] == [NOON]
    expire_text(lane)
    assert {name for name in lane.raw() if name.endswith(".log")} == set()
    assert lane.verify(0)["equal"]


def test_moved_text_is_not_deleted_while_its_file_is_missing(lane: Lane) -> None:
    first, _ = lane.compact()
    backdate(lane)
    path = lane.layout.compacted_file(NOON, first.due.digest)
    with lane.ledger() as ledger:
        due = expiries.list_expirable(ledger, lane.name, 86_400_000)
        expiries.mark_expired(ledger, lane.name, due, "test", "a test")
    assert carry_out_all(lane) == 2
    delete(lane, path)
    lane.query("UPDATE onceover.expiry SET moved_at = moved_at - interval '2 days'")
    assert carry_out_all(lane) == 2, "one is deleted, one is postponed"
    assert carry_out_all(lane) == 0, "for a day: it must not keep others from their deletion"
    assert [name.rpartition(".")[0] for name in lane.raw() if name.startswith("expired/")] == [
        "expired/2026-03-01/1200.log"
    ]


def test_window_changed_since_compaction_expires_with_its_text(lane: Lane) -> None:
    lane.compact()
    lane.land([event(1, "late")])
    assert lane.detect().certified == 1
    expire_text(lane)
    assert list_states(lane) == ["expired", "certified"]


def test_window_changed_since_compaction_is_compacted_again(lane: Lane) -> None:
    lane.compact()
    lane.land([event(1, "late")])
    lane.detect()
    backdate(lane)
    assert [(one.due.window_start, one.due.digest.records, one.why) for one in lane.compact()] == [
        (NOON, EACH + 1, None)
    ]
    assert len(read_compacted(lane)) == 2, "the first file of noon is gone"
    expire_text(lane)
    assert list_states(lane) == ["certified", "certified"]
    assert lane.verify(0)["equal"]


def test_sweep_finds_missing_file_and_repair_waits_for_it(lane: Lane) -> None:
    made = {one.due.window_start: one.due for one in lane.compact()}
    expire_text(lane)
    path = lane.layout.compacted_file(NOON, made[NOON].digest)
    content = lane.read(path)
    lane.hdfs().delete(path)
    (differing,) = lane.sweep().differing
    assert (differing.window_start, [f.kind for f in differing.findings]) == (NOON, [Kind.MISSING_FILE])
    detection = lane.detect()
    assert [str(failed.window) for failed in detection.failed] == ["2026-03-01T12:00Z"]
    assert "put it back" in lane.explain_text(0)
    assert len(lane.repair(detection.request_id).failed) == 1
    lane.hdfs().write(path, content)
    again = lane.detect()
    assert (again.certified, again.failed) == (1, ())
    assert list_states(lane) == ["certified", "certified"]
    assert lane.sweep().differing == ()


def delete(lane: Lane, path: str) -> None:
    lane.hdfs().delete(path)


def overwrite(lane: Lane, path: str) -> None:
    lane.overwrite(path, b"x" * lane.hdfs().status(path)["length"])


def drop_record(lane: Lane, path: str) -> None:
    """Replace the compacted file by a whole one of the recorded length, which differs in its digest only."""
    with lane.hdfs().read(path) as reader:
        (_, *lines) = decompress(reader.read()).splitlines(keepends=True)
    changed = b"".join(compress_lines(map(memoryview, lines)))
    lane.overwrite(path, changed)
    lane.query(
        'UPDATE onceover."window" SET compacted_bytes = %s WHERE pipeline = %s AND window_start = %s',
        [len(changed), lane.name, NOON],
    )


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (delete, f"{DAMAGED} 0 records"),
        (overwrite, "reading raw failed: "),
        (drop_record, f"{DAMAGED} {EACH - 1} records"),
    ],
    ids=["gone", "rubbish", "one record less"],
)
def test_damaged_file_fails_its_own_window_with_the_reason(
    lane: Lane, damage: Callable[[Lane, str], None], why: str
) -> None:
    made = {one.due.window_start: one.due for one in lane.compact()}
    expire_text(lane)
    spoil_rows(lane)
    spoilt = lane.aggregates()
    damage(lane, lane.layout.compacted_file(NOON, made[NOON].digest))
    confirmation = lane.repair_detected(minutes(0, 10), force=True)
    assert confirmation.confirmed == ("2026-03-01T12:05Z",)
    ((window, reason),) = confirmation.failed
    assert window == "2026-03-01T12:00Z"
    assert reason.startswith(why)
    assert {k: v for k, v in lane.aggregates().items() if k[0] == 0} == {k: v for k, v in spoilt.items() if k[0] == 0}
    explained = lane.explain(0)
    assert explained["state"] == "damaged", "its certificate is valid, and raw does not prove it any more"
    assert any("reread" in (step["command"] or "") for step in explained["next_steps"])
    assert lane.verify(0)["differences"][0].startswith(f"raw: {why}".replace("reading raw", "reading it"))
