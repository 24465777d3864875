"""The field of a schema that a text of `required` means: `a.b`, or with SQL's backquotes, as in `a`.`b.c`.

A dot may be part of a JSON name, as in service.name. So a text without backquotes has as many readings as the schema
has fields for, and means a field if there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyspark.sql.types import StructType

FieldPath = tuple[str, ...]
_QUOTED = re.compile(r"`((?:[^`]|``)*)`(?=\.|\Z)")


def find_paths(schema: StructType, written: str) -> list[FieldPath]:
    """Return the path of each field that the text may mean: none for an unknown one, several for an ambiguous one."""
    fields = {field.name: field.dataType for field in schema.fields}
    paths: list[FieldPath] = []
    for name, rest in _list_first_names(written):
        kind = fields.get(name)
        if rest is None and kind is not None:
            paths.append((name,))
        elif rest is not None and isinstance(kind, StructType):
            paths += [(name, *path) for path in find_paths(kind, rest)]
    return paths


def list_paths(schema: StructType) -> Iterator[FieldPath]:
    """Return the paths of all fields, also of those within structs."""
    for field in schema.fields:
        yield (field.name,)
        if isinstance(field.dataType, StructType):
            yield from ((field.name, *path) for path in list_paths(field.dataType))


def write_path(schema: StructType, path: FieldPath) -> str:
    """Return a text that means this field alone, without backquotes where it needs none."""
    plain = ".".join(path)
    return plain if plain == plain.strip() and find_paths(schema, plain) == [path] else quote_path(path)


def quote_path(path: FieldPath) -> str:
    """Return the path with each name in backquotes, which has one reading."""
    return ".".join(f"`{name.replace('`', '``')}`" for name in path)


def _list_first_names(written: str) -> Iterator[tuple[str, str | None]]:
    """Return each reading of the text's first name, with the text after its dot; None if the name is the last."""
    if written.startswith("`"):
        if quoted := _QUOTED.match(written):
            rest = written[quoted.end() + 1 :] if quoted.end() < len(written) else None
            yield quoted[1].replace("``", "`"), rest
        return
    for at, character in enumerate(written):
        if character == ".":
            yield written[:at], written[at + 1 :]
    yield written, None
