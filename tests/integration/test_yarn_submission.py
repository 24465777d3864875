"""What goes to a YARN: the Python environment as an archive, and repairs that Airflow submits in either deploy mode."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
import pytest
from tests.airflow_home import name_airflow_home
from tests.integration.cluster_jobs import Jobs
from tests.integration.job_fixtures import spark_session
from tests.integration.lane import Lanes
from tests.integration.test_yarn import VALUES, WINDOWS, end_ingest, hold, land_spoiled, require_counted
from tests.integration.yarn_cluster import YarnCluster
from tests.integration.yarn_fixtures import jobs, running, yarn
from tests.own_stack import ROOT
from tests.programs import run_python

from onceover.config.endpoints import address
from onceover.fault_points import Step
from onceover_local.stack import Stack
from onceover_local.stack.yarn import QUEUE

__all__ = ["jobs", "running", "spark_session", "yarn"]
pytestmark = [pytest.mark.stack, pytest.mark.largest]
TASK = """
import sys
from onceover_airflow.operators.repair import RepairOperator
pipeline, request_id = sys.argv[1:]
RepairOperator(task_id="repair", pipeline=pipeline, detection={"request_id": int(request_id)}).execute({})
"""


def test_environment_goes_along_as_an_archive(
    lanes: Lanes, jobs: Jobs, yarn: YarnCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (command,) = re.findall(r"^    (tar .+)$", (ROOT / "docs" / "deployment.md").read_text(), re.MULTILINE)
    archive = tmp_path / "environment.tar.gz"
    subprocess.run([archive if w == archive.name else w for w in shlex.split(command)], cwd=ROOT, check=True)
    yarn.write_defaults({"spark.archives": f"{archive}#environment"})
    monkeypatch.setenv("PYSPARK_PYTHON", "environment/bin/python")
    lane = lanes()
    lane.produce(VALUES)
    ingest = hold(jobs("ingest.py", "--pipeline", lane.name), Step.LANDED)
    programs = {each.cmdline()[0] for each in psutil.process_iter() if is_daemon(each)}
    assert programs == {"environment/bin/python"}
    ingest.resume()
    end_ingest(ingest)
    require_counted(lane, VALUES, WINDOWS)


def is_daemon(process: psutil.Process) -> bool:
    """Return whether it starts an executor's workers of Python."""
    try:
        return "pyspark.daemon" in process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


@pytest.mark.airflow
@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_airflow_repairs_on_yarn(
    lanes: Lanes, jobs: Jobs, yarn: YarnCluster, stack: Stack, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    name_airflow_home()
    lane, request_id = land_spoiled(lanes, jobs)
    password = (stack.local / "secrets" / "postgres-onceover").read_text()
    spark = {"conn_type": "spark", "host": "yarn", "extra": {"queue": QUEUE, "deploy-mode": mode}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark))
    if mode == "cluster":
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        yarn.write_defaults(name_driver_settings(monkeypatch))
    run_python("-c", TASK, lane.name, str(request_id))
    require_counted(lane, VALUES, WINDOWS)
    last = yarn.list_applications()[-1]
    assert (last["queue"].rpartition(".")[2], last["finalStatus"]) == (QUEUE, "SUCCEEDED")
    logs = [each.read_text() for each in yarn.list_logs()]
    assert any("ONCEOVER" in text for text in logs) == (mode == "cluster"), "where YARN writes the environment"
    assert not [text for text in logs if password in text]


def name_driver_settings(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Name the parts' addresses in the environment, without passwords; return what a driver on YARN has in its own."""
    for part in ("kafka", "webhdfs", "hdfs"):
        monkeypatch.setenv(f"ONCEOVER_{part.upper()}", address(part))
    ledger = urlsplit(address("postgres"))
    (passwords,) = parse_qs(ledger.query)["passfile"]
    monkeypatch.setenv("ONCEOVER_POSTGRES", ledger._replace(query="").geturl())
    monkeypatch.setenv("PGPASSFILE", passwords)
    own = {
        "PGPASSFILE": passwords,
        "ONCEOVER_HOME": str(ROOT),
        "ONCEOVER_PIPELINES": os.environ["ONCEOVER_PIPELINES"],
        "PYSPARK_PYTHON": sys.executable,
    }
    return {f"spark.yarn.appMasterEnv.{name}": value for name, value in own.items()}
