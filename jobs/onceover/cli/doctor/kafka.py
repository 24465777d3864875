"""The check of Kafka: the cluster, and whether the settings of each pipeline's topic can lose records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import TypeVar

from onceover.cli.doctor.outcome import SECONDS, Outcome
from onceover.config.endpoints import address, start_or_set
from onceover.context import PipelineContext, open_pipeline
from onceover.errors import OnceoverError, TerminalError
from onceover.kafka import Topic, TopicFacts
from onceover.kafka.client import Admin
from onceover.kafka.topic import AHEAD, HOUR_MS, UNPACKED, TopicPolicy
from onceover.ledger.log_limits import list_hidden, list_stopped, read_log_retention
from onceover.model.hidden_offsets import HiddenOffsets
from onceover.model.pipeline import Pipeline
from onceover.model.record import LARGEST_RECORD
from onceover.model.stopped_range import StopCause, StoppedRange
from onceover.model.wording import format_duration, pluralize

_T = TypeVar("_T")
ON_CALL_MS = 24 * HOUR_MS
"""Time that people may need until a hole is repaired."""
LONGEST_TRANSACTION = timedelta(minutes=15)
"""Kafka's own bound on a producer's `transaction.timeout.ms`, by default."""


def check_kafka(pipelines: Sequence[Pipeline]) -> Iterator[Outcome]:
    """Check that the cluster answers and has each pipeline's topic, and the topic's settings."""
    where = address("kafka")
    properties = pipelines[0].kafka if pipelines else {}
    admin = Admin(where, properties, SECONDS)
    nodes = admin.wait(admin.client.describe_cluster(request_timeout=SECONDS), "describe the cluster").nodes
    yield Outcome("Kafka", "fine", f"{where} answers, {pluralize(len(nodes), 'broker')}")
    for pipeline in pipelines:
        yield from _check_topic(where, pipeline)


def _check_topic(where: str, pipeline: Pipeline) -> Iterator[Outcome]:
    check, name = f"topic of {pipeline.name}", pipeline.contract.topic
    try:
        with closing(Topic(where, name, pipeline.ingest.isolation, pipeline.kafka, timeout=SECONDS)) as topic:
            facts, policy = topic.facts(), _read_policy(topic)
    except TerminalError as error:  # there is no such topic
        has_run = _read(pipeline, PipelineContext.is_registered, True)  # unknown: rather one alarm too many
        yield Outcome(check, "wrong" if has_run else "note", str(error))
        return
    except OnceoverError as error:
        yield Outcome(check, "wrong", str(error))
        return
    held = sum(facts.end[p] - facts.earliest[p] for p in facts.end)
    yield Outcome(check, "fine", f"{name}: {pluralize(len(facts.end), 'Kafka partition')}, {held:,} offsets")
    yield from _check_transactions(check, pipeline, facts)
    yield from _check_stopped(check, pipeline)
    if isinstance(policy, OnceoverError):
        yield Outcome(check, "note", f"its settings cannot be read: {policy}")
    else:
        noted_ms = None if policy.retention_bytes is None else _read(pipeline, _read_retention, None)
        yield from check_settings(check, pipeline, policy, noted_ms)


def _check_transactions(check: str, pipeline: Pipeline, facts: TopicFacts) -> Iterator[Outcome]:
    """Name what open transactions hide now, and since when ingest has seen them."""
    found = [HiddenOffsets(p, facts.end[p], count, None) for p in facts.end if (count := facts.count_hidden(p))]
    if not found:
        return
    nothing: list[HiddenOffsets] = []
    noted = _read(pipeline, lambda context: list_hidden(context.ledger, pipeline.name, facts.generation), nothing)
    seen = {(each.kafka_partition, each.first): each.since for each in noted}
    for each in found:
        since = seen.get((each.kafka_partition, each.first))
        is_old = since is not None and datetime.now(UTC) - since > LONGEST_TRANSACTION
        tool = f"kafka-transactions.sh --bootstrap-server {address('kafka')}"
        where = f"--topic {facts.topic} --partition {each.kafka_partition}"
        what = (
            f"{replace(each, since=since)}: none of them is read, and no window closes by idleness, until its producer "
            f"commits or aborts. `{tool} describe-producers {where}` names the producer; if it is gone, end its "
            f"transaction with `{tool} abort {where} --start-offset {each.first}`"
        )
        yield Outcome(check, "wrong" if is_old else "note", what)


def _check_stopped(check: str, pipeline: Pipeline) -> Iterator[Outcome]:
    """Name what waits for the search for a record that ends Spark, and for a schema registry."""
    what = "waits while ingest searches it for a record that ends Spark, or never lets it end"
    for each in _list_stopped(pipeline, StopCause.SUSPECT):
        yield Outcome(check, "note", f"{each.offsets} {what}: {each.why}")
    for each in _list_stopped(pipeline, StopCause.UNKNOWN_SCHEMA):
        yield Outcome(check, "wrong", f"{each.offsets} waits: {each.why}; {start_or_set('registry')}")


def _list_stopped(pipeline: Pipeline, cause: StopCause) -> list[StoppedRange]:
    nothing: list[StoppedRange] = []
    return _read(pipeline, lambda context: list_stopped(context.ledger, pipeline.name, cause), nothing)


def _read(pipeline: Pipeline, read: Callable[[PipelineContext], _T], unknown: _T) -> _T:
    """Return what is read with the pipeline's context; `unknown` if that fails, which another check names."""
    try:
        with open_pipeline(pipeline, "doctor") as context:
            return read(context)
    except OnceoverError:
        return unknown


def _read_policy(topic: Topic) -> TopicPolicy | OnceoverError:
    try:
        return topic.policy()
    except OnceoverError as error:  # a client may read a topic without the right to see its settings
        return error


def _read_retention(context: PipelineContext) -> int | None:
    """Return for how many ms the topic keeps records, as ingest noted last; None for ever, or unknown."""
    seconds = read_log_retention(context.ledger, context.pipeline.name)
    return None if seconds is None else round(seconds * 1000)


def check_settings(
    check: str, pipeline: Pipeline, policy: TopicPolicy, noted_ms: int | None = None
) -> Iterator[Outcome]:
    """Check a topic's effective settings against the pipeline's needs. By size, it keeps records for `noted_ms`."""
    topic, horizon_ms = pipeline.contract.topic, pipeline.contract.horizon_ms
    outcomes = [*_check_retention(check, pipeline, policy, noted_ms)]
    if policy.unpacked_bytes is not None and policy.unpacked_bytes > LARGEST_RECORD:
        what = (
            f"Kafka takes compressed records of up to {policy.unpacked_bytes:,} bytes ({UNPACKED}), and raw takes at "
            f"most {LARGEST_RECORD:,}: a larger one is unreadable; {_advise(topic, f'{UNPACKED}={LARGEST_RECORD}')}"
        )
        outcomes.append(Outcome(check, "note", what))
    if policy.unclean_election:
        what = (
            "a replica that lacks records may become leader (unclean.leader.election.enable=true): those records are "
            "lost, and others get their IDs; " + _advise(topic, "unclean.leader.election.enable=false")
        )
        outcomes.append(Outcome(check, "wrong", what))
    if policy.stamped_on_arrival:
        late = _format_ms(horizon_ms) if horizon_ms is not None else ""
        bound = f", and a record that arrives over {late} late goes to quarantine" if late else ""
        what = (
            "Kafka stamps records on arrival (message.timestamp.type=LogAppendTime): contract.bounds are checked "
            f"against that time{bound}; if records are ever replayed, "
            f"{_advise(topic, 'message.timestamp.type=CreateTime')}"
        )
        outcomes.append(Outcome(check, "note", what))
    elif policy.ahead_ms > HOUR_MS:
        what = (
            f"Kafka takes timestamps from further ahead than an hour ({AHEAD}={policy.ahead_ms}): contract.bounds are "
            "checked against the producer's clock, and one record from the year 2286 closes every window; "
            f"{_advise(topic, f'{AHEAD}={HOUR_MS}')}"
        )
        outcomes.append(Outcome(check, "note", what))
    if policy.compacted:
        what = (
            "Kafka drops older values of a key (cleanup.policy=compact): a hole cannot be read again in full; if raw "
            f"is to hold every record, {_advise(topic, 'cleanup.policy=delete')}"
        )
        outcomes.append(Outcome(check, "note", what))
    if not outcomes:
        lasts = "for ever" if policy.retention_ms is None else f"for {_format_ms(policy.retention_ms)}"
        if policy.retention_bytes is not None and noted_ms is not None:
            lasts = f"for about {_format_ms(min(noted_ms, policy.retention_ms or noted_ms))}"
        outcomes.append(Outcome(check, "fine", f"keeps records {lasts}, elects no leader that lacks some"))
    yield from outcomes


def _check_retention(check: str, pipeline: Pipeline, policy: TopicPolicy, noted_ms: int | None) -> Iterator[Outcome]:
    """Check that Kafka keeps a window's records until the window is judged, and `ON_CALL_MS` longer."""
    needed = pipeline.contract.windowing.pieces.longest + pipeline.ingest.allowed_lateness_ms
    held, setting, after = policy.retention_ms, f"retention.ms={needed + ON_CALL_MS}", ""
    if policy.retention_bytes is not None and noted_ms is None:
        what = (
            f"Kafka drops what a Kafka partition has beyond {policy.retention_bytes:,} bytes (retention.bytes); how "
            "long records last is known once ingest has landed some"
        )
        yield Outcome(check, "note", what)
    elif policy.retention_bytes is not None and noted_ms is not None and (held is None or noted_ms < held):
        held, after = noted_ms, f", at their present pace, by retention.bytes={policy.retention_bytes}"
        setting = f"retention.bytes={ceil(policy.retention_bytes * (needed + ON_CALL_MS) / max(held, 1))}"
    if held is None or held >= needed + ON_CALL_MS:
        return
    enough = _advise(pipeline.contract.topic, setting)
    if held < needed:
        what = (
            f"Kafka drops records after {_format_ms(held)}{after}, but a window is judged {_format_ms(needed)} "
            f"after its start (its length and allowed_lateness): a hole could never be read again; {enough}"
        )
        yield Outcome(check, "wrong", what)
    else:
        what = (
            f"Kafka drops records after {_format_ms(held)}{after}: once a window is judged, "
            f"{_format_ms(held - needed)} are left to read a hole again; for a day, {enough}"
        )
        yield Outcome(check, "note", what)


def _advise(topic: str, setting: str) -> str:
    command = (
        f"kafka-configs.sh --bootstrap-server {address('kafka')} --alter --entity-type topics --entity-name {topic}"
    )
    return f"set it with `{command} --add-config {setting}`"


def _format_ms(milliseconds: int) -> str:
    return format_duration(milliseconds / 1000)
