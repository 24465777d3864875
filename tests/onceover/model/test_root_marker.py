"""The marker of a raw root as a file's content."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from onceover.model.offsets import KafkaPartition
from onceover.model.root_marker import (
    DriverMark,
    LedgerIdentity,
    OtherFormatError,
    RootMarker,
    UnreadableMarkerError,
    join_origins,
    parse_marker,
)

A, B = KafkaPartition("0123abcd", 0), KafkaPartition("0123abcd", 11)
MARKER = RootMarker(
    LedgerIdentity(UUID(int=1), "7300000000000000001/16384"),
    "s0meCluster",
    DriverMark(UUID(int=2), 7),
    {A: 500, B: 0},
    datetime(2026, 3, 1, 12, 0, 7, tzinfo=UTC),
    "me (host:1)",
    'first "start"\n',
)


@pytest.mark.parametrize("driver", [MARKER.driver, None])
def test_marker_reads_back_as_it_was_written(driver: DriverMark | None) -> None:
    marker = replace(MARKER, driver=driver)
    assert parse_marker(marker.to_bytes()) == marker


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff", b"{}", MARKER.to_bytes()[:100], MARKER.to_bytes().replace(b"0123abcd", b"x")],
)
def test_content_that_is_no_marker_is_refused(content: bytes) -> None:
    with pytest.raises(
        UnreadableMarkerError, match=r"is not a marker \(.+put it back, or run `onceover ledger take-root"
    ):
        parse_marker(content)


def test_marker_of_another_format_names_both_formats() -> None:
    other = json.dumps({**json.loads(MARKER.to_bytes()), "format": 1}).encode()
    with pytest.raises(OtherFormatError, match=r"of format 1, and .* format 3: run the version .* another raw_root"):
        parse_marker(other)


def test_joined_origins_are_the_smallest() -> None:
    assert join_origins([{A: 5}, {A: 3, B: 9}, {}]) == {A: 3, B: 9}
