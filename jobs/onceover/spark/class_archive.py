"""The options of a driver's Java: an archive of Spark's classes, parsed and verified, and how a brief job is compiled.

With the archive a driver starts in two thirds of the time. Java calls it a dynamic class data sharing archive (JEP
350). The installation makes it once, by `python -m onceover.cli.make_class_archive`; a JVM that cannot use it, being
another Java or having other jars on its path, starts as it would without.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
OPTIONS = "SPARK_SUBMIT_OPTS"
"""The environment variable that spark-submit hands to the JVM of a driver on this machine, and to no other."""
_QUICKLY = "-XX:TieredStopAtLevel=1"
_KERBEROS = "-Djava.security.krb5.conf"
_QUIETLY = "-Xlog:cds=off -Xlog:cds+dynamic=off"  # an archive that does not fit needs no line in a log


def make_driver_options(
    environment: Mapping[str, str], archive: Path = ARCHIVE, *, is_brief: bool = False
) -> dict[str, str]:
    """Return the environment with which a driver's spark-submit reads Kerberos' settings, and uses the archive, unless
    there is none, or `environment` names one of its own, to use or to make: Java does not build one on another. With
    `is_brief`, Java compiles once and quickly, not again and better what runs often; options in `environment` hold."""
    given = environment.get(OPTIONS, "")
    options = [_QUICKLY] if is_brief and _QUICKLY not in given else []
    options += [] if _KERBEROS in given else make_kerberos_options(environment)
    has_its_own = "SharedArchiveFile" in given or "ArchiveClassesAtExit" in given
    if archive.is_file() and not has_its_own and not set(str(archive)) & set("\"'\\"):
        options += [f'"-XX:SharedArchiveFile={archive}"', _QUIETLY]
    return {OPTIONS: " ".join([*options, given]).rstrip()} if options else {}


def make_kerberos_options(environment: Mapping[str, str]) -> list[str]:
    """Return the option by which Java reads the file that KRB5_CONFIG names, as other programs do by themselves."""
    kerberos = environment.get("KRB5_CONFIG")
    return [f'"{_KERBEROS}={kerberos}"'] if kerberos else []
