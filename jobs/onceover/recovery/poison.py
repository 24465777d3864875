"""The poison records that a lost ledger knew, by their lines in quarantine: to evaluate one again might never end."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from onceover.context import PipelineContext
from onceover.lines.contract_names import name_contract
from onceover.lines.line_file import read_intact
from onceover.model.contract import Contract
from onceover.model.poison import SQL_FAILED, SQL_TOO_SLOW, PoisonRecord

log = logging.getLogger(__name__)
MOST: Final = 10_000
"""Of a pipeline: a wrong expression refuses each record, and those are no poison."""


def list_quarantined_poison(context: PipelineContext, contracts: Sequence[Contract]) -> list[PoisonRecord]:
    """Return the records of these versions that are in quarantine because their SQL failed or was too slow. An
    exception did it to most of them, and the reason is right for these as well."""
    found = list(islice(_search(context, contracts), MOST + 1))
    if len(found) > MOST:
        log.warning("quarantine has over %d records whose SQL failed; only those that were too slow are known", MOST)
        slow = (each for each in _search(context, contracts) if each.reason.startswith(SQL_TOO_SLOW))
        found = list(islice(slow, MOST))
    return found


def _search(context: PipelineContext, contracts: Sequence[Contract]) -> Iterator[PoisonRecord]:
    versions = {name_contract(contract, version): version for version, contract in enumerate(contracts, 1)}
    for day, length in context.files.list_quarantine_days().items():
        path = context.layout.quarantine_file(day)
        for line in read_intact(context.files.read_bytes(path, 0, length)):
            version, record, reason = versions.get(line.contract), line.record, line.reason or ""
            if version and reason.startswith((f"{SQL_FAILED}: ", f"{SQL_TOO_SLOW}: ")):
                yield PoisonRecord(record.source, record.offset, version, reason, "as its line in quarantine says")
