"""A repair's lineage in OpenLineage's own facets. Imported only when OpenLineage's provider asks for it: without that
provider this module cannot be, and need not be.

The datasets are the pipeline's folder, topic and table, so that a graph has one node for each whatever was repaired;
which files, offsets and windows a run was about stands in their `subset`.
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
    """What the request has published, also where it then failed; nothing if there was none, or it published nothing."""
    if request_id is None:
        return OperatorLineage()
    with open_pipeline(pipeline, "lineage") as context:
        found = lineage.read_lineage(context, request_id)
    if not found.windows:
        return OperatorLineage()
    return OperatorLineage(inputs=[_raw(found), _topic(found)], outputs=[_table(found)])


def _raw(found: Lineage) -> InputDataset:
    return InputDataset(
        found.raw.namespace,
        found.raw.name,
        inputFacets={
            "subset": subset.InputSubsetInputDatasetFacet(subset.LocationSubsetCondition(list(found.files))),
            "inputStatistics": input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
                rowCount=sum(one.lines for one in found.windows),
                size=found.bytes,
                fileCount=len(found.files),
            ),
        },
    )


def _topic(found: Lineage) -> InputDataset:
    ranges = [
        subset.Partition(
            identifier=one.format(),
            dimensions={
                "generation": one.source.generation,
                "kafka_partition": one.source.kafka_partition,
                "start_offset": one.start,
                "end_offset": one.end,
            },
        )
        for one in found.offsets
    ]
    condition = subset.PartitionSubsetCondition(ranges)
    return InputDataset(
        found.topic.namespace,
        found.topic.name,
        inputFacets={"subset": subset.InputSubsetInputDatasetFacet(condition)},
    )


def _table(found: Lineage) -> OutputDataset:
    windows = [
        subset.Partition(
            identifier=format_moment(one.window_start),
            dimensions={
                "window_start": format_moment(one.window_start),
                "window_end": format_moment(one.window_end),
                "revision": one.revision,
            },
        )
        for one in found.windows
    ]
    condition = subset.PartitionSubsetCondition(windows)
    return OutputDataset(
        found.table.namespace,
        found.table.name,
        outputFacets={
            "subset": subset.OutputSubsetOutputDatasetFacet(condition),
            "outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                rowCount=sum(one.rows for one in found.windows if one.rewritten)
            ),
        },
    )
