"""A pipeline whose broker wants TLS and a password: by the TOML's [kafka] and a file, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from tests.integration.lane import EVENTS, event
from tests.integration.secure_kafka import PASSWORD, USER, SecureKafka, open_secure_kafka

from onceover.config.endpoints import address, pipelines_folder
from onceover.ledger.database import connect
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
    text = EVENTS.format(topic=name, minutes=5, most=1000, idle_after="1ms", first_start="earliest",
                         offset_store="kafka", more="")  # fmt: skip
    toml.write_text(text + SECURE.format(user=USER, authority=authority))
    yield name
    toml.unlink()


@contextmanager
def password_file(folder: Path, password: str, mode: int = 0o600) -> Iterator[dict[str, str]]:
    file = folder / "password"
    file.write_text(password + "\n")
    file.chmod(mode)
    yield {"ONCEOVER_KAFKA_SASL_PASSWORD_FILE": str(file)}


def command(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("onceover")), *arguments]


def test_sasl_ingest_reads_commits_and_logs_no_password(
    secure: tuple[SecureKafka, Path], pipeline: str, tmp_path: Path
) -> None:
    log = tmp_path / "ingest.log"
    with password_file(tmp_path, PASSWORD) as named, log.open("wb") as output:
        environment = {**os.environ, **named, "ONCEOVER_KAFKA": secure[0].secure_address}
        ingest = subprocess.Popen(command("ingest", pipeline), stdout=output, stderr=subprocess.STDOUT, env=environment)
        seen: set[str] = set()

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
        offsets = subprocess.run(
            command("offsets", pipeline, "show"), capture_output=True, text=True, check=True, env=environment
        )
    assert any("py4j" in word or "SparkSubmit" in word for word in seen), "the JVM's arguments were among them"
    assert not [word for word in (*seen, log.read_text(), offsets.stdout) if PASSWORD in word]
    with connect(address("postgres"), "test") as ledger:
        rows = ledger.execute(f"SELECT sum(events) AS n FROM aggregates.{pipeline}").fetchall()
        kept = ledger.execute("SELECT definition::text AS d FROM onceover.contract WHERE pipeline = %s", [pipeline])
        assert [row["n"] for row in rows] == [10]
        assert not [row for row in kept if PASSWORD in row["d"]]


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
            command("ingest", pipeline), capture_output=True, text=True, check=False, env=environment, timeout=120
        )
    assert done.returncode != 0
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert PASSWORD not in done.stdout + done.stderr
