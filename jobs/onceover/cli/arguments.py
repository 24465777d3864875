"""What several commands take: a pipeline's name, times, `--json`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import onceover
from onceover.errors import ConfigurationError, OnceoverError
from onceover.model.window import Window, WindowRange, parse_window

if TYPE_CHECKING:
    from onceover.model.pipeline import Pipeline


def pipeline_names(begun: str) -> list[str]:
    from onceover.config.pipelines import names

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


def window_of(pipeline: Pipeline, text: str) -> Window:
    """The window that somebody typed by its start."""
    window = parse_window(text, pipeline.contract.window_minutes)
    _not_ahead(pipeline, WindowRange(window.start, window.end, window.minutes))
    return window


def range_of(pipeline: Pipeline, start: str, end: str) -> WindowRange:
    """The range of windows that somebody typed."""
    return _not_ahead(pipeline, WindowRange.parse(start, end, pipeline.contract.window_minutes))


def _not_ahead(pipeline: Pipeline, asked: WindowRange) -> WindowRange:
    from onceover.detection.future_range import not_ahead

    return not_ahead(pipeline.name, asked)


def entry(name: str, *arguments: str) -> list[str]:
    """The command line of one of the entries that lie beside the library, `ingest.py` or `repair.py`.

    This interpreter runs them, and not spark-submit, which would keep SIGTERM from them.
    """
    file = Path(onceover.__file__).resolve().parents[1] / name
    if not file.is_file():
        raise ConfigurationError(f"there is no {file}; install the project from its folder, with `make setup`")
    return [sys.executable, str(file), *arguments]
