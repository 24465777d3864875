"""The variables that a shell may export for other work and that must not reach an embedded stack or its tests."""

from __future__ import annotations

import os

from onceover.config.endpoints import PARTS, SPARK_SECRET

_OTHERS = (
    SPARK_SECRET,
    f"{SPARK_SECRET}_FILE",
    "SPARK_HOME",
    "SPARK_CONF_DIR",
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
    "HADOOP_HOME",
    "HADOOP_CLASSPATH",
    "ONCEOVER_HDFS_AUTH",
    "KRB5_CONFIG",
    "KRB5_CLIENT_KTNAME",
    "KRB5CCNAME",
)


def leave() -> None:
    """Remove addresses of a real deployment, another Spark or Hadoop, a login and libpq's settings from this process
    and its children, so that they use the embedded stack only."""
    for name in [*os.environ]:
        if name in _OTHERS or name.startswith("PG") or name in {f"ONCEOVER_{part.upper()}" for part in PARTS}:
            del os.environ[name]
