"""Which Spark a job uses that was started by a plain `python`. No JVM is started here."""

from __future__ import annotations

from pathlib import Path

import pytest

from onceover.errors import ConfigurationError
from onceover.spark import session

pytestmark = pytest.mark.spark


def test_cluster_that_smuggles_options_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "MASTER", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ONCEOVER_SPARK", "spark://host:7077 --conf spark.jars=x")
    with pytest.raises(ConfigurationError, match="set ONCEOVER_SPARK to spark://HOST:PORT"):
        session.build("test")
