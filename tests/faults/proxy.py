"""A TCP proxy before a server: what goes through it can be changed, held back, or cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

Edit = Callable[[bytes], bytes]


class CutError(Exception):
    """Raised by an edit to close the connection instead of passing the bytes on."""


def pass_on(data: bytes) -> bytes:
    return data


class Proxy:
    """Listens on a port of its own until the block ends. `to_server` and `to_client` get each piece as it arrives, in
    a thread of the connection: they may change it, block, or raise CutError."""

    def __init__(self, upstream: str, to_server: Edit = pass_on, to_client: Edit = pass_on) -> None:
        host, _, port = upstream.rpartition(":")
        self._upstream, self._to_server, self._to_client = (host, int(port)), to_server, to_client
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _close(self._listener)
        self.cut()

    def cut(self) -> None:
        """Close all connections."""
        for each in self._sockets:
            _close(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            try:
                server = socket.create_connection(self._upstream)
            except OSError:  # the server is away
                _close(client)
                continue
            self._sockets += client, server
            if self._listener.fileno() < 0:
                self.cut()
                return
            for source, sink, edit in ((client, server, self._to_server), (server, client, self._to_client)):
                threading.Thread(target=_pump, args=(source, sink, edit), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket, edit: Edit) -> None:
    with suppress(OSError, CutError):
        while data := source.recv(1 << 16):
            sink.sendall(edit(data))
    _close(source)
    _close(sink)


def _close(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
