"""Kafka's log, and the files below a pipeline's root, read by clients that are not the product's."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import happybase
import requests
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from hdfs import Client, InsecureClient

from onceover.config.endpoints import address
from onceover.raw.kerberos import TicketAuth, uses_kerberos


def connect() -> Client:
    """Return a client of HDFS that may do all, with this process's ticket where HDFS asks for one."""
    session = requests.Session()
    if not uses_kerberos():
        return InsecureClient(address("webhdfs"), user="root", session=session)
    session.auth = TicketAuth()
    return Client(address("webhdfs"), session=session)


def read_hdfs(root: str) -> dict[str, bytes]:
    """Return each file's content by its path below the root."""
    client = connect()
    files: dict[str, bytes] = {}
    for folder, _, names in client.walk(root):
        for name in names:
            with client.read(f"{folder}/{name}") as reader:
                files[f"{folder}/{name}".removeprefix(f"{root}/")] = reader.read()
    return files


def read_folder(root: str) -> dict[str, bytes]:
    """Return each file's content by its path below the root, in the folder that tests plug in as a store."""
    folder = Path(os.environ["ONCEOVER_FOLDER"] + root)
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def read_hbase(root: str) -> dict[str, bytes]:
    """Return each file's content by its path below the root: the cells that its name's row names, in order."""
    host, port = address("hbase").split(":")
    with closing(happybase.Connection(host, int(port), timeout=30_000)) as connection:
        table = connection.table("onceover_raw")
        prefix = f"n:{root}/"
        names = {row.decode().removeprefix(prefix): columns[b"d:b"]
                 for row, columns in table.scan(row_prefix=prefix.encode())}  # fmt: skip
        return {
            name: b"".join(columns[b"d:b"] for _, columns in table.scan(row_prefix=value.split(b" ")[0]))
            for name, value in names.items()
            if not value.startswith(b"-")
        }


READERS: Mapping[str, Callable[[str], dict[str, bytes]]] = {
    "hdfs": read_hdfs, "hbase": read_hbase, "folder": read_folder,
}  # fmt: skip
"""By raw store."""


def read_log(topic: str) -> dict[tuple[int, int], tuple[bytes | None, bytes | None]]:
    """Return key and value of each record of the topic, by (Kafka partition, offset)."""
    consumer = Consumer({"bootstrap.servers": address("kafka"), "group.id": f"oracle-{uuid.uuid4().hex}",
                         "enable.partition.eof": True, "enable.auto.commit": False})  # fmt: skip
    partitions = consumer.list_topics(topic).topics[topic].partitions
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
    records: dict[tuple[int, int], tuple[bytes | None, bytes | None]] = {}
    at_end = 0
    while at_end < len(partitions):
        message = consumer.poll(10)
        assert message is not None, "the broker has gone quiet"
        if error := message.error():
            assert error.code() == KafkaError._PARTITION_EOF, error
            at_end += 1
        else:
            at = (message.partition() or 0, message.offset() or 0)
            records[at] = (message.key(), message.value())
    consumer.close()
    return records
