"""What a person does with the program in a replay, as its messages say."""

from __future__ import annotations

import json
from typing import Any

from tests.integration.lane import NOON_MS, Lane
from tests.integration.planted_failures import minutes
from tests.integration.program import run
from tests.protocol.trust.held import MINUTES
from tests.protocol.trust.state import WINDOWS, Line, window_of

from onceover.detection import holes
from onceover.errors import UsageError
from onceover.ledger import drivers, expiries
from onceover.ledger.root import RootRefusedError
from onceover.model.finding_kinds import Kind
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.window import format_moment, from_ms
from onceover.retention.expire import carry_out

_WHY = ("--reason", "a replay")


def own_root(lane: Lane) -> None:
    """Follow the command that a refused root names."""
    try:
        with lane.open() as context:
            context.require_own_root()
    except RootRefusedError as refused:
        if "ledger rebuild" in str(refused):
            lane.rebuild()
        else:
            done = run("ledger", "take-root", lane.name, *_WHY)
            assert done.returncode == 0, done.stderr


def expire_raw(lane: Lane, window: int) -> None:
    """Take the window's raw away as retention and then the driver do."""
    start = from_ms(NOON_MS + window * MINUTES * 60_000)
    with lane.ledger() as ledger:
        due = [file for file in expiries.list_expirable(ledger, lane.name, 0) if file.window_start == start]
        expiries.mark_expired(ledger, lane.name, due, "test", "a replay")
        epoch = drivers.acquire(ledger, lane.name, "test")
        carry_out(ledger, epoch, lane.files())
        drivers.end_epoch(ledger, epoch)


def move_away(lane: Lane, window: int) -> None:
    """Move the window's file to where the product does not look and `held` does."""
    path, away = _find_places(lane, window)
    lane.hdfs().makedirs(away.rpartition("/")[0])
    lane.hdfs().rename(path, away)


def give_up(lane: Lane) -> None:
    """Give up the windows that lost raw, and have read again those of which Kafka holds something."""
    shown = run("retention", lane.name, "--adopt-missing", "--json", *_WHY).stdout
    for window in WINDOWS:
        if f"onceover reread {lane.name} {_format_start(window)}" in shown:
            lane.reread(window * MINUTES)


def put_back(lane: Lane, window: int) -> None:
    """Put the file back, in front of what was appended since."""
    path, away = _find_places(lane, window)
    files = lane.hdfs()
    with files.read(away) as reader:
        content = reader.read()
    if files.status(path, strict=False) is not None:
        with files.read(path) as reader:
            content += reader.read()
    files.write(path, content, overwrite=True)
    files.delete(away)


def _find_places(lane: Lane, window: int) -> tuple[str, str]:
    path = lane.layout.window_file(from_ms(NOON_MS + window * MINUTES * 60_000))
    return path, f"{lane.layout.raw_root}/{lane.name}/away/{window}.log"


def accept_loss(lane: Lane, offset: int) -> None:
    """Accept what the product allows: a loss that it refuses is not one, or not yet."""
    with lane.open() as context:
        for gap in holes.probe_holes(context):
            if gap.offsets.start <= offset < gap.offsets.end:
                lost = OffsetRange(gap.offsets.source, offset, offset + 1)
                try:
                    holes.accept_loss(context, lost, minutes(0, len(WINDOWS) * MINUTES), "test", "gone")
                except UsageError:
                    return


def accept_overwritten(lane: Lane) -> bool:
    """Accept that the log lost records before they were read, under offsets that landed; return whether it did."""
    with lane.open() as context:
        rows = context.ledger.execute(
            "SELECT generation, kafka_partition, lower(r) AS low, upper(r) AS high "
            "FROM onceover.kafka_partition, unnest(overwritten) r WHERE pipeline = %s",
            [lane.name],
        ).fetchall()
        for row in rows:
            lost = OffsetRange(KafkaPartition(row["generation"], row["kafka_partition"]), row["low"], row["high"])
            every = minutes(0, len(WINDOWS) * MINUTES)
            holes.accept_loss(context, lost, every, "test", "gone", overwritten=True)
    return bool(rows)


def decide(lane: Lane, line: Line, newest: int) -> bool:
    """Decide for this content where `explain` shows its offset in conflict; return whether it does. `newest`: the
    content that the log has now."""
    for window in sorted({window_of(line), window_of(line ^ 1)}):
        shown = _list_conflicts(lane, window)
        if line >> 1 not in shown:
            continue
        moment = _format_start(window)
        if len(shown) == 1:
            done = run(
                "decide", lane.name, moment, "all", "--keep", "newest" if line & 1 == newest else "oldest", *_WHY
            )
            if done.returncode == 0:
                assert "1 ID counts" in done.stdout
                return True
            assert "Decide each by" in done.stdout + done.stderr, done.stderr
        record_id, hashes = shown[line >> 1]
        done = run("decide", lane.name, moment, record_id, "--keep", hashes[line & 1], *_WHY)
        assert done.returncode == 0, done.stderr
        return True
    return False


def store_past_end(lane: Lane) -> bool:
    """Say that lines beyond every end of the log are the pipeline's own, where `explain` shows any: store the offset up
    to which the log was read before. Ingest must not run. Return whether there are any."""
    ends = [
        end
        for window in WINDOWS
        for finding in _list_findings(lane, window)
        if finding["kind"] == Kind.FOREIGN_LINE
        for *_, end in finding["evidence"]["beyond"]
    ]
    if ends:
        done = run("offsets", lane.name, "set", f"0={max(ends)}", "--past-end", *_WHY)
        assert done.returncode == 0, done.stderr
    return bool(ends)


def is_blocked(lane: Lane) -> bool:
    """Return whether a window waits for `onceover repair`, as `onceover decide` and `explain` say."""
    with lane.ledger() as ledger:
        blocked = 'SELECT FROM onceover."window" WHERE pipeline = %s AND blocked_at IS NOT NULL'
        return ledger.execute(blocked, [lane.name]).fetchone() is not None


def _format_start(window: int) -> str:
    return format_moment(from_ms(NOON_MS + window * MINUTES * 60_000))


def _list_conflicts(lane: Lane, window: int) -> dict[int, tuple[str, dict[int, str]]]:
    """Return by offset the IDs that are in conflict, with the hash of each content, distinguished by their minutes."""
    found: dict[int, tuple[str, dict[int, str]]] = {}
    for finding in _list_findings(lane, window):
        for contested in finding["evidence"].get("contested", ()) if finding["kind"] == Kind.CONFLICT else ():
            hashes = {int(c["event_time"][14:16]) % MINUTES: c["hash"] for c in contested["contents"]}
            found[int(contested["id"].rpartition("-")[2])] = (contested["id"], hashes)
    return found


def _list_findings(lane: Lane, window: int) -> list[dict[str, Any]]:
    done = run("explain", lane.name, _format_start(window), "--json")
    if done.returncode:
        assert "is unknown: no record with an event time in it was ever read" in done.stderr
        return []
    return list(json.loads(done.stdout)["findings"])
