"""A broker that answers slowly: by a quota of its own, or behind a link of few bytes a second."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.faults.proxy import Proxy

_ALTER_CLIENT_QUOTAS = 49


def limit_client(address: str, client_id: str, bytes_a_second: float) -> None:
    """Set `consumer_byte_rate` of a client, for which its library for Python has no request."""
    entity = b"\x02" + _text("client-id") + _text(client_id) + b"\0"
    change = b"\x02" + _text("consumer_byte_rate") + struct.pack(">d", bytes_a_second) + b"\0\0"
    request = struct.pack(">hhih", _ALTER_CLIENT_QUOTAS, 1, 1, 1) + b"t\0" + b"\x02" + entity + change + b"\0\0\0"
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), 10) as broker, broker.makefile("rb") as answers:
        broker.sendall(struct.pack(">i", len(request)) + request)
        answer = answers.read(struct.unpack(">i", answers.read(4))[0])
    (error,) = struct.unpack_from(
        ">h", answer, 4 + 1 + 4 + 1
    )  # after its number, tags, throttle time and array's length
    assert error == 0, answer


@contextmanager
def slow_link(address: str, bytes_a_second: int) -> Iterator[str]:
    """Yield an address before the broker that passes on so many bytes a second to clients; requests are not slowed."""
    host, port = address.split(":")
    own = host.encode() + struct.pack(">i", int(port))

    def pass_slowly(data: bytes) -> bytes:
        time.sleep(len(data) / bytes_a_second)
        return data.replace(own, host.encode() + struct.pack(">i", int(proxy.address.split(":")[1])))

    with Proxy(address, to_client=pass_slowly) as proxy:
        yield proxy.address


def _text(value: str) -> bytes:
    return bytes([len(value) + 1]) + value.encode()
