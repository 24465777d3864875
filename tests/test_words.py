"""A ban on this project's dialect in all that people read: comments, docstrings, strings, pages, messages."""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
DIALECT = re.compile(
    r"(?<![^\W_])(?:let(?:s|ting)?[\s_]+go|mend(?:s|ed|ing)?|anew|in\s+vain|heal(?:s|ed|ing)?|told|asked\s+of|stands?|stood"
    r"|(?:comes?|came|coming)\s+to|knows?\s+nothing\s+of|what\s+is\s+there|whoever|nobody|somebody)(?![^\W_])",
    re.IGNORECASE,
)
ALLOWED = {
    ("tests/test_words.py", "*"): "names the words",
    ("docs/deployment.md", "nobody"): "a Unix user",
    ("docs/security.md", "nobody"): "a Unix user",
    ("requirements/check", "nobody"): "a Unix user",
    ("tests/requirements/test_check.py", "nobody"): "a Unix user",
    ("local/onceover_local/stack/postgres.py", "nobody"): "a Unix user",
}
LOCKS = re.compile(r"requirements/\w+\.txt|.*\.png")
_FIELD = re.compile(r"\{[^{}\n]*\}")


class Hit(NamedTuple):
    """One banned phrase where it was written."""

    path: str
    line: int
    phrase: str


def texts(path: str, source: str) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of each comment and string of Python, or of the whole of any other file."""
    if not path.endswith(".py"):
        yield 1, source
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
        elif token.type == tokenize.STRING:
            is_f_string = "f" in token.string[:2].lower()
            yield token.start[0], _FIELD.sub("{}", token.string) if is_f_string else token.string


def hits(path: str, source: str) -> Iterator[Hit]:
    """Yield each banned phrase in what people read of a file."""
    for start, text in texts(path, source):
        for match in DIALECT.finditer(text):
            phrase = " ".join(match[0].lower().split())
            yield Hit(path, start + text.count("\n", 0, match.start()), phrase)


@pytest.fixture(scope="module")
def written() -> list[Hit]:
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    names = [name for name in listed.rstrip("\0").split("\0") if (ROOT / name).is_file() and not LOCKS.fullmatch(name)]
    return [hit for name in names for hit in hits(name, (ROOT / name).read_text(encoding="utf-8"))]


def test_files_use_words_that_a_stranger_knows(written: list[Hit]) -> None:
    left = [
        f"{hit.path}:{hit.line}: {hit.phrase}"
        for hit in written
        if not {(hit.path, hit.phrase), (hit.path, "*")} & ALLOWED.keys()
    ]
    assert left == []


def test_allowed_words_are_all_there(written: list[Hit]) -> None:
    there = {(hit.path, phrase) for hit in written for phrase in (hit.phrase, "*")}
    assert sorted(ALLOWED.keys() - there) == []


def test_words_are_found_in_comments_and_strings_only() -> None:
    source = 'told = f"{told} anew"  # in vain\ndef f():\n    """It lets\n    go."""\n'
    assert list(hits("a.py", source)) == [("a.py", 1, "anew"), ("a.py", 1, "in vain"), ("a.py", 3, "lets go")]
    assert list(hits("a.md", "Fine.\nMends.\n")) == [("a.md", 2, "mends")]
    assert list(hits("a.py", 'q = "SELECT last_let_go, told_at"\n')) == [("a.py", 1, "let_go"), ("a.py", 1, "told")]
