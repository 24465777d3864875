"""A pipeline's restatements beside its raw, so that a rebuilt ledger has them: `ROOT/PIPELINE/restatements/1.json`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime

from onceover.errors import BusyError, TerminalError
from onceover.model.restatement import Restatement
from onceover.raw.layout import Layout
from onceover.raw.sealed_json import seal, unseal
from onceover.raw.store import open_store

_NAME = re.compile(r"([1-9][0-9]{0,8})\.json")


def keep_restatements(address: str, layout: Layout, restatements: Iterable[Restatement]) -> None:
    """Write the file of each of these that has none. A file never changes."""
    files = open_store(address)
    there = {name for name, _ in files.list_files(layout.restatement_folder)}
    for each in restatements:
        if f"{each.number}.json" not in there:
            with suppress(BusyError):  # another process wrote the same file
                values = {"number": each.number, "from": each.start, "to": each.end, "contract_version": each.version,
                          "who": each.who, "why": each.why, "created_at": each.created_at.isoformat()}  # fmt: skip
                files.create(f"{layout.restatement_folder}/{each.number}.json", seal(values))


def read_restatements(address: str, layout: Layout) -> dict[int, Restatement]:
    """Return the restatements that have files, by number, in order. Raises TerminalError, with the path, for a file
    that is not as it was written."""
    files, folder = open_store(address), layout.restatement_folder
    numbers = sorted(int(named[1]) for name, _ in files.list_files(folder) if (named := _NAME.fullmatch(name)))
    return {n: _parse(f"{folder}/{n}.json", n, files.read(f"{folder}/{n}.json")) for n in numbers}


def require_whole(layout: Layout, restatements: Mapping[int, Restatement], known: int = 0) -> None:
    """Raise TerminalError if one is missing between others, but for the first `known` ones, which the ledger has."""
    for number in range(known + 1, max(restatements, default=0)):
        if number not in restatements:
            raise TerminalError(
                f"{layout.restatement_folder}/{number}.json is missing, and the ledger does not have that restatement: "
                "put the file back from a copy of raw, or of a ledger's table onceover.restatement"
            )


def _parse(path: str, number: int, content: bytes | None) -> Restatement:
    try:
        values = unseal(content or b"")
        if values["number"] != number:
            raise ValueError("of another number")
        start, end, created_at = (datetime.fromisoformat(values[each]) for each in ("from", "to", "created_at"))
        return Restatement(number, start, end, values["contract_version"], values["who"], values["why"], created_at)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise TerminalError(
            f"{path} is not as it was written: move it away; the next repair writes it again, if the ledger has that "
            "restatement, else put it back from a copy of raw"
        ) from error
