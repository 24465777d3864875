"""The claims of a repair that runs: a thread renews them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from onceover.errors import OnceoverError
from onceover.ledger import repair_requests
from onceover.ledger.database import DatabaseError, connect
from onceover.model.claim import CLAIM_SECONDS, ClaimedWindow

log = logging.getLogger(__name__)


class ClaimRenewer:
    """A thread that renews the request's claims while the repair runs."""

    def __init__(self, address: str, pipeline: str, claimed: Sequence[ClaimedWindow]) -> None:
        self._address, self._pipeline, self._claimed = address, pipeline, claimed
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="claims", daemon=True)

    def __enter__(self) -> ClaimRenewer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=10)

    def _renew(self) -> None:
        while not self._stop.wait(CLAIM_SECONDS / 4):
            try:
                with connect(self._address, "onceover claims") as connection:
                    repair_requests.renew(connection, self._pipeline, self._claimed)
            except (OnceoverError, DatabaseError) as error:
                log.warning("claims not renewed: %s", error)  # publishing checks the token, so this costs work only
