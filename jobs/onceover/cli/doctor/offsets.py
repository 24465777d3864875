"""The check of each pipeline's stored offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onceover.cli.doctor.outcome import Outcome
from onceover.context import open_pipeline
from onceover.errors import OnceoverError, UsageError
from onceover.model.pipeline import Pipeline
from onceover.offset_stores.admin import inspect_offsets


def check_offsets(pipelines: Sequence[Pipeline]) -> Iterator[Outcome]:
    """Check that the stored offsets of each pipeline that has run can be read, and are its topic's."""
    for pipeline in pipelines:
        check, store = f"offsets of {pipeline.name}", pipeline.ingest.offset_store
        try:
            with open_pipeline(pipeline, "doctor") as context:
                seen = inspect_offsets(context)
        except UsageError:
            continue  # it has not run yet
        except OnceoverError as error:
            if store in ("zookeeper", "hbase"):  # other checks report the other services
                yield Outcome(check, "wrong", str(error))
            continue
        if seen.trouble:
            yield Outcome(check, "wrong", f"{seen.trouble}; see `onceover offsets {pipeline.name} show`")
        else:
            left = sum(max(0, p.end - (p.earliest if p.stored is None else p.stored)) for p in seen.kafka_partitions)
            yield Outcome(check, "fine", f"in {store}, {left:,} left to read")
