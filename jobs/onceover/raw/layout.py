"""The paths of a pipeline's files in the raw store, by window, day and digest. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from onceover.model.digest import Digest
from onceover.model.raw_file import COMPACTED


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of one pipeline's files below its raw root."""

    raw_root: str
    pipeline: str

    def window_file(self, window_start: datetime) -> str:
        return f"{self.day_folder(window_start.astimezone(UTC).date())}/{window_start.astimezone(UTC):%H%M}.log"

    def compacted_file(self, window_start: datetime, digest: Digest) -> str:
        """Return the path beside the window file, named for the digest of its records."""
        hashes = str(digest).partition("records ")[2]
        return f"{self.window_file(window_start).removesuffix('log')}{hashes}{COMPACTED}"

    def quarantine_file(self, day: date) -> str:
        return f"{self.raw_root}/{self.pipeline}/quarantine/{day.isoformat()}.log"

    def aside(self, path: str, number: int) -> str:
        """Return the path where an expired file waits for its deletion."""
        root = f"{self.raw_root}/{self.pipeline}"
        return f"{root}/expired{path.removeprefix(root)}.{number}"

    @property
    def expired_windows(self) -> str:
        """Return the path of the list of windows whose text has expired."""
        return f"{self.raw_root}/{self.pipeline}/expired/windows.log"

    def damaged(self, path: str) -> str:
        """Return the path that the names of a damaged file begin with, once it was replaced."""
        root = f"{self.raw_root}/{self.pipeline}"
        return f"{root}/damaged{path.removeprefix(root)}"

    @property
    def compacting(self) -> str:
        """Return the folder of compacted files that are not complete yet, or not proved."""
        return f"{self.raw_root}/{self.pipeline}/compacting"

    @property
    def marker_folder(self) -> str:
        """Return the folder of the markers, which say whose the raw root is."""
        return f"{self.raw_root}/{self.pipeline}/marker"

    @property
    def contract_folder(self) -> str:
        """Return the folder of the contracts that lines name."""
        return f"{self.raw_root}/{self.pipeline}/contracts"

    @property
    def restatement_folder(self) -> str:
        """Return the folder of the restatements of windows."""
        return f"{self.raw_root}/{self.pipeline}/restatements"

    @property
    def schema_folder(self) -> str:
        """Return the folder of the schemas that values were written with."""
        return f"{self.raw_root}/{self.pipeline}/schemas"

    def day_folder(self, day: date) -> str:
        return f"{self.raw_root}/{self.pipeline}/{day.isoformat()}"
