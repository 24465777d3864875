"""The pages that a reader opens, taken apart: headings and anchors, links, blocks of code, tables, commands."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED: Final = re.compile(r"^ {4}.*$", re.MULTILINE)
_BLOCK: Final = re.compile(r"(?:^ {4}.*\n)+", re.MULTILINE)
_INLINE: Final = re.compile(r"`([^`\n]+)`")
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_COMMAND: Final = re.compile(r"(?:[A-Z_]+=\S* )*onceover(?: |$)")


@dataclass(frozen=True, slots=True)
class Page:
    """One Markdown file, by its path from the root."""

    path: str
    text: str

    @property
    def headings(self) -> list[str]:
        return re.findall(r"^#+ (.+)$", _FENCE.sub("", self.text), re.MULTILINE)

    @property
    def anchors(self) -> set[str]:
        return {anchor(heading) for heading in self.headings}

    @property
    def links(self) -> list[str]:
        """Targets of links and pictures, without those to other sites."""
        return [target for target in _LINK.findall(self.text) if "://" not in target]

    def fenced(self, language: str) -> list[str]:
        return [block for name, block in _FENCE.findall(self.text) if name == language]

    @property
    def blocks(self) -> list[list[str]]:
        """The indented blocks, each by its lines."""
        found = _BLOCK.findall(_FENCE.sub("", self.text) + "\n")
        return [[line[4:] for line in block.splitlines()] for block in found]

    @property
    def shown(self) -> list[str]:
        """The lines of indented blocks."""
        return [line for block in self.blocks for line in block]

    @property
    def mentioned(self) -> list[str]:
        """The texts between backquotes in sentences and tables."""
        return _INLINE.findall(_INDENTED.sub("", _FENCE.sub("", self.text)))

    def section(self, heading: str) -> str:
        """Return the text from a heading to the next of its level or above. Raises ValueError without the heading."""
        found = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#{{1,2}} |\Z)", self.text, re.MULTILINE | re.DOTALL)
        if found is None:
            raise ValueError(f"{self.path} has no section {heading!r}")
        return found[2]

    def __str__(self) -> str:
        return self.path


def read(path: str) -> Page:
    return Page(path, (ROOT / path).read_text())


def anchor(heading: str) -> str:
    """Return the anchor that GitHub makes of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def rows(section: str) -> list[list[str]]:
    """Return the cells of a section's tables, without headers and rules."""
    tables = re.findall(r"(?:^\|.*\|\n)+", section + "\n", re.MULTILINE)
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for table in tables for line in table.splitlines()[2:]
    ]


def commands(lines: list[str]) -> Iterator[list[str]]:
    """Yield the arguments of each `onceover` in the lines, as a shell would pass them."""
    for line in lines:
        if _COMMAND.match(line):
            words = shlex.split(line, comments=True)
            yield words[words.index("onceover") + 1 :]


def kept_files() -> list[str]:
    """List the files that git tracks, without a user's own files."""
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    return [name for name in listed.rstrip("\0").split("\0") if (ROOT / name).is_file()]


README: Final = read("README.md")
DOCS: Final = tuple(read(f"docs/{path.name}") for path in sorted((ROOT / "docs").glob("*.md")))
PAGES: Final = (README, read("CONTRIBUTING.md"), read("CHANGELOG.md"), *DOCS)
