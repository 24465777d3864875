"""A file opened on WebHDFS by plain HTTP: the NameNode names a DataNode, which sends the bytes.

`requests` takes 2 ms of processor time a file for the same two requests, twice what 1 MiB of bytes takes. It is still
asked where a login or TLS is needed, and wherever a server refuses, for the error.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Protocol
from urllib.parse import quote, urlencode, urlsplit

from hdfs import Client, InsecureClient

from onceover.config.os_user import name_user
from onceover.raw import hdfs


class _Bytes(Protocol):
    def readinto(self, view: memoryview, /) -> int: ...


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """The bytes that `host` sends, until `close`."""

    bytes: _Bytes
    host: str | None
    close: Callable[[], object]


class PlainOpener:
    """Opens files by the address of that client, as its user. Keeps a connection to the NameNode."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._name_node: HTTPConnection | None = None

    def __del__(self) -> None:
        if self._name_node is not None:
            self._name_node.close()

    def open(self, path: str, offset: int, length: int) -> OpenedFile | None:
        """Open these bytes; None if a server refuses or does not answer, or must be asked in another way."""
        url = urlsplit(self._client.urls[0])
        if type(self._client) is not InsecureClient or url.scheme != "http" or len(self._client.urls) > 1:
            return None
        query = {"user.name": name_user(), "op": "OPEN", "offset": offset, "length": length}
        target = f"{url.path.rstrip('/')}/webhdfs/v1{quote(path)}?{urlencode(query)}"
        try:
            connection = self._name_node or self._connect(url.netloc)
            self._name_node = None
            response = _get(connection, target)
            if response.status != 307:
                return _take(connection, response)
            location = urlsplit(response.headers["Location"])
            response.read()
            self._name_node = connection  # its answer is read, so that it can be asked again
            if location.scheme != "http":
                return None
            connection = self._connect(location.netloc)
            return _take(connection, _get(connection, f"{location.path}?{location.query}"))
        except (OSError, HTTPException):
            return None

    def _connect(self, netloc: str) -> HTTPConnection:
        to_connect, to_answer = hdfs.TIMEOUT
        connection = HTTPConnection(netloc, timeout=to_connect)
        connection.connect()
        connection.sock.settimeout(to_answer)
        return connection


def _get(connection: HTTPConnection, target: str) -> HTTPResponse:
    try:
        connection.request("GET", target)
        return connection.getresponse()
    except (OSError, HTTPException):
        connection.close()
        raise


def _take(connection: HTTPConnection, response: HTTPResponse) -> OpenedFile | None:
    if response.status != 200:
        connection.close()
        return None

    def close() -> None:
        with suppress(OSError):
            response.close()
            connection.close()

    return OpenedFile(response, connection.host, close)
