"""Certified windows as Parquet beside their text: smaller, each record once, and as good as the text once that went."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.integration.lane import Lane, event
from tests.integration.planting import append, copied, minutes, replayed

from onceover.errors import BusyError
from onceover.home import home
from onceover.ledger import compactions, drivers, expiries
from onceover.ledger.reading import list_windows
from onceover.line import escape_headers
from onceover.retention import carry_out
from onceover.window import to_ms

pytestmark = pytest.mark.stack
Lanes = Callable[..., Lane]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FIVE_PAST = NOON + timedelta(minutes=5)
EACH = 300
DAMAGED = "its Parquet file, for which its text was let go, is missing or damaged:"
HEADERS: list[tuple[str, bytes | None]] = [("h", b"\xff\n"), ("h", None)]


@pytest.fixture
def lane(lanes: Lanes) -> Lane:
    """Two windows, each record twice in their text, certified from raw; all of it landed 40 days ago."""
    made = lanes(partitions=2)
    for kafka_partition in (0, 1):
        values = [event(n * 10 / EACH, "ab"[n % 2], n) for n in range(EACH)]
        made.produce(values, kafka_partition, key=b"k\t\\N", headers=HEADERS)
    replayed(made)
    made.ingest()
    assert len(made.repair(made.detect().request_id or 0).confirmed) == 2
    aged(made)
    return made


def aged(lane: Lane) -> None:
    with lane.ledger() as ledger:
        ledger.execute(
            "UPDATE onceover.batch SET landed_at = landed_at - interval '40 days' WHERE pipeline = %s", [lane.name]
        )


def run(lane: Lane, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("onceover")), "compact", lane.name, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "300"})


def as_json(lane: Lane, *options: str) -> Any:
    done = run(lane, *options, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def parquet(lane: Lane) -> dict[str, bytes]:
    return {name: content for name, content in lane.raw().items() if name.endswith(".parquet")}


def let_text_go(lane: Lane) -> int:
    """Retention, and a day: no text of before is left."""
    aged(lane)
    with lane.ledger() as ledger:
        epoch = drivers.acquire(ledger, lane.name, "test")
        let_go = expiries.let_go(ledger, lane.name, expiries.due(ledger, lane.name, 86_400_000), "test", "a test")
        carry_out(ledger, epoch, lane.files())
        ledger.execute("UPDATE onceover.expiry SET moved_at = moved_at - interval '2 days'")
        carry_out(ledger, epoch, lane.files())
        drivers.release(ledger, epoch)
    return let_go


def states(lane: Lane) -> list[object]:
    with lane.ledger() as ledger:
        return [row["state"] for row in list_windows(ledger, lane.name)]


def certificate(lane: Lane, start: datetime) -> Mapping[str, Any]:
    with lane.ledger() as ledger:
        row = ledger.execute(
            "SELECT c.basis, c.records, c.high1, c.low1, c.high2, c.low2, c.aggregate_rows, c.aggregate_hash "
            'FROM onceover."window" w JOIN onceover.certificate c USING (certificate_id) '
            "WHERE w.pipeline = %s AND w.window_start = %s AND c.version = w.version",
            [lane.name, start],
        ).fetchone()
    assert row is not None, "no certificate stands"
    return row


def spoil_rows(lane: Lane) -> None:
    with lane.ledger() as ledger:
        ledger.execute(f"UPDATE aggregates.{lane.name} SET events = events + 1")  # a name of the test's own making


def test_windows_become_parquet_beside_their_text_smaller_and_each_record_once(lane: Lane) -> None:
    before = lane.raw()
    planned = as_json(lane, "--dry-run")
    assert (planned["due"], planned["compacted"]) == (2, 0)
    assert as_json(lane, "--older-than", "50d")["due"] == 0
    within = ("--from", "2026-03-01T12:05Z", "--to", "2026-03-01T12:10Z")
    assert as_json(lane, "--dry-run", *within)["due"] == 1
    assert lane.raw() == before, "a dry run"

    done = as_json(lane, "--reason", "room")
    assert (done["compacted"], done["records"], done["failed"]) == (2, 2 * EACH, 0)
    made = parquet(lane)
    assert {name.split(".")[0] for name in made} == {"2026-03-01/1200", "2026-03-01/1205"}
    assert {name: text for name, text in lane.raw().items() if name not in made} == before, "and nothing else"
    assert done["bytes"] == sum(map(len, made.values()))
    assert done["bytes"] * 5 < done["text_bytes"] == sum(map(len, before.values()))

    held = [row for content in made.values() for row in pq.read_table(io.BytesIO(content)).to_pylist()]
    assert {(r["kafka_partition"], r["offset"]): (r["key"], r["value"]) for r in held} == lane.log()
    assert len(held) == 2 * EACH
    assert {row["headers"] for row in held} == {escape_headers(HEADERS)}

    copies = {lane.hdfs().status(f"{lane.layout.raw_root}/{lane.name}/{name}")["replication"] for name in lane.raw()}
    assert len(copies) == 1, "as many of the one as of the other"

    assert as_json(lane)["due"] == 0, "twice is once"
    assert all(file.path.endswith(".log") for file in lane.files().every_file())
    with lane.ledger() as ledger:
        kept = ledger.execute("SELECT DISTINCT why FROM onceover.compaction WHERE pipeline = %s", [lane.name])
        assert [row["why"] for row in kept] == ["room"]
    assert "beside the text" in lane.told(0)


def test_once_the_text_went_a_window_is_proved_and_repaired_from_parquet(lane: Lane) -> None:
    assert all(one.why is None for one in lane.compact())
    right, was = lane.aggregates(), [certificate(lane, start) for start in (NOON, FIVE_PAST)]
    with lane.ledger() as ledger:
        assert [one.compacted for one in expiries.due(ledger, lane.name, 86_400_000)] == [True, True]
    assert let_text_go(lane) == 2
    assert lane.raw().keys() == parquet(lane).keys(), "all the text"
    assert states(lane) == ["certified", "certified"]
    assert lane.detect().judged == 0
    verified = lane.verified(NOON)
    assert (verified["equal"], verified["differences"], verified["raw"]["duplicates"]) == (True, [], 0)
    audited = lane.audited()
    assert (audited["equal"], [row["raw"] for row in audited["rows"]]) == (True, [EACH, EACH])

    spoil_rows(lane)
    assert not lane.verified(NOON)["equal"]
    detection = lane.detect(minutes(0, 10), force=True)
    assert len(lane.repair(detection.request_id or 0).confirmed) == 2
    assert lane.aggregates() == right
    assert [certificate(lane, start) for start in (NOON, FIVE_PAST)] == was
    assert lane.compact() == []
    assert let_text_go(lane) == 0
    assert "text of before was let go for it" in lane.told(0)


def test_what_comes_after_the_text_went_is_certified_and_repaired_with_the_parquet_file(lane: Lane) -> None:
    lane.compact()
    let_text_go(lane)
    lane.produce([event(1, "late")])
    lane.ingest()
    assert lane.detect().certified == 1, "counted rightly, nothing is read"
    assert (lane.verified(NOON)["equal"], certificate(lane, NOON)["records"]) == (True, EACH + 1)
    lane.produce([event(2, "late")])
    replayed(lane)
    lane.ingest()
    assert lane.aggregates()[(0.0, "late")][0] == 3, "one too many"
    append(lane, 0, copied(lane, EACH))
    detection = lane.detect()
    assert [str(failed.window) for failed in detection.failed] == ["2026-03-01T12:00Z"]
    assert len(lane.repair(detection.request_id or 0).confirmed) == 1
    assert lane.aggregates()[(0.0, "late")][0] == 2
    assert (lane.verified(NOON)["equal"], certificate(lane, NOON)["records"]) == (True, EACH + 2)
    assert lane.audited()["equal"]
    assert lane.detect().judged == 0


def test_text_stays_while_the_file_that_is_to_stand_in_for_it_is_gone(lane: Lane) -> None:
    (first, _) = lane.compact()
    gone(lane, lane.layout.parquet_file(NOON, first.due.digest))
    let_text_go(lane)
    assert lane.layout.window_file(NOON).removeprefix(f"{lane.layout.raw_root}/{lane.name}/") in lane.raw()
    assert lane.verified(NOON)["equal"]
    assert [one.due.window_start for one in lane.compact()] == [NOON]
    let_text_go(lane)
    assert {name for name in lane.raw() if name.endswith(".log")} == set()
    assert lane.verified(NOON)["equal"]


def test_what_was_moved_aside_is_not_deleted_once_the_file_that_stands_in_for_it_is_gone(lane: Lane) -> None:
    first, _ = lane.compact()
    aged(lane)
    path = lane.layout.parquet_file(NOON, first.due.digest)
    with lane.ledger() as ledger:
        epoch = drivers.acquire(ledger, lane.name, "test")
        expiries.let_go(ledger, lane.name, expiries.due(ledger, lane.name, 86_400_000), "test", "a test")
        assert carry_out(ledger, epoch, lane.files()) == 2
        gone(lane, path)
        ledger.execute("UPDATE onceover.expiry SET moved_at = moved_at - interval '2 days'")
        assert carry_out(ledger, epoch, lane.files()) == 1
        drivers.release(ledger, epoch)
    assert [name for name in lane.raw() if name.startswith("expired/2026-03-01/1200.log")]


def test_a_ledger_is_not_rebuilt_from_text_alone_where_windows_were_compacted(lane: Lane) -> None:
    lane.compact()
    command = [sys.executable, str(home() / "jobs" / "rebuild_ledger.py"), "--pipeline", lane.name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.startswith("rebuild: 2 windows")) == (1, True)
    assert "the first 2026-03-01T12:00Z" in done.stderr


def test_a_window_that_changed_since_it_was_compacted_expires_with_its_text(lane: Lane) -> None:
    lane.compact()
    lane.produce([event(1, "late")])
    lane.ingest()
    assert lane.detect().certified == 1
    let_text_go(lane)
    assert states(lane) == ["expired", "certified"]


def test_a_window_that_changed_since_it_was_compacted_is_compacted_again(lane: Lane) -> None:
    lane.compact()
    lane.produce([event(1, "late")])
    lane.ingest()
    lane.detect()
    aged(lane)
    assert [(one.due.window_start, one.due.digest.records, one.why) for one in lane.compact()] == [
        (NOON, EACH + 1, None)
    ]
    let_text_go(lane)
    assert states(lane) == ["certified", "certified"]
    assert lane.verified(NOON)["equal"]


def gone(lane: Lane, path: str) -> None:
    lane.hdfs().delete(path)


def rubbish(lane: Lane, path: str) -> None:
    lane.hdfs().write(path, b"x" * lane.hdfs().status(path)["length"], overwrite=True)


def one_record_less(lane: Lane, path: str) -> None:
    """A whole Parquet file of the length that was noted, which only its digest tells apart."""
    with lane.hdfs().read(path) as reader:
        records = pq.read_table(io.BytesIO(reader.read()))
    changed = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(records.to_pylist()[1:], records.schema), changed)
    lane.hdfs().write(path, changed.getvalue(), overwrite=True)
    with lane.ledger() as ledger:
        ledger.execute(
            "UPDATE onceover.compaction SET bytes = %s WHERE pipeline = %s AND window_start = %s",
            [len(changed.getvalue()), lane.name, NOON],
        )


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (gone, f"{DAMAGED} 0 records"),
        (rubbish, "reading raw failed: "),
        (one_record_less, f"{DAMAGED} {EACH - 1} records"),
    ],
    ids=["gone", "rubbish", "one record less"],
)
def test_a_damaged_parquet_file_fails_its_own_window_with_the_reason(
    lane: Lane, damage: Callable[[Lane, str], None], why: str
) -> None:
    made = {one.due.window_start: one.due for one in lane.compact()}
    let_text_go(lane)
    spoil_rows(lane)
    spoilt = lane.aggregates()
    damage(lane, lane.layout.parquet_file(NOON, made[NOON].digest))
    confirmation = lane.repair(lane.detect(minutes(0, 10), force=True).request_id or 0)
    assert confirmation.confirmed == ("2026-03-01T12:05Z",)
    ((window, reason),) = confirmation.failed
    assert window == "2026-03-01T12:00Z"
    assert reason.startswith(why)
    assert {k: v for k, v in lane.aggregates().items() if k[0] == 0} == {k: v for k, v in spoilt.items() if k[0] == 0}
    if damage is not rubbish:  # there Spark fails, and with it the application
        assert lane.verified(NOON)["differences"][0].startswith(f"raw: {why}")


def test_text_that_is_not_what_was_certified_is_not_compacted_and_is_told(lane: Lane) -> None:
    path = lane.layout.window_file(NOON)
    with lane.hdfs().read(path) as reader:
        text = reader.read()
    lane.hdfs().write(path, text.replace(b'"amount": 4}', b'"amount": 5}'), overwrite=True)
    done = run(lane, "--json")
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert (told["compacted"], told["failed"]) == (1, 1)
    assert "raw is not what its certificate says: landing" in told["windows"][0]["why"]
    assert {name.split(".")[0] for name in parquet(lane)} == {"2026-03-01/1205"}
    assert [one.due.window_start for one in lane.compact()] == [NOON], "nothing was noted of it"


def test_a_window_that_changes_while_it_is_compacted_is_left_as_it_is(lane: Lane) -> None:
    with lane.ledger() as ledger:
        (noon, *_) = compactions.due(ledger, lane.name, 0, None, None)
        ledger.execute(
            'UPDATE onceover."window" SET version = version + 1 WHERE pipeline = %s AND window_start = %s',
            [lane.name, NOON],
        )
        assert not compactions.keep(ledger, lane.name, noon, 1, "test", "a test", lambda: pytest.fail("it is moved"))
    assert [to_ms(one.due.window_start) for one in lane.compact()] == [to_ms(FIVE_PAST)]


def test_only_one_process_compacts_a_pipeline(lane: Lane) -> None:
    with lane.ledger() as one, lane.ledger() as other:
        compactions.be_the_only_one(one, lane.name)
        compactions.be_the_only_one(other, "another pipeline")
        with pytest.raises(BusyError, match="another process compacts"):
            compactions.be_the_only_one(other, lane.name, patience_ms=1)
