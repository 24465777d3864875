"""Bodies of requests for a run that are hostile beside their conf: Airflow makes no run of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.hostile.wrong_confs import UNALIGNED

DAG = "restore_window"
CONF = {"pipeline": "flights", "window": UNALIGNED, "reason": "why not"}
"""A conf that the form takes. No task would take it, should Airflow make a run all the same."""
REFUSED: tuple[Mapping[str, Any], ...] = (
    {"conf": []}, {"conf": "x"}, {"conf": None}, {"conf": {"conf": CONF}}, {"conf": {**CONF, "\0": 1}},
    {"conf": {**CONF, "x": "\ud800"}}, {"conf": {**CONF, "x": float("nan")}}, {"conf": {**CONF, "x": float("inf")}},
    {"dag_run_id": "{{ 7*191 }}"}, {"dag_run_id": "../../x"}, {"dag_run_id": "%2e%2e"}, {"dag_run_id": "a/b"},
    {"dag_run_id": "a" * 300}, {"dag_run_id": "x;touch {file}"}, {"dag_run_id": 7}, {"dag_run_id": "backfill__x"},
    {"dag_run_id": "scheduled__2026-01-01T00:00:00+00:00"}, {"note": "x" * 5_000}, {"note": {"a": 1}},
    {"logical_date": "now"}, {"logical_date": "2013-02-30T00:00:00Z"}, {"logical_date": 1e18},
    {"logical_date": "2013-01-01T00:00:00"}, {"data_interval_start": "2013-01-01T00:00:00Z"}, {"partition_key": "x"},
    {"triggering_user_name": "root"}, {"run_type": "scheduled"},
)  # fmt: skip
UNCAUGHT: tuple[Mapping[str, Any], ...] = (
    {"dag_run_id": "\0"}, {"note": "\0"}, {"note": "\ud800"}, {"run_after": "0001-01-01T00:00:00+23:59"},
)  # fmt: skip
"""What Airflow 3.3 fails on: it answers 500."""
WAITING: tuple[Mapping[str, Any], ...] = (
    {"logical_date": "9999-12-31T23:59:59Z"}, {"run_after": "9999-12-31T23:59:59Z"},
)  # fmt: skip
"""What Airflow makes a run of that begins no task, until a person ends it."""
RAW = (
    b"", b"null", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000 + b"]" * 100_000, b"A" * 5_000_000,
    b'{"logical_date": null, "conf": {"x": ' + b"9" * 5_000 + b"}}",
    b'{"logical_date": null, "conf": {"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
)  # fmt: skip


def encode(fields: Mapping[str, Any], file: str) -> bytes:
    return json.dumps({"logical_date": None, "conf": CONF, **fields}).replace("{file}", file).encode()


def list_bodies(file: str) -> Iterator[tuple[bytes, int]]:
    """Yield each body with the status that the status of Airflow's answer must be below, and from 400."""
    yield from ((body, 500) for body in RAW)
    yield from ((encode(fields, file), 500) for fields in REFUSED)
    yield from ((encode(fields, file), 600) for fields in UNCAUGHT)
