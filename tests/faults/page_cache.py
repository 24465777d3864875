"""A page cache that a power cut drops: files fall back to what their servers have synced."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

SOURCE = Path(__file__).with_name("synced.c")


@dataclass(frozen=True, slots=True)
class PageCache:
    """The cache of the files below `folders`; their servers are to be started with `environment`. What was there before
    counts as synced. Names and renames are kept, as by a file system with a journal."""

    folders: tuple[Path, ...]
    environment: Mapping[str, str]
    before: Mapping[int, bytes]

    @classmethod
    def watch(cls, folders: Sequence[Path], scratch: Path) -> Self:
        """Watch these folders, whose servers do not run."""
        library, synced = scratch / "synced.so", scratch / "synced"
        synced.mkdir()
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
        before = {file.stat().st_ino: file.read_bytes() for file in _list_files(folders)}
        return cls(tuple(folders), {"LD_PRELOAD": str(library), "ONCEOVER_TEST_SYNCED": str(synced)}, before)

    def count_synced(self) -> int:
        """Return how many files were synced since."""
        return len(os.listdir(self.environment["ONCEOVER_TEST_SYNCED"]))

    def drop(self) -> list[Path]:
        """Give each file the content that was synced last, once its servers are dead; return those that lost some."""
        synced, lost = Path(self.environment["ONCEOVER_TEST_SYNCED"]), []
        for file in _list_files(self.folders):
            number = file.stat().st_ino
            kept = synced / str(number)
            content = kept.read_bytes() if kept.exists() else self.before.get(number, b"")
            if content != file.read_bytes():
                lost.append(file)
                with file.open("r+b") as opened:
                    opened.truncate()
                    opened.write(content)
        return lost


def has_compiler() -> bool:
    return shutil.which("cc") is not None


def _list_files(folders: Sequence[Path]) -> list[Path]:
    return [file for folder in folders for file in sorted(folder.rglob("*")) if file.is_file()]
