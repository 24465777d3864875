from __future__ import annotations

from datetime import UTC, datetime

from onceover.cli.commands.verify import describe_repair
from onceover.model.windowing import Windowing

WINDOW = Windowing(5).window_at(datetime(2026, 3, 1, 12, tzinfo=UTC))


def test_wrong_rows_are_rebuilt_and_wrong_raw_is_read_again() -> None:
    command = "`onceover repair things --from 2026-03-01T12:00Z --to 2026-03-01T12:05Z --force --reason"
    assert command in describe_repair("things", WINDOW, is_raw_right=True)
    said = describe_repair("things", WINDOW, is_raw_right=False)
    assert "`onceover reread things 2026-03-01T12:00Z --reason" in said
    assert "repair" not in said
