"""Results of repairs among Airflow's own metrics: sent where `[metrics]` of its configuration says, nowhere by
default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk.observability import stats

if TYPE_CHECKING:
    from onceover.repair.confirmation import Confirmation


def count(confirmation: Confirmation) -> None:
    """Add one request's results to the counters. A cleared task counts again."""
    outcome = {
        "windows_confirmed": len(confirmation.confirmed),
        "windows_revoked": len(confirmation.revoked),
        "windows_failed": len(confirmation.failed),
        "windows_blocked": len(confirmation.newly_blocked),
        "duplicates_removed": confirmation.duplicates,
        "lines_read": confirmation.lines_read,
    }
    for name, number in outcome.items():
        if number:
            stats.incr(f"onceover.{name}", number, tags={"pipeline": confirmation.pipeline})
