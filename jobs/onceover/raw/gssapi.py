"""Kerberos' C library, by its interface GSSAPI (RFC 2744), called without a package that needs a compiler: a first
message to a server, and whose ticket this process has. HDFS's own client loads the same library."""

from __future__ import annotations

from ctypes import (
    CDLL,
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_int,
    c_size_t,
    c_uint32,
    c_void_p,
    cast,
    pointer,
    string_at,
)
from functools import cache
from typing import Final

from onceover.errors import ConfigurationError

NO_KDC: Final = -1765328228
UNKNOWN_SERVER: Final = -1765328377
OTHER_CLOCK: Final = -1765328347
_FOREVER: Final = 0xFFFFFFFF  # of seconds
_INITIATE, _OF_MECHANISM, _CONTINUES = 1, 2, 1


class _Bytes(Structure):
    _fields_ = (("length", c_size_t), ("value", c_void_p))


class _Oid(Structure):
    _fields_ = (("length", c_uint32), ("elements", c_char_p))


class _Oids(Structure):
    _fields_ = (("count", c_size_t), ("elements", POINTER(_Oid)))


_KERBEROS, _SPNEGO, _SERVICE = (
    _Oid(len(each), each) for each in map(bytes.fromhex, ("2a864886f712010202", "2b0601050502", "2a864886f71201020104"))
)


class LoginError(Exception):
    """The library's reason why there is no message to a server, with Kerberos' code."""

    def __init__(self, reason: str, code: int) -> None:
        super().__init__(reason)
        self.code = code


def make_token(service: str, *, is_plain: bool = False) -> bytes:
    """Return the first message to that SERVICE@HOST, wrapped for a web server (SPNEGO) unless it is plain. Raise
    LoginError, ConfigurationError without the library."""
    if not is_plain:
        make_token(service, is_plain=True)  # whose reasons are the plain ones
    library, minor, name, context, token, reason = _load(), c_uint32(), c_void_p(), c_void_p(), _Bytes(), _Bytes()
    mechanism = _KERBEROS if is_plain else _SPNEGO
    text = service.encode()
    named = _Bytes(len(text), cast(c_char_p(text), c_void_p))
    library.gss_import_name(byref(minor), byref(named), byref(_SERVICE), byref(name))
    settings = (byref(mechanism), c_uint32(0), c_uint32(0), None, None)
    answer = (None, byref(token), None, None)
    major = library.gss_init_sec_context(byref(minor), None, byref(context), name, *settings, *answer)
    code, zero = c_int(minor.value).value, c_uint32()
    library.gss_display_status(byref(c_uint32()), minor, _OF_MECHANISM, byref(mechanism), byref(zero), byref(reason))
    library.gss_delete_sec_context(byref(minor), byref(context), None)
    library.gss_release_name(byref(minor), byref(name))
    why = _take(reason).decode(errors="replace").rstrip("\0")
    if major not in (0, _CONTINUES):
        raise LoginError(why, code)
    return _take(token)


def read_credential() -> tuple[str, int]:
    """Return the principal of the ticket that `make_token` has used, and the seconds that are left of it."""
    library, minor, credential, name, left = _load(), c_uint32(), c_void_p(), c_void_p(), c_uint32()
    how = (byref(_Oids(1, pointer(_KERBEROS))), _INITIATE, byref(credential), None, None)
    library.gss_acquire_cred(byref(minor), None, c_uint32(_FOREVER), *how)
    library.gss_inquire_cred(byref(minor), credential, byref(name), byref(left), None, None)
    shown = _Bytes()
    library.gss_display_name(byref(minor), name, byref(shown), None)
    library.gss_release_name(byref(minor), byref(name))
    library.gss_release_cred(byref(minor), byref(credential))
    return _take(shown).decode(), left.value


def find_principal() -> str | None:
    """Return the principal of the ticket cache, even of tickets that have ended, else the keytab's first one. Raise
    ConfigurationError for settings that are not as krb5.conf has them."""
    krb5, context, store, owner = CDLL("libkrb5.so.3"), c_void_p(), c_void_p(), c_void_p()
    cursor, entry, text = c_void_p(), (c_void_p * 16)(), c_char_p()
    if krb5.krb5_init_context(byref(context)) != 0:
        raise ConfigurationError("Kerberos cannot read its settings; correct krb5.conf, or what KRB5_CONFIG names")
    try:
        has_cache = krb5.krb5_cc_default(context, byref(store)) == 0
        if not has_cache or krb5.krb5_cc_get_principal(context, store, byref(owner)) != 0:
            if (
                krb5.krb5_kt_client_default(context, byref(store)) != 0
                or krb5.krb5_kt_start_seq_get(context, store, byref(cursor)) != 0
                or krb5.krb5_kt_next_entry(context, store, byref(entry), byref(cursor)) != 0
            ):
                return None
            owner = c_void_p(entry[1])  # after a number
        krb5.krb5_unparse_name(context, owner, byref(text))
        return (text.value or b"").decode()
    finally:
        krb5.krb5_free_context(context)


@cache
def _load() -> CDLL:
    try:
        return CDLL("libgssapi_krb5.so.2")
    except OSError:
        raise ConfigurationError(
            "ONCEOVER_HDFS_AUTH=kerberos needs MIT's Kerberos library, libgssapi_krb5.so.2; install the package "
            "libgssapi-krb5-2 (Debian, Ubuntu) or krb5-libs (Red Hat)"
        ) from None


def _take(content: _Bytes) -> bytes:
    taken = string_at(content.value or 0, content.length)
    _load().gss_release_buffer(byref(c_uint32()), byref(content))
    return taken
