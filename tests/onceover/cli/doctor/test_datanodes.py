"""Doctor's judgement of DataNodes: of stated settings, and of real servers with wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from onceover.cli.doctor.datanodes import Durability, check_datanodes, judge_durability, list_datanodes
from onceover.cli.doctor.outcome import get_json
from onceover.config.endpoints import address, locate_hdfs
from onceover.raw.layout import Layout
from onceover.raw.window_files import WindowFiles
from onceover_local.stack import Stack
from onceover_local.stack import hdfs as embedded_hdfs
from onceover_local.stack.process import wait_for

FINE = Durability("http://one:9864", syncs=True, scan_hours=504, scan_pace=1 << 20)
UNSYNCED = Durability("http://two:9864", syncs=False, scan_hours=0, scan_pace=1 << 20)
UNSCANNED = Durability("http://three:9864", syncs=True, scan_hours=-1, scan_pace=1 << 20)
HALTED = Durability("http://four:9864", syncs=True, scan_hours=504, scan_pace=0)


@pytest.mark.parametrize(
    ("datanodes", "states", "words"),
    [
        ([FINE], ["fine"], ["every 21 days"]),
        ([FINE, UNSYNCED], ["wrong"], ["1 DataNode (http://two:9864)", "set dfs.datanode.synconclose=true"]),
        (
            [UNSCANNED, HALTED],
            ["wrong"],
            ["2 DataNodes (http://three:9864, http://four:9864)", "scan.period.hours=504"],
        ),
        ([UNSYNCED, UNSCANNED], ["wrong", "wrong"], ["synconclose=true", "scan.period.hours=504"]),
        ([], [], []),
    ],
)
def test_each_setting_that_may_lose_raw_is_wrong(
    datanodes: list[Durability], states: list[str], words: list[str]
) -> None:
    outcomes = list(judge_durability(datanodes))
    assert [each.state for each in outcomes] == states
    said = " | ".join(each.what for each in outcomes)
    assert [word for word in words if word not in said] == []


@pytest.mark.stack
def test_embedded_datanodes_are_set_to_keep_raw(stack: Stack) -> None:
    assert [outcome.state for outcome in check_datanodes(address("webhdfs"), 1)] == ["fine", "fine"]


@pytest.mark.stack
@pytest.mark.rare
def test_appends_are_synced_to_the_disks_of_datanodes(stack: Stack) -> None:
    def count_syncs() -> int:
        beans = [
            get_json(f"{each}/jmx?qry=Hadoop:service=DataNode,name=DataNodeActivity*")["beans"][0]
            for each in list_datanodes(address("webhdfs"))
        ]
        return sum(int(bean["FsyncNanosNumOps"]) for bean in beans)

    before = count_syncs()
    files = WindowFiles(locate_hdfs(), Layout("/onceover/raw", "synced"))
    files.append("/onceover/raw/synced/2026-03-01/1200.log", [b"one\n"])
    wait_for(lambda: count_syncs() > before, 30, "a DataNode to report its metrics, every ten seconds")
    created = count_syncs()
    files.append("/onceover/raw/synced/2026-03-01/1200.log", [b"two\n"])
    wait_for(lambda: count_syncs() > created, 30, "a DataNode to report its metrics, every ten seconds")


@pytest.mark.stack
@pytest.mark.rare
def test_datanodes_as_hadoop_sets_them_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(embedded_hdfs.DURABLE, "dfs.datanode.synconclose", "false")
    monkeypatch.setitem(embedded_hdfs.DURABLE, "dfs.datanode.scan.period.hours", -1)
    monkeypatch.setenv("ONCEOVER_LOCAL", str(tmp_path))
    own = Stack(tmp_path)
    try:
        own.up({"hdfs"})
        outcomes = list(check_datanodes(address("webhdfs"), 1))
    finally:
        own.down()
    assert [outcome.state for outcome in outcomes] == ["fine", "wrong", "wrong"]
    assert "set dfs.datanode.synconclose=true" in outcomes[1].what
