"""A repair's lineage in OpenLineage's own facets. Imported only when OpenLineage's provider asks for it, because the
imports fail where that provider is not installed.

The datasets are the pipeline's folder, topic and table, so that a graph has one node for each whatever was repaired;
their `subset` names the files, offsets and windows of the run.
"""

from __future__ import annotations

from typing import Any

from airflow.providers.openlineage.extractors import OperatorLineage
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import base_subset_dataset as subset
from openlineage.client.facet_v2 import input_statistics_input_dataset, output_statistics_output_dataset

from onceover.context import open_pipeline
from onceover.model.window import format_moment
from onceover.observability import lineage
from onceover.observability.lineage import Lineage


def lineage_facets(pipeline: str, request_id: int | None) -> OperatorLineage[Any, Any]:
    """Return what the request published, even if it failed later; empty without a request or a published window."""
    if request_id is None:
        return OperatorLineage()
    with open_pipeline(pipeline, "lineage") as context:
        published = lineage.read_lineage(context, request_id)
    if not published.windows:
        return OperatorLineage()
    return OperatorLineage(inputs=[_raw(published), _topic(published)], outputs=[_table(published)])


def _raw(published: Lineage) -> InputDataset:
    return InputDataset(
        *published.raw,
        inputFacets={
            "subset": subset.InputSubsetInputDatasetFacet(subset.LocationSubsetCondition(list(published.files))),
            "inputStatistics": input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
                rowCount=sum(window["lines"] for window in published.windows),
                size=published.bytes,
                fileCount=len(published.files),
            ),
        },
    )


def _topic(published: Lineage) -> InputDataset:
    ranges = [
        subset.Partition(
            identifier=str(offsets),
            dimensions={
                "generation": offsets.source.generation,
                "kafka_partition": offsets.source.kafka_partition,
                "start_offset": offsets.start,
                "end_offset": offsets.end,
            },
        )
        for offsets in published.offsets
    ]
    condition = subset.PartitionSubsetCondition(ranges)
    return InputDataset(
        *published.topic,
        inputFacets={"subset": subset.InputSubsetInputDatasetFacet(condition)},
    )


def _table(published: Lineage) -> OutputDataset:
    windows = [
        subset.Partition(
            identifier=format_moment(window["window_start"]),
            dimensions={
                "window_start": format_moment(window["window_start"]),
                "window_end": format_moment(window["window_end"]),
                "revision": window["revision"],
            },
        )
        for window in published.windows
    ]
    condition = subset.PartitionSubsetCondition(windows)
    return OutputDataset(
        *published.table,
        outputFacets={
            "subset": subset.OutputSubsetOutputDatasetFacet(condition),
            "outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                rowCount=sum(window["rows"] for window in published.windows if window["rewritten"])
            ),
        },
    )
