from __future__ import annotations

from onceover.cli.doctor.postgres import format_version


def test_version_names_the_minor_release() -> None:
    assert [format_version(number) for number in (180_004, 150_000, 170_010)] == ["18.4", "15.0", "17.10"]
