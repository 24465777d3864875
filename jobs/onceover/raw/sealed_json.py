"""Small JSON files that never change, with the hash of their values, by which damage shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import xxhash

from onceover.model.json_text import to_json


def seal(values: Mapping[str, object]) -> bytes:
    """Return the file's content: these values and their `hash`."""
    return to_json({**values, "hash": _hash(values)}, indent=1).encode()


def unseal(content: bytes) -> dict[str, Any]:
    """Return the values. Raises ValueError, LookupError, TypeError or AttributeError for any other content."""
    values = json.loads(content)
    if values.pop("hash") != _hash(values):
        raise ValueError("its hash differs")
    return values  # type: ignore[no-any-return]


def _hash(values: Mapping[str, object]) -> str:
    return xxhash.xxh3_64_hexdigest(to_json(values))
