"""Files of lines: appends, what is torn off beside them, and bytes without a newline."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from tests.onceover.lines.test_line_format import PLAIN, lines
from tests.raw_lines import join_append

from onceover.lines.line_file import decode_file, read_intact
from onceover.lines.line_format import Line, encode


@given(st.lists(lines, min_size=1, max_size=4), st.lists(lines, min_size=1, max_size=4), st.data())
def test_torn_append_costs_none_of_the_records_around_it(
    torn: list[Line], following: list[Line], data: st.DataObject
) -> None:
    append = join_append(map(encode, torn))
    cut = data.draw(st.integers(0, len(append)))
    file = append[:cut] + join_append(map(encode, following))
    decoded = list(decode_file(_chunks(file, data.draw(st.integers(1, 200)))))
    intact = [line for line in decoded if isinstance(line, Line)]
    whole = append[: cut + 1].count(b"\n") - 1 if cut else 0  # the last newline need not have arrived
    assert intact == torn[: max(whole, 0)] + following
    assert len(decoded) - len(intact) <= 1


@given(st.lists(lines, max_size=5), st.integers(1, 300))
def test_file_reads_the_same_in_any_chunks(written: list[Line], size: int) -> None:
    file = b"".join(join_append([encode(line)]) for line in written) + b"\n\n"
    assert list(decode_file(_chunks(file, size))) == list(read_intact(_chunks(file, size))) == written


def test_bytes_without_a_newline_are_reported_once_not_collected() -> None:
    good = encode(PLAIN)
    file = b"x" * 1000 + b"\n" + good + b"\n" + b"y" * 999
    decoded = list(decode_file(_chunks(file, 64), longest=len(good)))
    assert decoded[1:2] == list(read_intact(_chunks(file, 64))) == [PLAIN]
    assert [str(each).partition(";")[0] for each in (decoded[0], *decoded[2:])] == [
        "a line of 1000 bytes is corrupt: there is no newline",
        "a line of 999 bytes is corrupt: there is no newline",
    ]


def _chunks(file: bytes, size: int) -> Iterator[bytes]:
    return (file[start : start + size] for start in range(0, len(file), size))
