"""Each pipeline's aggregates as an asset of Airflow, whose events have days for keys, and the schedules on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs
from airflow.sdk import Asset, AssetAlias, AssetAny, Context, PartitionedAssetTimetable, StartOfDayMapper
from airflow.sdk.definitions.asset import AssetUniqueKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onceover.ledger.database import Connection

DUE: Final = Asset(name="onceover announcement", uri="x-onceover://announcement", group="onceover")
"""Has an event when days are to be announced at once: `announce_published` is scheduled on it."""
DUE_ALIAS: Final = AssetAlias(name="onceover announcement due", group="onceover")
"""The outlet of each task that may have days to announce: an alias has no event unless the task adds one."""


def pipeline_asset(pipeline: str) -> Asset:
    """Return the asset of a pipeline's aggregates."""
    return Asset(name=f"aggregates.{pipeline}", uri=f"x-onceover://aggregates/{pipeline}", group="onceover")


def repaired_days(*pipelines: str) -> PartitionedAssetTimetable:
    """Return the schedule of a DAG that has a run for each day of which windows of these pipelines have other rows now.
    Its `partition_key` is the day in UTC, or in the windows' zone, as in 2026-11-29."""
    mapper = StartOfDayMapper(input_format="%Y-%m-%d")
    return PartitionedAssetTimetable(assets=AssetAny(*map(pipeline_asset, pipelines)), default_partition_mapper=mapper)


@attrs.frozen
class DayEvent:
    """The event of one day of a pipeline's asset, as Airflow's server reads it from a task's result."""

    dest_asset_key: AssetUniqueKey
    partition_key: str
    extra: dict[str, Any]


def add_day(context: Context, pipeline: str, day: str, extra: dict[str, Any]) -> None:
    """Add the event of a day. The task has the pipeline's asset among its outlets."""
    # Airflow's own `add_partitions` gives all days of an asset the same extra, and an alias gives no event a key.
    event: Any = DayEvent(AssetUniqueKey.from_asset(pipeline_asset(pipeline)), day, extra)
    context["outlet_events"][DUE_ALIAS].asset_alias_events.append(event)


def announce_soon(context: Context, ledger: Connection, pipelines: Sequence[str]) -> None:
    """Have `announce_published` run now if days of these pipelines are due. The task has the outlet DUE_ALIAS."""
    from onceover.ledger.announcements import is_due

    if is_due(ledger, pipelines):
        context["outlet_events"][DUE_ALIAS].add(DUE)
