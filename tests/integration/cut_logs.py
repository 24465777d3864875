"""A topic's log that loses its end while the broker is down, as after a power cut: one file, cut at a batch."""

from __future__ import annotations

import struct
from pathlib import Path

from onceover_local.stack import Stack

_HEADER = struct.Struct(">qi")  # base offset, length of what follows
_CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", ".kafka_cleanshutdown")


def cut_log(stack: Stack, topic: str, offset: int) -> None:
    """Restart the broker with the topic's Kafka partition 0 cut before the batch that begins at `offset`."""
    data = stack.local / "kafka" / "data"
    stack.stop_part("kafka")
    try:
        _cut_folder(data / f"{topic}-0", offset)
        for name in _CHECKPOINTS:
            (data / name).unlink(missing_ok=True)
    finally:
        stack.start_part("kafka")


def _cut_folder(folder: Path, offset: int) -> None:
    (segment,) = folder.glob("*.log")
    content = segment.read_bytes()
    at = 0
    while at < len(content):
        base, length = _HEADER.unpack_from(content, at)
        if base >= offset:
            break
        at += _HEADER.size + length
    assert at < len(content), f"{segment} has no batch from offset {offset} on"
    assert base == offset, f"no batch of {segment} begins at offset {offset}"
    segment.write_bytes(content[:at])
    for other in folder.iterdir():
        if other.suffix in (".index", ".timeindex", ".snapshot", ".txnindex"):
            other.unlink()
