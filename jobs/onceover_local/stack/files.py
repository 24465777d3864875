"""How the stack writes its files: whole or not at all, and secrets for their owner's eyes only."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape


def write_whole(file: Path, text: str, mode: int = 0o644) -> None:
    """Replace the file in one step: a reader, or a kill, meets the old text or the new."""
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_name(f".{file.name}.{os.getpid()}.new")
    scratch.unlink(missing_ok=True)
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as opened:
        os.fchmod(opened.fileno(), mode)  # whatever the umask
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())
    scratch.replace(file)


@contextmanager
def made_whole(folder: Path) -> Iterator[Path]:
    """An empty folder to fill, which moves to its place only if nothing goes wrong: a kill half-way leaves nothing.

    It lies in a workshop that is thrown away afterwards, where settings for the making may lie beside it. A workshop
    serves once: a child that outlived its killed parent may still be at work in an earlier one.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left_over in folder.parent.glob(f".making-{folder.name}-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    workshop = folder.with_name(f".making-{folder.name}-{secrets.token_hex(4)}")
    workshop.mkdir()
    workshop.chmod(0o711)  # whatever the umask: a server that runs as another user may be at work in it
    scratch = workshop / folder.name
    scratch.mkdir(mode=0o700)
    yield scratch
    scratch.rename(folder)
    shutil.rmtree(workshop)


def make_secret(folder: Path, name: str) -> str:
    """The secret of that name, made at its first use and kept for ever in a file only its owner reads."""
    file = folder / name
    if not file.exists():
        write_whole(file, secrets.token_urlsafe(48), mode=0o600)
    return file.read_text()


def properties(settings: dict[str, object]) -> str:
    """Java's .properties: a backslash is doubled, and what is not ASCII is written as UTF-16 in hexadecimal."""
    return "".join(f"{key}={_escaped(str(value))}\n" for key, value in settings.items())


def _escaped(value: str) -> str:
    return "".join(char if char.isascii() else _utf_16(char) for char in value.replace("\\", "\\\\"))


def _utf_16(char: str) -> str:
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def hadoop_xml(settings: dict[str, object]) -> str:
    rows = "".join(
        f"  <property><name>{escape(key)}</name><value>{escape(str(value))}</value></property>\n"
        for key, value in settings.items()
    )
    return f'<?xml version="1.0"?>\n<configuration>\n{rows}</configuration>\n'
