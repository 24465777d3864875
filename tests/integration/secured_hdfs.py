"""An HDFS of a test's own, beside the session's stack, that takes no one without a ticket; and its users' logins."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from onceover.config.endpoints import endpoints_file, read_endpoints
from onceover.errors import OnceoverError
from onceover_local.stack import Stack
from onceover_local.stack.files import format_hadoop_xml, write_whole
from onceover_local.stack.kerberos import Kdc, read_keytab, write_keytab

NAME_SERVICE = "secured"
VARIABLES = ("ONCEOVER_HDFS_AUTH", "HADOOP_CONF_DIR", "KRB5_CONFIG", "KRB5_CLIENT_KTNAME", "KRB5CCNAME")
"""Which log a process in."""
_TAKE_TICKET = "from onceover.raw.kerberos import read_ticket; import os; read_ticket(os.environ['ONCEOVER_WEBHDFS'])"


@contextmanager
def open_secured_hdfs(folder: Path) -> Iterator[Stack]:
    """Start a KDC and the HDFS that it secures. This process, and what it starts, is the user `onceover` there in the
    block."""
    with pytest.MonkeyPatch.context() as environment:
        for name in VARIABLES:
            environment.setenv(name, "")  # and is as before after the block
        stack = Stack(folder, kerberos=True)
        try:
            stack.up({"hdfs"})
            addresses = read_endpoints(endpoints_file(folder))
            for part, where in addresses.items():
                environment.setenv(f"ONCEOVER_{part.upper()}", where)
            environment.setenv("HADOOP_CONF_DIR", str(write_configuration(get_kdc(stack), folder, addresses["hdfs"])))
            yield stack
        finally:
            stack.down()


@pytest.fixture(scope="module")
def secured(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with open_secured_hdfs(tmp_path_factory.mktemp("secured")) as found:
        yield found


def write_configuration(kdc: Kdc, folder: Path, hdfs: str) -> Path:
    """Write a client's configuration that defines a name service, and with which Java logs in again as soon as a ticket
    has ended, not once a minute; return its folder."""
    provider = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
    settings = {
        **kdc.make_settings(),
        "hadoop.kerberos.min.seconds.before.relogin": 1,
        "dfs.nameservices": NAME_SERVICE,
        f"dfs.ha.namenodes.{NAME_SERVICE}": "only",
        f"dfs.namenode.rpc-address.{NAME_SERVICE}.only": hdfs.removeprefix("hdfs://"),
        f"dfs.client.failover.proxy.provider.{NAME_SERVICE}": provider,
    }
    for file in ("core-site.xml", "hdfs-site.xml"):
        write_whole(folder / "client" / file, format_hadoop_xml(settings))
    return folder / "client"


def get_kdc(stack: Stack) -> Kdc:
    assert stack.kdc is not None
    return stack.kdc


def set_login(patch: pytest.MonkeyPatch, keytab: Path | None, cache: Path | None = None) -> None:
    """Log this process, and what it starts, in by that keytab, or by the ticket in that cache."""
    patch.setenv("KRB5_CLIENT_KTNAME", str(keytab or ""))
    patch.setenv("KRB5CCNAME", f"FILE:{cache}" if cache else f"MEMORY:{uuid.uuid4().hex}")


def shorten_tickets(kdc: Kdc, seconds: int) -> Path:
    """Write the configuration of clients that take tickets for so long; return it."""
    short = kdc.folder / "short.conf"
    short.write_text(kdc.krb5_conf.read_text().replace("[realms]", f"    ticket_lifetime = {seconds}s\n[realms]"))
    return short


def spoil_keytab(kdc: Kdc, user: str, file: Path) -> Path:
    """Write the user's keytab with another key than the KDC's, as one from before a change of keys is."""
    entry = bytearray(read_keytab(kdc.get_keytab(user))[user])
    entry[-9] ^= 1
    write_keytab(file, bytes(entry))
    return file


def take_ticket(cache: Path) -> None:
    """Put a ticket by this process's keytab into that cache, as `kinit` does."""
    into = {**os.environ, "KRB5CCNAME": f"FILE:{cache}"}
    subprocess.run([sys.executable, "-c", _TAKE_TICKET], env=into, check=True, timeout=60)


def describe(read: Callable[[], object]) -> tuple[type[OnceoverError], str]:
    """Return kind and line of the error of our own that the call raises."""
    with pytest.raises(OnceoverError) as raised:
        read()
    assert "\n" not in str(raised.value)
    return type(raised.value), str(raised.value)
