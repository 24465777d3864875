"""Where the project's own files are, and the user's pipelines, which may lie elsewhere."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from onceover.errors import ConfigurationError

VARIABLE = "ONCEOVER_HOME"
PIPELINES = "ONCEOVER_PIPELINES"
_AROUND_PACKAGE = Path(__file__).resolve().parents[3]  # jobs/onceover/config/home.py


def home(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder named by ONCEOVER_HOME, else the one this package lies in. ConfigurationError if it is not a home."""
    named = environ.get(VARIABLE)
    folder = Path(named).expanduser() if named else _AROUND_PACKAGE
    if not folder.is_absolute() or not (folder / "pipelines").is_dir():
        why = f"{VARIABLE} is {named!r}" if named else f"{VARIABLE} is not set and the package lies in {folder}"
        raise ConfigurationError(
            f"no folder pipelines/ found: {why}; set {VARIABLE} to the absolute path of the folder that holds it"
        )
    return folder


def pipelines_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of TOMLs: ONCEOVER_PIPELINES, else `pipelines/` of the home. ConfigurationError if it is not there."""
    named = environ.get(PIPELINES)
    if not named:
        return home(environ) / "pipelines"
    folder = Path(named).expanduser()
    if not folder.is_absolute() or not folder.is_dir():
        why = "is no folder that is there" if folder.is_absolute() else "is not an absolute path"
        raise ConfigurationError(f"{PIPELINES}={named!r} {why}; set it to the absolute path of the folder of TOMLs")
    return folder
