"""Kafka as doctor looks at it: the cluster, and whether each pipeline's topic is set so that nothing is lost there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from onceover.cli.doctor.outcome import SECONDS, Outcome
from onceover.config.endpoints import address
from onceover.context import open_pipeline
from onceover.errors import OnceoverError, TerminalError
from onceover.explain.finding_text import pluralize
from onceover.kafka import Topic
from onceover.kafka.client import Admin
from onceover.kafka.topic import TopicPolicy
from onceover.model.pipeline import Pipeline

_HOUR_MS = 3_600_000
ON_CALL_MS = 24 * _HOUR_MS
"""How long somebody may need until a hole is repaired."""


def kafka(pipelines: Sequence[Pipeline]) -> Iterator[Outcome]:
    """Whether the cluster answers, whether it has each pipeline's topic, and how that is set."""
    where = address("kafka")
    properties = pipelines[0].kafka if pipelines else {}
    admin = Admin(where, properties, SECONDS)
    nodes = admin.wait(admin.client.describe_cluster(request_timeout=SECONDS), "describe the cluster").nodes
    yield Outcome("Kafka", "fine", f"{where} answers, {pluralize(len(nodes), 'broker')}")
    for pipeline in pipelines:
        yield from _topic(where, pipeline)


def _topic(where: str, pipeline: Pipeline) -> Iterator[Outcome]:
    check, name = f"topic of {pipeline.name}", pipeline.contract.topic
    try:
        asked = Topic(where, name, pipeline.ingest.isolation, pipeline.kafka, timeout=SECONDS)
        with closing(asked) as topic:
            facts, policy = topic.facts(), _policy(topic)
    except TerminalError as error:  # there is no such topic
        yield Outcome(check, "wrong" if _has_run(pipeline) else "note", str(error))
        return
    except OnceoverError as error:
        yield Outcome(check, "wrong", str(error))
        return
    held = sum(facts.end[p] - facts.earliest[p] for p in facts.end)
    yield Outcome(check, "fine", f"{name}: {pluralize(len(facts.end), 'Kafka partition')}, {held:,} offsets")
    if isinstance(policy, OnceoverError):
        yield Outcome(check, "note", f"its settings cannot be looked at: {policy}")
    else:
        yield from settings(check, pipeline, policy)


def _policy(topic: Topic) -> TopicPolicy | OnceoverError:
    try:
        return topic.policy()
    except OnceoverError as error:  # a client may read a topic without the right to see its settings
        return error


def settings(check: str, pipeline: Pipeline, policy: TopicPolicy) -> Iterator[Outcome]:
    """What is wrong with a topic's settings for that pipeline, wherever they were set."""
    topic, horizon_ms = pipeline.contract.topic, pipeline.contract.horizon_ms
    found = [*_retention(check, pipeline, policy)]
    if policy.unclean_election:
        what = (
            "a replica that lacks records may become leader (unclean.leader.election.enable=true): they are lost, and "
            "others take their IDs; " + _alter(topic, "unclean.leader.election.enable=false")
        )
        found.append(Outcome(check, "wrong", what))
    if policy.stamped_on_arrival:
        bound = "" if horizon_ms is None else f", and what arrives over {_hours(horizon_ms)} late goes to quarantine"
        what = (
            "Kafka stamps records on arrival (message.timestamp.type=LogAppendTime): contract.bounds are held against "
            f"that time{bound}; if records are ever replayed, {_alter(topic, 'message.timestamp.type=CreateTime')}"
        )
        found.append(Outcome(check, "note", what))
    if policy.compacted:
        what = (
            "Kafka drops older values of a key (cleanup.policy=compact): a hole cannot be read again in full; if raw "
            f"is to hold every record, {_alter(topic, 'cleanup.policy=delete')}"
        )
        found.append(Outcome(check, "note", what))
    if not found:
        lasts = "for ever" if policy.retention_ms is None else f"for {_hours(policy.retention_ms)}"
        found.append(Outcome(check, "fine", f"keeps records {lasts}, elects no leader that lacks some"))
    yield from found


def _retention(check: str, pipeline: Pipeline, policy: TopicPolicy) -> Iterator[Outcome]:
    """Whether Kafka still has a window's records when it is judged, and while somebody sees to what was skipped."""
    needed = pipeline.contract.window_minutes * 60_000 + pipeline.ingest.allowed_lateness_ms
    held = policy.retention_ms
    if held is None or held >= needed + ON_CALL_MS:
        return
    enough = _alter(pipeline.contract.topic, f"retention.ms={needed + ON_CALL_MS}")
    if held < needed:
        what = (
            f"Kafka drops records after {_hours(held)}, and a window is judged only {_hours(needed)} after its start "
            f"(window_minutes and allowed_lateness): a hole could never be read again; {enough}"
        )
        yield Outcome(check, "wrong", what)
    else:
        what = (
            f"Kafka drops records after {_hours(held)}: once a window is judged, {_hours(held - needed)} are left to "
            f"read a hole again; for a day, {enough}"
        )
        yield Outcome(check, "note", what)


def _alter(topic: str, setting: str) -> str:
    command = f"kafka-configs.sh --bootstrap-server KAFKA --alter --entity-type topics --entity-name {topic}"
    return f"set it with `{command} --add-config {setting}`"


def _hours(milliseconds: int) -> str:
    return f"{round(milliseconds / _HOUR_MS, 2):,g} h"


def _has_run(pipeline: Pipeline) -> bool:
    try:
        with open_pipeline(pipeline, "doctor") as context:
            return context.is_registered()
    except OnceoverError:
        return True  # nobody can say: rather one alarm too many
