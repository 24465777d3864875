"""A turn of the driver or a repair in a thread that waits after each of its steps, to be resumed or killed there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue

from onceover.errors import OnceoverError
from onceover.fault_points import AnyStep, FaultPoint

PATIENCE = 300.0  # for one step, on a machine with other work


class KilledError(BaseException):
    """The end of a thread that was killed between two steps; nothing in between may catch it."""


@dataclass(slots=True)
class WaitingPoint(FaultPoint):
    """A fault point at every step."""

    reached: SimpleQueue[AnyStep | None] = field(default_factory=SimpleQueue)
    resumed: SimpleQueue[bool] = field(default_factory=SimpleQueue)

    def stop_after(self, step: AnyStep) -> None:
        self.reached.put(step)
        if not self.resumed.get():
            raise KilledError


class Stepped:
    """A process of the product. It has started when this is made, and waits after its first step."""

    def __init__(self, body: Callable[[FaultPoint], None]) -> None:
        self._body, self._point = body, WaitingPoint()
        self.refused: OnceoverError | None = None
        self._broken: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.at: AnyStep | None = None
        self._wait()

    def _run(self) -> None:
        try:
            self._body(self._point)
        except KilledError:
            pass
        except OnceoverError as error:
            self.refused = error
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            self._broken = error
        finally:
            self._point.reached.put(None)

    def _wait(self) -> None:
        self.at = self._point.reached.get(timeout=PATIENCE)
        if self.at is None:
            self._thread.join(PATIENCE)
            if self._broken:
                raise self._broken

    def advance(self, step: AnyStep | None = None) -> None:
        """Go on to that step, or to the end."""
        while self.at is not None and self.at != step:
            self._point.resumed.put(True)
            self._wait()

    def kill(self) -> None:
        if self.at is not None:
            self._point.resumed.put(False)
            self._wait()
