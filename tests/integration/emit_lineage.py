"""A process of its own, as a task is: OpenLineage's provider asks the repair's operator, and emits what it answers.

Run as `python emit_lineage.py PIPELINE REQUEST...`, with a transport in AIRFLOW__OPENLINEAGE__TRANSPORT. Spark and
Airflow share no process.
"""

from __future__ import annotations

import sys
import uuid
from datetime import UTC, datetime
from types import SimpleNamespace

from airflow.providers.openlineage.extractors.manager import ExtractorManager
from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
from airflow.utils.state import TaskInstanceState

from onceover_airflow.operators.repair import RepairOperator


def main(pipeline: str, requests: list[int]) -> None:
    adapter, manager = OpenLineageAdapter(), ExtractorManager()  # type: ignore[no-untyped-call]
    for request in requests:
        task = RepairOperator(task_id="repair", pipeline=pipeline, detection={"request_id": request})
        found = manager.extract_metadata(
            SimpleNamespace(run_id=f"request {request}"), task, TaskInstanceState.SUCCESS, None
        )
        adapter.complete_task(
            run_id=str(uuid.uuid4()),
            job_name=f"request {request}",
            end_time=datetime.now(UTC).isoformat(),
            task=found,
            nominal_start_time=None,
            nominal_end_time=None,
            owners=None,
            tags=None,
            job_description=None,
        )


if __name__ == "__main__":
    main(sys.argv[1], [int(text) for text in sys.argv[2:]])
