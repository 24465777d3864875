"""The rules that make a certificate true, each of which can be left out."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Rules:
    """A window counts what landed in it, and every other intact line of its file whose record landed nowhere."""

    refuse: bool = True  # an empty ledger does not register where raw or the aggregates hold anything: it rebuilds
    marker: bool = True  # raw names its ledger, and another one is refused until a person has it take the root
    origin: bool = True  # raw keeps where reading began, and registration and rebuild use it
    extras: bool = True  # a repair counts extras (left out: only what landed)
    nowhere: bool = True  # ... only those that landed in no other window either
    reopen: bool = True  # a certificate names its extras, and a landing of one in any window makes it fail
    wait: bool = True  # no extra of a batch under way is counted: the window waits for that batch
    check_again: bool = True  # publish checks in its transaction that no extra has landed since the claim
    upgrade: bool = True  # the first plan after an upgrade reads nothing that has landed, whatever is stored
    see_cut: bool = True  # detection records a cut too, where no driver lives
    own: bool = True  # only lines of logs that the pipeline read count, also in a rebuild
    expired_in_raw: bool = True  # raw keeps the list of windows whose raw has expired (left out: the ledger keeps it)
    length: bool = True  # bytes that no landing accounts for are a finding
    listing: bool = True  # a file of which the ledger has no window is given one
    epochs: bool = True  # what landed is compared with the log by leader epochs, and read again where they differ
    epoch_in_id: bool = True  # lines and landed ranges carry the epoch (left out: the first content of an ID counts)
    cut_first: bool = True  # nothing is certified while the log shows a cut that is not recorded
    never_less: bool = True  # a repair never publishes less than what was certified
    less_landed: bool = True  # ... but for its extras that have landed in another window since
    give_up_last: bool = True  # ... but for what a person gives up, which Kafka must not have any more
    proof: bool = True  # a repair needs each landing's lines in raw
    two_versions: bool = True  # a person decides on an extra that two versions evaluated and none landed
    versions_in_raw: bool = True  # raw keeps which versions evaluated, and a ledger that lacks one is rebuilt
    newest_tag: bool = True  # a rebuild that meets an ID in two windows counts it where the newest version put it
    released: bool = True  # a line of a release counts only once that release has landed
    # Landings are deleted of a certified window, once Kafka has none of their records any more; the rest is kept.
    deleted_reopens: bool = True  # a later landing of such an offset is never certified from the ledger
    deleted_landed: bool = True  # their ranges are kept by leader epoch: what is in them is no extra
    delete_no_extra: bool = True  # nothing is deleted while a certificate counts one of these records as its extra
    delete_own: bool = True  # ... or the window's file has lines that landed elsewhere or nowhere
    fence: bool = True  # epochs of drivers and tokens of claims are never used twice, also after a restore

    def without(self, *names: str) -> Rules:
        return replace(self, **dict.fromkeys(names, False))


ALL_RULES = Rules()
