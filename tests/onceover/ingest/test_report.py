"""Ingest's lines of progress are for people: none of them ends it."""

from __future__ import annotations

import errno
import io

import pytest

from onceover.ingest.report import Progress, make_reporter


class FullDisk(io.StringIO):
    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_line_that_cannot_be_written_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sys.stdout", FullDisk())
    heard: list[Progress] = []
    report = make_reporter("log", heard.append)
    for batch in (1, 2):
        report(Progress(batch, 1, 0, 1, 0.0, 0.0, {}, None, False, 0))
    assert [progress.batch_id for progress in heard] == [1, 2]
    assert caplog.text.count("lines of progress cannot be written: [Errno 28] No space left on device") == 1
