"""Raw in a store that only tests know, named by a variable: the main path is in test_main_path.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration import test_audit, test_reread
from tests.integration.lane import Lanes
from tests.integration.lane_fixtures import put_on

from onceover.errors import OnceoverError
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.largest]
test_audit_agrees = test_audit.test_audit_agrees_after_repair_and_names_each_difference
test_truncated_window_is_read_again = test_reread.test_truncated_window_is_read_again_from_kafka


@pytest.fixture
def lanes(lanes: Lanes, stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lanes:
    monkeypatch.setenv("ONCEOVER_FOLDER", str(tmp_path))
    return put_on("folder", lanes, stack)


def test_wrong_plug_ins_are_refused_by_name(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = lanes()
    for wrong, said in (
        ("folder", "write NAME=MODULE:CLASS"),
        ("hdfs=a:b", "with a new name"),
        ("", "is no raw store"),
    ):
        monkeypatch.setenv("ONCEOVER_RAW_STORES", wrong)
        with pytest.raises(OnceoverError, match=said):
            lane.ingest()
