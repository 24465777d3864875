"""The jars of each part, or the archive of its program: Maven coordinates, locked with hashes, fetched once by jgo.

`python -m onceover_local.stack.jars` resolves the coordinates in ROOTS again and rewrites the locks beside this file.
A start resolves nothing: it takes exactly the locked jars, from the local Maven repository or, at first, from the net.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from onceover.errors import TerminalError, TransientError
from onceover_local.stack.place import Say

ROOTS: Final = {
    "kafka": ("org.apache.kafka:kafka_2.13:4.2.1", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"),
    "hdfs": (
        "org.apache.hadoop:hadoop-hdfs:3.5.0",
        "org.apache.hadoop:hadoop-hdfs-client:3.5.0",
        "org.apache.hadoop:hadoop-common:3.5.0",
        "org.slf4j:slf4j-reload4j:1.7.36",
    ),
    "kerberos": ("org.apache.hadoop:hadoop-minikdc:3.5.0", "org.slf4j:slf4j-reload4j:1.7.36"),
    "hbase": ("org.apache.hbase:hbase-thrift:2.6.1", "org.slf4j:slf4j-reload4j:1.7.36"),
    "registry": ("io.apicurio:apicurio-registry-app:3.0.9:all:tar.gz",),
    "yarn": (
        "org.apache.hadoop:hadoop-yarn-server-resourcemanager:3.5.0",
        "org.apache.hadoop:hadoop-yarn-server-nodemanager:3.5.0",
        "org.apache.hadoop:hadoop-yarn-server-timelineservice:3.5.0",
        "org.apache.hadoop:hadoop-hdfs-client:3.5.0",
        "org.slf4j:slf4j-reload4j:1.7.36",
    ),
}
_OF_YARN: Final = ("hadoop-yarn", "guice")
_NOT_NEEDED: Final = (
    "mockito",
    "byte-buddy",
    "objenesis",
    "macos",
    "kqueue",
    "-sctp",
    "-udt",
    "-rxtx",
    "codec-memcache",
    "mapreduce",
    "hadoop-yarn",
    "hadoop-distcp",
    "guice",
    "mssql-jdbc",
    "HikariCP",
    "ehcache",
    "jets3t",
    "jsch",
    "com.squareup",
)
_ARCHIVE: Final = ":tar.gz"
_AT_ONCE: Final = 8
_SAY_EVERY: Final = 20
_PAUSES_S: Final = (1.0, 3.0, 9.0)
"""Before the second and each later try of a download."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One locked file of the Maven repository."""

    coordinate: str  # group:artifact:version[:classifier[:packaging]]
    sha256: str

    @property
    def name(self) -> str:
        _, artifact, version, *more = self.coordinate.split(":")
        return f"{'-'.join((artifact, version, *more[:1]))}.{more[1] if len(more) > 1 else 'jar'}"


def read_locked(part: str) -> list[Jar]:
    """Return the part's jars in class path order."""
    lines = _find_lock_file(part).read_text().splitlines()
    return [Jar(*line.split()) for line in lines if line and not line.startswith("#")]


def fetch_class_path(part: str, say: Say) -> str:
    """Fetch the part's missing jars and return all as a Java class path, each checked against its lock.

    Raises TransientError if a jar cannot be fetched, TerminalError if its hash differs from the lock.
    """
    return ":".join(str(place) for place in _fetch_locked(part, say))


def fetch_archive(part: str, say: Say) -> Path:
    """Fetch the part's archive if it is missing and return its place. Raises as `fetch_class_path`."""
    (place,) = _fetch_locked(part, say)
    return place


def _fetch_locked(part: str, say: Say) -> list[Path]:
    repository = _make_context()
    jars = read_locked(part)
    places = {jar: _find_place(repository, jar) for jar in jars}
    missing = [jar for jar in jars if not _is_right(places[jar], jar)]
    if missing:
        _fetch(missing, places, say, part)
    return [places[jar] for jar in jars]


def _fetch(missing: list[Jar], places: dict[Jar, Path], say: Say, part: str) -> None:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        waiting = [pool.submit(_fetch_one, jar, places[jar]) for jar in missing]
        try:
            for count, each in enumerate(as_completed(waiting), start=1):
                each.result()
                if count % _SAY_EVERY == 0 or count == len(missing):
                    say(part, f"fetched {count} of {len(missing)} files")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _fetch_one(jar: Jar, place: Path) -> None:
    """Fetch a jar into a scratch folder, then move it: jgo writes in place, and a kill would leave half a jar. Raises
    TransientError, or TerminalError for a wrong hash."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".fetch-") as scratch:
        arrived = _download(jar, Path(scratch))
        if (sha256 := _compute_sha256(arrived)) != jar.sha256:
            raise TerminalError(
                f"{jar.coordinate} has SHA-256 {sha256}, locked is {jar.sha256}; do not use it, check the mirror"
            )
        arrived.replace(place)


def _download(jar: Jar, scratch: Path) -> Path:
    """Download the jar into that folder, with retries. Raises TransientError."""
    pauses = iter(_PAUSES_S)
    while True:
        try:
            # A folder for each try: jgo would take half a jar of the last try for the whole.
            arrived: Path = _make_artifact(_make_context(Path(tempfile.mkdtemp(dir=scratch))), jar).resolve()
        except Exception as error:  # whatever requests, jgo or the network raise
            pause_s = next(pauses, None)
            if pause_s is None:
                raise TransientError(
                    f"could not fetch {jar.coordinate} ({type(error).__name__}: {error}); "
                    "check the network, or jgo's settings for a mirror, and start again: fetched files are kept"
                ) from error
            time.sleep(pause_s)
        else:
            return arrived


def _is_right(place: Path, jar: Jar) -> bool:
    if not place.exists():
        return False
    if _compute_sha256(place) == jar.sha256:
        return True
    place.unlink()  # half a file that an interrupted download left
    return False


def _make_context(repository: Path | None = None) -> Any:
    from jgo.config import GlobalSettings  # costs 0.3 s, and only a start needs it
    from jgo.maven import MavenContext

    settings = GlobalSettings.load()
    return MavenContext(repo_cache=repository or settings.repo_cache, remote_repos=settings.repositories or None)


def _make_artifact(context: Any, jar: Jar) -> Any:
    group, artifact, version, *more = jar.coordinate.split(":")
    return context.project(group, artifact).at_version(version).artifact(*more)


def _find_place(context: Any, jar: Jar) -> Path:
    place: Path = _make_artifact(context, jar).cached_path
    return place


def _compute_sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _find_lock_file(part: str) -> Path:
    return Path(__file__).with_name("locks") / f"{part}.txt"


def _make_lock(part: str) -> Iterable[str]:
    import jgo

    def resolve(root: str) -> Iterable[Any]:
        has_all_within = root.endswith(_ARCHIVE)
        return [_make_artifact(_make_context(), Jar(root, ""))] if has_all_within else jgo.resolve(root)

    yield f"# From {' '.join(ROOTS[part])} by `python -m onceover_local.stack.jars`; in class path order."
    seen: set[str] = set()
    not_needed = [word for word in _NOT_NEEDED if part != "yarn" or word not in _OF_YARN]
    # One root at a time, the first wins: resolved together, one root would change another's versions.
    for artifact in [artifact for root in ROOTS[part] for artifact in resolve(root)]:
        what = f"{artifact.groupId}:{artifact.artifactId}:{artifact.classifier}"
        if what in seen or any(word in what for word in not_needed):
            continue
        seen.add(what)
        packaging = "" if artifact.packaging == "jar" else artifact.packaging
        names = (artifact.groupId, artifact.artifactId, artifact.version, artifact.classifier, packaging)
        yield f"{':'.join(filter(None, names))} {_compute_sha256(artifact.resolve())}"


def main() -> None:
    for part in ROOTS:
        text = "\n".join(_make_lock(part)) + "\n"
        scratch = _find_lock_file(part).with_suffix(".new")
        scratch.parent.mkdir(exist_ok=True)
        scratch.write_text(text)
        shutil.move(scratch, _find_lock_file(part))


if __name__ == "__main__":
    main()
