"""The parts of a stack, the waves in which they start, and the order in which they stop."""

from __future__ import annotations

from typing import Final

from onceover_local.stack.airflow import AirflowProcess
from onceover_local.stack.hbase import HBase, HBaseThrift
from onceover_local.stack.hdfs import DataNode, NameNode
from onceover_local.stack.kafka import Kafka
from onceover_local.stack.kerberos import Kdc
from onceover_local.stack.part import Part
from onceover_local.stack.place import Place
from onceover_local.stack.postgres import Postgres
from onceover_local.stack.registry import Registry
from onceover_local.stack.spark import SparkMaster, SparkWorker
from onceover_local.stack.yarn import NodeManager, ResourceManager
from onceover_local.stack.zookeeper import ZooKeeper

GROUPS: Final = ("kafka", "hdfs", "postgres", "airflow")
"""The groups that start by default."""
_DATANODES: Final = 3
_WORKERS: Final = 2

Waves = tuple[tuple[Part, ...], ...]
"""Parts of one wave start together; the next wave starts when all of them are ready."""


def make_waves(place: Place, *, is_cluster: bool, kdc: Kdc | None = None) -> dict[str, Waves]:
    """Return every group of parts, in the order in which `onceover stack status` lists them. With a KDC, it starts
    before HDFS, which it secures."""
    datanodes = _DATANODES if is_cluster else 1
    hdfs = (NameNode(place, datanodes, kdc), *(DataNode(place, n + 1, datanodes, kdc) for n in range(datanodes)))
    postgres = Postgres(place)
    airflow = {
        what: AirflowProcess(place, postgres, what, on_cluster=is_cluster)
        for what in ("api-server", "scheduler", "dag-processor", "triggerer")
    }
    workers = tuple(SparkWorker(place, n + 1) for n in range(_WORKERS))
    spark: dict[str, Waves] = {"spark": ((SparkMaster(place),), workers)} if is_cluster else {}
    return {
        "kafka": ((Kafka(place),),),
        "hdfs": (*(((kdc,),) if kdc else ()), hdfs),
        "postgres": ((postgres,),),
        **spark,
        "airflow": ((airflow.pop("api-server"),), tuple(airflow.values())),
        "zookeeper": ((ZooKeeper(place),),),
        "hbase": ((HBase(place, datanodes),), (HBaseThrift(place, datanodes),)),
        "registry": ((Registry(place),),),
        "yarn": ((ResourceManager(place),), (NodeManager(place),)),
    }


def order_stops(names: list[str]) -> list[list[str]]:
    """Return the names in the order of stopping: Airflow, whose tasks use every other part; then clients of others;
    HBase, whose files are on HDFS, before DataNodes; NameNode and database last."""
    airflow = [name for name in names if name.startswith("airflow")]
    clients = [
        name for name in names if name.startswith(("kafka", "hbase-thrift", "spark", "nodemanager", "resourcemanager"))
    ]
    hbase, datanodes = ([name for name in names if name.startswith(part)] for part in ("hbase", "datanode"))
    hbase = [name for name in hbase if name not in clients]
    first = (*airflow, *clients, *hbase, *datanodes)
    return [airflow, clients, hbase, datanodes, [name for name in names if name not in first]]
