"""This machine as doctor looks at it: Java, the installed packages, room on its disk."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from onceover.cli.doctor.outcome import SECONDS, Outcome
from onceover.config import endpoints
from onceover.explain.finding_text import format_list

JAVA = 17
MOVE_TOGETHER = ("pyspark", "pyspark-client", "apache-airflow-providers-apache-spark")
"""Both of pyspark's packages write into one folder, and the provider starts what lies there."""
TOO_LITTLE, LITTLE = 0.05, 0.15
"""Shares of a disk that are free: below the first it is wrong, below the second a note."""
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


def java() -> Iterator[Outcome]:
    """The Java that the embedded stack finds on PATH, and the one that Spark prefers."""
    named = os.environ.get("JAVA_HOME")
    for where, file in (("PATH", shutil.which("java")), ("JAVA_HOME", str(Path(named) / "bin/java") if named else "")):
        if file == "":
            continue
        if file is None or not Path(file).exists():
            yield Outcome("Java", "wrong", f"there is no java on {where}; install Java {JAVA} and let {where} name it")
            continue
        # It prints its version on stderr.
        said = subprocess.run([file, "-version"], capture_output=True, text=True, timeout=SECONDS, check=False).stderr
        found = re.search(r'version "(\d+)', said)
        if found is None or int(found[1]) < JAVA:
            version = f"Java {found[1]}" if found else "of an unknown version"
            yield Outcome("Java", "wrong", f"{file} ({where}) is {version}; Kafka, HDFS and Spark need Java {JAVA}")
        else:
            yield Outcome("Java", "fine", f"{file} is Java {found[1]}")


def pins(lock: Path | None = None) -> Iterator[Outcome]:
    """Whether what is installed here is what requirements/base.txt locks."""
    lock = lock or endpoints.home() / "requirements" / "base.txt"
    try:
        locked = dict(_PIN.findall(lock.read_text()))
    except OSError:
        yield Outcome("packages", "note", f"there is no lock at {lock}, so nobody can say whether versions are right")
        return
    installed = {name: _installed(name) for name in locked}
    other = {
        name: f"{name} {installed[name] or 'missing'}, locked is {locked[name]}" for name in _differ(locked, installed)
    }
    bad = [other[name] for name in MOVE_TOGETHER if name in other]
    rest = [other[name] for name in other if name not in MOVE_TOGETHER]
    mend = f"`make setup`, or `pip install --require-hashes --no-deps -r {lock}`, puts it right"
    if bad:
        yield Outcome("packages", "wrong", f"{'; '.join(bad)}: Spark would mix files of two versions; {mend}")
    if rest:
        yield Outcome("packages", "note", f"not as locked: {format_list(rest, 'package')}; {mend}")
    if not other:
        yield Outcome("packages", "fine", f"{len(locked)} packages are as {lock.parent.name}/{lock.name} locks them")


def disk() -> Iterator[Outcome]:
    """Room where everything local lies: logs, and the data of an embedded stack."""
    folder = endpoints.local_folder()
    there = next(each for each in (folder, *folder.parents) if each.exists())
    usage = shutil.disk_usage(there)
    yield room("disk", str(folder), usage.free, usage.total, "make room, or set ONCEOVER_LOCAL to another disk")


def room(check: str, where: str, free: int, total: int, mend: str) -> Outcome:
    """What so many free bytes of so many mean."""
    share = free / total if total else 0.0
    said = f"{share:.0%} of {total / 2**30:,.1f} GiB free for {where}"
    if share < TOO_LITTLE:
        return Outcome(check, "wrong", f"{said}; {mend}")
    if share < LITTLE:
        return Outcome(check, "note", f"{said}; {mend} before it is full")
    return Outcome(check, "fine", said)


def _differ(locked: Mapping[str, str], installed: Mapping[str, str | None]) -> list[str]:
    return [name for name, version in locked.items() if installed[name] != version]


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
