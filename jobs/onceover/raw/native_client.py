"""HDFS by its own protocol: the client, a deadline around each of its calls, and its errors in one line.

The library waits for ever where a NameNode hangs, so that the deadline is outside of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final, TypeVar
from urllib.parse import urlsplit

from hdfs_native import Client

from onceover.config.endpoints import address as locate
from onceover.config.endpoints import start_or_set
from onceover.config.os_user import name_user
from onceover.deadline import call_within
from onceover.errors import AccessDeniedError, ConfigurationError, OnceoverError, TerminalError, UnreachableError
from onceover.raw import hdfs, kerberos
from onceover.raw.failover import NOT_SERVING

T = TypeVar("T")
_LIBRARY: Final = (OSError, RuntimeError)  # all that it raises, and the deadline's TimeoutError
_ABOUT_FILE: Final = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)
_CLOSED: Final = "RPC listener disconnected"  # as by a NameNode that asks for another login
_FULL: Final = 200  # characters of a message
_SILENT_SECONDS: Final = 60.0


class NativeClient:
    """A client of the NameNode, or the name service of HADOOP_CONF_DIR, at `hdfs://HOST`. It logs in as `connect_hdfs`
    does. Make it in the process that uses it: it does not survive a fork."""

    def __init__(self, address: str) -> None:
        """Make a client that connects with its first call. With Kerberos raise as `require_ticket`."""
        if kerberos.uses_kerberos():  # the library looks for a ticket while no other thread may run: a KDC may hang
            kerberos.require_ticket(locate("webhdfs"))
        self.address = address
        self._client = _connect(address)
        self._silent_until = 0.0

    def call(self, request: Callable[[Client], T]) -> T:
        """Return what the request returns. Raise what the library raises, TimeoutError after two minutes."""
        try:
            return call_within(hdfs.TIMEOUT[1], lambda: request(self._client))
        except TimeoutError:
            self._client = _connect(self.address)  # the thread that hangs keeps the old one
            self._silent_until = time.monotonic() + _SILENT_SECONDS
            raise

    @property
    def is_silent(self) -> bool:
        """Whether a call hung until its deadline a moment ago: the next one would, too."""
        return time.monotonic() < self._silent_until

    def ask(self, request: Callable[[Client], T]) -> T:
        """Return what the request returns. Raise an error of our own for the library's; but FileNotFoundError and
        FileExistsError as they are."""
        try:
            return self.call(request)
        except (FileNotFoundError, FileExistsError):
            raise
        except _LIBRARY as error:
            raise self.translate(error) from error

    def translate(self, error: Exception) -> OnceoverError:
        """Return the error of our own for the library's, by Kerberos' word where a login may have failed."""
        text = read_message(error)
        if "SafeModeException" in text:
            return UnreachableError(hdfs.describe_safe_mode(self.address))
        if "AccessControlException" in text:
            return AccessDeniedError(hdfs.describe_denial(text))
        is_about_file = isinstance(error, _ABOUT_FILE)
        if not is_about_file and kerberos.uses_kerberos() and (failure := kerberos.find_failure(locate("webhdfs"))):
            return failure
        if _CLOSED in text and (failure := hdfs.find_refused_login(locate("webhdfs"))):
            return failure
        if (isinstance(error, OSError) and not is_about_file) or any(name in text for name in NOT_SERVING):
            return UnreachableError(f"HDFS at {self.address} does not answer ({text}); {start_or_set('hdfs')}")
        return TerminalError(f"HDFS at {self.address} refused the request: {text}; the NameNode's log has more")


def read_message(error: BaseException) -> str:
    """Return the first line of the library's message, which for a server's error has the name of its Java class."""
    text = str(error).replace("\\n", "\n").replace('\\"', '"').strip()
    return text.splitlines()[0][:_FULL] if text else type(error).__name__


def _connect(address: str) -> Client:
    config = dict[str, str]()
    if kerberos.uses_kerberos():
        config["hadoop.security.authentication"] = "kerberos"
    else:
        os.environ["HADOOP_USER_NAME"] = name_user()  # where the library reads it, whenever it connects
    if not os.environ.get("HADOOP_CONF_DIR"):  # whose files decide
        config["dfs.client.block.write.replace-datanode-on-failure.best-effort"] = "true"
    if urlsplit(address).port:  # one NameNode: a refused connection is an error at once, as everywhere
        config["dfs.client.failover.max.attempts"] = "0"
    try:
        return Client(address, config)
    except (RuntimeError, ValueError, OSError) as error:
        raise ConfigurationError(
            f"ONCEOVER_HDFS={address} names no NameNode ({read_message(error)}); set HOST:PORT, or for a name service "
            "HADOOP_CONF_DIR, at Spark's executors too"
        ) from error
