"""The smallest TOML of a pipeline, and a folder with it."""

from __future__ import annotations

from pathlib import Path

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
