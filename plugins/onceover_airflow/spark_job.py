"""One of the entries in `jobs/` as a task: started by spark-submit, in the pool, its failure explained in one line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from subprocess import Popen
from typing import Any, ClassVar

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException

from onceover.config.airflow import POOL
from onceover.config.endpoints import home
from onceover.spark.private_files import keep_files_private
from onceover_airflow.pipeline_operator import PipelineOperator
from onceover_airflow.run_request import chosen_name
from onceover_airflow.spark import (
    driver_environment,
    kill_family,
    meaning_of_exit,
    name_application,
    spark_connection,
)


class SparkJobOperator(PipelineOperator, SparkSubmitOperator):
    """Runs `jobs/JOB.py`, of a subclass, for a pipeline and the number of its request or audit. Never durable: clearing
    the finished task must run it again."""

    job: ClassVar[str]
    is_brief: ClassVar[bool] = False
    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "pipeline")

    def __init__(self, *, conn_id: str = "spark_default", **kwargs: Any) -> None:
        kwargs.setdefault("pool", POOL)
        kwargs.setdefault("execution_timeout", timedelta(hours=6))
        super().__init__(conn_id=conn_id, name=f"onceover-{self.job}", durable=False, **kwargs)
        self._what = f"{self.job} of {self.pipeline}"

    def execute(self, context: Context) -> None:
        try:
            with keep_files_private():
                super().execute(context)
        except AirflowException as error:
            code = self._submission.returncode if self._submission is not None else None
            if (meaning := meaning_of_exit(code, self._what)) is not None:
                raise meaning from error
            raise
        finally:
            if (submission := self._submission) is not None and submission.stdout is not None:
                submission.stdout.close()  # the hook leaves the pipe open

    def set_command(self, name: str, value: object, *more: str) -> None:
        """Set the command: an argument list, never a shell line, with nothing secret in it."""
        connection = spark_connection(self._conn_id)
        self.application = name_application(connection, home() / "jobs" / f"{self.job}.py")
        self.application_args = ["--pipeline", chosen_name(self.pipeline), f"--{name}", str(value), *more]
        self._what = f"{self.job} of {self.pipeline}, {name} {value},"
        self.env_vars = driver_environment(connection, os.environ, is_brief=self.is_brief)

    def on_kill(self) -> None:
        if self._hook is None:
            return
        submission = self._submission
        if submission is not None and submission.poll() is None:
            killed = kill_family(submission.pid)
            self.log.info("killed spark-submit and its child processes: %s", killed)
        super().on_kill()  # on a cluster the driver is elsewhere

    @property
    def _submission(self) -> Popen[str] | None:
        """The spark-submit process, None before its start; the provider offers no public access to it."""
        return self._hook._submit_sp if self._hook is not None else None
