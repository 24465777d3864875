"""Window files whose length the ledger does not explain. All other files hold only lines that a certificate or a
landing accounts for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from onceover.context import PipelineContext
from onceover.detection.judgements import Files
from onceover.ledger.certificates import ExpectedFile, list_expected_files, reopen_certified
from onceover.ledger.database import Connection
from onceover.model.window import WindowRange


@dataclass(frozen=True, slots=True)
class UnexplainedFile:
    """An existing window file that is longer or shorter than the ledger says, or that an unproved landing is in."""

    expected: ExpectedFile
    length: int

    @property
    def window_start(self) -> datetime:
        return self.expected.window_start


def list_unexplained_files(
    connection: Connection, pipeline: str, files: Files, window_range: WindowRange | None = None
) -> tuple[UnexplainedFile, ...]:
    """Return these files of the range (None: of all windows), in order, whatever their windows' states."""
    start, end = (window_range.start, window_range.end) if window_range else (None, None)
    expected = list_expected_files(connection, pipeline, start, end)  # before the files, which only grow
    lengths = files.read_lengths(each.window_start for each in expected)
    return tuple(
        file
        for file in (UnexplainedFile(each, lengths.get(each.window_start, 0)) for each in expected)
        if file.length and (file.expected.has_unproved or file.length != file.expected.expected_length)
    )


def reopen_unexplained(context: PipelineContext, window_range: WindowRange | None) -> None:
    """Have detection judge the certified windows whose files the ledger does not explain. Until the next sweep only
    their length shows that they hold records which a hole lacks."""
    files = list_unexplained_files(context.ledger, context.name, context.files, window_range)
    certified = (file.window_start for file in files if file.expected.is_certified and not file.expected.is_expired)
    reopen_certified(context.ledger, context.name, certified)
