"""An archive of Spark's Java classes, parsed and verified, so that a driver starts in two thirds of the time.

Java calls it a dynamic class data sharing archive (JEP 350). The installation makes it once, by
`python -m onceover.cli.make_class_archive`; a JVM that cannot use it, being another Java or having other jars on its
path, starts as it would without.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
OPTIONS = "SPARK_SUBMIT_OPTS"
"""The environment variable that spark-submit hands to the JVM of a driver on this machine, and to no other."""
_QUIETLY = "-Xlog:cds=off -Xlog:cds+dynamic=off"  # an archive that does not fit needs no line in a log


def make_driver_options(environment: Mapping[str, str], archive: Path = ARCHIVE) -> dict[str, str]:
    """Return the environment with which a driver's spark-submit uses the archive; empty without an archive, or if
    `environment` names one of its own, to use or to make: Java does not build one on another."""
    given = environment.get(OPTIONS, "")
    has_its_own = "SharedArchiveFile" in given or "ArchiveClassesAtExit" in given
    if not archive.is_file() or has_its_own or set(str(archive)) & set("\"'\\"):
        return {}
    return {OPTIONS: f'{given} "-XX:SharedArchiveFile={archive}" {_QUIETLY}'.lstrip()}
