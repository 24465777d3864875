"""Single files from npm's registry, by `npm pack` into `.local/npm`, each held to the hash that this project tried."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class NpmPackage:
    """A package's exact version, the name of its archive, and the archive's SHA-256."""

    name: str
    archive: str
    sha256: str


AXE: Final = NpmPackage(
    "axe-core@4.14.1",
    "axe-core-4.14.1.tgz",
    "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745",
)


def unpack(package: NpmPackage, remedy: str) -> Path:
    """Return the folder of the package's files; fetches them once. Raises RuntimeError, with that remedy, without
    npm."""
    home = ROOT / ".local" / "npm"
    folder = home / package.archive.removesuffix(".tgz")
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two lanes may want it at once
        stamp = folder / "sha256"
        if not stamp.exists() or stamp.read_text() != package.sha256:
            archive = _fetch(package, home, remedy)
            shutil.rmtree(folder, ignore_errors=True)
            with tarfile.open(archive) as packed:
                packed.extractall(folder, filter="data")
            archive.unlink()
            stamp.write_text(package.sha256)
    return folder / "package"


def _fetch(package: NpmPackage, home: Path, remedy: str) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError(f"tests of the page need {package.name}, and npm to fetch it; {remedy}")
    subprocess.run([npm, "pack", "--silent", package.name], cwd=home, check=True, capture_output=True, timeout=300)
    archive = home / package.archive
    with archive.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != package.sha256:
        archive.unlink()
        raise RuntimeError(f"{package.name} has another content than this project tried; nothing was unpacked")
    return archive
