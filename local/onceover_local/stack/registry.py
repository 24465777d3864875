"""The embedded schema registry: one Apicurio process with Confluent's API, its schemas in a database file."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Mapping
from pathlib import Path

from onceover_local.stack.files import make_whole
from onceover_local.stack.jars import fetch_archive
from onceover_local.stack.part import find_java, get_json
from onceover_local.stack.place import Place, Say
from onceover_local.stack.ports import LOOPBACK
from onceover_local.stack.process import Command, Process


class Registry:
    """A `Part`. Its IDs survive a kill: each registration is in the file before it is answered."""

    name = "registry"
    ports: tuple[str, ...] = ("registry",)
    start_s = 120.0
    stop_s = 20.0

    def __init__(self, place: Place) -> None:
        self._place = place
        self.process = Process(self.name, place.local)

    def prepare(self, say: Say) -> Command:
        archive = fetch_archive("registry", say)
        folder = self._place.make_folder(self.name, say)
        program = folder / archive.name.removesuffix(".tar.gz")
        if not program.exists():
            say(self.name, "unpacks its program")
            _unpack(archive, program)
        (folder / "tmp").mkdir(exist_ok=True)
        (jar,) = program.glob("*-runner.jar")
        # By default H2 writes half a second late: a kill would lose schemas, and their IDs would go to others.
        database = f"jdbc:h2:file:{folder / 'schemas'};WRITE_DELAY=0"
        settings = {
            "java.net.preferIPv4Stack": "true",
            "java.io.tmpdir": folder / "tmp",
            "quarkus.http.host": LOOPBACK,
            "quarkus.http.port": self._place.ports["registry"],
            "quarkus.http.cors.origins": self._origin,  # the default lets pages of another server of the machine in
            "apicurio.storage.kind": "sql",
            "apicurio.storage.sql.kind": "h2",
            "apicurio.datasource.url": database,
        }
        options = (f"-D{key}={value}" for key, value in settings.items())
        return Command((*find_java(), "-Xms32m", "-Xmx384m", *options, "-jar", str(jar)))

    def is_ready(self) -> bool:
        return "compatibilityLevel" in get_json(f"{self.get_address()}/config")

    def finish(self, say: Say) -> None:
        pass

    def get_address(self) -> str:
        return f"{self._origin}/apis/ccompat/v7"

    def list_endpoints(self) -> Mapping[str, str]:
        return {"registry": self.get_address()}

    @property
    def _origin(self) -> str:
        return f"http://{LOOPBACK}:{self._place.ports['registry']}"


def _unpack(archive: Path, program: Path) -> None:
    """Unpack the archive, whose hash was checked, into that new folder; the files are the current user's."""
    with make_whole(program) as scratch, tarfile.open(archive) as packed:
        for member in packed:
            member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
            packed.extract(member, scratch)
