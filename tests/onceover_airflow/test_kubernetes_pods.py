"""What Kubernetes would be asked for: the command of a repair, taken apart by Spark's own spark-submit, which makes the
driver's pod of it. No cluster is asked, and nothing is started."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks import spark_submit
from tests.programs import run_python

from onceover_airflow.operators.repair import RepairOperator

pytestmark = [pytest.mark.airflow, pytest.mark.rare]
MASTER = "k8s://https://cluster:6443"
IMAGE = "registry.example/onceover:1"
DRY_RUN = """
import json, os, sys
from pyspark.java_gateway import launch_gateway

os.environ["PYSPARK_SUBMIT_ARGS"] = "--master local pyspark-shell"
gateway = launch_gateway()
jvm = gateway.jvm
deploy, java = jvm.org.apache.spark.deploy, jvm.scala.jdk.javaapi.CollectionConverters

def whole(parent, name):
    return getattr(getattr(parent, name + "$"), "MODULE$")

given = jvm.java.util.ArrayList()
for word in sys.argv[1:]:
    given.add(word)
nothing = whole(jvm.scala.collection.immutable, "Map").empty()
submitted = deploy.SparkSubmitArguments(java.asScala(given).toSeq(), nothing)
prepared = deploy.SparkSubmit().prepareSubmitEnvironment(submitted, whole(jvm.scala, "None"))
words, conf = list(java.asJava(prepared._1())), prepared._3()
settings = dict(pair.split("=", 1) for pair in conf.toDebugString().splitlines())
prepared_as = {"class": prepared._4(), "words": words, "conf": settings}
if submitted.deployMode() == "cluster":
    listed = gateway.new_array(jvm.java.lang.String, len(words))
    for place, word in enumerate(words):
        listed[place] = word
    parsed = whole(deploy.k8s.submit, "ClientArguments").fromCommandLineArgs(listed)
    what = (parsed.mainAppResource(), parsed.mainClass(), parsed.driverArgs(), parsed.proxyUser())
    driver = whole(deploy.k8s, "KubernetesConf").createDriverConf(conf, "app", *what)
    fabric8 = jvm.io.fabric8.kubernetes.client
    nowhere = fabric8.ConfigBuilder().withMasterUrl("https://cluster:6443").build()
    client = fabric8.KubernetesClientBuilder().withConfig(nowhere).build()
    spec = deploy.k8s.submit.KubernetesDriverBuilder().buildFromFeatures(driver, client)
    prepared_as["container"] = json.loads(fabric8.utils.Serialization.asJson(spec.pod().container()))
    prepared_as["pod"] = json.loads(fabric8.utils.Serialization.asJson(spec.pod().pod()))
    client.close()
gateway.shutdown()
print(json.dumps(prepared_as))
"""


def dry_run(monkeypatch: pytest.MonkeyPatch, folder: Path, mode: str) -> dict[str, Any]:
    """Return what spark-submit makes of a repair's command, in that deploy mode."""
    extra = {"namespace": "onceover", "deploy-mode": mode}
    connection = {"conn_type": "spark", "host": "k8s://https://cluster", "port": 6443, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    monkeypatch.setenv("ONCEOVER_KAFKA", "kafka:9092")
    monkeypatch.setenv("ONCEOVER_POSTGRES", "postgresql://onceover@db/onceover")
    monkeypatch.setenv("ONCEOVER_KAFKA_SASL_PASSWORD", "hush")
    monkeypatch.setattr(spark_submit, "kube_client", object(), raising=False)  # of a provider that is not installed
    repair = RepairOperator(task_id="repair", pipeline="events", detection={"request_id": 12})
    repair.set_command("request", 12)
    program, *command = repair._get_hook()._build_spark_submit_command(repair.application)
    assert program == "spark-submit"
    (folder / "spark-defaults.conf").write_text(f"spark.kubernetes.container.image {IMAGE}\n")
    environment = {**os.environ, "SPARK_CONF_DIR": str(folder), "SPARK_LOCAL_IP": "127.0.0.1"}
    prepared_as: dict[str, Any] = json.loads(
        run_python("-c", DRY_RUN, *command, environment=environment).splitlines()[-1]
    )
    assert "hush" not in json.dumps(prepared_as)
    assert prepared_as["conf"]["spark.master"] == MASTER
    assert prepared_as["conf"]["spark.kubernetes.namespace"] == "onceover"
    return prepared_as


def test_driver_s_pod_runs_the_repair_of_its_image(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared_as = dry_run(monkeypatch, tmp_path, "cluster")
    assert prepared_as["class"].endswith("k8s.submit.KubernetesClientApplication")
    container = prepared_as["container"]
    repair = f"local://{project}/jobs/repair.py"
    assert container["image"] == IMAGE
    assert container["args"][-5:] == [repair, "--pipeline", "events", "--request", "12"]
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert variables["ONCEOVER_KAFKA"] == "kafka:9092"
    assert variables["ONCEOVER_POSTGRES"] == "postgresql://onceover@db/onceover"
    assert "PATH" not in variables
    assert prepared_as["pod"]["metadata"]["labels"]["spark-role"] == "driver"


def test_driver_on_the_worker_asks_for_executors_alone(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared_as = dry_run(monkeypatch, tmp_path, "client")
    assert prepared_as["class"] == "org.apache.spark.deploy.PythonRunner"
    assert prepared_as["words"][0] == f"file:{project}/jobs/repair.py"
    assert prepared_as["words"][-4:] == ["--pipeline", "events", "--request", "12"]
    assert prepared_as["conf"]["spark.kubernetes.container.image"] == IMAGE
    assert prepared_as["conf"]["spark.submit.deployMode"] == "client"
