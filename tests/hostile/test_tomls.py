"""TOMLs and Kafka properties that hold anything: a pipeline, or mistakes with file, key and remedy."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from tests.hostile.canaries import require_harmless
from tests.hostile.texts import make_text, make_value
from tests.hostile.tries import bounded_memory, few_or_all, is_refused

from onceover.config.kafka_properties import ALLOWED, SECRET, build_client_properties
from onceover.config.pipeline_file import read_pipeline
from onceover.config.pipelines import read_valid

TOMLS, PROPERTIES = 400, 100
TABLES: dict[str, dict[str, Any]] = {
    "contract": {
        "topic": "things", "window_minutes": 60, "format": "json", "schema": "at STRING, place STRING",
        "required": ["at"], "event_time": "to_timestamp(value.at)", "tombstone": "quarantine",
    },
    "contract.keys": {"place": "value.place"},
    "contract.measures": {"things": {"count": "*"}},
    "contract.bounds": {"horizon": "30d", "skew": "1d"},
    "ingest": {
        "allowed_lateness": "1h", "idle_after": "30s", "interval": "2s", "max_records_per_batch": 1000,
        "offset_store": "hdfs", "offset_path": "/offsets", "group": "g", "first_start": "earliest", "share": "fair",
    },
    "storage": {"raw_root": "/onceover/raw", "retention": "30d"},
    "repair": {"max_tries": 3, "deadline": "2h"},
    "kafka": {"client.id": "x", "security.protocol": "SSL"},
}  # fmt: skip


def write_toml(number: int, file: str) -> bytes:
    """Return a TOML whose text, keys or values are changed; one of ten is no TOML at all."""
    random = Random(f"toml {number}")
    tables = {name: dict(table) for name, table in TABLES.items()}
    for change in range(random.choice((1, 1, 2, 5))):
        table = tables[random.choice(sorted(tables))]
        key = random.choice([*sorted(table), make_text("toml key", number * 7 + change, file)])
        table[key] = make_value("toml", number * 7 + change, file)
    lines = []
    for name, table in tables.items():
        lines.append(f"[{name}]")
        lines += [f"{as_toml(key)} = {as_toml(value)}" for key, value in table.items()]
    text = "\n".join(lines).encode("utf-8", "surrogatepass")
    if random.random() < 0.1:
        at = random.randrange(len(text))
        text = text[:at] + make_text("toml text", number, file).encode("utf-8", "surrogatepass") + text[at:]
    return text


def as_toml(value: Any) -> str:
    match value:
        case None:
            return '""'
        case bool() | int():
            return str(value).lower()
        case float():
            return "inf" if value == float("inf") else str(value)
        case list():
            return f"[{', '.join(map(as_toml, value))}]"
        case dict():
            return "{" + ", ".join(f"{as_toml(str(key))} = {as_toml(held)}" for key, held in value.items()) + "}"
        case bytes():
            return as_toml(value.decode())
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


@few_or_all(TOMLS)
def test_hostile_toml_is_a_pipeline_or_mistakes(tmp_path: Path, count: int) -> None:
    file = tmp_path / "pipelines" / "things.toml"
    file.parent.mkdir()

    def attempt(number: int) -> str | None:
        file.write_bytes(write_toml(number, str(tmp_path / "canary")))
        _, mistakes = read_valid(tmp_path)
        if any(not (each.file and each.what and each.remedy) or len(str(each)) > 2_000 for each in mistakes):
            return f"mistakes that say too little or too much: {[str(each)[:200] for each in mistakes]}"
        return is_refused(lambda: read_pipeline(file))

    with bounded_memory():
        require_harmless(attempt, count, tmp_path)


@few_or_all(PROPERTIES)
def test_hostile_kafka_property_is_refused(tmp_path: Path, count: int) -> None:
    def attempt(number: int) -> str | None:
        random = Random(f"property {number}")
        name = random.choice(
            [*sorted(ALLOWED | SECRET), make_text("property", number), "group.id", "plugin.library.paths"]
        )
        value, made = make_text("property value", number, str(tmp_path / "canary")), {}
        wrong = is_refused(lambda: made.update(build_client_properties("b:1", {name: value}, {})))
        if made and (name not in ALLOWED or made[name] != value or made["bootstrap.servers"] != "b:1"):
            return f"{name!r} became {made.get(name)!r}"
        return wrong

    require_harmless(attempt, count, tmp_path)
