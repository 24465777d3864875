from __future__ import annotations

from pathlib import Path

import pytest

from onceover.config import endpoints
from onceover.errors import ConfigurationError, UnreachableError


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONCEOVER_LOCAL", str(tmp_path))
    for part in ("KAFKA", "HBASE", "POSTGRES", "HDFS", "WEBHDFS"):
        monkeypatch.delenv(f"ONCEOVER_{part}", raising=False)
    return tmp_path


def test_the_environment_wins_over_what_the_stack_wrote(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (local / "endpoints.json").write_text('{"kafka": "127.0.0.1:1"}')
    assert endpoints.address("kafka") == "127.0.0.1:1"
    monkeypatch.setenv("ONCEOVER_KAFKA", "broker:9092")
    assert endpoints.address("kafka") == "broker:9092"


def test_an_address_that_nobody_named_says_how_to_name_it(local: Path) -> None:
    with pytest.raises(UnreachableError, match=r"ONCEOVER_KAFKA is not set and .*endpoints.json does not name it"):
        endpoints.address("kafka")
    with pytest.raises(UnreachableError, match="start the embedded one with `onceover stack up hbase`"):
        endpoints.address("hbase")


def test_remedy_depends_on_where_the_address_comes_from(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert endpoints.start_or_set("postgres") == "start it (`onceover stack up`), or set ONCEOVER_POSTGRES"
    assert endpoints.start_or_set("hbase") == "start it (`onceover stack up hbase`), or set ONCEOVER_HBASE"
    monkeypatch.setenv("ONCEOVER_HBASE", "hbase.example.org")
    assert endpoints.start_or_set("hbase") == "start it, or correct ONCEOVER_HBASE"


def test_remedy_in_a_deployment_is_no_embedded_stack(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCEOVER_KAFKA", "kafka:9092")
    assert endpoints.start_or_set("registry") == "start it, and set ONCEOVER_REGISTRY"
    with pytest.raises(UnreachableError, match=r"does not name it; set ONCEOVER_HBASE$"):
        endpoints.address("hbase")
    (local / "endpoints.json").write_text("{}")
    assert endpoints.start_or_set("registry") == "start it (`onceover stack up registry`), or set ONCEOVER_REGISTRY"


def test_hdfs_is_located_for_the_protocol_that_is_named(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (local / "endpoints.json").write_text('{"webhdfs": "http://a:1", "hdfs": "hdfs://a:2/"}')
    assert endpoints.locate_hdfs() == "hdfs://a:2;http://a:1"
    monkeypatch.setenv("ONCEOVER_WEBHDFS", "http://b:1;http://c:1")
    assert endpoints.locate_hdfs() == "http://b:1;http://c:1", "the other address is another HDFS's"
    monkeypatch.setenv("ONCEOVER_HDFS", "hdfs://nameservice")
    assert endpoints.locate_hdfs() == "hdfs://nameservice;http://b:1;http://c:1"
    monkeypatch.delenv("ONCEOVER_WEBHDFS")
    with pytest.raises(ConfigurationError, match=r"http://a:1, which may be another HDFS; set ONCEOVER_WEBHDFS"):
        endpoints.locate_hdfs()
    monkeypatch.setenv("ONCEOVER_WEBHDFS", "http://b:1;http://c:1")
    monkeypatch.setenv("ONCEOVER_HDFS", "webhdfs://gateway:1")
    assert endpoints.locate_hdfs() == "http://b:1;http://c:1"


@pytest.mark.parametrize(
    "text", ["http://a:1,http://b:1", "a:1;b:1", "http://a:1; http://b:1", "http://a:1;", "hdfs://a"]
)
def test_several_web_addresses_need_a_semicolon(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("ONCEOVER_WEBHDFS", text)
    with pytest.raises(
        ConfigurationError, match=r"is no HTTP address of a NameNode; set .*http://A:PORT;http://B:PORT"
    ):
        endpoints.locate_hdfs()


def test_leases_are_those_of_the_name_service() -> None:
    assert endpoints.name_lease_server("hdfs://a:8020") == "hdfs://a:8020"
    assert endpoints.name_lease_server("webhdfs://nameservice") == "hdfs://nameservice"
    with pytest.raises(
        ConfigurationError, match=r"ONCEOVER_HDFS=webhdfs://a:9870 has no leases.*webhdfs://NAMESERVICE"
    ):
        endpoints.name_lease_server("webhdfs://a:9870")


@pytest.mark.parametrize("text", ['{"kafka": ', "[]", '{"kafka": 9092}'])
def test_a_broken_file_is_named_in_one_line(local: Path, text: str) -> None:
    (local / "endpoints.json").write_text(text)
    with pytest.raises(ConfigurationError, match=r"endpoints.json .*make up") as caught:
        endpoints.address("kafka")
    assert "\n" not in str(caught.value)
