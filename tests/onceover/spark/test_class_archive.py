"""The options that name the class archive to a driver's JVM, and a real one that uses it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from onceover.spark.class_archive import ARCHIVE, OPTIONS, make_driver_options

MAPPED = """
from pathlib import Path
from pyspark import SparkContext
from onceover.spark.session import build
build("test").range(1).count()
print("spark-classes.jsa" in Path(f"/proc/{SparkContext._gateway.proc.pid}/maps").read_text())
"""


def test_driver_without_or_with_another_archive_gets_no_option(tmp_path: Path) -> None:
    missing, there = tmp_path / "none.jsa", tmp_path / "there.jsa"
    there.touch()
    assert make_driver_options({}, missing) == {}
    assert make_driver_options({OPTIONS: "-XX:SharedArchiveFile=/mine"}, there) == {}
    assert make_driver_options({OPTIONS: "-XX:ArchiveClassesAtExit=/new"}, there) == {}, "made beside an old one"
    odd = tmp_path / 'a"b'
    odd.touch()
    assert make_driver_options({}, odd) == {}, "it could not be written so that spark-submit reads it back"


def test_driver_options_keep_those_of_the_environment(tmp_path: Path) -> None:
    there = tmp_path / "with space.jsa"
    there.touch()
    said = make_driver_options({OPTIONS: "-Dx=1"}, there)[OPTIONS]
    assert said.startswith(f'"-XX:SharedArchiveFile={there}" ')
    assert said.endswith(" -Dx=1"), "of two options that disagree, Java takes the last"


def test_brief_job_compiles_quickly_unless_told_otherwise(tmp_path: Path) -> None:
    none = tmp_path / "none.jsa"
    assert make_driver_options({}, none, is_brief=True) == {OPTIONS: "-XX:TieredStopAtLevel=1"}
    given = make_driver_options({OPTIONS: "-XX:TieredStopAtLevel=4"}, none, is_brief=True)
    assert given[OPTIONS].split() == ["-XX:TieredStopAtLevel=1", "-XX:TieredStopAtLevel=4"]


def test_driver_reads_the_kerberos_settings_of_the_environment(tmp_path: Path) -> None:
    none, own = tmp_path / "none.jsa", "-Djava.security.krb5.conf"
    assert make_driver_options({"KRB5_CONFIG": "/a b/krb5.conf"}, none) == {OPTIONS: f'"{own}=/a b/krb5.conf"'}
    assert make_driver_options({"KRB5_CONFIG": "/a", OPTIONS: f"{own}=/b"}, none) == {}, "its own"


def test_archive_that_java_cannot_use_prints_nothing(tmp_path: Path) -> None:
    rubbish = tmp_path / "rubbish.jsa"
    rubbish.write_bytes(b"not an archive")
    options = make_driver_options({}, rubbish)[OPTIONS].replace('"', "").split()
    done = subprocess.run(["java", *options, "-version"], capture_output=True, text=True, check=True)
    assert "cds" not in done.stdout + done.stderr


@pytest.mark.spark
def test_installed_archive_is_the_one_that_a_driver_maps() -> None:
    assert ARCHIVE.is_file(), "`make setup` makes it"
    done = subprocess.run([sys.executable, "-c", MAPPED], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
