"""`onceover pipelines init`: a first TOML for a topic."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from onceover.cli.arguments import complete_name, option
from onceover.cli.command import command
from onceover.cli.output import Answer, get_stderr
from onceover.config.contract_tables import MAX_TOPIC, TOPIC, TOPIC_RULE
from onceover.config.endpoints import address, pipelines_folder
from onceover.config.pipeline_draft import draft_pipeline
from onceover.config.pipelines import find
from onceover.config.registry import find_schema, locate_registry
from onceover.errors import ConfigurationError, UsageError
from onceover.kafka import Topic
from onceover.kafka.guarded_read import read_range
from onceover.kafka.last_offsets import plan_sample
from onceover.kafka.reader import KafkaSource
from onceover.kafka.record_batch import SCHEMA
from onceover.model.pipeline import NAME, NAME_RULE

TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="A topic that holds records.")]
Name = Annotated[
    str | None, option("--name", "NAME", "The pipeline's name. Default: the topic's, as far as it can be.")
]
Records = Annotated[int, option("--records", "N", "Look at so many of the last records.", min=1, max=10_000)]
Like = Annotated[
    str | None,
    option(
        "--like",
        "PIPELINE",
        "Connect to Kafka as that pipeline does, and copy its Kafka properties.",
        autocompletion=complete_name,
    ),
]


@command(
    "onceover pipelines init payments",
    "onceover pipelines init Shop.Orders --name orders --like payments",
    codes={0: "the TOML is written"},
)
def init(topic: TopicName, name: Name = None, records: Records = 1_000, like: Like = None) -> Answer:
    """Write a first TOML for a topic, from its last records: format, schema, event time, keys and measures.

    Of Avro and Protobuf, writes the newest schemas of values and keys beside it, from the registry. What is a guess is
    marked so. Never writes over a file.
    """
    if not re.fullmatch(TOPIC, topic) or len(topic) > MAX_TOPIC:
        raise UsageError(f"{topic[:80]!r} cannot be a topic; {TOPIC_RULE}")
    name = name or re.sub(r"[^a-z0-9_]+", "_", topic.lower()).lstrip("_0123456789")[:41]
    if not NAME.fullmatch(name):
        raise UsageError(f"--name: {name!r} cannot be a pipeline's name; take {NAME_RULE}")
    properties: Mapping[str, str] = find(like).kafka if like else {}
    path = pipelines_folder() / f"{name}.toml"
    if path.exists():
        raise _refuse(path)
    with get_stderr().status("Reading the topic ..."):
        sample = _read_last(topic, records, properties)
        draft = draft_pipeline(topic, sample, properties, name, lambda each: find_schema(locate_registry(), each))
    schemas = {path.with_name(file): schema for file, schema in draft.schema_files.items()}
    for file in schemas:
        if file.exists():
            raise _refuse(file)
    for file, content in (schemas | {path: draft.toml.encode()}).items():
        _write(file, content)
    return Answer(
        {
            "pipeline": name,
            "file": str(path),
            "schema_files": list(map(str, schemas)),
            "toml": draft.toml,
            "doubts": draft.doubts,
        },
        [
            *draft.toml.splitlines(),
            "",
            *draft.doubts,
            f"{path} is written; decide on its guesses, then `onceover pipelines check {name} --sample 100`",
        ],
    )


def _read_last(topic: str, most: int, properties: Mapping[str, str]) -> pa.Table:
    """Return the topic's last records, as a reader returns them."""
    bootstrap, isolation = address("kafka"), "read_committed"
    with closing(Topic(bootstrap, topic, isolation, properties)) as opened:
        facts = opened.facts()
        source = KafkaSource(bootstrap, topic, facts.topic_id, isolation, properties)
        batches = [
            batch
            for cut in plan_sample(facts, most)
            for batch in read_range(source, cut.source.kafka_partition, cut.start, cut.end)
        ]
    return pa.Table.from_batches(batches, SCHEMA)


def _refuse(path: Path) -> UsageError:
    return UsageError(f"{path} is there already; take another --name")


def _write(path: Path, content: bytes) -> None:
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError as error:
        raise _refuse(path) from error
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written ({error.strerror}); make its folder writable, or set ONCEOVER_PIPELINES"
        ) from error
