"""What several commands take: a pipeline's name, times, `--json`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

import onceover
from onceover.errors import ConfigurationError, OnceoverError


def pipeline_names(begun: str) -> list[str]:
    from onceover.pipelines import names

    try:
        return [name for name in names() if name.startswith(begun)]
    except OnceoverError:
        return []  # a shell that completes a word is no place for an error


PipelineName = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE", help="Name of a pipeline: a TOML under pipelines/.", autocompletion=pipeline_names
    ),
]
AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON, for programs.")]


def now() -> datetime:
    return datetime.now(UTC)


def entry(name: str, *arguments: str) -> list[str]:
    """The command line of one of the entries that lie beside the library, `ingest.py` or `repair.py`.

    This interpreter runs them, and not spark-submit, which would keep SIGTERM from them.
    """
    file = Path(onceover.__file__).resolve().parents[1] / name
    if not file.is_file():
        raise ConfigurationError(f"there is no {file}; install the project from its folder, with `make setup`")
    return [sys.executable, str(file), *arguments]
