"""Finds the records that the contract's SQL cannot be evaluated for, by processes that may die of them.

Each range is evaluated some hundred offsets at a time. Where that fails, dies or does not end, it is repeated offset by
offset, and for one that fails, expression by expression. The ranges without such a record are known first.
"""

from __future__ import annotations

import json
import os
import pickle
import selectors
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from math import isqrt
from time import monotonic
from typing import IO, Final, Self

import psutil

from onceover.errors import TransientError
from onceover.kafka.child_read import build_environment
from onceover.model.contract import name_values
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.poison import SQL_FAILED, SQL_TOO_SLOW, PoisonRecord
from onceover.spark import poison_probe
from onceover.spark.hang_watch import read_cpu_seconds
from onceover.spark.poison_probe import ID, ProbeRequest, Unit
from onceover.spark.session import UNDER_SUBMIT

MAX_CPU_SECONDS: Final = 10.0
"""Of Spark's JVM, for the SQL of one record."""
LEAST_TOGETHER: Final = 16
"""Offsets that are evaluated together at first: the square root of all, for the fewest steps, but not less."""
MAX_FOUND: Final = 100
"""Of one Kafka partition in one search: the next batch that fails begins another."""
_STALL_SECONDS: Final = 300.0
"""Without an answer nor work: Kafka or the machine does not answer."""
_POLL_SECONDS: Final = 0.1
_SUBMIT_ARGUMENTS: Final = (
    "--master local[1] --driver-memory 1g --conf spark.ui.enabled=false --conf spark.sql.adaptive.enabled=false "
    "--conf spark.sql.codegen.wholeStage=false --conf spark.sql.codegen.factoryMode=NO_CODEGEN pyspark-shell"
)
"""A few records are faster interpreted than compiled."""
_NO_SOURCE: Final = KafkaPartition("00000000", 0)  # of lines by their number
_OF_SUBMIT: Final = (UNDER_SUBMIT, "PYSPARK_GATEWAY_SECRET")


@dataclass(frozen=True, slots=True)
class _Failure:
    """How records cannot be evaluated; `is_end`: the process ended with it."""

    kind: str
    error: str
    is_end: bool = False


def search(
    asked: ProbeRequest, version: int, ranges: Sequence[OffsetRange]
) -> Generator[tuple[OffsetRange, list[PoisonRecord]], None, None]:
    """Yield each range with the poison records in it, those without any first. `version` is the contract's.

    Raises TransientError if Kafka does not answer or does not hold a range, or if Spark does not start.
    """
    with _Probe(asked) as probe:
        failed: list[tuple[OffsetRange, tuple[int, _Failure]]] = []
        for whole in ranges:
            tried = ((unit.start, probe.evaluate(unit)) for unit in _cut(whole, whole.start))
            first = next(((start, failure) for start, failure in tried if failure), None)
            if first is None:
                yield whole, []
            else:
                failed.append((whole, first))
        for whole, first in failed:
            yield whole, _list_poison(probe, asked, version, whole, first)


def search_quarantine(asked: ProbeRequest, version: int) -> list[PoisonRecord]:
    """Return the poison records among lines of quarantine. Raises as `search`."""
    with _Probe(asked) as probe:
        whole = OffsetRange(_NO_SOURCE, 0, probe.count_lines())
        found = _list_poison(probe, asked, version, whole, None)
        return [probe.identify(each) for each in found]


def _list_poison(
    probe: _Probe, asked: ProbeRequest, version: int, whole: OffsetRange, failed: tuple[int, _Failure] | None
) -> list[PoisonRecord]:
    """Return those of the range; the unit that starts at `failed` fails so, as is known, and none before it does."""
    found: list[PoisonRecord] = []
    first, of_first = failed or (0, None)
    for unit in _cut(whole, first):
        failure = of_first if unit.start == first and of_first else probe.evaluate(unit)
        if failure is None:
            continue
        for offset in range(unit.start, unit.end):
            single = Unit(unit.kafka_partition, offset, offset + 1)
            if of_record := _examine(probe, asked, single, failure):
                shown, why = of_record
                found.append(PoisonRecord(whole.source, offset, version, f"{why.kind}: {shown}", why.error))
                if len(found) == MAX_FOUND:
                    return found
    return found


def _examine(probe: _Probe, asked: ProbeRequest, single: Unit, of_unit: _Failure) -> tuple[str, _Failure] | None:
    """Return the expression that the record fails by, and how; all of them, if each alone can be evaluated.

    All are evaluated together first, unless a failure costs the process: then each alone.
    """
    of_all = None if of_unit.is_end else probe.evaluate(single)
    if of_all or of_unit.is_end:
        for column, shown in name_values(asked.contract).items():
            if failure := probe.evaluate(Unit(single.kafka_partition, single.start, single.end, column)):
                return shown, failure
    return ("all expressions together", of_all) if of_all else None


def _cut(whole: OffsetRange, start: int) -> Iterator[Unit]:
    together = max(LEAST_TOGETHER, isqrt(len(whole)))
    for at in range(start, whole.end, together):
        yield Unit(whole.source.kafka_partition, at, min(at + together, whole.end))


class _Probe:
    """A process of `poison_probe`, started again after it died or was killed."""

    _units: IO[bytes]
    _answers: IO[bytes]

    def __init__(self, asked: ProbeRequest) -> None:
        self._asked = asked
        self._process: subprocess.Popen[bytes] | None = None
        self._jvm: psutil.Process | None = None
        self._lines = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()

    def evaluate(self, unit: Unit) -> _Failure | None:
        """Return how the unit fails, None if it can be evaluated. Raises as `search`."""
        answer = self._ask(unit)
        if isinstance(answer, _Failure):
            self._kill()
            return answer
        said = json.loads(answer)
        if said is None:
            return None
        is_of_record, error = said
        if not is_of_record:
            raise TransientError(f"the search for a poison record cannot read offset {unit.start}: {error}")
        return _Failure(SQL_FAILED, error)

    def count_lines(self) -> int:
        """Return the number of lines of quarantine. Raises as `search`."""
        self._start()
        return self._lines

    def identify(self, found: PoisonRecord) -> PoisonRecord:
        """Return the record of a line of quarantine by its ID. Raises as `search`."""
        answer = self._ask(Unit(0, found.offset, found.offset + 1, ID))
        if isinstance(answer, _Failure):
            raise TransientError(f"the search for a poison record cannot name it: {answer.error}")
        generation, kafka_partition, offset = json.loads(answer)
        return replace(found, source=KafkaPartition(generation, kafka_partition), offset=offset)

    def _ask(self, unit: Unit) -> bytes | _Failure:
        if self._process is None:
            self._start()
        with suppress(OSError):  # it died: there will be no answer
            self._units.write(json.dumps(astuple(unit)).encode() + b"\n")
            self._units.flush()
        return self._wait()

    def _start(self) -> None:
        environment = {name: value for name, value in build_environment().items() if name not in _OF_SUBMIT}
        self._process = process = subprocess.Popen(
            [sys.executable, "-m", poison_probe.__name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**environment, "PYSPARK_SUBMIT_ARGS": _SUBMIT_ARGUMENTS},
            start_new_session=True,
        )
        if process.stdin is None or process.stdout is None:
            raise ValueError("a process without pipes")
        self._units, self._answers = process.stdin, process.stdout
        pickle.dump(self._asked, self._units)
        self._units.flush()
        answer = self._wait()
        if isinstance(answer, _Failure):
            self._kill()
            raise TransientError(f"the search for a poison record does not start: {answer.error}")
        pid, self._lines = json.loads(answer)
        self._jvm = psutil.Process(pid)

    def _wait(self) -> bytes | _Failure:
        """Return the process's next line; how it failed if it dies, or works for too long."""
        began, until = _read_cpu_seconds(self._jvm), monotonic() + _STALL_SECONDS
        with selectors.DefaultSelector() as ready:
            ready.register(self._answers, selectors.EVENT_READ)
            while not ready.select(_POLL_SECONDS):
                if _read_cpu_seconds(self._jvm) - began > MAX_CPU_SECONDS:
                    why = f"not evaluated within {MAX_CPU_SECONDS:.0f} s of processor time"
                    return _Failure(SQL_TOO_SLOW, why, is_end=True)
                if monotonic() > until:
                    raise TransientError(f"the search for a poison record got no answer for {_STALL_SECONDS:.0f} s")
        line = self._answers.readline()
        return line if line.endswith(b"\n") else _Failure(SQL_FAILED, "Spark's JVM died of it", is_end=True)

    def _kill(self) -> None:
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with self._process as ended:  # closes its pipes
            ended.kill()
        self._process = self._jvm = None


def _read_cpu_seconds(jvm: psutil.Process | None) -> float:
    with suppress(psutil.NoSuchProcess):
        return read_cpu_seconds(jvm) if jvm else 0.0
    return 0.0
