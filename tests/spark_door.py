"""A caller of Spark's network protocol that proves nothing: what a stranger's first message gets."""

from __future__ import annotations

import socket
import struct

RPC_REQUEST, RPC_RESPONSE, RPC_FAILURE = 3, 4, 5
"""Types of messages in Spark's `org.apache.spark.network.protocol.Message`."""


def ask(host: str, port: int, body: bytes) -> tuple[int, str]:
    """Send one request and return the answer's type and text; 0 and nothing if the server hangs up."""
    message = struct.pack(">bqi", RPC_REQUEST, 1, len(body)) + body
    with socket.create_connection((host, port), timeout=20) as connection:
        connection.sendall(struct.pack(">q", 8 + len(message)) + message)
        with connection.makefile("rb") as answer:
            head = answer.read(8)
            if len(head) < 8:
                return 0, ""
            text = answer.read(struct.unpack(">q", head)[0] - 8)
    return text[0], text[13:].decode(errors="replace")
