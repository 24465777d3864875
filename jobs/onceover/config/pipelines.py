"""The pipelines that there are: TOMLs in one folder, found by name."""

from __future__ import annotations

from pathlib import Path

from onceover.config.endpoints import pipelines_folder
from onceover.config.mistakes import Mistake, MistakesError, did_you_mean
from onceover.config.pipeline_file import read
from onceover.errors import UsageError
from onceover.model.pipeline import Pipeline


def names(root: Path | None = None) -> tuple[str, ...]:
    """The names of all pipelines under the home, sorted, without reading them."""
    return tuple(sorted(_files(root)))


def find(name: str, root: Path | None = None) -> Pipeline:
    """The pipeline of that name. What was typed is compared with what is there and never becomes part of a path."""
    files = _files(root)
    if name not in files:
        shown = repr(name if len(name) <= 60 else name[:57] + "...")
        raise UsageError(f"there is no pipeline {shown}; {did_you_mean(name, list(files))}")
    return read(files[name])


def all_pipelines(root: Path | None = None) -> tuple[Pipeline, ...]:
    """All of them by name, or a MistakesError with the mistakes of all files; two must not share a group."""
    pipelines: list[Pipeline] = []
    mistakes: list[Mistake] = []
    groups: dict[str, str] = {}
    for _, path in sorted(_files(root).items()):
        try:
            pipelines.append(read(path))
        except MistakesError as error:
            mistakes.extend(error.mistakes)
            continue
        group = pipelines[-1].ingest.group
        if (other := groups.setdefault(group, path.stem)) != path.stem:
            what = f"pipeline {other} keeps its offsets under the same group {group!r}"
            remedy = "give each its own, or leave it out"
            mistakes.append(Mistake(f"{path.parent.name}/{path.name}", "ingest.group", what, remedy))
    if mistakes:
        raise MistakesError(mistakes)
    return tuple(pipelines)


def _files(root: Path | None) -> dict[str, Path]:
    folder = root / "pipelines" if root else pipelines_folder()
    return {path.stem: path for path in folder.glob("*.toml") if path.is_file()}
