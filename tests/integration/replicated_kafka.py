"""A Kafka of two brokers and a controller, each a process, in which a replica that is behind can be elected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from tests.integration.cut_logs import is_led
from tests.integration.power import cut_power

from onceover_local.stack.kafka import Kafka
from onceover_local.stack.place import Place
from onceover_local.stack.ports import LOOPBACK, Ports, is_listening
from onceover_local.stack.process import Process, wait_for

CONTROLLER, LEADER, FOLLOWER = 1, 2, 3
"""The processes by their node's number; the second leads what both brokers hold."""


def open_client(brokers: str) -> AdminClient:
    """Return a client that is silent about brokers that are away."""
    return AdminClient({"bootstrap.servers": brokers, "log_level": 0, "socket.timeout.ms": 2000})


class Member(Kafka):
    """One process of the cluster."""

    ports = ("kafka", "kafka-controller")

    def __init__(self, folder: Path, node: int, controller: str | None) -> None:
        super().__init__(Place(folder, folder, Ports(folder / "ports.json")))
        self._node = node
        self._place.ports.settle(self.ports)
        self._controller = controller or f"{LOOPBACK}:{self._place.ports['kafka-controller']}"
        self.process = Process(self.name, folder)

    @property
    def controller(self) -> str:
        return self._controller

    def make_cluster_id(self) -> str:
        return "one-for-all-its-nodes-"

    def make_settings(self, data: Path) -> dict[str, object]:
        """Return those of the embedded broker, apart from the roles; a broker that dies is noticed at once."""
        settings = super().make_settings(data) | {
            "node.id": self._node,
            "controller.quorum.voters": f"{CONTROLLER}@{self._controller}",
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
            "replica.lag.time.max.ms": 2000,
        }
        if self._node == CONTROLLER:
            del settings["advertised.listeners"]
            return settings | {"process.roles": "controller", "listeners": f"CONTROLLER://{self._controller}"}
        return settings | {"process.roles": "broker", "listeners": f"PLAINTEXT://{self.get_address()}"}

    def is_ready(self) -> bool:
        if self._node == CONTROLLER:
            return is_listening(self._place.ports["kafka-controller"])
        client = open_client(self.get_address())
        try:
            return self._node in client.list_topics(timeout=2).brokers
        except KafkaException:
            return False

    def start(self) -> None:
        self.process.start(self.prepare(lambda part, what: None))
        wait_for(self.is_ready, self.start_s, f"node {self._node} of Kafka")

    def kill(self) -> None:
        """End the process as a power cut does."""
        cut_power(self.process)


@dataclass(frozen=True)
class Replicated:
    """The cluster; `address` names both brokers."""

    controller: Member
    leader: Member
    follower: Member

    @property
    def address(self) -> str:
        return f"{self.leader.get_address()},{self.follower.get_address()}"

    def wait_for_replicas(self, topic: str, leader: int, in_sync: set[int]) -> None:
        """Wait until the topic's Kafka partition 0 has that leader, and those replicas in sync with it."""
        wait_for(
            lambda: self._read_replicas(topic) == (leader, in_sync) and is_led(self.address, topic),
            60,
            f"node {leader} to lead topic {topic}, with {in_sync} in sync",
        )

    def _read_replicas(self, topic: str) -> tuple[int, set[int]] | None:
        client = open_client(self.address)
        try:
            described = client.describe_topics(TopicCollection([topic]), request_timeout=5)[topic].result(10)
        except KafkaException:
            return None
        (partition,) = described.partitions
        return (partition.leader.id if partition.leader else -1), {node.id for node in partition.isr}


@contextmanager
def open_replicated_kafka(folder: Path) -> Iterator[Replicated]:
    """Start the cluster, and end its processes after the block."""
    nodes: dict[int, Member] = {}
    try:
        for node in (CONTROLLER, LEADER, FOLLOWER):
            place = folder / f"node-{node}"
            place.mkdir(parents=True)
            nodes[node] = Member(place, node, nodes[CONTROLLER].controller if nodes else None)
            nodes[node].start()
        yield Replicated(nodes[CONTROLLER], nodes[LEADER], nodes[FOLLOWER])
    finally:
        for member in reversed(nodes.values()):
            member.process.stop(member.stop_s)
