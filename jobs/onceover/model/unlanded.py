"""Intact lines of a window that no landing accounts for: those whose records Kafka still holds, and orphans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from onceover.model.batch import LandingPart
from onceover.model.offsets import OffsetRange


@dataclass(frozen=True, slots=True)
class Unlanded:
    """The unlanded IDs of one window's files, as the fewest ranges that hold only them.

    `pending`: Kafka's log held the offset after the files were frozen, so that ingest or a refill lands the record.
    `orphans`: Kafka does not hold it, and the line is all there is of the record; `parts` are their counts and digests.
    `beyond`: nor has any log reached it that the ledger knows of, and a person has to say whose line it is.
    `conflicts` counts further IDs without a record in Kafka, whose lines differ in content or in window, `foreign` IDs
    of a generation or Kafka partition that the pipeline never read. `unknown` are contracts of these lines that the
    ledger does not know, foreign lines left out: which contract counts for their IDs is not known either.
    """

    pending: tuple[OffsetRange, ...] = ()
    orphans: tuple[OffsetRange, ...] = ()
    parts: tuple[LandingPart, ...] = ()
    conflicts: int = 0
    beyond: tuple[OffsetRange, ...] = ()
    foreign: int = 0
    unknown: tuple[str, ...] = ()


NOTHING: Final = Unlanded()
