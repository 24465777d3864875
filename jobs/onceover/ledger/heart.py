"""A driver's heartbeat while it works, and being the driver for as long as one thing takes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from onceover.config.endpoints import address
from onceover.errors import FencedError, OnceoverError
from onceover.ledger import drivers
from onceover.ledger.database import Connection, connect

log = logging.getLogger(__name__)


class Heart:
    """Beats in a thread of its own while the driver works; `lost` is set once another epoch is current."""

    def __init__(self, address: str, epoch: drivers.Epoch) -> None:
        self._address, self._epoch = address, epoch
        self._stop = threading.Event()
        self.lost = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Heart:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=10)

    def _beat(self) -> None:
        while not self._stop.is_set():
            try:
                with connect(self._address, "onceover heartbeat") as connection:
                    while not self._stop.wait(drivers.HEARTBEAT_SECONDS):
                        drivers.beat(connection, self._epoch)
            except FencedError as error:
                log.error("%s", error)
                self.lost.set()
                return
            except OnceoverError as error:
                # A database that is away for a moment is no reason to stop; the epoch tells who may write.
                log.warning("heartbeat: %s", error)
                self._stop.wait(drivers.HEARTBEAT_SECONDS)


@contextmanager
def as_driver(ledger: Connection, pipeline: str, owner: str) -> Iterator[drivers.Epoch]:
    """Be the pipeline's driver within. Raises BusyError while another one's heartbeat is fresh."""
    epoch = drivers.acquire(ledger, pipeline, owner)
    try:
        with Heart(address("postgres"), epoch):
            yield epoch
    finally:
        drivers.release(ledger, epoch)
