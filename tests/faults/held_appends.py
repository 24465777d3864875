"""Appends that are held midway: the DataNode has some of their bytes, and waits for the rest."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlparse

from tests.faults.ends import find_datanode
from tests.faults.proxy import Proxy

from onceover.config.endpoints import address


@contextmanager
def append_held_midway(after: int) -> Iterator[tuple[Mapping[str, str], threading.Event, threading.Event]]:
    """Yield the environment of a process whose appends stop after so many bytes, an event that is set then, and one to
    set for them to go on."""
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
        yield {"ONCEOVER_WEBHDFS": f"http://{before.address}"}, held, go_on
