"""The stack's files: written whole or not at all, secrets readable by their owner only."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

from onceover.errors import ConfigurationError


def write_whole(file: Path, text: str, mode: int = 0o644) -> None:
    """Replace the file atomically: a reader sees, and a kill leaves, the old text or the new."""
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
def make_whole(folder: Path) -> Iterator[Path]:
    """Yield an empty folder to fill, and move it to its place if the block raises no error: a kill leaves nothing.

    The folder is made in a workshop, which may also hold files for the making and is deleted afterwards. A workshop is
    used once: a child that outlived its killed parent may still write to an earlier one.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left_over in folder.parent.glob(f".making-{folder.name}-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    workshop = folder.with_name(f".making-{folder.name}-{secrets.token_hex(4)}")
    workshop.mkdir()
    workshop.chmod(0o711)  # whatever the umask: a server that runs as another user may write in it
    scratch = workshop / folder.name
    scratch.mkdir(mode=0o700)
    yield scratch
    scratch.rename(folder)
    shutil.rmtree(workshop)


def make_secret(folder: Path, name: str) -> str:
    """Return the secret of that name, made at its first use and kept in a file that only its owner may read.

    Raises ConfigurationError if another user may have put folder or file there, or may read the file.
    """
    file = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    _require_ours(folder)
    folder.chmod(0o700)  # whatever the umask
    if not file.exists():
        write_whole(file, secrets.token_urlsafe(48), mode=0o600)
    _require_ours(file)
    return file.read_text()


def _require_ours(path: Path) -> None:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        why = "is a link"
    elif status.st_uid != os.geteuid():
        why = f"belongs to user {status.st_uid}"
    elif stat.S_ISREG(status.st_mode) and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        why = "is open to other users"
    else:
        return
    raise ConfigurationError(
        f"{path} {why}, so another user may know the embedded stack's secrets; start the stack as the "
        "user who made it, or move its folder away and start with empty servers and new secrets"
    )


def format_properties(settings: dict[str, object]) -> str:
    """Return the settings as Java's .properties: a backslash is doubled, non-ASCII is written as UTF-16 in hex."""
    return "".join(f"{key}={_escape(str(value))}\n" for key, value in settings.items())


def _escape(value: str) -> str:
    return "".join(char if char.isascii() else _encode_utf_16(char) for char in value.replace("\\", "\\\\"))


def _encode_utf_16(char: str) -> str:
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def format_hadoop_xml(settings: dict[str, object]) -> str:
    rows = "".join(
        f"  <property><name>{escape(key)}</name><value>{escape(str(value))}</value></property>\n"
        for key, value in settings.items()
    )
    return f'<?xml version="1.0"?>\n<configuration>\n{rows}</configuration>\n'
