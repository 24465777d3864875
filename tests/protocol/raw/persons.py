"""What a person does with the program in a replay, as its messages say; and what takes raw away."""

from __future__ import annotations

from tests.integration.compaction import carry_out_all
from tests.integration.lane import Lane
from tests.integration.planted_failures import minutes
from tests.integration.program import run, succeed
from tests.protocol.raw.held import MINUTES, start_of
from tests.protocol.raw.lines import OFFSETS, WINDOWS, Record

from onceover.detection import holes
from onceover.errors import UsageError
from onceover.ledger import expiries
from onceover.ledger.root import RootRefusedError
from onceover.model.offsets import OffsetRange
from onceover.model.window import WindowRange, format_moment
from onceover.retention.rollup import roll_up_batches

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
            succeed("ledger", "take-root", lane.name, *_WHY)


def list_windows() -> WindowRange:
    return minutes(0, len(WINDOWS) * MINUTES)


def expire_raw(lane: Lane, window: int) -> None:
    """Take the window's raw away as retention and then the driver do."""
    with lane.ledger() as ledger:
        due = [file for file in expiries.list_expirable(ledger, lane.name, 0) if file.window_start == start_of(window)]
        expiries.mark_expired(ledger, lane.name, due, "test", "a replay")
    carry_out_all(lane)


def roll_up(lane: Lane) -> None:
    """Roll up what Kafka no longer holds, where the model deletes a window's landings."""
    with lane.open() as context:
        roll_up_batches(context)


def move_away(lane: Lane, window: int) -> None:
    """Move the window's file to where the product does not look and `held` does."""
    away = f"{lane.layout.raw_root}/{lane.name}/away/{window}.log"
    lane.hdfs().makedirs(away.rpartition("/")[0])
    lane.hdfs().rename(lane.layout.window_file(start_of(window)), away)


def give_up(lane: Lane) -> None:
    """Give up the windows that lost raw, and have read again those of which Kafka holds something."""
    shown = run("retention", lane.name, "--adopt-missing", "--json", *_WHY).stdout
    for window in WINDOWS:
        if f"onceover reread {lane.name} {format_moment(start_of(window))}" in shown:
            lane.reread(window * MINUTES)


def accept_loss(lane: Lane, record: Record) -> None:
    """Accept what the product allows: a loss that it refuses is not one, or not yet."""
    partition, offset = divmod(record, OFFSETS)
    with lane.open() as context:
        for gap in holes.probe_holes(context):
            if gap.offsets.source.kafka_partition == partition and gap.offsets.start <= offset < gap.offsets.end:
                lost = OffsetRange(gap.offsets.source, offset, offset + 1)
                try:
                    holes.accept_loss(context, lost, list_windows(), "test", "gone")
                except UsageError:
                    return


def is_blocked(lane: Lane) -> bool:
    """Return whether a window waits for `onceover repair`, as `explain` says."""
    with lane.ledger() as ledger:
        blocked = 'SELECT FROM onceover."window" WHERE pipeline = %s AND blocked_at IS NOT NULL'
        return ledger.execute(blocked, [lane.name]).fetchone() is not None
