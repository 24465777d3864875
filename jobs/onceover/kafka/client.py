"""The client all questions to a cluster go through: bounded in time, and its errors told in one line."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, TopicDescription  # type: ignore[attr-defined]

from onceover.config.kafka_properties import build_client_properties
from onceover.errors import ConfigurationError, OnceoverError, TerminalError, TransientError, UnreachableError

TIMEOUT_SECONDS = 10.0
_GRACE_SECONDS = 2.0  # librdkafka's own deadline comes first, and says more

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
_DENIED = {
    KafkaError._AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}

T = TypeVar("T")


class LastComplaint:
    """The last thing librdkafka said about its brokers: why a client that only times out gets no answer."""

    def __init__(self) -> None:
        self.text = ""
        self.code = 0

    def __call__(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self.text:  # it follows the reason and hides it
            self.text, self.code = error.str(), error.code()

    def __str__(self) -> str:
        return f" ({self.text})" if self.text else ""


class Admin:
    """One cluster, asked synchronously; no call takes longer than `timeout` seconds plus a little."""

    def __init__(self, bootstrap: str, properties: Mapping[str, str], timeout: float = TIMEOUT_SECONDS) -> None:
        """Connects to nothing yet. Raises ConfigurationError for a property or a value that the client refuses."""
        self.bootstrap = bootstrap
        self.timeout = timeout
        self._complaint = LastComplaint()
        configuration: dict[str, Any] = {**build_client_properties(bootstrap, properties), "error_cb": self._complaint}
        try:
            self.client = AdminClient(configuration)
        except KafkaException as error:
            raise translate_refusal(error) from error

    def wait(self, future: Future[T], what: str) -> T:
        """The future's result; UnreachableError or TerminalError that says `what` could not be done."""
        try:
            return future.result(self.timeout + _GRACE_SECONDS)
        except KafkaException as error:
            raise self.explain(error.args[0], what) from error
        except TimeoutError as error:
            raise self.explain(KafkaError(KafkaError._TIMED_OUT), what) from error

    def describe(self, topic: str) -> TopicDescription:
        """The topic's ID and partitions; TerminalError if the cluster does not know it."""
        asked = self.client.describe_topics(TopicCollection([topic]), request_timeout=self.timeout)
        described: TopicDescription = self.wait(asked[topic], f"describe topic {topic!r}")
        return described

    def explain(self, error: KafkaError, what: str) -> OnceoverError:
        """The error of ours that a client's error amounts to."""
        self.client.poll(0)  # delivers what librdkafka has to say
        return explain(error, what, self.bootstrap, self.timeout, self._complaint)


def explain(error: KafkaError, what: str, bootstrap: str, timeout: float, complaint: LastComplaint) -> OnceoverError:
    """The error of ours that a client's error amounts to, with the reason that only its complaints tell."""
    where = f"Kafka at {bootstrap}"
    if complaint.code in _DENIED:
        return TerminalError(f"{where} refuses this client: cannot {what}{complaint}; check its credentials")
    if error.code() in _UNREACHABLE:
        return UnreachableError(
            f"{where} does not answer: cannot {what} within {timeout:g} s{complaint}; "
            "check that the broker runs and that ONCEOVER_KAFKA names it"
        )
    if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return TerminalError(f"{where}: cannot {what}, it does not exist; create it, or correct contract.topic")
    if error.code() in _DENIED:
        return TerminalError(f"{where}: cannot {what}: {error.str()}; grant this client the right to")
    return TransientError(f"{where}: cannot {what}: {error.str()}")


def translate_refusal(error: KafkaException) -> ConfigurationError:
    """What the client library says when it cannot be made with the properties it was given."""
    return ConfigurationError(f"[kafka]: {error.args[0].str()}; correct the property in the pipeline's TOML")
