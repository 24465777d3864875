"""The check of the schema registry, where a pipeline needs one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onceover.cli.doctor.outcome import Outcome
from onceover.config.endpoints import start_or_set
from onceover.config.registry import count_subjects, locate_registry
from onceover.errors import OnceoverError
from onceover.model.pipeline import Pipeline


def check_registry(pipelines: Sequence[Pipeline]) -> Iterator[Outcome]:
    """Check that the registry answers, and takes the credentials."""
    needing = [pipeline.name for pipeline in pipelines if pipeline.contract.needs_registry]
    if not needing:
        return
    try:
        url = locate_registry()
        yield Outcome("registry", "fine", f"{url} answers, subjects: {count_subjects(url)}")
    except OnceoverError as error:
        needed = f"records of new schemas wait in {', '.join(needing)}"
        yield Outcome("registry", "wrong", f"{error}; {start_or_set('registry')}; {needed}")
