"""Restatements: a range of windows put under the contract in force, in the ledger and beside raw."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256

from onceover.context import PipelineContext
from onceover.errors import ChangedPlanError, UsageError
from onceover.ingest.restatements import share_restatements
from onceover.ledger.catalog import RegisteredPipeline, require_in_force
from onceover.ledger.restatements import has_preview, lock_restatements, record_restatement
from onceover.ledger.windows import WindowState, list_windows
from onceover.model.json_text import to_json
from onceover.model.restatement import Restatement
from onceover.model.window import WindowRange, format_moment
from onceover.model.wording import format_list, pluralize
from onceover.raw.restatement_files import keep_restatements


def require_restatable(context: PipelineContext, registered: RegisteredPipeline, window_range: WindowRange) -> str:
    """Return the token of a restatement of this range under the contract in force: with other or changed windows, or
    under another contract, it has another token; an open window changes all the time. Raises UsageError for the first
    version of a contract, for a range without windows, and for expired windows."""
    if registered.contract_version == 1:
        raise UsageError(
            f"{registered.name} has had one contract since its start, so all windows are of it; change "
            f"pipelines/{registered.name}.toml and run `onceover pipelines migrate {registered.name}` first"
        )
    windows = list_windows(context.ledger, registered.name, None, window_range.start, window_range.end)
    if not windows:
        raise UsageError(f"{registered.name} has no window there; see `onceover windows {registered.name}`")
    expired = [format_moment(row["window_start"]) for row in windows if row["state"] == WindowState.EXPIRED]
    if expired:
        raise UsageError(
            f"raw of {format_list(expired, 'window')} has expired, so its records cannot be evaluated again; choose a "
            "range without these windows"
        )
    versions = [[row["window_start"], None if row["state"] == WindowState.OPEN else row["version"]] for row in windows]
    return sha256(to_json([registered.name, registered.contract_version, versions]).encode()).hexdigest()


def is_restated(registered: RegisteredPipeline, window_range: WindowRange) -> bool:
    """Return whether the last restatement is of this range, under the contract in force: a repair finishes it."""
    wanted = (window_range.start, window_range.end, registered.contract_version)
    return any((last.start, last.end, last.version) == wanted for last in registered.restatements[-1:])


def restate_range(
    context: PipelineContext, registered: RegisteredPipeline, window_range: WindowRange, who: str, why: str, token: str
) -> None:
    """Record that the range's windows have the contract in force, as a preview with this token showed it; a repair then
    publishes them. Changes nothing if the last restatement says the same.

    Raises ChangedPlanError if there is no such preview, or the windows or the contract changed since, UsageError as
    `require_restatable`.
    """
    context.require_own_root()
    share_restatements(context)
    with context.ledger.transaction():
        lock_restatements(context.ledger)
        require_in_force(context.ledger, registered)
        is_shown = has_preview(context.ledger, registered.name, token)
        if is_shown and is_restated(registered, window_range):
            return
        if not is_shown or token != require_restatable(context, registered, window_range):
            raise ChangedPlanError(
                f"windows of {registered.name} changed since you looked, or the token is not that of a dry run of this "
                "range; nothing was changed, look again with --dry-run"
            )
        restated = Restatement(
            len(registered.restatements) + 1,
            window_range.start,
            window_range.end,
            registered.contract_version,
            who,
            why,
            datetime.now(UTC),
        )
        record_restatement(context.ledger, registered.name, restated)
    keep_restatements(context.raw_address, context.layout, [restated])


def explain_refused(pipeline: str, lines: int, version: int) -> str:
    """Return why a restated window is not published, of which version `version` moves or refuses records."""
    return (
        f"version {version} of the contract gives {pluralize(lines, 'line')} of the window another event time, or "
        "quarantines them, and a restatement changes keys and measures only: correct the contract, run `onceover "
        f"pipelines migrate {pipeline}`, and restate the window under that one"
    )
