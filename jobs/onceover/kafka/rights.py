"""A right that Kafka's authorizer denies a client, and the command that grants it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaError

DENIED: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)


@dataclass(frozen=True, slots=True)
class Right:
    """The right to do one of Kafka's operations on a resource: `name` is a topic's unless `kind` says otherwise."""

    operation: str
    name: str
    kind: str = "topic"

    def advise(self, bootstrap: str, properties: Mapping[str, str]) -> str:
        """Return how to grant it to the client of these properties."""
        user = properties.get("sasl.username", "PRINCIPAL")
        command = (
            "kafka-acls.sh", "--bootstrap-server", bootstrap, "--add", "--allow-principal", f"User:{user}",
            "--operation", self.operation, f"--{self.kind}", self.name,
        )  # fmt: skip
        return f"grant this client the right with `{shlex.join(command)}`"
