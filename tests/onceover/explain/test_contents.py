"""Contents of a record in conflict: found in raw wherever a chunk ends, and not shown to whom they are not due."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import xxhash

from onceover.explain.contents import list_contested
from onceover.lines.reference import Line, encode, encode_content
from onceover.model.offsets import KafkaPartition
from onceover.model.record import Record, encode_id
from onceover.model.window import Window, to_ms

SOURCE = KafkaPartition("1f2e3d4c", 0)
NOON = datetime(2013, 1, 5, 12, tzinfo=UTC)
LATER = NOON.replace(minute=6)
CONTRACT = "V1-00c0ffee00c0ffee"


def make_record(value: bytes | None) -> Record:
    return Record(SOURCE, 7, 0, None, (), value)


FILES = {
    NOON: [
        Line(Record(SOURCE, 6, 0, None, (), b"another"), to_ms(NOON), CONTRACT),
        Line(make_record(b"first"), to_ms(NOON), CONTRACT),
    ],
    LATER.replace(minute=5): [Line(make_record(None), to_ms(LATER), CONTRACT)],
}


def find(*, with_text: bool) -> list[tuple[str, Window | None, str | None]]:
    def read_window(start: datetime) -> Iterator[bytes]:
        content = b"\n".join(map(encode, FILES[start]))
        yield from (content[at : at + 40] for at in range(0, len(content), 40))

    name = encode_id(SOURCE, 7).decode()
    contents = [
        {"hash": xxhash.xxh3_128_hexdigest(encode_content(make_record(value))), "event_time": at}
        for value, at in ((b"first", "2013-01-05T12:00Z"), (None, "2013-01-05T12:06Z"), (b"gone", None))
    ]
    findings = [
        {"kind": kind, "evidence": {"contested": [{"id": name, "contents": contents}]}}
        for kind in ("conflict", "misdated")
    ]
    contract = SimpleNamespace(contract=SimpleNamespace(window_minutes=5))
    context: Any = SimpleNamespace(pipeline=contract, files=SimpleNamespace(read_window=read_window))
    (record,) = list_contested(context, findings, with_text=with_text)
    assert record.id == name
    assert record.windows == {Window.at(NOON, 5), Window.at(LATER.replace(minute=5), 5)}
    return [(each.hash, each.window, each.text) for each in record.contents]


def test_contents_are_read_from_the_files_of_their_windows() -> None:
    assert [text for _, _, text in find(with_text=True)] == ["first", "no value", None]


def test_contents_are_not_read_for_whom_may_not_see_records() -> None:
    assert [text for _, _, text in find(with_text=False)] == [None, None, None]
