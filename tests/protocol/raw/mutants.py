"""Each rule left out, in the smallest world that shows why it is there: what becomes of that world."""

from __future__ import annotations

WRONG = {
    "origin": "loss3-in",
    "extras": "crash2-in",
    "reopen": "upgrade-last-in",
    "wait": "two-in",
    "check_again": "deleted-stray-in",
    "upgrade": "upgrade-out",
    "own": "foreign-in",
    "expired_in_raw": "expired-loss-in",
    "length": "crash2-in",
    "epochs": "cut-ex-in",
    "epoch_in_id": "cut-ex-in",
    "cut_first": "cut-ex-in",
    "give_up_last": "lost-in",
    "proof": "lost-in",
    "two_versions": "upgrade-twice-in",
    "versions_in_raw": "restore-upgrade-out",
    "newest_tag": "upgrade-loss-in",
    "released": "release-upgrade-in",
    "delete_no_extra": "deleted-stray-in",
    "delete_own": "deleted-stray-in",
}
"""A certificate is false."""
STUCK = {
    "nowhere": "upgrade-loss-in",
    "listing": "crash2-in",
    "less_landed": "upgrade-last-in",
    "deleted_landed": "deleted-upgrade-in",
}
"""A state has no way out."""
PRUDENCE = {
    "refuse": "loss-in",  # a ledger that registers over a used root counts right too: what raw holds becomes extras
    "marker": "loss-in",  # two ledgers count right too, but retention would move away the other's files
    "see_cut": "cut-ex-in",  # needs an ingest that never starts again, else its next plan records the cut
    "never_less": "lost-in",  # the proof says the same of what landed
    "deleted_reopens": "deleted-out",  # digests show the second landing
    "fence": "both-in",  # digests show what an old driver or repair adds after a restore
}
"""Rules that are not missed in any small world, each with one of them."""
