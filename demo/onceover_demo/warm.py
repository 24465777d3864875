"""Processes of the entries in `jobs/` on a Spark that is warm already, for kills by the dozen.

The Spark is `warm_server`'s. All processes share one gateway to the JVM: only one may work at a time, the others are
stopped. Killing the JVM too would make no difference, for it keeps no state of the protocol.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from onceover.config.endpoints import home
from onceover.errors import TransientError

QUICKLY = "--conf spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1"
"""Ten records need no optimizing compiler."""
_AS_LARGE_ONES_ARE = "--conf spark.sql.codegen.wholeStage=true"
"""Small jobs are compiled by Spark as large ones are, so that a kill hits the same code."""


@dataclass(slots=True)
class WarmJob:
    """A process of WarmJobs."""

    pid: int
    jobs: WarmJobs
    _code: int | None = None

    def poll(self) -> int | None:
        if self._code is None and psutil.Process(self.pid).status() == psutil.STATUS_ZOMBIE:
            self._code = self.jobs.reap(self.pid)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        deadline = time.monotonic() + (timeout or 600.0)
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"process {self.pid} runs on after {timeout} s")
            time.sleep(0.05)
        return code


class WarmJobs:
    """The client of `warm_server`, which starts processes and reads their exit codes."""

    def __init__(self, log: Path) -> None:
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "onceover_demo.warm_server"],
                cwd=home(),
                env={
                    **os.environ,
                    "PYSPARK_SUBMIT_ARGS": f"--master local[2] {QUICKLY} {_AS_LARGE_ONES_ARE} pyspark-shell",
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        self._read()

    def launch(self, script: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> WarmJob:
        """Start a process that runs the script; for `SupervisedJob`."""
        request = {"script": script, "arguments": list(arguments), "environment": dict(environment), "log": str(log)}
        return WarmJob(int(self._request(request)), self)

    def reap(self, pid: int) -> int:
        """Return the exit code of a process that has ended, negative for a signal."""
        return int(self._request({"reap": pid}))

    def close(self) -> None:
        self._process.communicate(timeout=60)

    def _request(self, request: Mapping[str, Any]) -> str:
        stdin = self._process.stdin
        if stdin is not None:
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
        return self._read()

    def _read(self) -> str:
        stdout = self._process.stdout
        answer = stdout.readline().strip() if stdout is not None else ""
        if not answer:
            raise TransientError("the warm Spark process has ended; see the end of its log")
        return answer
