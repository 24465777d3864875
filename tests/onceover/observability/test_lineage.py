from __future__ import annotations

import pytest

from onceover.observability.lineage import DatasetName, name_hdfs_path, name_topic


@pytest.mark.parametrize(
    ("address", "namespace"),
    [
        ("hdfs://namenode:8020", "hdfs://namenode:8020"),
        ("hdfs://namenode:8020/", "hdfs://namenode:8020"),
        ("hdfs://nameservice", "hdfs://nameservice"),
    ],
)
def test_path_is_named_by_its_file_system(address: str, namespace: str) -> None:
    assert name_hdfs_path(address, "/raw/flights") == DatasetName(namespace, "/raw/flights")


@pytest.mark.parametrize(
    "servers", ["one:9092", "one:9092,two:9092", " one:9092 , two:9092", "SASL_SSL://one:9092,two"]
)
def test_topic_is_named_by_the_first_server(servers: str) -> None:
    assert name_topic(servers, "flights") == DatasetName("kafka://one:9092", "flights")
