"""The Avro schema beside a pipeline's TOML becomes part of its contract, and each mistake names its remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from onceover.config.mistakes import MistakesError
from onceover.config.pipeline_file import read_pipeline
from onceover.model.contract import Contract

TOML = """
[contract]
topic = "rides"
window_minutes = 5
{format}
event_time = "value.at"
[contract.measures]
rides = {{ count = "*" }}
"""
AVRO = 'format = "avro"\nschema_file = "rides.avsc"'
SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "at", "type": "long"}]}'


def read(folder: Path, form: str) -> Contract:
    (folder / "rides.toml").write_text(TOML.format(format=form))
    return read_pipeline(folder / "rides.toml").contract


def test_contract_holds_the_schema_s_text(tmp_path: Path) -> None:
    (tmp_path / "rides.avsc").write_text(SCHEMA)

    contract = read(tmp_path, AVRO)

    assert contract.reader_schema == SCHEMA
    assert Contract.from_definition(contract.definition()) == contract
    (tmp_path / "rides.avsc").write_text(SCHEMA.replace("long", "int"))
    assert read(tmp_path, AVRO).fingerprint() != contract.fingerprint()


@pytest.mark.parametrize(
    ("form", "what", "remedy"),
    [
        (AVRO, "rides.avsc cannot be read (No such file or directory)", "put the schema beside the TOML"),
        (AVRO.replace("rides.avsc", "../rides.avsc"), "'../rides.avsc' is not valid", "put the schema beside"),
        (AVRO.replace("rides.avsc", "/etc/passwd"), "'/etc/passwd' is not valid", "put the schema beside"),
        (AVRO.replace("rides.avsc", "folder.avsc"), "folder.avsc cannot be read (Is a directory)", "put the"),
        (AVRO.replace("rides.avsc", "bytes.avsc"), "bytes.avsc cannot be read (not UTF-8)", "put the schema"),
        (
            AVRO.replace("rides.avsc", "large.avsc"),
            "large.avsc has more than 1 MiB",
            "leave out fields that no SQL needs",
        ),
        ('format = "avro"', "missing, and format is avro", 'schema_file = "orders.avsc"'),
        (
            AVRO.replace("rides", "good") + '\nschema = "at INT"',
            "format is avro, whose schema is in a file",
            "name the file by schema_file",
        ),
        (AVRO.replace('"avro"', '"text"'), "format is text", 'leave it out, or set format = "avro" or'),
        (AVRO.replace("rides", "good") + "\ncsv = {}", "format is avro", 'set format = "csv"'),
    ],
)
def test_mistakes_name_their_remedy(tmp_path: Path, form: str, what: str, remedy: str) -> None:
    (tmp_path / "folder.avsc").mkdir()
    (tmp_path / "good.avsc").write_text(SCHEMA)
    (tmp_path / "bytes.avsc").write_bytes(b"\xff")
    (tmp_path / "large.avsc").write_text(SCHEMA + " " * (1 << 20))

    with pytest.raises(MistakesError) as raised:
        read(tmp_path, form)

    found = [each.remedy for each in raised.value.mistakes if what in each.what]
    assert [remedy in each for each in found] == [True]
