"""A user without an entry in passwd, as a container has one that was started by a number."""

from __future__ import annotations

import os

import pytest

from onceover.config.os_user import name_user
from onceover.errors import ConfigurationError
from onceover.spark.session import build

NAMES = ("HADOOP_USER_NAME", "LOGNAME", "USER", "LNAME", "USERNAME")


@pytest.fixture(autouse=True)
def nameless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process's user be one that passwd does not know, nor the environment."""
    monkeypatch.setattr(os, "getuid", lambda: 1_234_567)
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def test_user_without_a_name_has_one_on_hdfs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert name_user() == "uid1234567", "HDFS takes no name of digits alone"
    monkeypatch.setenv("HADOOP_USER_NAME", "ingest")
    assert name_user() == "ingest"


def test_spark_names_the_remedy_before_its_jvm_starts() -> None:
    with pytest.raises(ConfigurationError, match=r"user 1234567 has no entry in passwd, .* preload libnss_wrapper\.so"):
        build("test")
