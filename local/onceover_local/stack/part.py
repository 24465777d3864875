"""The interface of one process of the embedded stack, and its status."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, Literal, Protocol
from urllib.request import ProxyHandler, Request, build_opener

from onceover.errors import ConfigurationError, OnceoverError
from onceover.raw.kerberos import make_headers
from onceover_local.stack.place import Say
from onceover_local.stack.process import Command, Process

LOGGING: Final = """\
log4j.rootLogger=WARN,out
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
log4j.logger.org.apache.hadoop.hdfs.StateChange=INFO
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
"""The configuration of servers that log with log4j 1."""

State = Literal["up", "unready", "dead", "down"]
"""Answers; runs but does not answer; was started and has exited; was not started."""


@dataclass(frozen=True, slots=True)
class PartStatus:
    """One process of the stack, as `onceover stack status` shows it."""

    name: str
    group: str
    state: State
    pid: int | None
    address: str
    log: Path


class Part(Protocol):
    """One process of the stack. `prepare` may be repeated at any time and does only what is missing."""

    name: str
    ports: tuple[str, ...]
    start_s: float
    stop_s: float
    process: Process

    def prepare(self, say: Say) -> Command:
        """Write the configuration, make the data folder at the first start; return the command to run."""

    def is_ready(self) -> bool:
        """Return whether the part answers and can do its work. Quick; never raises for a part that is just starting."""

    def finish(self, say: Say) -> None:
        """Finish the start of a ready part, before its first use. May be repeated."""

    def get_address(self) -> str:
        """Return the part's address, for people."""

    def list_endpoints(self) -> Mapping[str, str]:
        """Return the part's entries in endpoints.json."""


def get_json(address: str, *, is_secured: bool = False) -> dict[str, Any]:
    """Return the JSON object at that address, for which a server that is secured asks for this process's ticket; empty
    if the process does not answer."""
    try:
        request = Request(address, headers=make_headers(address) if is_secured else {})
        with _direct.open(request, timeout=2) as response:
            answer: dict[str, Any] = json.load(response)
    except (OSError, HTTPException, ValueError, OnceoverError):
        return {}
    return answer


_direct = build_opener(ProxyHandler({}))  # the environment's proxy is not for loopback


def find_java() -> tuple[str, ...]:
    """Return the java on PATH with options for a small server, which make it start a quarter sooner.

    Raises ConfigurationError without one.
    """
    java = shutil.which("java")
    if java is None:
        raise ConfigurationError("there is no `java` on PATH; install Java 17, which Kafka, HDFS and Spark need")
    return java, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"
