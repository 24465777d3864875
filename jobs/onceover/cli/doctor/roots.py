"""The check of each pipeline's raw root: whether its marker is this ledger's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onceover.cli.doctor.outcome import Outcome
from onceover.context import open_pipeline
from onceover.errors import OnceoverError, TransientError
from onceover.model.pipeline import Pipeline
from onceover.model.window import format_moment
from onceover.raw.store import open_store


def check_roots(pipelines: Sequence[Pipeline]) -> Iterator[Outcome]:
    """Check that each raw root is this ledger's or unused, and say who marked it."""
    for pipeline in pipelines:
        check = f"root of {pipeline.name}"
        try:
            with open_pipeline(pipeline, "doctor") as context:
                marker = context.root.require_own().marker
        except TransientError as error:
            if pipeline.storage.raw_store != "hdfs":  # other checks report the other services
                yield Outcome(check, "wrong", str(error))
            continue
        except OnceoverError as error:
            yield Outcome(check, "wrong", str(error))
            continue
        root = f"{context.root.path} on {open_store(context.raw_address).where}"
        if marker is None:
            yield Outcome(check, "note", f"{root} has no marker yet: the first ingest writes it")
        else:
            at = format_moment(marker.written_at)
            yield Outcome(check, "fine", f"{root} is this ledger's, marked by {marker.who} at {at}: {marker.why}")
