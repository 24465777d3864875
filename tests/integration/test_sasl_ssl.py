"""A pipeline whose broker wants TLS and a password: by the TOML's [kafka] and a file, and nothing else."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from tests.integration.events import event, fill_toml
from tests.integration.program import ONCEOVER
from tests.integration.secure_kafka import PASSWORD, USER, SecureKafka, open_secure_kafka

from onceover.cli.doctor import check_kafka
from onceover.config.endpoints import address, pipelines_folder
from onceover.context import open_pipeline
from onceover.errors import TerminalError
from onceover.kafka.guarded_read import read_range
from onceover.ledger.database import connect
from onceover.offset_stores import open_store
from onceover_local.stack import Stack
from onceover_local.stack.process import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.rare]
SECURE = """
[kafka]
security.protocol = "SASL_SSL"
sasl.mechanism = "PLAIN"
sasl.username = "{user}"
ssl.ca.location = "{authority}"
"""


@pytest.fixture(scope="module")
def secure(stack: Stack) -> Iterator[tuple[SecureKafka, Path]]:
    with open_secure_kafka(stack.local / "secure") as found:
        yield found


@pytest.fixture
def pipeline(secure: tuple[SecureKafka, Path]) -> Iterator[str]:
    """Make a pipeline with a topic of ten records on that broker; yields its name."""
    broker, authority = secure
    name = f"t{uuid.uuid4().hex[:10]}"
    admin = AdminClient({"bootstrap.servers": broker.get_address()})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
    producer = Producer({"bootstrap.servers": broker.get_address()})
    for n in range(10):
        producer.produce(name, event(n))
    assert producer.flush(30) == 0
    toml = pipelines_folder() / f"{name}.toml"
    toml.write_text(fill_toml(name, more=SECURE.format(user=USER, authority=authority)))
    yield name
    toml.unlink()


@contextmanager
def password_file(folder: Path, password: str, mode: int = 0o600) -> Iterator[dict[str, str]]:
    file = folder / "password"
    file.write_text(password + "\n")
    file.chmod(mode)
    yield {"ONCEOVER_KAFKA_SASL_PASSWORD_FILE": str(file)}


def ingest_all(pipeline: str, log: Path, environment: dict[str, str]) -> set[str]:
    """Run an ingest until all is read; return the arguments of the processes that it started."""
    seen: set[str] = set()
    with log.open("wb") as output:
        ingest = subprocess.Popen(
            [ONCEOVER, "ingest", pipeline], stdout=output, stderr=subprocess.STDOUT, env=environment
        )

        def is_read() -> bool:
            assert ingest.poll() is None, log.read_text()
            for process in (psutil.Process(ingest.pid), *psutil.Process(ingest.pid).children(recursive=True)):
                with suppress(psutil.Error):  # it has ended between the two looks
                    seen.update(process.cmdline())
            return "every window closed" in log.read_text()

        try:
            wait_for(is_read, 180, "ingest to read all")
        finally:
            ingest.send_signal(signal.SIGTERM)
        assert ingest.wait(60) == 0
    return seen


def test_sasl_ingest_reads_commits_and_logs_no_password(
    secure: tuple[SecureKafka, Path], pipeline: str, tmp_path: Path
) -> None:
    log = tmp_path / "ingest.log"
    with password_file(tmp_path, PASSWORD) as named:
        environment = {**os.environ, **named, "ONCEOVER_KAFKA": secure[0].secure_address}
        seen = ingest_all(pipeline, log, environment)
        offsets = subprocess.run(
            [ONCEOVER, "offsets", pipeline, "show"], capture_output=True, text=True, check=True, env=environment
        )
    assert any("py4j" in word or "SparkSubmit" in word for word in seen), "the JVM's arguments were among them"
    assert not [word for word in (*seen, log.read_text(), offsets.stdout) if PASSWORD in word]
    with connect(address("postgres"), "test") as ledger:
        rows = ledger.execute(f"SELECT sum(events) AS n FROM aggregates.{pipeline}").fetchall()
        kept = ledger.execute("SELECT definition::text AS d FROM onceover.contract WHERE pipeline = %s", [pipeline])
        assert [row["n"] for row in rows] == [10]
        assert not [row for row in kept if PASSWORD in row["d"]]


def restrict(broker: SecureKafka, *rights: tuple[ResourceType, str, str, AclOperation]) -> None:
    """Leave others than these principals without any right on the resources."""
    acls = [
        AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{who}", "*", operation, AclPermissionType.ALLOW)
        for kind, name, who, operation in rights
    ]
    admin = AdminClient({"bootstrap.servers": broker.get_address()})
    for done in admin.create_acls(acls).values():
        done.result(30)


def test_rights_to_read_and_describe_a_topic_are_enough(
    secure: tuple[SecureKafka, Path], pipeline: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each right that is missing for more, or to begin with, is named with the command that grants it."""
    broker, _ = secure
    groups = ("onceover-reader", "onceover-probe", f"onceover-{pipeline}")
    restrict(
        broker,
        (ResourceType.TOPIC, pipeline, USER, AclOperation.DESCRIBE),
        (ResourceType.BROKER, "kafka-cluster", "another", AclOperation.ALL),
        *((ResourceType.GROUP, group, "another", AclOperation.ALL) for group in groups),
    )
    toml = pipelines_folder() / f"{pipeline}.toml"
    toml.write_text(toml.read_text().replace('offset_store = "kafka"', 'offset_store = "postgres"'))
    monkeypatch.setenv("ONCEOVER_KAFKA", broker.secure_address)
    monkeypatch.setenv("ONCEOVER_KAFKA_SASL_PASSWORD", PASSWORD)
    grant = f"kafka-acls.sh --bootstrap-server {broker.secure_address} --add --allow-principal User:{USER} --operation"
    with open_pipeline(pipeline, "test") as context:
        with context.open_own_topic() as topic:
            source = context.build_source(topic.facts())
        with pytest.raises(TerminalError, match=re.escape(f"{grant} Read --topic {pipeline}`")):
            list(read_range(source, 0, 0, 10))
        restrict(broker, (ResourceType.TOPIC, pipeline, USER, AclOperation.READ))
        wait_for(lambda: sum(batch.num_rows for batch in read_range(source, 0, 0, 10)) == 10, 20, "the right to read")
        with closing(open_store("kafka", context)) as store, pytest.raises(TerminalError) as refused:
            store.load([0])
        assert f"{grant} Read --group {groups[-1]}`" in str(refused.value)
        (note,) = (each for each in check_kafka([context.pipeline]) if "Configs" in each.what)
        assert (note.state, f"{grant} DescribeConfigs --topic {pipeline}`" in note.what) == ("note", True)
    log = tmp_path / "ingest.log"
    ingest_all(pipeline, log, dict(os.environ))
    assert log.read_text().count(f"{grant} DescribeConfigs --topic {pipeline}`") == 1
    assert "authorization" not in log.read_text().replace("Topic authorization failed", "", 1)


@pytest.mark.parametrize(
    ("password", "mode", "authority", "says"),
    [
        ("wrong", 0o600, None, "check its credentials"),
        (PASSWORD, 0o644, None, "chmod 600"),
        (PASSWORD, 0o600, "/etc/hostname", "ssl.ca.location"),
    ],
)
def test_sasl_mistake_is_reported_in_one_line(
    secure: tuple[SecureKafka, Path],
    pipeline: str,
    tmp_path: Path,
    password: str,
    mode: int,
    authority: str | None,
    says: str,
) -> None:
    if authority:
        toml = pipelines_folder() / f"{pipeline}.toml"
        toml.write_text(toml.read_text().replace(str(secure[1]), authority))
    with password_file(tmp_path, password, mode) as named:
        environment = {**os.environ, **named, "ONCEOVER_KAFKA": secure[0].secure_address}
        done = subprocess.run(
            [ONCEOVER, "ingest", pipeline], capture_output=True, text=True, check=False, env=environment, timeout=120
        )
    assert done.returncode != 0
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert PASSWORD not in done.stdout + done.stderr
