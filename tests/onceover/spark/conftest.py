"""One local Spark session for all tests of a run: made as the jobs make theirs, on two cores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from onceover.spark.session import build


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYSPARK_SUBMIT_ARGS", "--master local[2] pyspark-shell")
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = build("tests")
        try:
            yield session
        finally:
            session.stop()
