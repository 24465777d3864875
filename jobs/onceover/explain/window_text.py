"""A window in words: its verdict, losses, repairs, certificate, and the places of its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onceover.explain.finding_text import parse_offset_ranges
from onceover.explain.gather import WindowFacts, describe_expiry
from onceover.model.finding import has_hole
from onceover.model.finding_kinds import failures
from onceover.model.window import format_moment, format_second
from onceover.model.wording import format_records, pluralize

_MAX_LANDINGS = 20

_VERDICTS = {
    "open": "It is open: records may still arrive.",
    "closed": "It has closed and is not certified yet.",
    "failed": "Its aggregates are wrong, or cannot be trusted.",
    "repairing": "A repair holds it right now.",
    "blocked": "Schedules leave it alone until a person requests its repair.",
    "certified": "It is certified: each record is counted exactly once.",
    "damaged": "It is certified, so its aggregates are right; but its raw is damaged, and would not give them again.",
}

NO_LANDING = "No batch has landed records in this window."

_LOST_AS = {"unreadable": "that Kafka holds and no reader gets"}


def describe_state(facts: WindowFacts) -> str:
    """Describe the window's state in a few words: the last known one if the window is not judged now."""
    return f"not judged now, last known as {facts.state}" if _lacks_judgement(facts) else facts.state


def describe_verdict(facts: WindowFacts) -> str:
    """Describe what the window's state means, and what its measures skipped."""
    skipped = [
        f" Measure {measure} skipped {format_records(records)}: its SQL had no exact result."
        for measure, records in facts.rows["skipped"].items()
        if records
    ]
    meaning = _explain_state(facts)
    if _lacks_judgement(facts):
        meaning = f"By the ledger alone, {meaning[:1].lower()}{meaning[1:]}"
    return meaning + "".join(skipped)


def describe_notes(facts: WindowFacts) -> list[str]:
    """List which schema cannot be read, why the window is blocked, its restatements, and why it is not judged now, if
    so."""
    notes = (
        [f"Its values can be read again only once a schema is back: {facts.lost_schema}"] if facts.lost_schema else []
    )
    if why := facts.rows["window"]["blocked_why"]:
        notes.append(f"Blocked because: {why}")
    notes += [
        f"Restated under contract {each['contract_version']} at {format_second(each['created_at'])} by {each['who']}: "
        f"{each['why']}"
        for each in facts.rows["restatements"]
    ]
    if facts.judged is None and facts.state != "open":
        notes.append(f"Not judged now; the ledger's last findings follow: {facts.not_judged}")
    return notes


def _lacks_judgement(facts: WindowFacts) -> bool:
    return facts.judged is None and facts.state not in ("open", "expired")


def _explain_state(facts: WindowFacts) -> str:
    if facts.state == "closed" and failures(row["kind"] for row in facts.findings):
        return "It has closed, and is wrong; detection has not recorded that yet."
    if facts.state == "expired":
        window = facts.rows["window"]
        expiry, since = describe_expiry(window["expired_why"]), "records landed since are counted at least once"
        if window["rows_without_raw"]:
            since = "these rows stay, and records that were read again since are counted in them too, perhaps twice"
        return f"{expiry[0].upper()}{expiry[1:]}: {since}."
    if facts.state == "certified" and has_hole(facts.of_pipeline):
        lost = ", but for an accepted loss," if facts.rows["losses"] else ""
        return (
            f"It is certified{lost} for what was read: each record that was read is counted exactly once. The skipped "
            "offsets may hold others, which no aggregate counts; see the hole."
        )
    if facts.state == "certified" and facts.rows["losses"]:
        return (
            "It is certified but for a loss that was accepted: each record that was not lost is counted exactly once."
        )
    return _VERDICTS.get(facts.state, "")


def describe_loss(row: Mapping[str, Any]) -> str:
    """Describe an accepted loss that may have held records of the window."""
    (lost,) = parse_offset_ranges([(row["generation"], row["kafka_partition"], row["start_offset"], row["end_offset"])])
    cause = _LOST_AS.get(row["kind"], "that Kafka no longer holds")
    return (
        f"{lost}, {pluralize(row['end_offset'] - row['start_offset'], 'offset')} {cause}; "
        f"their records may have belonged here. Accepted by {row['who']} at "
        f'{format_second(row["created_at"])} ("{row["why"]}").'
    )


def describe_marks(row: Mapping[str, Any]) -> str:
    """Return the marks of a landing, for display before its offset ranges."""
    marks = ("late, " if row["late"] else "") + ("" if row["proved"] else "unproved, ")
    marks += f"{row['sink']} sink, " if row["sink"] else ""
    return marks + (f"{row['batches']:,} batches rolled up, " if row["batches"] > 1 else "")


def describe_origin(row: Mapping[str, Any]) -> str | None:
    """Describe by whom and why a landing was released from quarantine; None if it was read from Kafka."""
    release = row["released"]
    return release and f'released from quarantine by {release["who"]} ("{release["why"]}")'


def select_landings(
    rows: Sequence[Mapping[str, Any]], findings: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the landings that fit a page, in order: those that findings name first, then the newest."""
    named = {
        number
        for finding in findings
        for key in ("landings", "unproved_landings")
        for number in finding["evidence"].get(key) or ()
    }
    by_worth = sorted(rows, key=lambda row: (row["landing_id"] not in named, -row["landing_id"]))
    return sorted(by_worth[:_MAX_LANDINGS], key=lambda row: row["landing_id"])


def describe_repair(row: Mapping[str, Any]) -> str:
    """Describe a repair or a restoration: by whom it was requested, its reads and its changes."""
    state = row["state"]
    text = f'Repair {row["repair_id"]}, requested by {row["who"]} ("{row["why"]}"): {state}'
    if row["finished_at"] or row["started_at"]:
        text += f" at {format_second(row['finished_at'] or row['started_at'])}"
    if row["reason"]:
        text += f", {row['reason']}"
    text += "."
    if row["lines_read"] is not None:
        duplicates = pluralize(row["duplicates"] or 0, "duplicate")
        text += f" It read {pluralize(row['lines_read'], 'line')}, {duplicates} among them."
    if row["before"] and row["after"]:
        before, after = row["before"], row["after"]
        same = (
            "" if before["revision"] != after["revision"] else "; the rows were right already and stayed as they were"
        )
        text += (
            f" Before: {format_records(before['control']['records'])} counted (revision {before['revision']}); "
            f"after: {format_records(after['control']['records'])} (revision {after['revision']}){same}."
        )
    return text


def describe_certificate(facts: WindowFacts) -> str:
    """Describe the last certificate, and whether it is valid."""
    rows = facts.rows["certificates"]
    if not rows:
        return "None yet."
    last, version = rows[-1], facts.rows["window"]["version"]
    if last["revoked_at"]:
        validity = f"revoked at {format_second(last['revoked_at'])}: {last['revoked_why']}"
    elif last["version"] != version:
        validity = f"no longer valid: the window is at version {version} since"
    else:
        validity = "valid"
    text = (
        f"Certificate {last['certificate_id']} of {format_second(last['created_at'])}, from {last['basis']}, by "
        f'{last["who"]} ("{last["why"]}"): {validity}. It covers {pluralize(last["records"], "record")} of '
        f"{pluralize(last['landings'], 'landing')} in {last['frozen_length']:,} bytes, at version "
        f"{last['version']}, contract {last['contract_version']}, {last['verdict']}."
    )
    earlier = f" {pluralize(len(rows) - 1, 'earlier one')}." if len(rows) > 1 else ""
    return text + earlier


# By raw store: what shows how long a window's file is, and the store's name.
_OF_RAW = {"hdfs": ("the file's length", "HDFS"), "hbase": ("the end of the file's last cell", "HBase")}


def describe_certificate_basis(facts: WindowFacts) -> str | None:
    """Describe what the window's certificate rests on; None without a certificate."""
    rests_on = facts.rows["rests_on"]
    if rests_on is None:
        return None
    length, store = _OF_RAW.get(facts.raw_store, ("the file's length", facts.raw_store))
    bases = {
        "ledger": f"the ledger's counts and digests, and {length} on {store}",
        "raw": f"every line of the window's raw on {store}, compared with the ledger",
    }
    parts = [bases[rests_on["basis"]]]
    if rests_on["by_value"] is not None:
        by_columns = f"{format_records(rests_on['by_columns'])} counted by the columns in their lines"
        parts.append(
            by_columns + (f", and {rests_on['by_value']:,} by their Kafka values" if rests_on["by_value"] else "")
        )
    if rests_on["evaluated_by"]:
        parts.append(f"lines evaluated by {' and '.join(map(_describe_versions, rests_on['evaluated_by']))}")
    if facts.zone_data:
        parts.append(f"days by time zone data {facts.zone_data}")
    if extras := sum(end - start for _, _, start, end, _ in rests_on["extras"]):
        parts.append(f"{pluralize(extras, 'record')} among them that had landed nowhere")
    if lost := rests_on["lost_offsets"]:
        parts.append(f"accepted losses of {pluralize(lost, 'offset')}")
    versions = rests_on["contract_versions"]
    parts.append(f"contract {' and '.join(map(str, versions))}" if versions else "no landing")
    return f"It rests on {'; '.join(parts)}."


def _describe_versions(versions: Mapping[str, str | None]) -> str:
    if versions["spark"] is None:  # rebuilt
        return "a version that the ledger does not know"
    return f"Onceover {versions['code']} on Spark {versions['spark']} with time zones of {versions['zones']}"


def list_places(facts: WindowFacts) -> list[str]:
    """List the places of the window's raw, compacted file and aggregates, one line each."""
    length = "" if facts.file_length is None else f" ({facts.file_length:,} bytes)"
    select = f"SELECT * FROM {facts.aggregates} WHERE window_start = '{format_moment(facts.window.start)}'"
    _, store = _OF_RAW.get(facts.raw_store, ("", facts.raw_store))
    places = [f"Raw on {store}: {facts.window_file}{length}", f"Aggregates: {select}"]
    if facts.compacted is not None:
        beside = "the text before it has expired" if facts.compacted["replaces_text"] else "beside the text"
        places.insert(1, f"Compacted: {facts.compacted['path']} ({facts.compacted['bytes']:,} bytes), {beside}")
    return places
