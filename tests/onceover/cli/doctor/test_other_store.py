"""Doctor with raw on HBase: HDFS is not asked for, and HBase that does not answer is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onceover.cli.doctor.hdfs import check_hdfs
from onceover.config.pipelines import find
from onceover.errors import UnreachableError
from onceover.model.pipeline import Pipeline


@pytest.fixture
def on_hbase() -> Pipeline:
    made = find("flights")
    return replace(made, storage=replace(made.storage, raw_store="hbase"))


def test_hdfs_is_not_checked_where_nothing_needs_it(on_hbase: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCEOVER_WEBHDFS", "http://127.0.0.1:1")
    assert list(check_hdfs([on_hbase])) == []
    checkpoint = replace(on_hbase, ingest=replace(on_hbase.ingest, offset_store="checkpoint"))
    with pytest.raises(UnreachableError, match="HDFS at http://127"):
        list(check_hdfs([checkpoint]))
