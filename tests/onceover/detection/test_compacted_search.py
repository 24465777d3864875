"""The search of compacted files for offsets of a hole: only those that the ledger does not know are read."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from bench import large_ledger
from bench.large_ledger import start_of
from tests.onceover.raw.files_in_memory import FileInMemory

from onceover.detection.compacted_search import find_held_in_compacted, find_offsets
from onceover.errors import TerminalError
from onceover.ledger.database import Connection
from onceover.ledger.found_compacted import list_known_digests
from onceover.lines.reference import Line, encode
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.raw_file import RawFile
from onceover.model.record import Record
from onceover.raw import frozen_file
from onceover.raw.layout import Layout
from onceover.raw.zstd_file import compress_lines, read_frames

CONTRACT = "V1-00c0ffee00c0ffee"
ONE, OTHER, THIRD = KafkaPartition("00c0ffee", 0), KafkaPartition("00c0ffee", 1), KafkaPartition("0badcafe", 0)


def write(*ids: tuple[KafkaPartition, int]) -> bytes:
    lines = (encode(Line(Record(source, offset, 0, None, (), b"{}"), 0, CONTRACT, (b"1",))) for source, offset in ids)
    return b"".join(compress_lines(memoryview(line + b"\n") for line in lines))


def of(source: KafkaPartition, start: int, end: int) -> OffsetRange:
    return OffsetRange(source, start, end)


FILE = write(*((ONE, n) for n in (3, 4, 5, 9, 12)), (OTHER, 7), (THIRD, 8))


@pytest.mark.parametrize(
    ("wanted", "held"),
    [
        ([of(ONE, 0, 3), of(ONE, 6, 9), of(ONE, 13, 99), of(OTHER, 8, 9), of(THIRD, 0, 8)], []),
        ([of(ONE, 5, 7), of(ONE, 9, 10), of(OTHER, 0, 99)], [of(ONE, 5, 6), of(ONE, 9, 10), of(OTHER, 7, 8)]),
        ([of(THIRD, 8, 9)], [of(THIRD, 8, 9)]),
    ],
)
def test_offsets_of_the_wanted_partitions_are_found(wanted: list[OffsetRange], held: list[OffsetRange]) -> None:
    assert sorted(find_offsets(read_frames(FileInMemory(FILE).open, "", len(FILE)), wanted)) == held


def test_damaged_line_may_be_any_record() -> None:
    torn = memoryview(b"torn\n")
    with pytest.raises(TerminalError, match="a line after byte 7 of its text is damaged"):
        list(find_offsets([(7, torn)], []))


@pytest.fixture
def context(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    built = large_ledger.build(connection, "unknown", 3)
    held: dict[str, bytes] = {}
    layout = Layout("/raw", "unknown")
    digests = dict(list_known_digests(connection, "unknown", [start_of(n) for n in range(3)]))

    def list_files() -> list[RawFile]:
        starts = {layout.compacted_file(s, d): s for s in digests for d in (digests[s], Digest(9, 9))}
        return [RawFile(path, len(content), window_start=starts[path]) for path, content in held.items()]

    store = SimpleNamespace(open=lambda path, start, end: FileInMemory(held[path]).open(path, start, end))
    monkeypatch.setattr(frozen_file, "open_store", lambda _: store)
    files = SimpleNamespace(list_compacted_files=list_files)
    made = {"name": "unknown", "ledger": connection, "layout": layout, "raw_address": "", "files": files}
    yield SimpleNamespace(**made, digests=digests, held=held)
    large_ledger.drop(connection, built)


@pytest.mark.stack
def test_file_of_no_certificate_is_read(context: Any) -> None:
    lost, start = [of(ONE, 5, 7)], start_of(1)
    context.held[context.layout.compacted_file(start, context.digests[start])] = b"not read"
    assert find_held_in_compacted(context, lost) is None
    path = context.layout.compacted_file(start, Digest(9, 9))
    context.held[path] = FILE
    assert find_held_in_compacted(context, lost) == (path, of(ONE, 5, 6))
    assert find_held_in_compacted(context, [of(ONE, 6, 7)]) is None
    for content in (FILE[:-20], b"", FILE[1:]):
        context.held[path] = content
        with pytest.raises(TerminalError, match="put the whole file back"):
            find_held_in_compacted(context, lost)
