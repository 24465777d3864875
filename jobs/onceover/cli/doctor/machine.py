"""The check of this machine: Java, the installed packages, free disk space."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from onceover.cli.doctor.outcome import SECONDS, Outcome
from onceover.config import endpoints
from onceover.model.wording import format_list

JAVA = 17
MOVE_TOGETHER = ("pyspark", "pyspark-client", "apache-airflow-providers-apache-spark")
"""Both of pyspark's packages install into one folder, and the provider starts Spark from there."""
TOO_LITTLE, LITTLE = 0.05, 0.15
"""Free shares of a disk: `wrong` below the first, `note` below the second."""
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


def check_java() -> Iterator[Outcome]:
    """Check the Java on PATH, which the embedded stack uses, and the one in JAVA_HOME, which Spark prefers."""
    named = os.environ.get("JAVA_HOME")
    for where, file in (("PATH", shutil.which("java")), ("JAVA_HOME", str(Path(named) / "bin/java") if named else "")):
        if file == "":
            continue
        if file is None or not Path(file).exists():
            yield Outcome("Java", "wrong", f"there is no java on {where}; install Java {JAVA} and let {where} name it")
            continue
        stderr = subprocess.run([file, "-version"], capture_output=True, text=True, timeout=SECONDS, check=False).stderr
        match = re.search(r'version "(\d+)', stderr)
        if match is None or int(match[1]) < JAVA:
            version = f"Java {match[1]}" if match else "of an unknown version"
            yield Outcome("Java", "wrong", f"{file} ({where}) is {version}; Kafka, HDFS and Spark need Java {JAVA}")
        else:
            yield Outcome("Java", "fine", f"{file} is Java {match[1]}")


def check_pins(lock: Path | None = None) -> Iterator[Outcome]:
    """Check that the installed packages are those that requirements/base.txt locks."""
    lock = lock or endpoints.home() / "requirements" / "base.txt"
    try:
        locked = dict(_PIN.findall(lock.read_text()))
    except OSError:
        yield Outcome("packages", "note", f"there is no lock file {lock}, so versions cannot be checked")
        return
    installed = {name: _find_version(name) for name in locked}
    other = {
        name: f"{name} {installed[name] or 'missing'}, locked is {locked[name]}"
        for name in locked
        if installed[name] != locked[name]
    }
    bad = [other[name] for name in MOVE_TOGETHER if name in other]
    rest = [other[name] for name in other if name not in MOVE_TOGETHER]
    remedy = f"run `make setup`, or `pip install --require-hashes --no-deps -r {lock}`"
    if bad:
        yield Outcome("packages", "wrong", f"{'; '.join(bad)}: Spark would mix files of two versions; {remedy}")
    if rest:
        yield Outcome("packages", "note", f"not as locked: {format_list(rest, 'package')}; {remedy}")
    if not other:
        yield Outcome("packages", "fine", f"{len(locked)} packages are as {lock.parent.name}/{lock.name} locks them")


def check_disk() -> Iterator[Outcome]:
    """Check the disk of the local folder, which holds logs and the embedded stack's data."""
    folder = endpoints.local_folder()
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    usage = shutil.disk_usage(existing)
    yield check_space("disk", str(folder), usage.free, usage.total, "free space, or set ONCEOVER_LOCAL to another disk")


def check_space(check: str, where: str, free: int, total: int, remedy: str) -> Outcome:
    """Return the outcome for `free` of `total` bytes."""
    share = free / total if total else 0.0
    shown = f"{share:.0%} of {total / 2**30:,.1f} GiB free for {where}"
    if share < TOO_LITTLE:
        return Outcome(check, "wrong", f"{shown}; {remedy}")
    if share < LITTLE:
        return Outcome(check, "note", f"{shown}; {remedy} before it is full")
    return Outcome(check, "fine", shown)


def _find_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
