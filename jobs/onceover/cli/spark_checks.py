"""A local Spark session that checks SQL, for as long as a block lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from onceover.cli.output import get_stderr
from onceover.spark.session import build


@contextmanager
def open_spark(name: str) -> Iterator[Any]:
    """Start Spark, and stop it after the block; a terminal shows that it works."""
    with get_stderr().status("Spark checks the SQL ..."):
        spark = build(name)
        try:
            yield spark
        finally:
            with suppress(Exception):  # stopping fails if the JVM was interrupted
                spark.stop()
