"""The check of Kafka: the cluster, and whether the settings of each pipeline's topic can lose records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from onceover.cli.doctor.outcome import SECONDS, Outcome
from onceover.config.endpoints import address
from onceover.context import open_pipeline
from onceover.errors import OnceoverError, TerminalError
from onceover.kafka import Topic
from onceover.kafka.client import Admin
from onceover.kafka.topic import AHEAD, HOUR_MS, TopicPolicy
from onceover.model.pipeline import Pipeline
from onceover.model.wording import pluralize

ON_CALL_MS = 24 * HOUR_MS
"""Time that people may need until a hole is repaired."""


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
        yield Outcome(check, "wrong" if _has_run(pipeline) else "note", str(error))
        return
    except OnceoverError as error:
        yield Outcome(check, "wrong", str(error))
        return
    held = sum(facts.end[p] - facts.earliest[p] for p in facts.end)
    yield Outcome(check, "fine", f"{name}: {pluralize(len(facts.end), 'Kafka partition')}, {held:,} offsets")
    if isinstance(policy, OnceoverError):
        yield Outcome(check, "note", f"its settings cannot be read: {policy}")
    else:
        yield from check_settings(check, pipeline, policy)


def _read_policy(topic: Topic) -> TopicPolicy | OnceoverError:
    try:
        return topic.policy()
    except OnceoverError as error:  # a client may read a topic without the right to see its settings
        return error


def check_settings(check: str, pipeline: Pipeline, policy: TopicPolicy) -> Iterator[Outcome]:
    """Check a topic's effective settings against the pipeline's needs."""
    topic, horizon_ms = pipeline.contract.topic, pipeline.contract.horizon_ms
    outcomes = [*_check_retention(check, pipeline, policy)]
    if policy.unclean_election:
        what = (
            "a replica that lacks records may become leader (unclean.leader.election.enable=true): those records are "
            "lost, and others get their IDs; " + _advise(topic, "unclean.leader.election.enable=false")
        )
        outcomes.append(Outcome(check, "wrong", what))
    if policy.stamped_on_arrival:
        late = _format_hours(horizon_ms) if horizon_ms is not None else ""
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
        lasts = "for ever" if policy.retention_ms is None else f"for {_format_hours(policy.retention_ms)}"
        outcomes.append(Outcome(check, "fine", f"keeps records {lasts}, elects no leader that lacks some"))
    yield from outcomes


def _check_retention(check: str, pipeline: Pipeline, policy: TopicPolicy) -> Iterator[Outcome]:
    """Check that Kafka keeps a window's records until the window is judged, and `ON_CALL_MS` longer."""
    needed = pipeline.contract.window_minutes * 60_000 + pipeline.ingest.allowed_lateness_ms
    held = policy.retention_ms
    if held is None or held >= needed + ON_CALL_MS:
        return
    enough = _advise(pipeline.contract.topic, f"retention.ms={needed + ON_CALL_MS}")
    if held < needed:
        what = (
            f"Kafka drops records after {_format_hours(held)}, but a window is judged {_format_hours(needed)} after "
            f"its start (window_minutes and allowed_lateness): a hole could never be read again; {enough}"
        )
        yield Outcome(check, "wrong", what)
    else:
        what = (
            f"Kafka drops records after {_format_hours(held)}: once a window is judged, {_format_hours(held - needed)} "
            f"are left to read a hole again; for a day, {enough}"
        )
        yield Outcome(check, "note", what)


def _advise(topic: str, setting: str) -> str:
    command = f"kafka-configs.sh --bootstrap-server KAFKA --alter --entity-type topics --entity-name {topic}"
    return f"set it with `{command} --add-config {setting}`"


def _format_hours(milliseconds: int) -> str:
    return f"{round(milliseconds / HOUR_MS, 2):,g} h"


def _has_run(pipeline: Pipeline) -> bool:
    try:
        with open_pipeline(pipeline, "doctor") as context:
            return context.is_registered()
    except OnceoverError:
        return True  # unknown: rather one alarm too many
