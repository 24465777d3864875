"""Where each part of the deployment answers: what the environment says, else what the embedded stack wrote."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final, Literal, get_args

from onceover.config.home import home as home
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
    found = known(part)
    if found is None:
        start = f"`onceover stack up {part}`" if part in BY_NAME else "`make up`"
        raise UnreachableError(
            f"nobody said where {part} is: {_variable(part)} is not set and {endpoints_file()} does not name it; "
            f"set {_variable(part)}, or start the embedded one with {start}"
        )
    return found


def known(part: PartName) -> str | None:
    """As `address`, but None if neither names one."""
    return os.environ.get(_variable(part)) or read(endpoints_file()).get(part)


def _variable(part: PartName) -> str:
    return f"ONCEOVER_{part.upper()}"


def read(file: Path) -> dict[str, str]:
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
