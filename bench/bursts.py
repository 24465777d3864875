"""Bursts that are larger than what can be processed: how long batches wait, by who decides what a batch may hold.

A producer writes to a real topic for the first half of every 10 s. Batches are submitted every second by the driver's
own `Submissions`, read by a client and worked on for a time in proportion to their records. The load is scaled to what
this machine turned out to process: 1.35 times the mean load, so bursts are half as large again as it can.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import mean, median

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.table import Row
from onceover.endpoints import address
from onceover.kafka import Topic
from onceover.pace.controller import RateController, Timing
from onceover.pace.estimator import PidEstimator
from onceover.pipeline import IngestPolicy
from onceover.submission import Controller, Submissions

INTERVAL_MS = 1000
SPARE = 1.35
GOAL = 0.59
POLICY = IngestPolicy(0, 1, INTERVAL_MS, 2**31 - 1, "none", "", "bursts", "read_committed", "append", "earliest")
_BLOCK = b"x" * 32_768  # hashed once a record, without Python's lock


@dataclass(slots=True)
class Fixed:
    """A limit that somebody set by hand, knowing the capacity."""

    rate: float

    def submit(
        self, now_ms: float, done: Timing | None, running: Timing | None = None, waiting_since_ms: float | None = None
    ) -> float:
        return self.rate


@dataclass(slots=True)
class Sparks:
    """DStreams' back-pressure: each batch that is done goes through the PID estimate; before there is one, no limit."""

    estimator: PidEstimator = field(default_factory=lambda: PidEstimator(INTERVAL_MS, least=100))
    rate: float = 1e9
    judged: Timing | None = None

    def submit(
        self, now_ms: float, done: Timing | None, running: Timing | None = None, waiting_since_ms: float | None = None
    ) -> float:
        return self.rate

    def done(self, last: Timing) -> None:
        ended = last.ended_ms or 0.0
        found = self.estimator.compute(ended, last.elements, ended - last.started_ms, last.delay_ms)
        self.rate = found if found is not None else self.rate


class _Paced(Submissions):
    """The driver's submissions under a controller of ours or of a peer."""

    controlled: Controller | None = None

    def _control(self, kafka_partitions: int) -> Controller | None:
        return self.controlled

    def done(self) -> None:
        super().done()
        if isinstance(self.controlled, Sparks) and self._done is not None:
            self.controlled.done(self._done)


@dataclass(slots=True)
class Measured:
    """Delays in ms, one a batch; what was processed; (seconds, rate, offsets behind, delay) as it went."""

    delays: list[float] = field(default_factory=list)
    largest_queue: int = 0
    processed: int = 0
    seconds: float = 0.0
    course: list[tuple[float, float, int, float]] = field(default_factory=list)


def run() -> tuple[list[Row], list[str]]:
    """Rows for `bench.table.show`, and what is worth saying beside them."""
    quick = os.environ.get("BENCH") == "quick"
    seconds, times = (30, 1) if quick else (120, 5)
    capacity = _capacity()
    most = 1e9
    makers: dict[str, Callable[[], Controller | None]] = {
        "ours": lambda: RateController(INTERVAL_MS, 1, 100, most, 500),
        "Spark's estimator": Sparks,
        "fixed limit": lambda: Fixed(capacity),
        "no control": lambda: None,
    }
    found: dict[str, list[Measured]] = {name: [] for name in makers}
    for _ in range(times):
        for name, make in makers.items():
            found[name].append(_measure(make(), capacity / SPARE, seconds))
    rows = []
    for what, of, unit in (
        ("mean delay", lambda m: mean(m.delays), "ms"),
        ("p95 delay", lambda m: sorted(m.delays)[int(len(m.delays) * 0.95)], "ms"),
        ("worst delay", lambda m: max(m.delays), "ms"),
        ("processed", lambda m: m.processed / m.seconds, "records/s"),
    ):
        middle = {name: median(map(of, found[name])) for name in makers}
        for peer in list(makers)[1:]:
            ratio = middle["ours"] / max(middle[peer], 1e-9)
            is_goal = peer == "Spark's estimator" and what in ("mean delay", "processed")
            goal = ("<= 0.59" if what == "mean delay" else ">= 0.98") if is_goal else "reported"
            met = not is_goal or (ratio <= GOAL if what == "mean delay" else ratio >= 0.98)
            correct = all(m.processed > 0 for name in ("ours", peer) for m in found[name])
            rows.append(
                Row(f"{what}, {peer}", middle["ours"], middle[peer], peer, unit, ratio, goal, met, correct, times)
            )
    queues = ", ".join(f"{name} {max(m.largest_queue for m in found[name])}" for name in makers)
    return rows, [f"{capacity:,.0f} records/s can be processed; mean load {capacity / SPARE:,.0f}/s; {seconds} s each",
                  f"largest queue: {queues}"]  # fmt: skip


def _measure(controller: Controller | None, load: float, seconds: int) -> Measured:
    """Every record that was produced is processed once, in order, or this raises."""
    stop, found = threading.Event(), Measured()
    with _topic() as (name, topic, consumer):
        producer = threading.Thread(target=_produce, args=(name, load, seconds, stop), daemon=True)
        submissions = _Paced(topic, POLICY, stop)
        submissions.controlled = controller
        at, begun = 0, time.monotonic()
        producer.start()
        with submissions:
            while time.monotonic() < begun + seconds:
                facts = topic.facts()
                submitted = submissions.next(facts, {0: at})
                if submitted is None:
                    continue
                delay = time.monotonic() * 1000 - submitted.at_ms
                found.largest_queue = max(found.largest_queue, submissions.waiting)
                _process(consumer, at, submitted.ranges[0].end)
                at = submitted.ranges[0].end
                submissions.done()
                found.delays.append(delay)
                rate = submitted.rate if submitted.rate is not None else float("nan")
                found.course.append((time.monotonic() - begun, rate, facts.end[0] - at, delay))
        found.processed, found.seconds = at, time.monotonic() - begun
        producer.join(timeout=30)
    return found


def _capacity() -> float:
    """Records a second that are read and worked on, nothing else to do."""
    with _topic() as (name, _, consumer):
        _produce(name, 20_000, 1, threading.Event(), bursts=False)
        _process(consumer, 0, 2_000)
        started = time.monotonic()
        _process(consumer, 2_000, 20_000)
        return 18_000 / (time.monotonic() - started)


def _process(consumer: Consumer, start: int, end: int) -> None:
    at = start
    while at < end:
        messages = consumer.consume(min(500, end - at), timeout=10)
        if not messages:
            raise TimeoutError(f"offset {at} did not come")
        for message in messages:
            if message.offset() != at:
                raise AssertionError(f"offset {message.offset()} came where {at} is due")
            hashlib.sha256(_BLOCK).digest()
            at += 1


def _produce(topic: str, load: float, seconds: int, stop: threading.Event, *, bursts: bool = True) -> None:
    producer = Producer({"bootstrap.servers": address("kafka"), "linger.ms": 5, "log_level": 3})
    begun, sent = time.monotonic(), 0
    while (now := time.monotonic() - begun) < seconds and not stop.is_set():
        cycles, within = divmod(now, 10.0)
        due = load * (10 * cycles + min(within, 5.0) * 2) if bursts else load * now
        while sent < due:
            producer.produce(topic, b"v" * 100, partition=0)
            sent += 1
        producer.poll(0.01)
    if not bursts:
        for _ in range(max(0, int(load * seconds) - sent)):
            producer.produce(topic, b"v" * 100, partition=0)
    producer.flush(30)


@contextmanager
def _topic() -> Iterator[tuple[str, Topic, Consumer]]:
    name = f"bursts-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": address("kafka")})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
    topic = Topic(address("kafka"), name, "read_committed", {})
    consumer = Consumer({"bootstrap.servers": address("kafka"), "group.id": name, "enable.auto.commit": False})
    consumer.assign([TopicPartition(name, 0, 0)])
    yield name, topic, consumer
    consumer.close()
    topic.close()
    admin.delete_topics([name])[name].result(30)
