"""A pipeline's own lines are of logs that its ledger or its root's marker names, from where it began to read them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from onceover.model.offsets import LARGEST_END, KafkaPartition, OffsetRange
from onceover.repair import job

BOTH, MARKED, KNOWN = (KafkaPartition("0badcafe", p) for p in range(3))


def test_own_offsets_begin_at_the_smallest_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "read_origins", lambda ledger, name: {BOTH: 10, KNOWN: 3})

    def read(marker: object) -> tuple[OffsetRange, ...]:
        markers = SimpleNamespace(read_newest_readable=lambda: SimpleNamespace(marker=marker))
        context: Any = SimpleNamespace(ledger=None, name="p", markers=markers)
        return job.read_own_offsets(context)

    known = OffsetRange(KNOWN, 3, LARGEST_END)
    assert read(None) == (OffsetRange(BOTH, 10, LARGEST_END), known)
    assert read(SimpleNamespace(origins={BOTH: 7, MARKED: 0})) == (
        OffsetRange(BOTH, 7, LARGEST_END), OffsetRange(MARKED, 0, LARGEST_END), known,
    )  # fmt: skip
