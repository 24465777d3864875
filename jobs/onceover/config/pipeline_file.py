"""The reader of a pipeline's TOML, which names each mistake with file, key and remedy before anything starts."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from onceover.config.contract_tables import FOLDER, ContractTable, list_measures
from onceover.config.mistakes import Mistake, MistakesError, suggest_name
from onceover.config.pipeline_tables import PipelineTable
from onceover.config.zones import read_changes, read_version
from onceover.model.contract import Contract, CsvLayout, Key
from onceover.model.pipeline import NAME, NAME_RULE, IngestPolicy, Pipeline, RepairPolicy, StoragePolicy

_ADAPTER = TypeAdapter(PipelineTable)
_TABLE = ("{value} is not a table", "write [{key}] above its keys")
_EXPLAINED = {  # pydantic's kinds of errors: what is wrong, and the remedy where a key has none of its own
    "missing": ("missing", _TABLE[1]),
    "dict_type": _TABLE,
    "dataclass_type": _TABLE,
    "bool_type": ("{value} is neither true nor false", "write true or false, without quotes"),
    "int_type": ("{value} is not a whole number", "write a whole number"),
    "string_type": ("{value} is not a string", "write it in double quotes"),
    "string_too_short": ("is empty", "write something, or leave the key out"),
    "string_pattern_mismatch": ("{value} is not valid", "take the NUL character out"),
    "tuple_type": ("{value} is not a list", 'write it like ["origin", "carrier"]'),
    "too_short": ("is empty", "write at least one"),
    "too_long": ("more than {max_length} keys", "take at most {max_length}"),
}


def read_pipeline(path: Path) -> Pipeline:
    """Read the pipeline in that file, once. Raise MistakesError with all mistakes."""
    file = f"{path.parent.name}/{path.name}"
    values = _parse(path, file)
    mistakes: list[Mistake] = []
    if not NAME.fullmatch(path.stem):
        mistakes.append(
            Mistake(file, "", f"{path.stem!r} cannot be a pipeline's name", f"rename the file: {NAME_RULE}")
        )
    try:
        tables = _ADAPTER.validate_python(values, context={**values, FOLDER: path.parent})
    except ValidationError as error:
        mistakes += _list_mistakes(error, file)
    if mistakes:  # raised here and not above: pydantic's error quotes values, and one may be a secret
        raise MistakesError(mistakes)
    ingest = {**vars(tables.ingest), "group": tables.ingest.group or f"onceover-{path.stem}"}
    return Pipeline(
        path.stem,
        _build_contract(tables.contract),
        IngestPolicy(**ingest),
        StoragePolicy(**vars(tables.storage)),
        RepairPolicy(**vars(tables.repair)),
        tables.kafka,
    )


def _parse(path: Path, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        what, remedy = f"cannot be read ({error.strerror})", "check that the file exists and is readable"
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        what, remedy = f"line {line} is not UTF-8", "save the file as UTF-8"
    except tomllib.TOMLDecodeError as error:
        what, remedy = f"not TOML: {error}", "correct that line; strings are in double quotes"
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, or tables nested too deeply
        what, remedy = f"not usable TOML: {str(error)[:80]}", "write smaller numbers and flatter tables"
    raise MistakesError([Mistake(file, "", what, remedy)])


def _build_contract(table: ContractTable) -> Contract:
    values = {**vars(table), **vars(table.bounds)}
    del values["bounds"], values["window"]
    values["window_zone"] = table.window_zone or ""
    if table.window_zone:
        values["zone_changes"], values["zone_data"] = read_changes(table.window_zone), read_version()
    values["reader_schema"] = values.pop("schema_file")
    values["key_schema"] = values.pop("key_schema_file")
    values["csv"] = CsvLayout(**vars(table.csv)) if table.format == "csv" else None
    values["keys"] = tuple(Key(*key) for key in table.keys.items())
    measures, derived = list_measures(table.on_null, table.measures)
    values["measures"], values["derived"] = tuple(measures), tuple(derived)
    return Contract(**values)


def _list_mistakes(error: ValidationError, file: str) -> Iterator[Mistake]:
    for each in error.errors(include_url=False):
        path = [name if len(name) <= 80 else f"{name[:77]}..." for name in map(str, each["loc"])]
        if path[2:] and path[-1] == "[key]":  # in a table with free names the name is wrong, not its value
            path.pop()
        fields, field = _find_fields(path)
        context = {"value": repr(str(each["input"])[:80]), "key": ".".join(path), **each.get("ctx", {})}
        if each["type"] == "mistake":
            what, remedy = context["what"], context["remedy"].replace("{key}", path[-1])
            path.append(context["within"])
        elif each["type"] == "unexpected_keyword_argument":
            what, remedy = "unknown key", suggest_name(path[-1], list(fields))
        else:
            what, remedy = _EXPLAINED.get(each["type"], ("{value} is not valid", "correct it"))
            what, remedy = what.format(**context), (field and field.description) or remedy.format(**context)
        yield Mistake(file, ".".join(filter(None, path)), what, remedy)


def _find_fields(path: list[str]) -> tuple[dict[str, FieldInfo], FieldInfo | None]:
    """Return the fields of the table that holds this key, and the key's own field: none in a table with free names."""
    table: Any = PipelineTable
    fields: dict[str, FieldInfo] = {}
    for part in path:
        fields = {field.alias or "": field for field in getattr(table, "__pydantic_fields__", {}).values()}
        table = fields[part].annotation if part in fields else None
    return fields, fields.get(path[-1])
