from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from onceover.errors import ConfigurationError
from onceover_local.stack.files import format_hadoop_xml, format_properties, make_secret, make_whole, write_whole


def test_secret_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        first = make_secret(tmp_path / "secrets", "one")
    finally:
        os.umask(before)
    assert (tmp_path / "secrets" / "one").stat().st_mode & 0o777 == 0o600
    assert make_secret(tmp_path / "secrets", "one") == first
    assert make_secret(tmp_path / "secrets", "two") != first


def test_secrets_folder_admits_its_owner_only(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir(mode=0o775)
    make_secret(tmp_path / "secrets", "one")
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("planted", ["secrets", "secrets/airflow-jwt"])
def test_planted_secret_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    make_secret(tmp_path / "secrets", "airflow-jwt")
    us = os.geteuid()
    owners = [us + 1] if planted == "secrets" else [us, us + 1]  # folder, then file
    monkeypatch.setattr(os, "geteuid", iter(owners).__next__)
    with pytest.raises(ConfigurationError, match=rf"{planted} belongs to user {us}.*move its folder away"):
        make_secret(tmp_path / "secrets", "airflow-jwt")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_secret_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    make_secret(tmp_path / "secrets", "one")
    (tmp_path / "secrets" / "one").chmod(mode)
    with pytest.raises(ConfigurationError, match="is open to other users"):
        make_secret(tmp_path / "secrets", "one")


def test_secret_behind_a_link_is_refused(tmp_path: Path) -> None:
    make_secret(tmp_path / "secrets", "one")
    (tmp_path / "secrets" / "two").symlink_to(tmp_path / "secrets" / "one")
    with pytest.raises(ConfigurationError, match="two is a link"):
        make_secret(tmp_path / "secrets", "two")


def test_file_is_replaced_whole_without_leftovers(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", "old")
    write_whole(tmp_path / "a", "new")
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "new"


def test_unfinished_folder_gets_no_name_and_is_removed(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="killed"), make_whole(tmp_path / "data") as scratch:
        raise RuntimeError("killed", (scratch / "half").write_text("half"))
    assert not (tmp_path / "data").exists()
    with make_whole(tmp_path / "data") as scratch:
        (scratch / "whole").touch()
    assert [each.name for each in tmp_path.iterdir()] == ["data"]
    assert [each.name for each in (tmp_path / "data").iterdir()] == ["whole"]


def test_settings_pass_through_java_and_xml_unchanged() -> None:
    assert format_properties({"log.dirs": r"/a\b"}) == "log.dirs=/a\\\\b\n"
    assert format_properties({"log.dirs": "/Blänk 𝄞"}) == "log.dirs=/Bl\\u00e4nk \\ud834\\udd1e\n"
    value = ElementTree.fromstring(format_hadoop_xml({"k": "<&>"})).findtext("property/value")
    assert value == "<&>"
