"""Where each part of the deployment answers: what the environment says, else what the embedded stack wrote."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, get_args

from onceover.errors import ConfigurationError, UnreachableError

PartName = Literal["kafka", "webhdfs", "hdfs", "postgres", "airflow", "zookeeper", "hbase", "spark"]
PARTS: Final[tuple[PartName, ...]] = get_args(PartName)
BY_NAME: Final[tuple[PartName, ...]] = ("zookeeper", "hbase")
"""What the embedded stack starts only when it is named: servers that some offset stores need."""


def local_folder() -> Path:
    """Where everything that runs keeps its data, logs and addresses: ONCEOVER_LOCAL, else `.local` under the home."""
    named = os.environ.get("ONCEOVER_LOCAL")
    return Path(named).absolute() if named else home() / ".local"


def endpoints_file(local: Path | None = None) -> Path:
    return (local or local_folder()) / "endpoints.json"


def address(part: PartName) -> str:
    """The part's address: environment ONCEOVER_<PART>, else endpoints.json.

    Raises UnreachableError if neither names one, ConfigurationError if endpoints.json cannot be read.
    """
    found = find_address(part)
    if found is None:
        start = f"`onceover stack up {part}`" if part in BY_NAME else "`make up`"
        raise UnreachableError(
            f"nobody said where {part} is: {_variable(part)} is not set and {endpoints_file()} does not name it; "
            f"set {_variable(part)}, or start the embedded one with {start}"
        )
    return found


def find_address(part: PartName) -> str | None:
    """As `address`, but None if neither names one."""
    return os.environ.get(_variable(part)) or read_endpoints(endpoints_file()).get(part)


def _variable(part: PartName) -> str:
    return f"ONCEOVER_{part.upper()}"


def read_endpoints(file: Path) -> dict[str, str]:
    """The addresses in an endpoints.json, none if there is no file. Raises ConfigurationError for any other file."""
    try:
        found = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{file} cannot be read ({error}); run `make down` and `make up` to write it anew"
        ) from None
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise ConfigurationError(f"{file} holds no addresses; run `make down` and `make up` to write it anew")
    return found


# Where the project's own files are, and the user's pipelines, which may lie elsewhere.

VARIABLE = "ONCEOVER_HOME"
PIPELINES = "ONCEOVER_PIPELINES"
_AROUND_PACKAGE = Path(__file__).resolve().parents[3]  # jobs/onceover/config/endpoints.py


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


# Secrets come from the environment, or from a file that it names and nobody but its owner can read.


def read_secret(variable: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The variable's value, or what the file holds that `VARIABLE_FILE` names; None where neither is set.

    Raises ConfigurationError for both at once, and for a file that others may read or that cannot be read.
    """
    value, named = environment.get(variable), environment.get(f"{variable}_FILE")
    if not named:
        return value or None
    if value:
        raise ConfigurationError(f"{variable} and {variable}_FILE are both set; take one away")
    file = Path(named)
    try:
        if file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigurationError(f"{variable}_FILE: {file} may be read by others than its owner; `chmod 600` it")
        found = file.read_text().removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigurationError(f"{variable}_FILE: {file} cannot be read: {reason}") from None
    if not found:
        raise ConfigurationError(f"{variable}_FILE: {file} holds nothing")
    return found
