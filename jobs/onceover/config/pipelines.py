"""The pipelines: TOMLs in one folder, found by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from onceover.config.endpoints import pipelines_folder
from onceover.config.mistakes import Mistake, MistakesError, suggest_name
from onceover.config.pipeline_file import read_pipeline
from onceover.errors import UsageError
from onceover.model.pipeline import Pipeline


def names(root: Path | None = None) -> tuple[str, ...]:
    """List the names of all pipelines under the home, sorted, without reading them."""
    return tuple(sorted(_files(root)))


def find(name: str, root: Path | None = None) -> Pipeline:
    """Read the pipeline of that name. Raise UsageError for an unknown name, MistakesError for a wrong TOML, or if its
    files would lie inside another pipeline's folder."""
    pipeline = read_pipeline(find_file(name, root))
    if mistakes := list(_list_nested(pipeline, root)):
        raise MistakesError(mistakes)
    return pipeline


def find_file(name: str, root: Path | None = None) -> Path:
    """Return the TOML of the pipeline of that name, without reading it. The name is only compared, and never becomes
    part of a path. Raise UsageError for an unknown name."""
    files = _files(root)
    if name not in files:
        shown = repr(name if len(name) <= 60 else name[:57] + "...")
        raise UsageError(f"there is no pipeline {shown}; {suggest_name(name, list(files))}")
    return files[name]


def read_valid(root: Path | None = None) -> tuple[tuple[Pipeline, ...], list[Mistake]]:
    """Return the pipelines whose TOML is valid, by name, and all mistakes of the others, also if two share a group or
    one has its files inside another's folder."""
    parsed: list[Pipeline] = []
    mistakes: list[Mistake] = []
    for _, path in sorted(_files(root).items()):
        try:
            parsed.append(read_pipeline(path))
        except MistakesError as error:
            mistakes.extend(error.mistakes)
    groups: dict[str, str] = {}
    for pipeline in parsed:
        mistakes.extend(_list_nested(pipeline, root))
        other = groups.setdefault(pipeline.ingest.group, pipeline.name)
        if other != pipeline.name:
            mistakes.append(_shared_group(name_toml(pipeline.name, root), other, pipeline.ingest.group))
    wrong = {mistake.file for mistake in mistakes}
    return tuple(pipeline for pipeline in parsed if name_toml(pipeline.name, root) not in wrong), mistakes


def name_toml(name: str, root: Path | None = None) -> str:
    """Return a pipeline's file in the form that mistakes quote."""
    return f"{_folder(root).name}/{name}.toml"


def _shared_group(file: str, other: str, group: str) -> Mistake:
    what = f"pipeline {other} keeps its offsets under the same group {group!r}"
    return Mistake(file, "ingest.group", what, "give each its own, or leave it out")


def _list_nested(pipeline: Pipeline, root: Path | None) -> Iterator[Mistake]:
    """Yield a mistake for each path of the pipeline's files on HDFS inside another pipeline's folder, whose compaction
    and retention delete files there. Reads only TOMLs of pipelines that such a path names."""
    ingest, file = pipeline.ingest, name_toml(pipeline.name, root)
    paths = {"storage.raw_root": pipeline.storage.raw_root}
    if ingest.offset_store in ("hdfs", "checkpoint") and ingest.offset_path:
        paths["ingest.offset_path"] = ingest.offset_path
    for key, path in paths.items():
        for folder in (PurePosixPath(path), *PurePosixPath(path).parents):
            if folder.name != pipeline.name and _read_raw_root(folder.name, root) == str(folder.parent):
                what = f"{path!r} is inside {folder}, where pipeline {folder.name} keeps its raw"
                yield Mistake(file, key, what, "take a folder of its own")


def _read_raw_root(name: str, root: Path | None) -> str | None:
    """Return the raw root of the pipeline of that name; None if there is none or its TOML is wrong."""
    file = _files(root).get(name)
    try:
        return read_pipeline(file).storage.raw_root if file else None
    except MistakesError:
        return None  # nothing runs by it


def _files(root: Path | None) -> dict[str, Path]:
    return {path.stem: path for path in _folder(root).glob("*.toml") if path.is_file()}


def _folder(root: Path | None) -> Path:
    return root / "pipelines" if root else pipelines_folder()
