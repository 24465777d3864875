"""The conversions in a contract's SQL that may make null or another value of a text, and that the check refuses."""

from __future__ import annotations

import re
from typing import Any, Final

from pyspark.sql.types import DataType, StringType, StructType

from onceover.spark.catalyst import get_name, get_type, list_children, walk
from onceover.spark.contract_guards import GUARDED, find_guarded_type
from onceover.spark.json_fields import READABLE_TYPES, list_unreadable_types

_READERS: Final = {"CsvToStructs": "from_csv", "XmlToStructs": "from_xml"}
_VARIANTS: Final = {"ParseJson", "ToVariantObject", "VariantGet"}
_PATHS: Final = {f"XPath{kind}" for kind in ("Boolean", "Double", "Float", "Int", "Long", "Short")}
CONVERSIONS: Final = {"Cast", "JsonToStructs", *_READERS, *_VARIANTS, *_PATHS}
"""Classes of expressions that `find_refused_conversion` looks at."""
_TEXTS: Final = ("string", "char")
_UNGUARDED: Final = re.compile(rf"(?:^|[<,:])({'|'.join(GUARDED)})")


def find_refused_conversion(expression: Any) -> tuple[str, str] | None:
    """Return what is wrong with a conversion in the analyzed expression, and what to write; None if nothing is."""
    for node in walk(expression):
        name = get_name(node)
        if name not in CONVERSIONS:
            continue
        kind = node.dataType().catalogString()
        if name in _VARIANTS or (name == "Cast" and "variant" in kind):
            return "makes a VARIANT, which rounds numbers", "take from_json(...), or get_json_object(...) and a cast"
        if name == "JsonToStructs" and (refused := _refuse_json(node, get_type(node))):
            return refused
        if name in _PATHS:
            return "makes 0 by xpath of a text that is no number", "take xpath_string(...) and a cast"
        if name in _READERS and not _has_strings_alone(get_type(node)):
            what = f"makes null by {_READERS[name]} of a text that is no value of its type"
            return what, "declare each field there as STRING, and cast it"
        if name == "Cast" and _holds_text(node) and not find_guarded_type(node) and (made := _UNGUARDED.search(kind)):
            kind = {"decimal": "DECIMAL(28, 6)"}.get(made[1], made[1].upper())
            what = f"makes {kind}s of several texts at once, of which none is looked at"
            return what, f"cast one at a time, such as by transform(..., text -> CAST(text AS {kind}))"
    return None


def _refuse_json(node: Any, kind: DataType) -> tuple[str, str] | None:
    if node.options().size():
        return "gives from_json options", 'leave them out: it reads as format = "json" does'
    if not isinstance(kind, StructType):
        return (
            f"reads {kind.simpleString().upper()} by from_json",
            "read an object with it: from_json(..., 'n INT, s STRING')",
        )
    for field, inner in list_unreadable_types(kind):
        return f"reads field {field} as {inner} by from_json", f"declare it as {READABLE_TYPES}"
    return None


def _has_strings_alone(kind: DataType) -> bool:
    return isinstance(kind, StructType) and all(isinstance(field.dataType, StringType) for field in kind.fields)


def _holds_text(node: Any) -> bool:
    return any(text in child.dataType().catalogString() for child in list_children(node) for text in _TEXTS)
