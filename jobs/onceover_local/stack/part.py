"""What one process of the embedded stack must be able to say of itself, and what is known of it while it runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, Literal, Protocol
from urllib.request import ProxyHandler, build_opener

from onceover.errors import ConfigurationError
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
"""How the servers that log by log4j 1 do it."""

State = Literal["up", "unready", "dead", "down"]
"""Answers; runs but does not answer; was started and is gone; was not started."""


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
    """One process. `prepare` may be called again at any time and does only what was not yet done."""

    name: str
    ports: tuple[str, ...]
    start_s: float
    stop_s: float
    process: Process

    def prepare(self, say: Say) -> Command:
        """Write its configuration, make its data folder at the first start; returns what to run."""

    def ready(self) -> bool:
        """Whether it answers and can do its work. Quick; never raises for a part that is just starting."""

    def finish(self, say: Say) -> None:
        """What is to be done once it is ready, before anybody uses it. May be repeated."""

    def address(self) -> str:
        """Where it answers, as a person would want to read it."""

    def endpoints(self) -> Mapping[str, str]:
        """What it adds to endpoints.json."""


def get_json(address: str) -> dict[str, Any]:
    """The JSON object that a process answers there with; an empty one if it does not answer."""
    try:
        with _direct.open(address, timeout=2) as answer:
            found: dict[str, Any] = json.load(answer)
    except (OSError, HTTPException, ValueError):
        return {}
    return found


_direct = build_opener(ProxyHandler({}))  # a proxy of the environment has no business with loopback


def java() -> tuple[str, ...]:
    """The java on PATH, as a small server wants it: little collected, little compiled, up a quarter sooner.

    Raises ConfigurationError if there is none.
    """
    found = shutil.which("java")
    if found is None:
        raise ConfigurationError("there is no `java` on PATH; Kafka, HDFS and Spark need Java 17")
    return found, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"
