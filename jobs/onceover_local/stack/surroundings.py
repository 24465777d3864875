"""What a shell may have exported for other work, and what must not reach an embedded stack or those who test on it."""

from __future__ import annotations

import os

from onceover.config.endpoints import PARTS

_OTHERS = ("SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "HADOOP_HOME", "HADOOP_CLASSPATH")


def leave() -> None:
    """Take addresses of a real deployment, another Spark or Hadoop and libpq's settings out of this process and its
    children: whoever starts a stack of its own works on that stack and on nothing else."""
    for name in [*os.environ]:
        if name in _OTHERS or name.startswith("PG") or name in {f"ONCEOVER_{part.upper()}" for part in PARTS}:
            del os.environ[name]
