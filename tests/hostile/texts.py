"""Texts that try to become something else: SQL, a shell's command, a template, a path, a terminal's command, markup, a
number, a giant. Each has a number, and the same number gives the same text for ever."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

CANARY = "ONCEOVER_CANARY"
"""The environment variable that no text may read, and part of the names of the file and the table of canaries."""
SEEN = "7f3ac0ffee"
"""The variable's value: it may appear in no message, file or table."""

_SQL = (
    "'; DROP TABLE {canary}; --", "' OR '1'='1", "\"; DELETE FROM {canary}; --", "$$; DROP TABLE {canary}; $$",
    "\\'; DROP TABLE {canary}; --", "1); DROP TABLE {canary}; --", "%s", "%(pipeline)s", "{{0}}", "E'\\x41'", "\\.",
    "'||pg_sleep(9)||'", "COPY {canary} TO PROGRAM 'touch {file}'", "\\N", "\\t\\n",
)  # fmt: skip
_SHELL = (
    "; touch {file}", "$(touch {file})", "`touch {file}`", "| touch {file}", "&& touch {file}", "\n touch {file}",
    "--help", "-rf", "--conf spark.jars=/x", "-Dx=y", "${CANARY}", "$" + CANARY, "%COMSPEC%", "a b", "*", "~root", "!!",
    "@/etc/passwd", "--", "-",
)  # fmt: skip
_TEMPLATE = (
    "{{ 7*191 }}", "{{ var.value.x }}", "{% for x in ().__class__.__base__.__subclasses__() %}{% endfor %}", "${7*191}",
    "#{7*191}", "<%= 7*191 %>", "{0.__class__}", "%(x)s", "f'{7*191}'", "{{ macros.os.system('touch {file}') }}",
    "{{ conn.spark_default.password }}", "__import__('os').system('touch {file}')",
)  # fmt: skip
_PATH = (
    "../../../../etc/passwd", "/etc/passwd", "..", ".", "/", "//", "\\..\\..\\x", "file:///etc/passwd", "things/../x",
    "%2e%2e%2f", "....//....//", "/proc/self/environ", "/dev/zero", "hdfs://x/y", "things\0.toml", "~/.pgpass", "con",
    "http://169.254.169.254/latest", "a/b", "x" * 300,
)  # fmt: skip
_TERMINAL = (
    "\x1b[2J", "\x1b]0;owned\x07", "\x1b[31mred", "\x9b2J", "\r overwritten", "\b\b\b", "\x07", "\0", "\x7f",
    "\u202e evil", "\u200b", "\ufeff", "\x85", "\u2028", "[bold red]x[/]", "[/]", "\n2026-01-01 ERROR forged", "\v\f",
    "\x1bP+q",
)  # fmt: skip
_MARKUP = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "&lt;", "javascript:alert(1)", "](javascript:x)",
    "![x](http://x/)", "<!--", "]]>", "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>",
    "\"><svg/onload=x>", "=cmd|'/c calc'!A1",
)  # fmt: skip
_NUMBER = (
    "0", "-1", "1e9999999", "NaN", "Infinity", "0x10", "9" * 400, "9" * 5000, "1_000", "²", "١٢", "½", "1.5", "+1",
    "00", "9223372036854775808", "-9223372036854775809", "2147483648", "1e3", ".5", "0" * 100 + "1",
)  # fmt: skip
_TIME = (
    "2013-01-01T05:00Z", "2013-01-01", "now", "9999-12-31T23:59Z", "0001-01-01T00:00+23:59", "2013-02-30T00:00Z",
    "2013-01-01T24:00Z", "2013-01-01T05:00:60Z", "2013-01-01T05:00", "٢٠١٣-01-01T05:00Z", "2013-01-01T05:00+99:99",
    "2013-01-01T05:00:00.1234567890123Z", "-2013-01-01T05:00Z", "2013-W01", "0000-01-01T00:00Z", "2013-01-01T05:00z",
)  # fmt: skip
_SIZE = (
    "", " ", "\t", "A" * 501, "A" * 100_000, "[" * 20_000, '{"a":' * 20_000, "𝄞" * 600, "é" * 300, "\ud800",
    "e\u0301" * 400,
)  # fmt: skip
FAMILIES = {
    "sql": _SQL, "shell": _SHELL, "template": _TEMPLATE, "path": _PATH, "terminal": _TERMINAL, "markup": _MARKUP,
    "number": _NUMBER, "time": _TIME, "size": _SIZE,
}  # fmt: skip
WORDS = ("things", "2013-01-01T05:00Z", "5f3a0b1c-0:0-9", "why not", "certified", "7d", "true", "earliest", "0:100")
OTHERS: tuple[Any, ...] = (
    None, True, False, 0, -1, 1 << 70, 1.5, float("inf"), [], [[]], {}, {"a": {"b": []}}, ["things"], {"__var": "x"},
    b"bytes", {"__type": "datetime", "__var": 1},
)  # fmt: skip


def make_text(family: str, number: int, file: str = "/tmp/onceover-canary", *, as_argument: bool = False) -> str:
    """Return text `number` of a family of doors. `as_argument` leaves out what no program can be given."""
    random = Random(f"{family}:{number}")
    kind = random.choice(sorted(FAMILIES))
    text = random.choice(FAMILIES[kind]).replace("{canary}", CANARY.lower()).replace("{file}", file)
    for change in random.sample(_CHANGES, random.choice((0, 0, 1, 1, 2))):
        text = change(random, text)
    if as_argument:
        text = text.replace("\0", "").encode("utf-8", "replace").decode()[:100_000]
    return text


def make_value(family: str, number: int, file: str = "/tmp/onceover-canary") -> Any:
    """Return a value as a program may send it: two of three are texts."""
    random = Random(f"value {family}:{number}")
    if random.random() < 2 / 3:
        return make_text(family, number, file)
    value = random.choice(OTHERS)
    return [value, make_text(family, number, file)] if random.random() < 0.2 else value


def numbers(count: int) -> Iterator[int]:
    """Yield the numbers of `count` tries; ONCEOVER_HOSTILE=20 makes twenty times as many, for a night."""
    yield from range(count * int(os.environ.get("ONCEOVER_HOSTILE", "1")))


def _splice(random: Random, text: str) -> str:
    word = random.choice(WORDS)
    at = random.randrange(len(word) + 1)
    return word[:at] + text + word[at:]


def _double(random: Random, text: str) -> str:
    return text + random.choice(random.choice(list(FAMILIES.values())))


def _cut(random: Random, text: str) -> str:
    return text[: random.randrange(len(text) + 1)]


def _swap(random: Random, text: str) -> str:
    at = random.randrange(len(text) + 1)
    return (
        text[:at] + chr(random.choice((random.randrange(32), random.randrange(0x80, 0x3000), 0x1F4A9))) + text[at + 1 :]
    )


def _quote(random: Random, text: str) -> str:
    mark = random.choice("'\"`$%\\")
    return f"{mark}{text}{mark}"


_CHANGES: Sequence[Callable[[Random, str], str]] = (_splice, _double, _cut, _swap, _quote)
