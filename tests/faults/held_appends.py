"""Appends that are held midway: a DataNode has some of a new file's bytes, or all that were added to a file."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlparse

from tests.faults.ends import find_datanode
from tests.faults.proxy import Proxy

from onceover.config.endpoints import address

Held = tuple[Mapping[str, str], threading.Event, threading.Event]
"""The environment of a process whose appends stop, an event that is set then, and one to set for them to go on."""


@contextmanager
def append_held_midway(after: int) -> Iterator[Held]:
    """Stop the appends to new files after so many bytes."""
    sent, held, go_on = [0], threading.Event(), threading.Event()

    def hold_the_rest(data: bytes) -> bytes:
        sent[0] += len(data)
        if sent[0] > after:
            held.set()
            go_on.wait()
        return data

    datanode, namenode = find_datanode(), urlparse(address("webhdfs")).netloc
    with (
        Proxy(datanode, to_server=hold_the_rest) as behind,
        Proxy(namenode, to_client=lambda data: data.replace(datanode.encode(), behind.address.encode())) as before,
    ):
        yield {"ONCEOVER_WEBHDFS": f"http://{before.address}", "ONCEOVER_HDFS": address("hdfs")}, held, go_on


@contextmanager
def append_held_at_its_end() -> Iterator[Held]:
    """Stop the appends to files that exist before the NameNode hears that all bytes have been sent."""
    held, go_on = threading.Event(), threading.Event()

    def hold(data: bytes) -> bytes:
        if b"complete" in data:
            held.set()
            go_on.wait()
        return data

    with Proxy(urlparse(address("hdfs")).netloc, to_server=hold) as before:
        yield {"ONCEOVER_WEBHDFS": address("webhdfs"), "ONCEOVER_HDFS": f"hdfs://{before.address}"}, held, go_on
