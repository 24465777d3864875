from __future__ import annotations

import struct
from importlib.resources import files

import pytest

from onceover.config.zones import list_zones, read_changes

LAST = 2_145_916_800  # 2038-01-01


def read_transitions(name: str) -> list[tuple[int, int]]:
    """Return the seconds from 1970 to 2037 at which the file of a zone changes its offset (RFC 9636, version 2)."""
    data = files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
    head = struct.Struct(">4s1s15x6l")
    _, _, isut, isstd, leap, times, types, chars = head.unpack_from(data)
    second = head.size + times * 5 + types * 6 + chars + leap * 8 + isstd + isut  # after the block of version 1
    *_, times, types, _ = head.unpack_from(data, second)
    at = struct.unpack_from(f">{times}q", data, second + head.size)
    kinds = data[second + head.size + times * 8 :][:times]
    offsets = [struct.unpack_from(">l", data, second + head.size + times * 9 + kind * 6)[0] for kind in range(types)]
    found, last = [], None
    for moment, kind in zip(at, kinds, strict=True):
        if offsets[kind] != last and 0 < moment < LAST:
            found.append((moment, offsets[kind]))
        last = offsets[kind]
    return found


@pytest.mark.rare
def test_no_change_of_any_file_is_missed() -> None:
    missing = {}
    for name in list_zones()[::7]:  # all of them take a minute
        if left := set(read_transitions(name)) - set(read_changes(name)):
            missing[name] = left
    assert not missing


def test_changes_begin_with_1970_and_go_on_by_the_rule() -> None:
    changes = read_changes("Europe/Berlin")
    assert changes[:3] == ((0, 3600), (323_830_800, 7200), (338_950_800, 3600))
    assert changes[-1] == (4_096_573_200, 3600)  # October 2099


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../../etc/passwd", "europe/berlin", "Europe", "zones"])
def test_unknown_name_is_refused(name: str) -> None:
    with pytest.raises(LookupError, match="is not the name of a time zone"):
        read_changes(name)
