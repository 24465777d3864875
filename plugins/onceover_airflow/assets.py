"""Each pipeline's aggregates as an asset of Airflow, for other DAGs to be scheduled on."""

from __future__ import annotations

from airflow.sdk import Asset, AssetAlias

PUBLISHED = AssetAlias(name="onceover published", group="onceover")
"""Means every pipeline's asset: a DAG scheduled on it runs after any pipeline's windows were published."""


def pipeline_asset(pipeline: str) -> Asset:
    """Return the asset of a pipeline's aggregates."""
    return Asset(name=f"aggregates.{pipeline}", uri=f"x-onceover://aggregates/{pipeline}", group="onceover")
