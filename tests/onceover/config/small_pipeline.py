"""The smallest TOML of a pipeline, a folder with it, and the mistakes of another."""

from __future__ import annotations

from pathlib import Path

import pytest

from onceover.config.mistakes import MistakesError
from onceover.config.pipeline_file import read_pipeline

SMALLEST = """
[contract]
topic = "orders"
window_minutes = 5
schema = "paid_at STRING"
event_time = "to_timestamp(value.paid_at)"
measures = { orders = { count = "*" } }
"""


def written(root: Path, text: str, name: str = "orders.toml") -> Path:
    folder = root / "pipelines"
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(text.encode())
    return folder / name


def mistakes(root: Path, text: str, name: str = "orders.toml") -> list[str]:
    with pytest.raises(MistakesError) as caught:
        read_pipeline(written(root, text, name))
    assert "\n" not in str(caught.value)
    return [str(mistake) for mistake in caught.value.mistakes]
