"""This process's login to HDFS by Kerberos: whose ticket it is, until when, why there is none, and the header by which
a NameNode's web server believes it.

A ticket is from the cache that KRB5CCNAME names, or made and renewed by the keytab that KRB5_CLIENT_KTNAME names.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import requests

from onceover.errors import DENIED, AccessDeniedError, ConfigurationError, OnceoverError, UnreachableError
from onceover.raw.gssapi import (
    NO_KDC,
    OTHER_CLOCK,
    UNKNOWN_SERVER,
    LoginError,
    find_principal,
    make_token,
    read_credential,
)

KEYTAB: Final = "KRB5_CLIENT_KTNAME"


@dataclass(frozen=True, slots=True)
class Ticket:
    """The ticket of this process: its principal, and the seconds that are left of it."""

    principal: str
    seconds: int


class TicketAuth(requests.auth.AuthBase):
    """The login of a session's requests to NameNodes, whose answers name DataNodes with a token of their own."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if "delegation=" not in str(request.url):
            request.headers.update(make_headers(str(request.url)))
        return request


def uses_kerberos() -> bool:
    """Return whether ONCEOVER_HDFS_AUTH names Kerberos. Raise ConfigurationError if it names no way to log in, or
    Kerberos without the folder that says how this HDFS is secured."""
    way = os.environ.get("ONCEOVER_HDFS_AUTH") or "simple"
    if way not in ("simple", "kerberos"):
        raise ConfigurationError(f"ONCEOVER_HDFS_AUTH={way[:40]!r} is not a way to log in; set simple or kerberos")
    if way == "kerberos" and not os.environ.get("HADOOP_CONF_DIR"):
        raise ConfigurationError(
            "ONCEOVER_HDFS_AUTH=kerberos needs HADOOP_CONF_DIR, the folder of the client's core-site.xml and "
            "hdfs-site.xml; set it, at Spark's executors too"
        )
    return way == "kerberos"


def make_headers(url: str) -> dict[str, str]:
    """Return the headers that log a request to that address in; none without Kerberos. Raise as `require_ticket`."""
    if not uses_kerberos():
        return {}
    return {"Authorization": f"Negotiate {base64.b64encode(_greet(url)).decode()}"}


def require_ticket(address: str) -> None:
    """Require a ticket for the web server at the first of these addresses. Raise AccessDeniedError for one that has
    ended and a keytab that Kerberos refuses, ConfigurationError without either, UnreachableError without a KDC."""
    _greet(address.split(";")[0], is_plain=True)


def find_failure(address: str) -> OnceoverError | None:
    """Return what `require_ticket` raises."""
    try:
        require_ticket(address)
    except OnceoverError as error:
        return error
    return None


def read_ticket(address: str) -> Ticket:
    """Return the ticket that opens the web server at that address. Raise as `require_ticket`."""
    require_ticket(address)
    return Ticket(*read_credential())


def find_keytab() -> str | None:
    """Return the path of the keytab that renews the ticket, None without one."""
    return (os.environ.get(KEYTAB) or "").removeprefix("FILE:") or None


def _greet(url: str, *, is_plain: bool = False) -> bytes:
    host = urlsplit(url).hostname or ""
    try:
        return make_token(f"HTTP@{host}", is_plain=is_plain)
    except LoginError as error:
        raise _explain(error, host) from None


def _explain(reason: LoginError, host: str) -> OnceoverError:
    settings = [file for file in os.environ.get("KRB5_CONFIG", "").split(":") if file]
    if settings and not any(os.access(file, os.R_OK) for file in settings):
        return ConfigurationError(f"KRB5_CONFIG: {settings[0]} is no file that this process may read; correct it")
    principal, keytab = find_principal(), find_keytab()
    if reason.code == NO_KDC:
        what = f"Kerberos does not answer for {principal} ({reason}); start the KDC, or correct krb5.conf"
        return UnreachableError(what)
    if reason.code == UNKNOWN_SERVER:
        remedy = f"let ONCEOVER_WEBHDFS name {host} as Kerberos does, or add the principal, to HDFS's keytab too"
    elif reason.code == OTHER_CLOCK:
        remedy = "let this machine and the KDC follow one time server"
    elif principal is None and keytab:
        return ConfigurationError(f"{KEYTAB}: {keytab} is no keytab that this process may read; correct it")
    elif principal is None:
        what = f"ONCEOVER_HDFS_AUTH=kerberos, and there is no ticket ({reason})"
        return ConfigurationError(f"{what}; set {KEYTAB} to a keytab, which renews its tickets, or run `kinit`")
    elif keytab:
        remedy = f"make the keytab {keytab} again, or set {KEYTAB} to the right one"
    else:
        remedy = f"run `kinit {principal}`, or set {KEYTAB} to a keytab, which renews its tickets"
    return AccessDeniedError(f"{DENIED} by Kerberos: {reason}, for {principal}; {remedy}")
