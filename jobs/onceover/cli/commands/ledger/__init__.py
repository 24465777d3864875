"""`onceover ledger`: the ledger's schema and size, the recovery of a lost ledger from raw, and a raw root's owner."""

from __future__ import annotations

from onceover.cli.lazy import make_group

app = make_group(
    "ledger",
    __name__,
    "Maintain",
    ("migrate", "rebuild", "roll-up", "take-root"),
    "Upgrade the ledger's schema, keep it small, rebuild a lost ledger, or take a raw root over.",
)
