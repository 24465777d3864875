"""HDFS over WebHDFS: the connection, its errors in one line, and small files that are written atomically."""

from __future__ import annotations

import logging
import os
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import requests
from hdfs import Client, HdfsError, InsecureClient

from onceover.config.endpoints import start_or_set
from onceover.config.os_user import name_user
from onceover.errors import (
    DENIED,
    AccessDeniedError,
    BusyError,
    ConfigurationError,
    OnceoverError,
    TerminalError,
    UnreachableError,
)
from onceover.raw.failover import NOT_SERVING, NameNodeSession, split_asked
from onceover.raw.kerberos import TicketAuth, read_ticket, uses_kerberos

T = TypeVar("T")
logging.getLogger("hdfs.client").addFilter(lambda record: bool(record.msg))  # a refused login's empty answer
TIMEOUT = (5.0, 120.0)  # seconds to connect, seconds without an answer
PREFIX = "/webhdfs/v1"
FILE_MODE, FOLDER_MODE = "664", "775"
"""Of all that is made: users of one group share raw, for HDFS gives what is new the group of its folder."""
_ASKED = 6
"""How often a request is made whose DataNodes do not answer: where several share a host, HDFS leaves out any one."""
_REFUSED_LOGIN = re.compile(r"Authentication failure|HTTP 401|GSSException[^<\\]*")
_DENIAL = re.compile(r'user=([^,]*), access=([A-Z_]+), inode="([^"]*)":([^\s]*)')


def make_session(address: str) -> requests.Session:
    """Return the session of a client of these NameNodes. Make it in the process that uses it: sessions do not survive a
    fork."""
    session = NameNodeSession(address)
    session.trust_env = False  # a proxy from the environment must not see raw records
    session.verify = os.environ.get("REQUESTS_CA_BUNDLE") or True  # which `trust_env` would have read
    return session


def connect_hdfs(address: str, session: requests.Session | None = None) -> Client:
    """Return a client of that NameNode, or of several, separated by `;`, under ONCEOVER_HDFS_AUTH: `simple`, or
    `kerberos` with this process's ticket. The session logs in with it. Raise as `uses_kerberos`."""
    session, address = session or make_session(address), address.split(";")[0]
    if not uses_kerberos():
        return InsecureClient(address, user=name_user(), session=session, timeout=TIMEOUT)
    session.auth = TicketAuth()
    return Client(address, session=session, timeout=TIMEOUT)


class SmallFiles:
    """Files of some kilobytes: read whole, and created by a rename, so that no reader ever sees half a file.

    HDFS never renames over an existing file: a name that is taken belongs to another writer.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._session = make_session(address)
        self._client = connect_hdfs(address, self._session)

    def names(self, folder: str) -> list[str]:
        """List the names in the folder, in no order; none if the folder is missing."""
        return [name for name, _ in list_folder(self._client, self._address, folder)]

    def read(self, path: str) -> bytes | None:
        """Return the file's content, None if the file is missing."""
        try:
            return bytes(self._ask(lambda avoided: self.open_stream(path, **avoided).content))
        except (HdfsError, requests.RequestException) as error:
            if is_missing(error):
                return None
            raise translate_error(self._address, error) from error

    def create(self, path: str, content: bytes) -> None:
        """Create a file of that content, on its DataNodes. Raise BusyError if the name is taken."""
        folder, _, name = path.rpartition("/")
        scratch = f"{folder}/.{name}.{uuid.uuid4().hex}.tmp"
        with wrap_errors(self._address):
            self._ask(lambda _: self._client.write(scratch, content, overwrite=True, permission=FILE_MODE))
            try:
                self._client.rename(scratch, path)
            except HdfsError as error:
                self._client.delete(scratch)
                if self._client.status(path, strict=False) is None:
                    raise
                raise BusyError(f"{path} on HDFS was written by another process at the same time; try again") from error

    def read_length(self, path: str) -> int | None:
        """Return the bytes of a file, None if it is missing."""
        status = self._read_status(path)
        return None if status is None else int(status["length"])

    def remove(self, path: str) -> bool:
        """Delete the file; return whether it existed."""
        with wrap_errors(self._address):
            return bool(self._client.delete(path))

    def open_stream(self, path: str, **options: str | int | None) -> requests.Response:
        """Open the file's bytes on a DataNode, by these options of WebHDFS's OPEN. Raise as the client does."""
        return self.get(f"{PREFIX}{quote(path)}", op="OPEN", **options)

    def get(self, place: str, **query: str | int | None) -> requests.Response:
        """Return what the NameNode that serves has at that place, its body not read yet. Raise as the client does:
        neither of its calls says which DataNode it had asked, or can leave one out."""
        url = f"{self._client.url.rstrip('/')}{place}"
        response = self._session.get(url, params=query, stream=True, timeout=TIMEOUT)
        if response.ok:
            return response
        try:
            refused = response.json()["RemoteException"]
            raise HdfsError(refused["message"], exception=refused["exception"])
        except (ValueError, LookupError):
            raise HdfsError(f"HTTP {response.status_code} {response.reason}") from None

    def _read_status(self, path: str) -> dict[str, Any] | None:
        """Return what HDFS says of the path, None if the path is missing: not if this user may not look."""
        try:
            status: dict[str, Any] = self._client.status(path)
        except (HdfsError, requests.RequestException) as error:
            if is_missing(error):
                return None
            raise translate_error(self._address, error) from error
        return status

    def _ask(self, request: Callable[[dict[str, str | None]], T]) -> T:
        """Return what the request does, which may be repeated. Where a DataNode does not answer, ask for another: the
        NameNode goes on naming it until its heartbeats have been missing for ten minutes."""
        silent: requests.ConnectionError | None = None
        for _ in range(_ASKED - 1):
            try:
                return request({"excludedatanodes": split_asked(silent).hostname} if silent else {})
            except requests.ConnectionError as error:
                if name_datanode(self._address, error) is None:
                    raise
                silent = error
            except HdfsError as error:
                raise silent or error from error  # no other DataNode holds it
        return request({})


def list_folder(client: Client, address: str, folder: str) -> list[tuple[str, int]]:
    """List the name and length of each file in the folder; none if the folder is missing."""
    try:
        return [(name, int(status["length"])) for name, status in client.list(folder, status=True)]
    except (HdfsError, requests.RequestException) as error:
        if is_missing(error):
            return []
        raise translate_error(address, error) from error


@contextmanager
def wrap_errors(address: str) -> Iterator[None]:
    """Raise the client's errors within the block as errors of our own."""
    try:
        yield
    except (HdfsError, requests.RequestException) as error:
        raise translate_error(address, error) from error


def find_refused_login(address: str) -> OnceoverError | None:
    """Return the error of an HDFS that asks for a login which this process does not use; None of any other."""
    try:
        with wrap_errors(address):
            connect_hdfs(address).status("/")
    except ConfigurationError as error:
        return error
    except OnceoverError:
        return None
    return None


def is_missing(error: Exception) -> bool:
    """Return whether the error says that the path does not exist."""
    return "FileNotFoundException" in get_exception_name(error) or "does not exist" in str(error)


def name_datanode(address: str, error: requests.RequestException) -> str | None:
    """Return `host:port` of the DataNode that a request had been sent on to when it failed; None if there was none."""
    asked = split_asked(error).netloc
    return asked if asked not in {"", *(urlsplit(each).netloc for each in address.split(";"))} else None


def translate_error(address: str, error: Exception) -> OnceoverError:
    """Return the error of our own for a client's error."""
    if isinstance(error, requests.RequestException):
        if datanode := name_datanode(address, error):
            return UnreachableError(
                f"the DataNode at {datanode} of HDFS at {address} does not answer ({type(error).__name__}); start it, "
                "or wait until the NameNode counts it as dead, which takes ten minutes by default"
            )
        return UnreachableError(
            f"HDFS at {address} does not answer ({type(error).__name__}); {start_or_set('webhdfs')}"
        )
    if "SafeMode" in get_exception_name(error) or "safe mode" in str(error):
        return UnreachableError(describe_safe_mode(address))
    if "AccessControlException" in get_exception_name(error) or "Permission denied" in str(error):
        return AccessDeniedError(describe_denial(str(error)))
    if refused := _REFUSED_LOGIN.search(str(error)):
        return _describe_refused_login(address, refused[0])
    if any(name in f"{get_exception_name(error)} {error}" for name in NOT_SERVING):
        return UnreachableError(
            f"no NameNode at {address} is active ({take_first_line(error)}); a failover ends by itself, and "
            "ONCEOVER_WEBHDFS names all NameNodes: http://A;http://B"
        )
    return TerminalError(
        f"HDFS at {address} refused the request: {take_first_line(error)}; the NameNode's log has more"
    )


def _describe_refused_login(address: str, why: str) -> OnceoverError:
    if not uses_kerberos():
        return ConfigurationError(f"HDFS at {address} asks for a login; set ONCEOVER_HDFS_AUTH=kerberos")
    what = f"it does not take the ticket of {read_ticket(address).principal} ({why})"
    remedy = "if its keytab is new, start this process again, else compare its keytab with the KDC, and the clocks"
    return AccessDeniedError(f"{DENIED} by HDFS at {address}: {what}; {remedy}")


def describe_safe_mode(address: str) -> str:
    """Return one line for a write that HDFS in safe mode does not take."""
    return (
        f"HDFS at {address} is in safe mode and accepts no writes; wait until its DataNodes have reported, or end it "
        "with `hdfs dfsadmin -safemode leave`"
    )


def describe_denial(text: str) -> str:
    """Return one line for HDFS's complaint: which user lacks which right to which path."""
    found = _DENIAL.search(text)
    what = (
        text.strip().splitlines()[0][:200]
        if found is None
        else "user {} may not {} {}, which is {}".format(*found.groups())
    )
    return f"{DENIED} by HDFS: {what}; docs/deployment.md says which rights each process needs, and how to give them"


def get_exception_name(error: Exception) -> str:
    """Return the name of the server's Java exception, empty if unknown."""
    return str(getattr(error, "exception", "") or "")


def take_first_line(error: Exception) -> str:
    """Return at most 200 characters of the message, or the error's type if the message is empty."""
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__
