"""The embedded Kafka: one KRaft process, broker and controller in one, that keeps records for ever."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from onceover_local.stack.files import format_properties, make_whole, write_whole
from onceover_local.stack.jars import fetch_class_path
from onceover_local.stack.part import find_java
from onceover_local.stack.place import Place, Say
from onceover_local.stack.ports import LOOPBACK, is_listening
from onceover_local.stack.process import Command, Process, run_once

_LOGGING: Final = """\
status=warn
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
logger.server.name=kafka.server.KafkaRaftServer
logger.server.level=info
"""
_EVER: Final = 2**63 - 1
_HOUR_MS: Final = 3_600_000


class Kafka:
    """A `Part`. Ready means that the broker answers a client."""

    name = "kafka"
    ports: tuple[str, ...] = ("kafka", "kafka-controller")
    start_s = 180.0
    stop_s = 30.0

    def __init__(self, place: Place) -> None:
        self._place = place
        self.process = Process(self.name, place.local)

    @property
    def _data(self) -> Path:
        return self._place.get_folder(self.name) / "data"

    def prepare(self, say: Say) -> Command:
        jars = fetch_class_path("kafka", say)
        folder = self._place.make_folder(self.name, say)
        settings = format_properties(self.make_settings(self._data))
        configuration = folder / "server.properties"
        logging = folder / "log4j2.properties"
        write_whole(configuration, settings)
        write_whole(logging, _LOGGING)
        start = (
            *find_java(),
            "-Xms128m",
            "-Xmx512m",
            f"-Dlog4j2.configurationFile={logging.as_uri()}",
            "-cp",
            jars,
        )
        if not self._data.exists():
            say(self.name, "formats its data folder")
            self._format(start)
        return Command((*start, "kafka.Kafka", str(configuration)), configuration=settings)

    def is_ready(self) -> bool:
        if not is_listening(self._place.ports["kafka"]):
            return False
        # log_level 0 silences the client's warnings about a broker that is just starting.
        client = AdminClient({"bootstrap.servers": self.get_address(), "log_level": 0, "socket.timeout.ms": 2000})
        try:
            return len(client.list_topics(timeout=2).brokers) == 1
        except KafkaException:
            return False

    def finish(self, say: Say) -> None:
        pass

    def get_address(self) -> str:
        return f"{LOOPBACK}:{self._place.ports['kafka']}"

    def list_endpoints(self) -> Mapping[str, str]:
        return {"kafka": self.get_address()}

    def make_settings(self, data: Path) -> dict[str, object]:
        """Return the settings for server.properties, with the logs in `data`."""
        controller = f"{LOOPBACK}:{self._place.ports['kafka-controller']}"
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "listeners": f"PLAINTEXT://{self.get_address()},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.get_address()}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": data,
            "auto.create.topics.enable": "false",
            # Retention goes by records' timestamps: the default would delete a replay of an old year at once.
            "log.retention.ms": -1,
            "log.message.timestamp.before.max.ms": _EVER,
            # A contract's bounds are judged by the producer's clock: it may be an hour ahead, as by Kafka's default.
            "log.message.timestamp.after.max.ms": _HOUR_MS,
            # Values of 1 MB, with headers, must pass whatever their escaping costs.
            "message.max.bytes": 16 * 1024 * 1024,
            # By default a group's offsets are dropped after a week without use, and ingest would start over.
            "offsets.retention.minutes": 2**31 - 1,
            # Compaction starts within seconds, not a quarter of a minute: tests wait for it.
            "log.cleaner.backoff.ms": 500,
            # One broker: no replicas.
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 4,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
            "num.network.threads": 2,
            "num.io.threads": 4,
        }

    def make_cluster_id(self) -> str:
        """Return an ID for a cluster that is about to be formatted."""
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # As in Kafka itself: its tools would take an ID with a hyphen before it for an option.
        return "A" + cluster[1:] if cluster.startswith("-") else cluster

    def _format(self, start: tuple[str, ...]) -> None:
        with make_whole(self._data) as scratch:
            settings = scratch.with_suffix(".properties")
            write_whole(settings, format_properties(self.make_settings(scratch)))
            command = [*start, "kafka.tools.StorageTool", "format", "-t", self.make_cluster_id(), "-c", str(settings)]
            run_once(command, f"Kafka's formatting of {self._data}", self.process.log)
