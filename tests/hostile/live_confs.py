"""What is sent to a running Airflow to start a DAG: confs that are right, and confs that a form refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import cycle, islice
from random import Random
from typing import Any, NamedTuple

import jsonschema
from tests.hostile.texts import make_text, make_value

Conf = dict[str, Any]
NOON, END = "2026-03-01T12:00Z", "2026-03-01T12:10Z"
"""The windows that the pipeline of the tries has."""


class Sent(NamedTuple):
    """One request for a run: its DAG, the conf, and the body's other fields."""

    dag: str
    conf: Conf
    fields: Mapping[str, Any] = {}

    def encode(self) -> bytes:
        """Return the request's body, with NaN and halves of pairs as a careless client writes them."""
        return json.dumps({"logical_date": None, "conf": self.conf, **self.fields}, default=repr).encode()


def make_right(pipeline: str) -> dict[str, Conf]:
    """Return a conf of each DAG that its form takes, and that its task carries out where it finds what to do."""
    pick, why = {"pipeline": pipeline}, {"reason": "why not"}
    span, window = {"from": NOON, "to": END}, {"window": NOON}
    return {
        "accept_loss": {**pick, **span, **why, "offsets": "1f2e3d4c-0:12-13", "kind": "expired"},
        "audit_against_log": {**pick, **span},
        "expire_raw": {**why, "dry_run": False},
        "repair_history": {**pick, **why, "force": False},
        "repair_on_call": {**pick, **span, **why, "dry_run": False, "force": False, "plan": None},
        "reread_window": {**pick, **window, **why},
        "restate_history": {**pick, **span, **why, "dry_run": True, "plan": None},
        "restore_window": {**pick, **window, **why, "revision": None},
        "take_windows": {**pick, **span, **why, "ticket": "INC-1", "release": False},
    }


def list_refused() -> Iterator[Sent]:
    """Yield confs with one value that its param must refuse: of another type or too long, or beyond its own bounds."""
    right = make_right("flights")
    for dag, conf in right.items():
        for name in conf:
            for value in ([conf[name]], {"": conf[name]}, 1.5, "A" * 501):
                yield Sent(dag, {**conf, name: value})
    for dag, name, value in (
        ("restore_window", "revision", 1 << 31), ("restore_window", "revision", 1 << 70),
        ("repair_on_call", "from", "٢٠٢٦-03-01T12:00Z"), ("accept_loss", "offsets", "1f2e3d4c-0:٠-١"),
        ("accept_loss", "offsets", "1f2e3d4c-0:0-" + "9" * 30), ("accept_loss", "offsets", "1f2e3d4c-999999999:0-1"),
    ):  # fmt: skip
        yield Sent(dag, {**right[dag], name: value})


def list_spoiled(count: int, forms: Mapping[str, Conf], file: str) -> Iterator[Sent]:
    """Yield confs of any hostile values that the forms refuse, by the schemas that `forms` has of each DAG's params."""
    right, number = make_right("flights"), 0
    for dag in islice(cycle(sorted(right)), count):
        conf = right[dag]
        while takes(forms[dag], conf):
            conf, number = _spoil(right[dag], number, file), number + 1
        yield Sent(dag, conf)


def takes(form: Conf, conf: Conf) -> bool:
    """Return whether a form takes a conf: by each param's schema, whatever else the conf holds."""
    sent = json.loads(Sent("", conf).encode())["conf"]
    return all(
        jsonschema.Draft202012Validator(param["schema"]).is_valid(sent.get(name, param["value"]))
        for name, param in form.items()
    )


def _spoil(right: Conf, number: int, file: str) -> Conf:
    random, conf = Random(f"live conf {number}"), dict(right)
    for name in random.sample(sorted(conf), min(len(conf), random.choice((1, 1, 2, 9)))):
        conf[name] = make_value("live confs", number * 20 + len(name), file)
    if random.random() < 0.2:
        conf = {make_text("live keys", number, file): conf} if random.random() < 0.5 else {}
    if random.random() < 0.3:
        conf[make_text("live keys", number, file)] = make_value("live values", number, file)
    return conf
