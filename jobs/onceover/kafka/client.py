"""The client for all requests to a cluster: bounded in time, with errors of one line."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, TopicDescription  # type: ignore[attr-defined]

from onceover.config.kafka_properties import build_client_properties
from onceover.errors import (
    ConfigurationError,
    MissingTopicError,
    OnceoverError,
    TerminalError,
    TransientError,
    UnreachableError,
)
from onceover.kafka.rights import DENIED, Right

TIMEOUT_SECONDS = 10.0
_GRACE_SECONDS = 2.0  # librdkafka's own deadline comes first, with a better message

_UNREACHABLE = {
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._WAIT_COORD,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_COORDINATOR,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.BROKER_NOT_AVAILABLE,
}
HARMLESS = (
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
)
"""Errors that a reading client reports and goes on after: the last, because it has a group that it does not use."""
_UNKNOWN_CLIENT = {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED}

T = TypeVar("T")


class LastComplaint:
    """The last error that librdkafka reported about its brokers: the reason behind a client's timeout."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.text = ""
        self.code = 0

    def __call__(self, error: KafkaError) -> None:
        if (
            error.code() != KafkaError._ALL_BROKERS_DOWN or not self.text
        ):  # this one follows the reason and would hide it
            self.text, self.code = error.str(), error.code()

    def __str__(self) -> str:
        return f" ({self.text})" if self.text else ""


class Admin:
    """Synchronous requests to one cluster; no call takes longer than `timeout` seconds plus two."""

    def __init__(self, bootstrap: str, properties: Mapping[str, str], timeout: float = TIMEOUT_SECONDS) -> None:
        """Make the client without connecting. Raise ConfigurationError for a property or a value that the client
        refuses."""
        self.bootstrap, self._properties = bootstrap, properties
        self.timeout = timeout
        self._complaint = LastComplaint()
        configuration: dict[str, Any] = {**build_client_properties(bootstrap, properties), "error_cb": self._complaint}
        try:
            self.client = AdminClient(configuration)
        except KafkaException as error:
            raise translate_refusal(error) from error

    def wait(self, future: Future[T], what: str, right: Right | None = None) -> T:
        """Return the future's result. Raise as `explain` if `what`, which takes that right, could not be done."""
        try:
            return future.result(self.timeout + _GRACE_SECONDS)
        except KafkaException as error:
            raise self.explain(error.args[0], what, right) from error
        except TimeoutError as error:
            raise self.explain(KafkaError(KafkaError._TIMED_OUT), what) from error

    def describe(self, topic: str) -> TopicDescription:
        """Return the topic's ID and partitions. Raise TerminalError if the topic does not exist."""
        futures = self.client.describe_topics(TopicCollection([topic]), request_timeout=self.timeout)
        what = f"describe topic {topic!r}"
        described: TopicDescription = self.wait(futures[topic], what, Right("Describe", topic))
        return described

    def explain(self, error: KafkaError, what: str, right: Right | None = None) -> OnceoverError:
        """Return the error of our own for a client's error."""
        self.client.poll(0)  # delivers the errors that librdkafka queued
        advice = right.advise(self.bootstrap, self._properties) if right else ""
        return explain(error, what, self.bootstrap, self.timeout, self._complaint, advice)


def explain(
    error: KafkaError, what: str, bootstrap: str, timeout: float, complaint: LastComplaint, advice: str = ""
) -> OnceoverError:
    """Return the error of our own for a client's error, with the reason that librdkafka reported apart from it, and the
    advice where a right is missing.

    The error is an UnreachableError, a TerminalError for a missing topic or right, else a TransientError.
    """
    where = f"Kafka at {bootstrap}"
    if error.code() in DENIED:
        remedy = advice or "grant this client the right to do so"
        return TerminalError(f"{where}: cannot {what}: {error.str()}; {remedy}")
    if complaint.code in _UNKNOWN_CLIENT:
        return TerminalError(f"{where} refuses this client: cannot {what}{complaint}; check its credentials")
    if error.code() in _UNREACHABLE:
        return UnreachableError(
            f"{where} does not answer: cannot {what} within {timeout:g} s{complaint}; "
            "check that the broker runs and that ONCEOVER_KAFKA names it"
        )
    if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return MissingTopicError(f"{where}: cannot {what}, it does not exist; create it, or correct contract.topic")
    if error.code() in _UNKNOWN_CLIENT:
        return TerminalError(f"{where}: cannot {what}: {error.str()}; check this client's credentials")
    return TransientError(f"{where}: cannot {what}: {error.str()}; try again")


def translate_refusal(error: KafkaException) -> ConfigurationError:
    """Return the error for properties that the client library refuses."""
    return ConfigurationError(f"[kafka]: {error.args[0].str()}; correct the property in the pipeline's TOML")
