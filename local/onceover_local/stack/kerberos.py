"""The embedded Kerberos: a KDC in Java, the keytabs of servers and users, and what makes HDFS and its clients use it.

The KDC keeps no state: each of its starts makes new keys, so that HDFS, which holds old ones, starts again after it.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import psutil

from onceover_local.stack.files import format_hadoop_xml, format_properties, make_secret, write_whole
from onceover_local.stack.jars import fetch_class_path
from onceover_local.stack.part import LOGGING, find_java
from onceover_local.stack.place import Place, Say
from onceover_local.stack.ports import LOOPBACK, is_listening
from onceover_local.stack.process import Command, Process

REALM: Final = "ONCEOVER.LOCAL"
USERS: Final = ("onceover", "ingest", "airflow", "oncall", "stranger")
"""Users with a keytab of their own. The first may all on HDFS, and is who the environment logs in."""
GROUPS: Final = "hdfs=supergroup;onceover=supergroup;"
_SERVERS: Final = (f"hdfs/{LOOPBACK}", f"HTTP/{LOOPBACK}")
_KEYTAB_START: Final = b"\x05\x02"
_TICKETS: Final = "log4j.logger.org.apache.kerby.kerberos.kerb.server.request=INFO\n"
"""Who gets a ticket, and for what."""
_CONFIGURATION: Final = f"""\
[libdefaults]
    default_realm = {REALM}
    udp_preference_limit = 1
    dns_lookup_kdc = false
    dns_canonicalize_hostname = false
    rdns = false
[realms]
    {REALM} = {{
        kdc = {LOOPBACK}:%d
    }}
"""


class Kdc:
    """A `Part`. Ready means that it answers, and that all keytabs of this start are there."""

    name = "kdc"
    ports: tuple[str, ...] = ("kdc",)
    start_s = 60.0
    stop_s = 20.0

    def __init__(self, place: Place) -> None:
        self._place = place
        self.process = Process(self.name, place.local)
        self._has_logged_in = False

    @property
    def folder(self) -> Path:
        return self._place.get_folder("kerberos")

    @property
    def krb5_conf(self) -> Path:
        return self.folder / "krb5.conf"

    @property
    def environment_file(self) -> Path:
        """What a shell sources to log in."""
        return self.folder / "environment"

    def prepare(self, say: Say) -> Command:
        jars = fetch_class_path("kerberos", say)
        folder = self.configure(say)
        kind, domain = REALM.split(".")
        settings = format_properties(
            {
                "org.name": kind,
                "org.domain": domain,
                "kdc.bind.address": LOOPBACK,
                "kdc.port": self._place.ports["kdc"],
                "instance": "onceover",
                "transport": "TCP",
                "debug": "false",
                "max.ticket.lifetime": 24 * 3_600_000,
                "max.renewable.lifetime": 7 * 24 * 3_600_000,
            }
        )
        write_whole(folder / "kdc.properties", settings)
        write_whole(folder / "conf" / "log4j.properties", f"{LOGGING}{_TICKETS}")
        work = folder / "work"
        work.mkdir(exist_ok=True)
        argv = (
            *find_java(),
            "-Xms16m",
            "-Xmx64m",
            "-cp",
            f"{folder / 'conf'}:{jars}",
            "org.apache.hadoop.minikdc.MiniKdc",
        )
        files = (str(work), str(folder / "kdc.properties"), str(work / "all.keytab"))
        return Command((*argv, *files, *_SERVERS, *USERS), configuration=settings)

    def configure(self, say: Say) -> Path:
        """Write the file that KRB5_CONFIG names, which Java needs to start; return the folder. May be repeated."""
        folder = self._place.make_folder("kerberos", say)
        folder.chmod(0o700)  # whatever the umask: the KDC writes its keytab as the umask says
        write_whole(self.krb5_conf, _CONFIGURATION % self._place.ports["kdc"])
        return folder

    def is_ready(self) -> bool:
        pid, keytab = self.process.find_pid(), self.folder / "work" / "all.keytab"
        if pid is None or not keytab.exists() or keytab.stat().st_mtime < psutil.Process(pid).create_time():
            return False  # it is of an earlier start
        return is_listening(self._place.ports["kdc"]) and read_keytab(keytab).keys() >= {*_SERVERS, *USERS}

    def finish(self, say: Say) -> None:
        """Write what this start's keys are in, and log this process in by them."""
        keys = read_keytab(self.folder / "work" / "all.keytab")
        write_keytab(self.get_keytab("servers"), *(keys[each] for each in _SERVERS))
        for user in USERS:
            write_keytab(self.get_keytab(user), keys[user])
        make_secret(self._place.local / "secrets", "hdfs-http")
        for file in ("core-site.xml", "hdfs-site.xml"):  # clients want either, and take any setting from both
            write_whole(self.folder / "client" / file, format_hadoop_xml(self.make_settings()))
        self.log_in(again=True)
        lines = (f"export {name}={value}\n" for name, value in self.list_variables().items())
        write_whole(self.environment_file, "".join(lines))

    def log_in(self, *, again: bool = False) -> None:
        """Let this process, and all that it starts, be the first user; unless it was once, for it may be another by
        now."""
        if again or not self._has_logged_in:
            os.environ.update(self.list_variables())
            self._has_logged_in = True

    def get_address(self) -> str:
        return f"{LOOPBACK}:{self._place.ports['kdc']}"

    def list_endpoints(self) -> Mapping[str, str]:
        return {}

    def get_keytab(self, name: str) -> Path:
        """Return the keytab of a user, or of the servers."""
        return self.folder / f"{name}.keytab"

    def list_variables(self, user: str = USERS[0]) -> dict[str, str]:
        """Return the environment of a process that logs in as that user."""
        keytab = self.get_keytab(user)
        return {
            "ONCEOVER_HDFS_AUTH": "kerberos",
            "HADOOP_CONF_DIR": str(self.folder / "client"),
            "KRB5_CONFIG": str(self.krb5_conf),
            "KRB5_CLIENT_KTNAME": str(keytab),
            "KRB5CCNAME": f"MEMORY:{_hash(keytab)}",  # whose tickets no other keys of the KDC gave
        }

    def make_settings(self) -> dict[str, object]:
        """Return what servers and clients of HDFS know of its security."""
        return {
            "hadoop.security.authentication": "kerberos",
            "hadoop.rpc.protection": "authentication",
            "dfs.data.transfer.protection": "authentication",
            "dfs.namenode.kerberos.principal": f"{_SERVERS[0]}@{REALM}",
            "dfs.datanode.kerberos.principal": f"{_SERVERS[0]}@{REALM}",
        }

    def make_server_settings(self) -> dict[str, object]:
        """Return what its servers know besides; another start of the KDC makes others of them."""
        keytab = self.get_keytab("servers")
        web = {
            "kerberos.principal": f"{_SERVERS[1]}@{REALM}",
            "kerberos.keytab": keytab,
            "signature.secret.file": self._place.local / "secrets" / "hdfs-http",
            "type": "kerberos",
        }
        return {
            **self.make_settings(),
            "hadoop.security.authorization": "true",
            "dfs.block.access.token.enable": "true",
            "dfs.namenode.keytab.file": keytab,
            "dfs.datanode.keytab.file": keytab,
            "dfs.http.policy": "HTTP_ONLY",
            "ignore.secure.ports.for.testing": "true",  # ports below 1024 are root's, and TLS needs certificates
            # Else DataNodes show their pages and settings without a ticket.
            "hadoop.http.filter.initializers": "org.apache.hadoop.security.AuthenticationFilterInitializer",
            # Without the type WebHDFS takes requests without a ticket, whatever dfs.web.authentication.* says.
            **{f"hadoop.http.authentication.{name}": value for name, value in web.items()},
            **{f"dfs.web.authentication.kerberos.{name}": web[f"kerberos.{name}"] for name in ("principal", "keytab")},
            "onceover.keys": _hash(keytab),  # read by no server
        }


def read_keytab(file: Path) -> dict[str, bytes]:
    """Return the entries of a keytab, by their principals without the realm; none if it is missing."""
    entries = dict[str, bytes]()
    for entry in _split_keytab(file.read_bytes() if file.exists() else b""):
        count, at, words = struct.unpack_from(">H", entry)[0], 2, list[str]()
        for _ in range(count + 1):
            (length,) = struct.unpack_from(">H", entry, at)
            words.append(entry[at + 2 : at + 2 + length].decode())
            at += 2 + length
        principal = "/".join(words[1:])
        entries[principal] = entries.get(principal, b"") + struct.pack(">i", len(entry)) + entry
    return entries


def write_keytab(file: Path, *entries: bytes) -> None:
    """Write a keytab of these entries, for its owner only."""
    scratch = file.with_suffix(".new")
    scratch.touch(mode=0o600)
    scratch.write_bytes(_KEYTAB_START + b"".join(entries))
    scratch.replace(file)


def _hash(keytab: Path) -> str:
    return hashlib.sha256(keytab.read_bytes() if keytab.exists() else b"").hexdigest()[:16]


def _split_keytab(content: bytes) -> Iterator[bytes]:
    at = len(_KEYTAB_START)
    while at + 4 <= len(content):
        (length,) = struct.unpack_from(">i", content, at)
        at += 4 + length
        if at <= len(content):  # else its end has not been written yet
            yield content[at - length : at]
