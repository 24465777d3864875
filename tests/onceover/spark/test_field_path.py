"""Which field of a schema a text of `required` means."""

from __future__ import annotations

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from onceover.spark.field_path import find_paths, list_paths, write_path


def make_struct(**fields: object) -> StructType:
    kinds = {name: make_struct(**kind) if isinstance(kind, dict) else IntegerType() for name, kind in fields.items()}
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


SCHEMA = make_struct(
    **{"service.name": 0, "a": {"b": 0, "c.d": {"e": 0}, "`": 0}, "a.b": 0, "a.c": {"x": 0}, ".": 0, "": {"": 0}}
)


@pytest.mark.parametrize(
    ("written", "paths"),
    [
        *(("service.name", ["service.name"]), ("`service.name`", ["service.name"]), ("service", []), ("name", [])),
        *(("a", ["a"]), ("a.b", ["a.b", "a|b"]), ("`a.b`", ["a.b"]), ("`a`.b", ["a|b"]), ("a.`b`", ["a|b"])),
        *(("a.c.d.e", ["a|c.d|e"]), ("a.`c.d`.e", ["a|c.d|e"]), ("a.c.x", ["a.c|x"]), ("a.c.d.f", [])),
        *(("a.`", []), ("a.````", ["a|`"]), ("`a`b", []), ("`a", []), ("`a``b`", []), ("a.b.c", []), ("A", [])),
        *((".", [".", "|"]), ("`.`", ["."]), ("``", [""]), ("``.``", ["|"]), ("a.", []), ("``.", ["|"])),
    ],
)
def test_text_means_each_field_that_it_can_be_read_as(written: str, paths: list[str]) -> None:
    assert sorted(find_paths(SCHEMA, written)) == sorted(tuple(path.split("|")) for path in paths)


def test_each_field_has_a_text_that_means_it_alone() -> None:
    paths = list(list_paths(SCHEMA))
    assert len(paths) == 12
    assert [find_paths(SCHEMA, write_path(SCHEMA, path)) for path in paths] == [[path] for path in paths]
    assert write_path(SCHEMA, ("a", "c.d", "e")) == "a.c.d.e"


def test_field_within_what_is_no_struct_is_unknown() -> None:
    assert find_paths(StructType([StructField("a", StringType())]), "a.b") == []
