"""The folders of a stack's parts: in the stack's own folder, or elsewhere for a part that cannot use that path."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from onceover.errors import ConfigurationError
from onceover_local.stack.files import write_whole
from onceover_local.stack.ports import Ports

Say = Callable[[str, str], None]
"""A receiver of progress: the part's name, and its activity. Several threads may call it."""

_OWNER: Final = "belongs-to"
"""The file in a folder elsewhere that names the link to the folder."""
_README: Final = f"""\
Onceover's embedded servers keep data here that they cannot keep in the folder in which they were started.
The file {_OWNER} in each folder names the link to that folder.
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A stack's folder, its project and its ports."""

    local: Path
    home: Path
    ports: Ports

    def get_folder(self, part: str) -> Path:
        """Return the part's data folder: LOCAL/PART, or the folder to which LOCAL/PART links."""
        return (self.local / part).resolve()

    def make_folder(self, part: str, say: Say, *, for_another_user: bool = False) -> Path:
        """Make the part's folder unless it exists, and return it.

        Servers need a path of plain characters (a DataNode loses its data under a blank), and a server that runs as
        another user needs a path that this user may enter. If LOCAL's path is not such a path, LOCAL/PART becomes a
        link to a folder under `list_roots()`, and `say` reports it. Raises ConfigurationError if no folder is usable,
        or if the one with the part's data no longer is.
        """
        link = self.local / part
        if link.is_symlink():
            _take_over(link)
        elif reason := explain_unfit(link.resolve(), for_another_user=for_another_user):
            if link.exists():
                raise ConfigurationError(
                    f"{link} holds the data of {part}, and {reason}; "
                    "move it back to where it was, or start it as the user who made it"
                )
            target = _make_elsewhere(part, for_another_user=for_another_user)
            write_whole(target / _OWNER, f"{link}\n")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
            say(part, f"keeps its data in {target}, since {reason}")
            for orphan, owner in list_orphans():
                say(part, f"{orphan} belonged to {owner}, which no longer exists; delete it, or move the stack back")
        if not link.exists():
            link.mkdir(parents=True)
            link.chmod(0o711 if for_another_user else 0o700)  # whatever the umask
        return link.resolve()


def explain_unfit(folder: Path, *, for_another_user: bool = False) -> str:
    """Return why a server cannot use that folder; empty if it can."""
    if quote(str(folder)) != str(folder):
        return f"the path {str(folder.parent)!r} has characters that not every server takes"
    if for_another_user and (closed := next(list_closed_to_others(folder), None)):
        return f"other users, as which root must run it, may not enter {closed}"
    return ""


def list_closed_to_others(folder: Path) -> Iterator[Path]:
    """Yield those of the folder and its parents that only their owner or group may enter, the outermost first."""
    for each in reversed((folder, *folder.parents)):
        if each.exists() and not each.stat().st_mode & stat.S_IXOTH:
            yield each


def list_roots(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Return the folders for parts that cannot use a stack's own folder, in order of preference."""
    temporary = Path(f"/var/tmp/onceover-{os.geteuid()}")
    if os.geteuid() == 0:
        return Path("/var/lib/onceover"), temporary
    named = environ.get("XDG_STATE_HOME") or f"{environ.get('HOME', '/nonexistent')}/.local/state"
    return Path(named) / "onceover", temporary


def remove_elsewhere(local: Path) -> None:
    """Delete the folders elsewhere that links in `local`, at any depth, point to and that were made for these links."""
    for folder, names, _ in os.walk(local):
        for link in (Path(folder, name) for name in names):
            if link.is_symlink() and _read_owner(link.resolve()) == str(link):
                shutil.rmtree(link.resolve())


def list_orphans() -> Iterator[tuple[Path, str]]:
    """Yield folders elsewhere whose stack was deleted or moved without them, each with the link it was made for."""
    for root in list_roots():
        for folder in sorted(root.iterdir()) if root.is_dir() and _is_ours(root) else ():
            owner = _read_owner(folder)
            if owner and Path(owner).resolve() != folder:
                yield folder, owner


def _make_elsewhere(part: str, *, for_another_user: bool) -> Path:
    tried = []
    for root in list_roots():
        folder = root / f"{part}-{secrets.token_hex(4)}"
        try:
            _make_root(root)
            if not _is_ours(root):
                reason = "it is not ours, or others may write there"
            elif not (reason := explain_unfit(folder, for_another_user=for_another_user)):
                folder.mkdir()
                folder.chmod(0o711 if for_another_user else 0o700)
                return folder
        except OSError as error:
            reason = str(error)
        tried.append(f"{root} ({reason})")
    raise ConfigurationError(
        f"found no folder for {part}'s data: tried {', '.join(tried)}; "
        "set ONCEOVER_LOCAL to a folder whose path has no blanks and which other users may enter"
    )


def _make_root(root: Path) -> None:
    """Make the folder unless it exists, with its mode from the first moment: parts and stacks start in parallel."""
    if root.exists():
        return
    root.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=root.parent, prefix=f".{root.name}-"))
    scratch.chmod(0o711)  # whatever the umask; each folder in it has its own mode
    (scratch / "README").write_text(_README)  # keeps the folder from being empty: a rename would replace an empty one
    try:
        scratch.rename(root)
    except OSError:
        shutil.rmtree(scratch)  # another process was quicker
        if not root.exists():
            raise


def _is_ours(root: Path) -> bool:
    """Return whether only this user can have written there: in /var/tmp any user may be first to make the folder."""
    status = root.stat()
    owners = {root.lstat().st_uid, status.st_uid}
    return owners == {os.geteuid()} and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _take_over(link: Path) -> None:
    """Take over the data behind the link of a stack that was moved. Raises ConfigurationError if the data is missing,
    or belongs to another stack of which this one is a copy."""
    target = link.resolve()
    owner = _read_owner(target)
    if not owner:
        raise ConfigurationError(
            f"{link} points to {target}, whose data was deleted; remove {link.parent} to start with empty servers"
        )
    if owner != str(link) and Path(owner).is_symlink() and Path(owner).resolve() == target:
        raise ConfigurationError(
            f"{target} holds the data of {Path(owner).parent}, of which {link.parent} is a copy; remove {link.parent}"
        )
    if owner != str(link):
        write_whole(target / _OWNER, f"{link}\n")


def _read_owner(folder: Path) -> str:
    try:
        return (folder / _OWNER).read_text().removesuffix("\n")
    except (FileNotFoundError, NotADirectoryError):
        return ""
