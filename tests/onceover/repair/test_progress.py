"""What a long repair says of its course: what is done, and an estimate of the rest."""

from __future__ import annotations

import logging

import pytest

from onceover.repair.progress import WindowProgress


def test_each_group_but_the_last_says_what_is_left(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "onceover.repair.progress")
    records = [98_000, 298_000, 598_000]  # with each window's own: 1, 3 and 6 tenths
    moments = iter([100.0, 110.0, 140.0])
    progress = WindowProgress(3, sum(records), lambda: next(moments))
    for landed, size in zip(records, (1 << 20, 3 << 20, 0), strict=True):
        progress.add_bytes(size)
        progress.finish(1, landed)
    assert caplog.messages == [
        "done with 1 of 3 windows, 98,000 of 994,000 records; 1.0 MiB read; about 1 min 30 s left",
        "done with 2 of 3 windows, 396,000 of 994,000 records; 4.0 MiB read; about 1 min left",
    ]


def test_windows_without_records_count_as_well(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "onceover.repair.progress")
    moments = iter([0.0, 5.0])
    progress = WindowProgress(2, 0, lambda: next(moments))
    progress.finish(1, 0)
    assert caplog.messages == ["done with 1 of 2 windows, 0 of 0 records; 0.0 MiB read; about 5 s left"]
