"""The addresses of the deployment's parts: from the environment, else from the file that the embedded stack writes."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, get_args
from urllib.parse import urlsplit

from onceover.errors import ConfigurationError, UnreachableError

PartName = Literal["kafka", "webhdfs", "hdfs", "postgres", "airflow", "zookeeper", "hbase", "registry", "spark"]
PARTS: Final[tuple[PartName, ...]] = get_args(PartName)
BY_NAME: Final[tuple[PartName, ...]] = ("zookeeper", "hbase", "registry")
"""The parts that the embedded stack starts only by name: servers that only some pipelines need."""


def local_folder() -> Path:
    """Return the folder of local data, logs and addresses: ONCEOVER_LOCAL, else `.local` under the home."""
    path = os.environ.get("ONCEOVER_LOCAL")
    return Path(path).absolute() if path else home() / ".local"


def endpoints_file(local: Path | None = None) -> Path:
    """Return the file of addresses in that folder, by default in `local_folder`."""
    return (local or local_folder()) / "endpoints.json"


def address(part: str) -> str:
    """Return the address of a part, or of a plugged-in raw store: environment ONCEOVER_<PART>, else endpoints.json.

    Raise UnreachableError if neither names one, ConfigurationError if endpoints.json cannot be read, or if WebHDFS's is
    not `http://HOST:PORT`, or several of these separated by `;`.
    """
    located = find_address(part)
    if located is None:
        start = f"`onceover stack up {part}`" if part in BY_NAME else "`make up`"
        raise UnreachableError(
            f"the address of {part} is unknown: {_variable(part)} is not set and {endpoints_file()} does not name it; "
            f"set {_variable(part)}{f', or start the embedded one with {start}' if _may_be_embedded() else ''}"
        )
    if part == "webhdfs":
        _require_web_addresses(located)
    return located


def find_address(part: str) -> str | None:
    """Return the part's address as `address` does, but None if neither names one."""
    return os.environ.get(_variable(part)) or read_endpoints(endpoints_file()).get(part)


def _require_web_addresses(text: str) -> None:
    for each in text.split(";"):
        try:
            place = urlsplit(each)
            is_right = place.scheme in ("http", "https") and bool(place.hostname) and (place.port or 1) > 0
        except ValueError:  # of the port
            is_right = False
        if not is_right or each.split() != [each]:
            raise ConfigurationError(
                f"ONCEOVER_WEBHDFS={text[:200]!r}: {each[:100]!r} is no HTTP address of a NameNode; set "
                "http://HOST:PORT, or for several NameNodes http://A:PORT;http://B:PORT"
            )


def locate_hdfs() -> str:
    """Return HDFS's address as `open_store` takes it: `hdfs://HOST;WEBHDFS`, or WebHDFS's alone where ONCEOVER_HDFS is
    no `hdfs://`, or where only ONCEOVER_WEBHDFS is set: an address from the environment and one from endpoints.json
    may name two HDFS. Raise as `address`, and ConfigurationError where only ONCEOVER_HDFS is set."""
    webhdfs, hdfs = address("webhdfs"), find_address("hdfs")
    sets_webhdfs, sets_hdfs = (bool(os.environ.get(_variable(part))) for part in ("webhdfs", "hdfs"))
    if sets_hdfs and not sets_webhdfs:
        raise ConfigurationError(
            f"ONCEOVER_HDFS is set and ONCEOVER_WEBHDFS is not: {endpoints_file()} names {webhdfs}, which may be "
            "another HDFS; set ONCEOVER_WEBHDFS to the HTTP address of the same NameNode"
        )
    is_one = sets_webhdfs == sets_hdfs
    return f"{hdfs.rstrip('/')};{webhdfs}" if is_one and hdfs and hdfs.startswith("hdfs://") else webhdfs


def name_lease_server(hdfs: str) -> str:
    """Return where Spark's client asks for leases, by ONCEOVER_HDFS: WebHDFS has none, so that for `webhdfs://` it is
    the name service of that name. Raise ConfigurationError for `webhdfs://` with a port."""
    place = urlsplit(hdfs)
    if place.scheme not in ("webhdfs", "swebhdfs"):
        return hdfs
    if ":" in place.netloc:
        raise ConfigurationError(
            f"ONCEOVER_HDFS={hdfs[:200]} has no leases, which a repair asks for by HDFS's own protocol; set "
            "hdfs://HOST:PORT, or for raw over WebHDFS webhdfs://NAMESERVICE, which HADOOP_CONF_DIR defines"
        )
    return f"hdfs://{place.netloc}"


def start_or_set(part: PartName) -> str:
    """Return what to do about a part that does not answer at its address, by where that address comes from."""
    if os.environ.get(_variable(part)):
        return f"start it, or correct {_variable(part)}"
    if not _may_be_embedded():
        return f"start it, and set {_variable(part)}"
    named = {"spark": " --cluster"} | {each: f" {each}" for each in BY_NAME}
    return f"start it (`onceover stack up{named.get(part, '')}`), or set {_variable(part)}"


def _may_be_embedded() -> bool:
    """Return whether the embedded stack may be meant: it has been started here, or the environment names no part. In a
    container it is of no use."""
    return endpoints_file().exists() or not any(os.environ.get(_variable(part)) for part in PARTS)


def _variable(part: str) -> str:
    return f"ONCEOVER_{part.upper()}"


def read_endpoints(file: Path) -> dict[str, str]:
    """Return the addresses in an endpoints.json, empty without the file. Raise ConfigurationError for any other
    file."""
    try:
        addresses = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{file} cannot be read ({error}); run `make down` and `make up` to write it again"
        ) from None
    if not isinstance(addresses, dict) or not all(isinstance(each, str) for each in addresses.values()):
        raise ConfigurationError(f"{file} holds no addresses; run `make down` and `make up` to write it again")
    return addresses


# The folder of the project's own files, and the user's pipelines, which may lie elsewhere.

VARIABLE = "ONCEOVER_HOME"
PIPELINES = "ONCEOVER_PIPELINES"
_AROUND_PACKAGE = Path(__file__).resolve().parents[3]  # jobs/onceover/config/endpoints.py


def home(environ: Mapping[str, str] = os.environ) -> Path:
    """Return ONCEOVER_HOME, else the folder around this package. Raise ConfigurationError if it has no `pipelines/`."""
    path = environ.get(VARIABLE)
    folder = Path(path).expanduser() if path else _AROUND_PACKAGE
    if not folder.is_absolute() or not (folder / "pipelines").is_dir():
        why = f"{VARIABLE} is {path!r}" if path else f"{VARIABLE} is not set and the package lies in {folder}"
        raise ConfigurationError(
            f"no folder pipelines/ found: {why}; set {VARIABLE} to the absolute path of the folder that holds it"
        )
    return folder


def pipelines_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of TOMLs: ONCEOVER_PIPELINES, else `pipelines/` of the home. Raise ConfigurationError if
    missing."""
    path = environ.get(PIPELINES)
    if not path:
        return home(environ) / "pipelines"
    folder = Path(path).expanduser()
    if not folder.is_absolute() or not folder.is_dir():
        why = "does not exist or is not a folder" if folder.is_absolute() else "is not an absolute path"
        raise ConfigurationError(f"{PIPELINES}={path!r} {why}; set it to the absolute path of the folder of TOMLs")
    return folder


# Secrets come from the environment, or from a file that it names and only its owner can read.


def read_secret(variable: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the variable's value, or the content of the file that `VARIABLE_FILE` names; None if neither is set.

    Raise ConfigurationError for both at once, and for a file that others may read or that cannot be read.
    """
    value, named = environment.get(variable), environment.get(f"{variable}_FILE")
    if not named:
        return value or None
    if value:
        raise ConfigurationError(f"{variable} and {variable}_FILE are both set; unset one of them")
    file = Path(named)
    try:
        if file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigurationError(f"{variable}_FILE: {file} may be read by others than its owner; `chmod 600` it")
        secret = file.read_text().removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigurationError(
            f"{variable}_FILE: {file} cannot be read: {reason}; correct the path or the file"
        ) from None
    if not secret:
        raise ConfigurationError(f"{variable}_FILE: {file} is empty; write the secret into it")
    return secret


SPARK_SECRET: Final = "ONCEOVER_SPARK_SECRET"


def find_spark_secret(master: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the secret that this standalone master asks of its applications: ONCEOVER_SPARK_SECRET, or the content of
    the file that ONCEOVER_SPARK_SECRET_FILE names, else the embedded cluster's if it is that master. None without one.

    Raise ConfigurationError for a file that others may read.
    """
    if not master.startswith("spark://"):
        return None
    secret = read_secret(SPARK_SECRET, environment)
    embedded = local_folder() / "secrets" / "spark"
    if secret is None and embedded.exists() and read_endpoints(endpoints_file()).get("spark") == master:
        return read_secret(SPARK_SECRET, {f"{SPARK_SECRET}_FILE": str(embedded)})
    return secret
