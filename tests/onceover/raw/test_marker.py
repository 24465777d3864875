"""The markers of a raw root on the real HDFS."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest
from tests.onceover.model.test_root_marker import MARKER

from onceover.config.endpoints import address, locate_hdfs
from onceover.errors import BusyError
from onceover.model.root_marker import OtherFormatError, UnreadableMarkerError
from onceover.raw.hdfs import SmallFiles
from onceover.raw.layout import Layout
from onceover.raw.marker import KEPT, MarkerFiles, StoredMarker
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack


@pytest.fixture
def markers(stack: Stack) -> MarkerFiles:
    return MarkerFiles(locate_hdfs(), Layout("/raw", f"t{uuid.uuid4().hex[:10]}"))


def test_root_without_markers_has_number_zero(markers: MarkerFiles) -> None:
    assert markers.read_newest() == StoredMarker(0, None)
    assert markers.read_newest_readable() == StoredMarker(0, None)


def test_of_two_writers_one_writes_the_next_marker(markers: MarkerFiles) -> None:
    first = markers.write_next(markers.read_newest(), MARKER)
    ours = markers.write_next(first, replace(MARKER, who="one"))
    with pytest.raises(BusyError, match="was written by another process"):
        markers.write_next(first, replace(MARKER, who="another"))
    assert markers.read_newest() == ours == StoredMarker(2, replace(MARKER, who="one"))


def test_old_markers_are_deleted_and_their_numbers_stay_taken(markers: MarkerFiles) -> None:
    newest = first = markers.write_next(StoredMarker(0, None), MARKER)
    for _ in range(KEPT):
        newest = markers.write_next(newest, MARKER)
    names = SmallFiles(address("webhdfs")).names(markers.folder)
    assert sorted(int(name.removesuffix(".json")) for name in names) == list(range(2, KEPT + 2))
    with pytest.raises(BusyError, match="newer markers of another process"):
        markers.write_next(replace(first, number=0), MARKER)
    assert markers.read_newest() == newest


def test_unreadable_marker_is_named_and_can_be_followed(markers: MarkerFiles) -> None:
    first = markers.write_next(StoredMarker(0, None), MARKER)
    SmallFiles(address("webhdfs")).create(f"{markers.folder}/2.json", MARKER.to_bytes()[:50])
    with pytest.raises(UnreadableMarkerError, match=f"{markers.folder}/2.json on HDFS is not a marker"):
        markers.read_newest()
    readable = markers.read_newest_readable()
    assert readable == StoredMarker(2, first.marker)
    assert markers.write_next(readable, MARKER).number == 3


def test_marker_of_another_format_is_never_replaced(markers: MarkerFiles) -> None:
    other = MARKER.to_bytes().replace(b'"format": 3', b'"format": 2')
    SmallFiles(address("webhdfs")).create(f"{markers.folder}/1.json", other)
    for read in (markers.read_newest, markers.read_newest_readable):
        with pytest.raises(OtherFormatError, match=f"{markers.folder}/1.json on HDFS says that raw is of format 2"):
            read()
