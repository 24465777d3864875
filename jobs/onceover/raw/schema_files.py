"""The schemas that values in raw were written with, beside raw: `ROOT/PIPELINE/schemas/ID.json`.

A schema is kept before the first line whose value it wrote, so that repairs need no registry.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Self

from onceover.config.registry import fetch_schema
from onceover.errors import BusyError, TerminalError
from onceover.formats.undecodable import UndecodableError
from onceover.raw.sealed_json import seal, unseal
from onceover.raw.store import RawStore, open_store

_NAME: Final = re.compile(r"(0|[1-9][0-9]{0,9}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.json")
_REMEDY: Final = "put it back from a copy of raw; or restart ingest, which asks the registry for it"
_MOST_READ: Final = 2_000
_read: dict[tuple[str, int | str], str] = {}
"""What this process has read, by folder and ID or GUID: a file never changes."""


@dataclass(frozen=True, slots=True)
class SchemaFiles:
    """The folder of schemas in the raw store at that address, as plain values that travel to Spark's Python workers.
    Its schemas are of one `kind`, `avro` or `protobuf`.
    Where a `registry` is named, it is asked for other schemas, which the folder `keeps`. Without one, a value of
    another schema is an error, or, if `may_miss`, goes to quarantine."""

    address: str
    folder: str
    kind: str = ""
    registry: str = ""
    keeps: bool = False
    may_miss: bool = False

    def ask(self, registry: str, *, keep: bool) -> Self:
        return replace(self, registry=registry, keeps=keep)

    def read(self, name: int | str) -> str:
        """Return the schema of that ID or GUID. Raises TerminalError if raw lacks it and there is no registry,
        UndecodableError if the registry lacks it too, RegistryAwayError if it does not answer."""
        known = (f"{self.address}{self.folder}", name)
        if known not in _read:
            if len(_read) >= _MOST_READ:
                _read.clear()
            _read[known] = self._find(name)
        return _read[known]

    def read_by_text(self, name: str) -> str:
        """Return the schema of the name that `list_names` has. Raises as `read`."""
        return self.read(int(name) if name.isdigit() else name)

    def list_names(self) -> set[str]:
        """Return the IDs and GUIDs of all schemas in the folder."""
        names = (_NAME.fullmatch(name) for name, _ in _open(self.address).list_files(self.folder))
        return {name[1] for name in names if name}

    def _find(self, name: int | str) -> str:
        path, files = f"{self.folder}/{name}.json", _open(self.address)
        content = files.read(path)
        if content is None:
            if self.may_miss:
                raise UndecodableError(f"schema {name} is not in raw")
            if not self.registry:
                raise TerminalError(f"{path} is missing: {_REMEDY}")
            text = fetch_schema(self.registry, name, self.kind)
            try:
                if self.keeps:
                    files.create(path, seal({"id": name, "schema": text}))
                return text
            except BusyError:  # another task has just written it
                content = files.read(path) or b""
        try:
            values = unseal(content)
            if values["id"] != name or not isinstance(values["schema"], str):
                raise ValueError("of another ID")
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise TerminalError(f"{path} is not as it was written: move it away, then {_REMEDY}") from error
        return str(values["schema"])


@lru_cache(maxsize=8)
def _open(address: str) -> RawStore:
    """Return the store, opened once in this process."""
    return open_store(address)
