"""Only a process that acts on a secured stack logs in to it: another one, like `doctor`, keeps its shell's login."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from onceover_local.stack import Stack
from onceover_local.stack.kerberos import USERS


@pytest.fixture
def secured_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "kerberos").mkdir()
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", "the shell's own")
    for name in ("ONCEOVER_HDFS_AUTH", "HADOOP_CONF_DIR", "KRB5_CONFIG", "KRB5CCNAME"):
        monkeypatch.setenv(name, "")  # and is as before after the test
    return tmp_path


def test_a_look_at_ports_keeps_the_shells_login(secured_folder: Path) -> None:
    assert Stack(secured_folder).find_taken_ports() == {}
    assert os.environ["KRB5_CLIENT_KTNAME"] == "the shell's own"


def test_a_list_of_parts_is_made_with_the_stacks_login(secured_folder: Path) -> None:
    Stack(secured_folder).list_statuses()
    assert os.environ["KRB5_CLIENT_KTNAME"] == str(secured_folder / "kerberos" / f"{USERS[0]}.keytab")
