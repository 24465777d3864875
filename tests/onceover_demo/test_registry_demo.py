"""`make demo-registry`, from nothing."""

from __future__ import annotations

import os

import pytest
from tests.own_stack import ROOT, folder_of_this_session
from tests.programs import run_python

pytestmark = [pytest.mark.stack, pytest.mark.largest]


def test_demo_of_the_registry_ends_with_six_checks() -> None:
    with folder_of_this_session() as local:
        environment = {**os.environ, "ONCEOVER_LOCAL": str(local), "ONCEOVER_HOME": str(ROOT), "COLUMNS": "200"}
        said = run_python("-m", "onceover_demo.registry", environment=environment)
    assert [line[:4] for line in said.splitlines()[-6:]] == ["yes "] * 6
    assert "records in quarantine: unparseable: schema 3: field dep_delay: string is no long" in said
