"""What a reader sees of each command of README and docs, in the order in which a reader would run them.

LOOKS start no Spark, JOBS do; tests/integration/test_backup.py follows RESTORES; ELSEWHERE has the commands that
none of these runs, and why.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from socket import socket
from typing import Final

from confluent_kafka import Producer
from hdfs import InsecureClient
from tests.docs.pages import Page, read
from tests.docs.shell import Shell, Step, lines

from onceover.config.endpoints import address
from onceover.config.pipelines import find
from onceover.ledger.database import connect
from onceover.raw.layout import Layout

DAY: Final = ("2013-01-05T00:00Z", "2013-01-06T00:00Z")
HOURS: Final = ("2013-01-05T10:00Z", "2013-01-05T12:00Z")


def age(_: Shell) -> None:
    """Date every landing back by 500 days."""
    with connect(address("postgres"), "test") as ledger:
        ledger.execute("UPDATE onceover.batch SET landed_at = landed_at - interval '500 days'")


def widen_horizon(shell: Shell) -> None:
    """Change the TOML so that records beyond its horizon have a window."""
    toml = shell.folder / "flights.toml"
    toml.write_text(toml.read_text().replace('horizon = "48h"', 'horizon = "7d"'))


def lose_ledger(_: Shell) -> None:
    with connect(address("postgres"), "test") as ledger:
        ledger.execute("DROP SCHEMA onceover CASCADE")


def lose_window_file(shell: Shell) -> None:
    with shell.entered():
        layout = Layout(find("flights").storage.raw_root, "flights")
    window_start = datetime(2013, 1, 5, 14, tzinfo=UTC)
    assert InsecureClient(address("webhdfs"), user="root").delete(layout.window_file(window_start))


def need_port(_: Shell) -> None:
    with socket() as client:
        assert client.connect_ex(("127.0.0.1", 9464)) != 0, "another process listens on port 9464; end it first"


def pay(_: Shell) -> None:
    producer = Producer({"bootstrap.servers": address("kafka")})
    paid_at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    producer.produce("payments", json.dumps({"paid_at": paid_at, "country": "NL", "cents": 250}).encode())
    assert producer.flush(30) == 0


def forget_connections(shell: Shell) -> None:
    """Make the shell's Airflow database, or remove its connections."""
    airflow = shell.folder / "airflow.db"
    if not airflow.exists():
        shell.run("airflow db migrate")
    with closing(sqlite3.connect(airflow)) as database, database:
        database.execute("DELETE FROM connection")


LOOKS: Final = (
    Step("source .venv/bin/activate", r"^$"),
    Step("onceover stack status", r"postgres .* up .*", code=1),  # Airflow is down
    Step("onceover pipelines list", r"flights .* 60 min .*\n.*payments .* 5 min"),
    Step("onceover pipelines check --no-spark", r"payments .*SQL not checked"),
    Step("onceover ledger migrate", r"^the ledger is at version [\d.]+\n$"),
    Step('onceover ledger take-root flights --reason "restored from the backup of last night"',
         r"it was this ledger's already\n.* belongs to this ledger now"),
    Step("onceover windows flights",
         r"T10:00Z .*certified(?s:.*)T15:00Z .*open(?s:.*)6 windows: 5 certified, 1 open"),
    Step("onceover windows flights --state failed", r"no window matches"),
    Step("onceover windows flights --state closed", r"no window matches"),
    Step("onceover explain flights 2013-01-05T10:00Z", r"unaccounted bytes|never counted"),
    Step("onceover explain flights 2013-01-05T14:00Z", r"certif"),
    Step("onceover repair flights --from 2013-01-05T10:00Z --to 2013-01-05T12:00Z --dry-run", r"Nothing was written"),
    Step('curl -L "WEBHDFS/webhdfs/v1/onceover/raw/flights/2013-01-05/1000.log?op=OPEN" | less',
         r"\n[0-9a-f]{8}-\d{5}-\d{19} \d{20}\t.*\t\d{13}\t\d{10}\tV1-[0-9a-f]{16}\t"),
    Step('onceover restore flights WINDOW --reason "..."', r"window 2013-01-05T14:00Z holds the \d+ rows of revision",
         values=("2013-01-05T14:00Z",)),
    Step("onceover requests flights", r"no request waits"),
    Step('onceover requests flights --cancel REQUEST --reason "the wrong month"', r"request \d+: 0 windows cancelled",
         values=("1",)),
    Step("onceover windows flights --state blocked", r"2013-01-05T14:00Z .*blocked"),
    Step("onceover take flights", r"no window is taken"),
    Step("onceover take flights --from 2013-01-05T14:00Z --to 2013-01-05T15:00Z --ticket INC-42", r"1 window taken"),
    Step("onceover take flights --from 2013-01-05T14:00Z --to 2013-01-05T15:00Z --release", r"1 window released"),
    Step("onceover explain flights WINDOW", r"Blocked because: restored to revision",
         values=("2013-01-05T14:00Z",)),
    Step("onceover sweep flights", r"4 certified windows compared, none no longer as certified"),
    Step("onceover doctor", r"(?s)hole: .*blocked: window 2013-01-05T14:00Z.*\d wrong", code=1),
    Step("onceover holes flights", r"expired", code=1),
    Step('onceover accept-loss flights RANGE --from TIME --to TIME --reason "..."',
         r"10 offsets of .* accepted as lost", values=HOURS),
    Step("onceover metrics --once",
         r'onceover_up 1\.0(?s:.*)onceover_windows\{pipeline="flights",state="blocked"\} 1\.0'),
    Step("onceover metrics", r"metrics are at http://127\.0\.0\.1:9464/metrics", until="metrics are at",
         before=need_port),
    Step("onceover quarantine flights list", r" 3 .*beyond horizon\n(?s:.*)3 records in quarantine"),
    Step('onceover quarantine flights show --day 2026-03-01 --reason "beyond horizon"',
         r"beyond horizon\n  key (?s:.*)value"),
    Step("onceover offsets flights show", r"flights keeps its offsets in kafka"),
    Step('onceover offsets flights set 0=1200 3=950 --reason "..."', r"stored now: 0=1200, 1=\d+, 2=\d+, 3=950;"),
    Step('onceover offsets flights copy --to postgres --reason "..."', r"4 offsets copied from kafka to postgres"),
    Step("onceover ledger roll-up flights --dry-run", r"no batch can be joined"),
    Step("onceover ledger roll-up flights", r"no batch can be joined"),
    Step("onceover compact flights --dry-run", r"2 certified windows would be compacted", before=age),
    Step("onceover retention flights --dry-run", r"2 certified windows and 1 day of quarantine, .* would"),
    Step('onceover retention flights --reason "..."', r"(?m)^3 files "),
    Step("onceover retention flights --adopt-missing --dry-run", r"0 windows would be declared expired"),
    Step('onceover retention flights --adopt-missing --reason "the ledger was restored"',
         r"0 windows declared expired"),
)  # fmt: skip
"""Steps on windows that were ingested, judged and repaired: see `plant`."""

JOBS: Final = (
    Step("ONCEOVER_STOP_AFTER=landed onceover ingest flights", "", code=-9),
    Step("onceover ingest flights", r"batch \d+: 403 records, 3 to quarantine in 6 windows",
         until=r"nothing to read .*every window closed"),
    Step('onceover repair flights --from 2013-01-05T10:00Z --to 2013-01-05T12:00Z --reason "numbers look doubled"',
         r"2 windows .* 2 repaired and confirmed"),
    Step('onceover repair flights --from TIME --to TIME --reason "..."', r"4 repaired and confirmed", values=DAY),
    Step("onceover verify flights 2013-01-05T14:00Z", r"window 2013-01-05T14:00Z of flights: equal"),
    Step("onceover audit flights --from 2013-01-05T00:00Z --to 2013-01-06T00:00Z", r"6 windows, 0 differ"),
    Step("onceover reread flights 2013-01-05T14:00Z --dry-run", r"lacks \d+ records that landed\nKafka holds ",
         before=lose_window_file),
    Step('onceover reread flights 2013-01-05T14:00Z --reason "..."', r"14:00Z is repaired and certified"),
    Step("onceover pipelines migrate flights --dry-run",
         r"version 2 of flights's contract would follow version 1\nchanged: .*horizon(?s:.*)Nothing was written",
         before=widen_horizon),
    Step('onceover pipelines migrate flights --reason "..."', r"version 2 of flights's contract follows version 1"),
    Step("onceover restate flights --from 2013-01-05T00:00Z --to 2013-01-06T00:00Z --dry-run",
         r"version 2 of the contract changes \d+ of \d+ windows(?s:.*)token: [0-9a-f]{64}"),
    Step('onceover restate flights --from 2013-01-05T00:00Z --to 2013-01-06T00:00Z --reason "..."',
         r"(?s:.*)certified"),
    Step("onceover quarantine flights release --dry-run", r"3 records would land in 1 window"),
    Step('onceover quarantine flights release --reason "beyond horizon" --why "INC-42: the horizon is a week now"',
         r"3 records landed in 1 window"),
    Step("onceover ledger rebuild flights", r"rebuilt 6 windows with 403 records in the ledger, from 7 files",
         before=lose_ledger),
    Step("onceover ingest flights", r"nothing to read", until=r"nothing to read .*every window closed"),
    Step('onceover repair flights --from ... --to ... --reason "the ledger was lost"', r"6 repaired and confirmed",
         values=DAY),
    Step('onceover compact flights --reason "..."', r"6 windows compacted, 403 records", before=age),
    Step('onceover compact flights --reason "the ledger was restored"', r"0 windows compacted, 0 records"),
    Step("python -c \"from confluent_kafka.admin import *; a = AdminClient({'bootstrap.servers': '127.0.0.1:PORT'});"
         " a.create_topics([NewTopic('payments', 4)])['payments'].result()\"", r"^$"),
    Step("onceover pipelines check payments", r"payments .*fine .*country text, payments bigint, cents numeric"),
    Step("onceover pipelines check flights --sample 100", r"of the last [0-9]+ records?, [0-9]+ fit "),
    Step("onceover ingest payments", r"payments batch \d+: 1 records", until=r"payments batch \d+:", before=pay),
    Step("onceover windows payments", r"1 window: 1 open"),
    Step("onceover pipelines init payments --name drafted",
         r'event_time = "value.paid_at"(?s:.*)drafted.toml is written; decide on its guesses'),
    Step("onceover stack up zookeeper hbase", r"zookeeper .*127\.0\.0\.1:\d+(?s:.*)hbase .*127\.0\.0\.1:\d+"),
    *(Step(f"airflow connections add spark_default --conn-type spark --conn-host {more}",
           r"Successfully added .*spark_default", before=forget_connections)
      for more in (
          "spark://spark-master --conn-port 7077",
          """yarn --conn-extra '{"queue": "onceover"}'""",
          """k8s://https://cluster --conn-port 6443 --conn-extra '{"namespace": "onceover"}'""")),
)  # fmt: skip
"""Steps that begin with a topic that was never read: see `produce_day`."""

_BACKUP_PAGE: Final = read("docs/backup.md")
RESTORES: Final = tuple(
    line
    for heading in ("Back up the ledger", "Restore a backup of the ledger")
    for line in lines(Page(_BACKUP_PAGE.path, _BACKUP_PAGE.section(heading)))
)
"""The commands of a backup and of its restoration, in the order of the page."""

_BY_HAND = "it measures for hours, by hand"
_CLONE = "tests/requirements/test_fresh_clone.py runs it in a clone of its own"
_CLUSTER = "tests/integration/test_cluster.py runs the same on a cluster of its own"
_KERBEROS = "tests/integration/test_kdc.py runs the same on a stack of its own"
_YARN = "tests/integration/test_yarn_submission.py runs the same on a YARN of its own"
_ITSELF = "it runs the tests, and so this one"
_SETTING = "it sets a variable of Airflow's processes, which tests/integration/test_lineage.py starts with it"
ELSEWHERE: Final = {
    "sudo apt-get install git make python3.11-venv openjdk-17-jre-headless": "it changes the machine, as root",
    "make demo": "it takes minutes, and starts a stack of its own",
    "make test": _ITSELF,
    "make up": _CLONE,
    '.venv/bin/python -m pytest -m "not spark and not stack and not airflow and not rare"': _ITSELF,
    "make bench": _BY_HAND,
    "make bench NAME=bursts": _BY_HAND,
    "BENCH=quick make bench": _BY_HAND,
    "onceover stack up --cluster": _CLUSTER,
    'onceover accept-loss flights RANGE --unreadable --from TIME --to TIME --reason "..."': "needs offsets that no "
    "reader gets: tests/hostile/test_codecs.py",
    'onceover offsets flights set 0=1200 --past-end --reason "INC-43: the log was cut at 900"':
        "tests/integration/test_offsets.py sets an offset past a log's end",
    "onceover stack up --kerberos": _KERBEROS,
    "source .local/kerberos/environment": _KERBEROS,
    "ONCEOVER_SPARK=spark://HOST:7077 onceover ingest flights": _CLUSTER,
    "HADOOP_CONF_DIR=/etc/hadoop SPARK_CONF_DIR=/etc/spark ONCEOVER_SPARK=yarn onceover ingest flights": _YARN,
    "tar -czf environment.tar.gz --exclude=pyspark/jars --exclude=__editable__* "
    "--transform=s,^onceover,lib/python3.11/site-packages/onceover, -C .venv . -C ../jobs onceover": _YARN,
    "onceover stack down": "it would end the stack of all tests; tests/requirements/test_fresh_clone.py ends its own",
    """AIRFLOW__OPENLINEAGE__TRANSPORT='{"type": "http", "url": "http://HOST:5000"}'""": _SETTING,
    """AIRFLOW__OPENLINEAGE__TRANSPORT='{"type": "file", "log_file_path": "/tmp/lineage.jsonl", "append": true}'""":
        _SETTING,
}  # fmt: skip
