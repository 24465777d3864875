"""The rules that make a certificate true, each of which can be left out."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True)
class Rules:
    """R0 root, R1 orphans, R2 detection, R3 cut logs, R4 fencing."""

    # R0: the raw root has one ledger.
    refuse: bool = True  # an empty ledger does not register where raw holds lines or the aggregates hold rows
    marker: bool = True  # the marker names the ledger, and any other is refused
    origin: bool = True  # the marker keeps the origin, and registration and rebuild use it
    take_root: bool = True  # a person can give the root to another ledger
    # R1: a line that no landing accounts for and that Kafka does not hold is adopted, or its window is refused.
    adopt: bool = True
    pending: bool = True  # a certificate names the unlanded offsets that its frozen bytes hold
    adopt_apart: bool = True  # adoption is a transaction of its own, for open windows too
    open_idle: bool = True  # open windows with unaccounted bytes are read whenever no batch is in flight
    open_any: bool = True  # open windows are read at any hole, not only with unaccounted bytes and an expired hole
    ask_kafka: bool = True  # what will be read again is what Kafka holds now, not what is beyond the reach
    loss_asks_raw: bool = True  # a loss is refused where raw holds the record
    loss_reads_raw: bool = True  # ... where a line of it is found, not wherever unaccounted bytes are
    loss_reads_certified: bool = True  # ... in files of windows that are certified, too
    loss_reads_expired: bool = True  # ... of windows whose raw has expired
    loss_reads_unknown: bool = True  # ... and files that the ledger has no window for
    adopt_expired: bool = True  # an expired window's file is read for adoption, though nothing is published
    loss_waits: bool = True  # a loss is refused while a begun batch covers it
    loss_below_end: bool = True  # a loss is refused at or beyond the log's end, where a cut log may grow again
    give_up: bool = True  # a window that has lost lines for good is declared expired
    give_up_asks_kafka: bool = True  # ... unless Kafka still holds one of them
    adopt_own: bool = True  # only lines of logs that the ledger or the marker names are adopted
    rebuild_own: bool = True  # ... and land by a rebuild
    found_again: bool = True  # what lands or is adopted is no loss, and certificates that state it lose their version
    lower_origin: bool = True  # an adoption below the origin lowers the origin
    # R2: bytes that no landing accounts for are a finding.
    length: bool = True
    listing: bool = True  # a file without a window is given one
    # R3: what landed is compared with the log by leader epochs.
    epochs: bool = True
    unknown_epochs: bool = True  # ... and by content where these are unknown, after a rebuild or an adoption
    last_landed: bool = True  # of what landed under one offset the last is compared, not the newest epoch
    keep_diverged: bool = True  # what the log was seen to have, and lost unread, blocks until a person accepts that
    cut_is_hole: bool = True  # nothing is certified until what has diverged is read again
    landing_compares: bool = True  # a landing under an offset that landed with another content is a conflict
    settle_whole: bool = True  # a suspicion is settled only once every file concerned holds what landed
    stray_is_conflict: bool = True  # a line whose offset landed elsewhere with another content is a conflict
    decide_all: bool = True  # a decision reopens each window of the conflict, and adopts what was chosen
    decided_late: bool = True  # a landing of a decided offset since the certificate is a finding
    # R4: epochs and claims are never used twice, also after a restore.
    fence: bool = True

    def without(self, *names: str) -> Rules:
        return replace(self, **dict.fromkeys(names, False))


ALL_RULES = Rules()
BEFORE = Rules(**{field.name: field.name in ("length", "fence") for field in fields(Rules)})
"""The rules before issue 16."""
