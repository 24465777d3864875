"""The contracts that a pipeline's lines name, beside its raw: `ROOT/PIPELINE/contracts/V1-FINGERPRINT.json`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from onceover.errors import BusyError
from onceover.raw.hdfs import SmallFiles
from onceover.raw.layout import Layout


def keep_contracts(address: str, layout: Layout, names: Iterable[str], describe: Callable[[str], bytes]) -> None:
    """Write the file of each of these contracts that has none; `describe` returns its content. A file never changes."""
    files = SmallFiles(address)
    there = frozenset(files.names(layout.contract_folder))
    for name in names:
        if f"{name}.json" not in there:
            with suppress(BusyError):  # another process wrote the same file
                files.create(f"{layout.contract_folder}/{name}.json", describe(name))
