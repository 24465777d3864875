"""Confs that a DAG's form takes and its task must refuse: each is wrong, so that whatever it writes is an error."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

from tests.hostile.live_confs import Conf, Sent, make_right
from tests.hostile.texts import CANARY

LEGAL = (
    "{{ 7*191 }}", "{{ ti.xcom_push('x', 7*191) }}", "$(touch {file})", "`touch {file}`", "; touch {file} #",
    "'; DROP TABLE {canary}; --", "COPY {canary} TO PROGRAM 'touch {file}'", "<script>alert(1)</script>", "--help",
    "{{ macros.os.system('touch {file}') }}", "&& touch {file}", "../../../../etc/passwd", "\n2026-01-01 ERROR forged",
)  # fmt: skip
"""What a reason may say, and what must stay as it is. `{file}` must not appear, the table `{canary}` must stay."""
ESC, TITLE, RIGHT_TO_LEFT = "\x1b[2J", "\x1b]0;owned\x07", "\u202e evil"
UNALIGNED, UNKNOWN, DISTANT, LAST = "2026-03-01T12:01Z", "2026-03-01T18:00Z", "2999-01-01T00:00Z", "9999-12-31T23:55Z"
FOR_SHELL = "{{ 7*191 }} $(touch {file}) `touch {file}` && touch {file}; touch {file} | touch {file} '\" #"
DAY, LATE = "2014-05-05T00:00:00Z", "2014-05-06T00:00:01Z"  # days that no other test backfills
_WRONG: dict[str, tuple[Conf, ...]] = {
    # Spark starts for the first, which takes longest; the reason is one of spark-submit's arguments.
    "reread_window": ({"window": UNKNOWN, "reason": FOR_SHELL}, {"window": UNALIGNED}),
    "expire_raw": ({"reason": ESC},),
    "repair_history": ({}, {}, {"pipeline": None}),
    "audit_against_log": ({"to": None}, {"to": DISTANT}),
    "repair_on_call": (
        {"reason": None}, {"reason": TITLE}, {"reason": RIGHT_TO_LEFT}, {"from": "0000-01-01T00:00Z"},
        {"from": "0001-01-01T00:00+23:59"}, {"from": "2026-03-01T12:00+99:99"},
        {"plan": "0" * 64},
    ),
    "restate_history": (
        {"from": UNALIGNED}, {"reason": TITLE, "dry_run": False}, {"plan": "0" * 64, "dry_run": False},
    ),
    "restore_window": (
        {"window": UNALIGNED}, {"window": UNKNOWN}, {"window": DISTANT}, {"window": LAST}, {"revision": 7},
        {"revision": 2.0},
    ),
    "take_windows": (
        {"ticket": " "}, {"ticket": ESC}, {"release": True}, {"pipeline": "flights"}, {"from": DISTANT, "to": LAST},
    ),
    "accept_loss": (
        {"offsets": "1f2e3d4c-0:13-12"}, {"offsets": "1f2e3d4c-0:0-" + "9" * 18}, {"offsets": "1f2e3d4c-99999:0-1"},
        {"kind": "unreadable"},
    ),
}  # fmt: skip
_FIELDS: dict[str, tuple[Conf, ...]] = {
    "reread_window": ({"dag_run_id": "--help"}, {"dag_run_id": "~root"}),
    "expire_raw": ({"dag_run_id": "a:b~c+d"},),
    "repair_history": (  # an interval that is reversed, and one that is not aligned
        {"logical_date": DAY, "data_interval_start": LATE, "data_interval_end": DAY},
        {"logical_date": LATE, "data_interval_start": DAY, "data_interval_end": LATE},
    ),
    "repair_on_call": (
        {"dag_run_id": "manual\n"}, {"dag_run_id": "-rf"}, {"dag_run_id": "con:"},
        {"logical_date": "0001-01-01T00:00Z"}, {"logical_date": -1}, {"logical_date": "2013-01-01T00:00:00+23:59"},
        {"logical_date": 0},
    ),
}  # fmt: skip
"""What the bodies of the first of these confs say besides, which Airflow takes."""


def list_taken(pipeline: str, file: str) -> Iterator[Sent]:
    """Yield the wrong confs, each with a hostile reason unless that is what is wrong, and a note; then, for each DAG,
    confs that are right but for unknown keys."""
    texts = cycle(_fill(text, file) for text in LEGAL)
    for dag, changes in _WRONG.items():
        right, more = make_right(pipeline)[dag], iter(_FIELDS.get(dag, ()))
        for change in changes:
            reason: Conf = {"reason": next(texts)} if "reason" in right else {}
            conf = {**right, **reason, **change}
            if isinstance(conf.get("reason"), str):
                conf["reason"] = _fill(conf["reason"], file)
            yield Sent(dag, conf, {**next(more, {}), "note": next(texts) + ESC})
    for dag, right in make_right(pipeline).items():
        yield Sent(dag, {**right, "dryrun": True})
        unknown = {next(texts): {"__type": "datetime", "__var": [next(texts)]}, "params": {"pipeline": "flights"}}
        yield Sent(dag, {**right, **unknown})


def _fill(text: str, file: str) -> str:
    return text.replace("{canary}", CANARY.lower()).replace("{file}", file)
