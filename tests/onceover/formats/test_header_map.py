"""SQL's map of headers is what Kafka's `lastHeader` gives for each name."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from onceover.formats.header_map import read_header_maps
from onceover.lines.escapes import escape_headers
from onceover.model.record import Header

HEADERS = st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.none() | st.binary()))
RECORDS = st.lists(HEADERS | st.just([(b"\xff", None)]))


@given(RECORDS)
def test_map_has_the_last_value_of_each_name(records: list[list[Header]]) -> None:
    maps = read_header_maps(pa.array([escape_headers(headers) for headers in records], pa.binary()))

    expected = [None if (b"\xff", None) in headers else dict(headers) for headers in records]
    assert [None if found is None else dict(found) for found in maps.to_pylist()] == expected


def test_no_headers_make_an_empty_map() -> None:
    assert read_header_maps(pa.array([b"", None], pa.binary())).to_pylist() == [[], []]
