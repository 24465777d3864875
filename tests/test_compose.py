"""docker-compose.yml is valid, refers to nothing that is not there, and sets every part as the embedded stack does."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from onceover.config.airflow import POOL
from onceover_local.stack.airflow import AirflowProcess
from onceover_local.stack.hdfs import DataNode, NameNode
from onceover_local.stack.jars import ROOTS
from onceover_local.stack.kafka import Kafka
from onceover_local.stack.place import Place
from onceover_local.stack.ports import Ports
from onceover_local.stack.postgres import INITIALISE, Postgres
from onceover_local.stack.spark import SparkMaster, SparkWorker, make_defaults

ROOT = Path(__file__).parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
AIRFLOW = ("api-server", "scheduler", "dag-processor", "triggerer")
ONCE = ("airflow-migrate", "airflow-pool", "raw-folder")

ADDRESS = "another address or port: containers are reached by their services' names"
FOLDER = "another folder: a volume's, or the image's"
SECRET = "from .env, where the embedded stack keeps a file of its own"

# All that may differ from the embedded stack, and why. A setting that does not differ may not be listed here.
KAFKA = {
    "listeners": ADDRESS,
    "advertised.listeners": ADDRESS,
    "controller.quorum.voters": ADDRESS,
    "listener.security.protocol.map": "one listener for containers and one for the machine around them",
    "inter.broker.listener.name": "with two listeners Kafka must know which is its own",
    "log.dirs": FOLDER,
}
HADOOP = {
    "fs.defaultFS": ADDRESS,
    "hadoop.tmp.dir": FOLDER,
}
NAMENODE = HADOOP | {
    "dfs.namenode.rpc-address": ADDRESS,
    "dfs.namenode.http-address": ADDRESS,
    "dfs.namenode.name.dir": FOLDER,
}
DATANODE = HADOOP | {
    "dfs.datanode.data.dir": FOLDER,
    "dfs.datanode.address": ADDRESS,
    "dfs.datanode.http.address": ADDRESS,
    "dfs.datanode.ipc.address": ADDRESS,
    "dfs.datanode.hostname": ADDRESS,
}
POSTGRES = {
    "listen_addresses": ADDRESS,
    "port": ADDRESS,
    "unix_socket_directories": "its image makes the databases over its socket, whose path is short there",
}
SPARK_OPTIONS = {
    "--host": ADDRESS,
    "--port": ADDRESS,
    "--webui-port": ADDRESS,
}
SPARK_ENVIRONMENT = {
    "SPARK_HOME": FOLDER,
    "SPARK_CONF_DIR": FOLDER,
    "SPARK_LOCAL_IP": ADDRESS,
    "SPARK_DAEMON_MEMORY": "Spark's own default: a container's memory is not shared with all other parts",
    "SPARK_DAEMON_JAVA_OPTS": "Java's own defaults, for the same reason; the engine starts a killed master again",
    "SPARK_NO_DAEMONIZE": "spark-class stays in the foreground by itself; only Spark's sbin scripts read it",
}
AIRFLOW_ENVIRONMENT = {
    "HADOOP_USER_NAME": "embedded, all processes are of the user who starts the stack, who may all on HDFS",
    "AIRFLOW_HOME": FOLDER,
    "AIRFLOW__CORE__DAGS_FOLDER": FOLDER,
    "AIRFLOW__CORE__PLUGINS_FOLDER": FOLDER,
    "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": ADDRESS,
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": FOLDER,
    "AIRFLOW__CORE__FERNET_KEY": SECRET,
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": SECRET,
    "AIRFLOW__API__HOST": ADDRESS,
    "AIRFLOW__API__PORT": ADDRESS,
    "AIRFLOW__API__BASE_URL": ADDRESS,
    "AIRFLOW__API__SECRET_KEY": SECRET,
    "AIRFLOW__API_AUTH__JWT_SECRET": SECRET,
    "AIRFLOW__LOGGING__BASE_LOG_FOLDER": FOLDER,
    "AIRFLOW__LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY": FOLDER,
    "AIRFLOW_CONN_SPARK_DEFAULT": ADDRESS,
    "SPARK_LOCAL_IP": "the cluster's executors must reach a driver from other containers",
    "SPARK_HOME": FOLDER,
    "ONCEOVER_HOME": FOLDER,
    "ONCEOVER_LOCAL": FOLDER,
    "ONCEOVER_KAFKA": ADDRESS,
    "ONCEOVER_WEBHDFS": ADDRESS,
    "ONCEOVER_HDFS": ADDRESS,
    "ONCEOVER_POSTGRES": ADDRESS,
    "ONCEOVER_AIRFLOW": ADDRESS,
    "ONCEOVER_SPARK": ADDRESS,
    "PGPASSWORD": SECRET,
    "ONCEOVER_SPARK_SECRET": SECRET,
    "NO_PROXY": ADDRESS,
    "no_proxy": ADDRESS,
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """The folder of an embedded stack that is never started."""
    (tmp_path / "ports.json").write_text(json.dumps(_PORTS))
    return Place(tmp_path, ROOT, Ports(tmp_path / "ports.json"))


_PORTS = {
    name: 20_000 + number
    for number, name in enumerate(
        (
            *("kafka", "kafka-controller", "namenode", "namenode-http", "postgres", "airflow"),
            *("datanode1", "datanode1-http", "datanode1-ipc"),
            *("spark-master", "spark-master-http", "spark-worker1", "spark-worker1-http"),
        )
    )
}


def differences(embedded: Mapping[str, object], composed: Mapping[str, object]) -> set[str]:
    """Settings that only one of them has, or that each has in its own way."""
    one, other = ({name: str(value) for name, value in each.items()} for each in (embedded, composed))
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


def environment(service: str) -> dict[str, object]:
    found: dict[str, object] = SERVICES[service]["environment"]
    return found


def test_compose_file_matches_the_specification() -> None:
    schema = json.loads((files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json").read_text())
    assert [f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(COMPOSE)] == []


def test_kafka_is_set_as_the_embedded_one(place: Place) -> None:
    embedded = Kafka(place).make_settings(place.local)
    composed = {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in environment("kafka").items()
        if name != "KAFKA_HEAP_OPTS"
    }
    assert differences(embedded, composed) == KAFKA.keys()


@pytest.mark.parametrize("service", ["namenode", "datanode1", "datanode2", "datanode3"])
def test_hdfs_is_set_as_the_embedded_one(place: Place, service: str) -> None:
    is_namenode = service == "namenode"
    embedded = (NameNode(place, 3) if is_namenode else DataNode(place, 1, 3)).make_settings()
    composed = {
        name.split("_", 1)[1]: value
        for name, value in environment(service).items()
        if name.startswith(("CORE-SITE.XML_", "HDFS-SITE.XML_"))
    }
    assert differences(embedded, composed) == (NAMENODE if is_namenode else DATANODE).keys()


def test_postgresql_is_set_as_the_embedded_one(place: Place) -> None:
    program, *options = SERVICES["postgres"]["command"]
    assert (program, set(options[::2])) == ("postgres", {"-c"})
    composed = dict(option.split("=", 1) for option in options[1::2])
    assert differences(Postgres(place).make_settings(), composed) == POSTGRES.keys()
    assert shlex.split(str(environment("postgres")["POSTGRES_INITDB_ARGS"])) == list(INITIALISE)


@pytest.mark.parametrize("service", AIRFLOW)
def test_airflow_is_set_as_the_embedded_one(place: Place, service: str) -> None:
    process = AirflowProcess(place, Postgres(place), service, on_cluster=True)
    assert differences(process.make_environment(), environment(service)) == AIRFLOW_ENVIRONMENT.keys()
    assert SERVICES[service]["command"][:2] == ["airflow", service]
    assert SERVICES["airflow-pool"]["command"][3] == POOL


@pytest.mark.parametrize("service", ["spark-master", "spark-worker1", "spark-worker2"])
def test_spark_is_set_as_the_embedded_cluster(place: Place, service: str) -> None:
    embedded = (SparkMaster(place) if service == "spark-master" else SparkWorker(place, 1)).prepare(lambda *_: None)
    program, *arguments = embedded.argv
    composed: list[str] = SERVICES[service]["command"]
    assert composed[:2] == [Path(program).name, arguments[0]]
    differ = SPARK_OPTIONS | ({} if service == "spark-master" else {"--work-dir": FOLDER})
    assert differences(options(arguments), options(composed)) == differ.keys()
    set_here = {name: value for name, value in environment(service).items() if name.startswith("SPARK_")}
    assert differences(embedded.environment, set_here) == SPARK_ENVIRONMENT.keys()
    (config,) = SERVICES[service]["configs"]
    assert str(config["target"]) == f"{environment(service)['SPARK_CONF_DIR']}/spark-defaults.conf"
    secret = "${SPARK_SECRET:?see the head of docker-compose.yml}"
    assert COMPOSE["configs"][config["source"]]["content"] == make_defaults(secret)
    assert environment("ingest")["ONCEOVER_SPARK_SECRET"] == secret


@pytest.mark.parametrize("service", ["spark-master", "spark-worker1", "spark-worker2"])
def test_compose_spark_environment_holds_no_secret(service: str) -> None:
    assert not [name for name, value in environment(service).items() if "${" in str(value)]


def options(command: Sequence[str]) -> dict[str, str]:
    return {name: value for name, value in pairwise(command) if name.startswith("--")}


def test_compose_images_are_of_the_embedded_versions() -> None:
    (kafka,) = (root.rsplit(":")[-1] for root in ROOTS["kafka"] if "kafka_2" in root)
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{kafka}"
    assert SERVICES["postgres"]["image"] == "postgres:18"  # the wheel's pginstall18


def test_compose_references_exist_and_waits_are_possible() -> None:
    for name, service in SERVICES.items():
        for other, wait in service.get("depends_on", {}).items():
            condition = wait["condition"]
            assert condition == ("service_completed_successfully" if other in ONCE else "service_healthy"), name
            assert "healthcheck" in SERVICES[other] or other in ONCE, f"{name} waits for {other}"
        for source in (volume.split(":")[0] for volume in service.get("volumes", ())):
            assert (ROOT / source).is_dir() if source.startswith("./") else source in COMPOSE["volumes"], name
        assert {config["source"] for config in service.get("configs", ())} <= COMPOSE["configs"].keys()
        assert service["restart"] == ("no" if name in ONCE else "unless-stopped")


def test_compose_services_do_not_wait_in_a_circle() -> None:
    waits = {name: set(service.get("depends_on", {})) for name, service in SERVICES.items()}
    while ready := {name for name, others in waits.items() if not others & waits.keys()}:
        waits = {name: others for name, others in waits.items() if name not in ready}
    assert waits == {}


@pytest.mark.parametrize(
    ("safe_mode", "live", "healthy"),
    [
        (None, "", set()),
        ("ON", "", {"namenode"}),
        ("ON", "datanode1", {"namenode"}),
        ("OFF", "datanode2", {"namenode"}),
        ("OFF", "datanode1", {"namenode", "datanode1"}),
    ],
)
def test_compose_datanodes_wait_for_no_end_of_safe_mode(
    tmp_path: Path, safe_mode: str | None, live: str, healthy: set[str]
) -> None:
    """A NameNode that starts again leaves safe mode only once the DataNodes, which wait for its health, report."""
    answers = {"-safemode get": f"Safe mode is {safe_mode}", "-report -live": f"Safe mode is ON\nHostname: {live}"}
    cases = "\n".join(f"'dfsadmin {asked}') echo '{said}';;" for asked, said in answers.items())
    (tmp_path / "hdfs").write_text(f'#!/bin/sh\n{"exit 1" if safe_mode is None else ""}\ncase "$*" in\n{cases}\nesac\n')
    (tmp_path / "hdfs").chmod(0o755)

    def is_healthy(name: str) -> bool:
        shell, test = SERVICES[name]["healthcheck"]["test"]
        assert shell == "CMD-SHELL"
        places = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOSTNAME": SERVICES[name]["hostname"]}
        return subprocess.run(["/bin/sh", "-c", test.replace("$$", "$")], env=places, check=False).returncode == 0

    assert {name for name in ("namenode", "datanode1") if is_healthy(name)} == healthy


def test_compose_configs_name_no_user_of_the_host() -> None:
    used = [config for service in SERVICES.values() for config in service.get("configs", ())]
    assert used
    assert not [config for config in used if {"uid", "gid"} & config.keys()]


def test_compose_ingest_runs_every_pipeline_and_restarts() -> None:
    service = SERVICES["ingest"]
    assert service["command"] == ["onceover", "ingest", "--all"]
    assert service["restart"] == "unless-stopped"
    assert "./pipelines:/opt/onceover/pipelines:ro" in service["volumes"]
    ours = {name: value for name, value in environment("scheduler").items() if name.startswith("ONCEOVER_")}
    assert environment("ingest").items() >= ours.items()


def test_compose_ports_are_reachable_from_loopback_only() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert sorted(published) == [f"127.0.0.1:{port}:{port}" for port in (29092, 5432, 8080)]


def test_dockerfile_copies_existing_files_and_matches_compose() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    copied = re.findall(r"^COPY (\S+) ", dockerfile, re.MULTILINE)
    assert len(copied) >= 5
    assert all((ROOT / each).exists() for each in copied)
    stated = dict(re.findall(r"(\w+)=(/\S+)", dockerfile.split("ENV ")[1].split("\n\n")[0]))
    assert {name: environment("scheduler")[name] for name in stated} == stated
