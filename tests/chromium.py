"""A Chromium for tests and screenshots: one that is there already, else one from npm's registry, without root.

Order: ONCEOVER_CHROMIUM (a path), `chromium` or `chromium-headless-shell` on PATH, then @sparticuz/chromium by `npm
pack`, inflated by the node in Playwright's wheel. `playwright install` is not used: it needs a host that many networks
block.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import playwright
from playwright.sync_api import Browser, sync_playwright
from tests.npm_packages import NpmPackage, unpack

PACKAGE: Final = NpmPackage(
    "@sparticuz/chromium@153.0.0",
    "sparticuz-chromium-153.0.0.tgz",
    "20e5656fcdcf4118ede85edfb9d6bb9cc1bbb7ffb8b75622fffbcf36a835c3c0",
)
REMEDY: Final = (
    "install npm, or a Chromium (Debian: apt-get install chromium-headless-shell), or name its program in "
    "ONCEOVER_CHROMIUM"
)
_INFLATE: Final = (
    "const [,a,b]=process.argv;const fs=require('fs');fs.createReadStream(a)"
    ".pipe(require('zlib').createBrotliDecompress()).pipe(fs.createWriteStream(b,{mode:0o755}))"
)
ARGUMENTS: Final = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
"""Containers and root have neither a sandbox nor a GPU for it."""


@dataclass(frozen=True, slots=True)
class Chromium:
    """A program and what its environment needs besides."""

    path: str
    environment: dict[str, str] = field(default_factory=dict)


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """Start Chromium, and end it with the block."""
    found = find_chromium()
    with sync_playwright() as started:
        environment: dict[str, str | float | bool] = {**os.environ, **found.environment}
        browser = started.chromium.launch(executable_path=found.path, args=list(ARGUMENTS), env=environment)
        try:
            yield browser
        finally:
            browser.close()


def find_chromium() -> Chromium:
    """Return the first of the ways above. Raises RuntimeError, which says how to get one, if there is none."""
    if named := os.environ.get("ONCEOVER_CHROMIUM"):
        return Chromium(named)
    for name in ("chromium", "chromium-headless-shell"):
        if found := shutil.which(name):
            return Chromium(found)
    packed = unpack(PACKAGE, REMEDY) / "bin"
    with (packed / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (packed / "inflated").exists():
            _inflate(packed)
            (packed / "inflated").touch()
    return Chromium(str(packed / "chromium"), {"LD_LIBRARY_PATH": str(packed / "lib")})


def _inflate(folder: Path) -> None:
    node = Path(playwright.__file__).parent / "driver" / "node"
    for name in ("chromium", "al2023.tar"):
        command = [str(node), "-e", _INFLATE, str(folder / f"{name}.br"), str(folder / name)]
        subprocess.run(command, check=True, timeout=120)
    with tarfile.open(folder / "al2023.tar") as packed:  # nss, nspr and expat, in lib/
        packed.extractall(folder, filter="data")
    for name in ("chromium.br", "al2023.tar.br", "al2023.tar"):
        (folder / name).unlink()
