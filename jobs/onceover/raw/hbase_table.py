"""A table in HBase, through its Thrift server: made if it is missing, connected at its first use."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from time import monotonic
from typing import Final

import happybase
from Hbase_thrift import AlreadyExists  # happybase makes this module at its import
from Hbase_thrift import IOError as HBaseError
from thriftpy2.thrift import TException

from onceover.errors import ConfigurationError, UnreachableError

FAILURES: Final = (TException, HBaseError, OSError)
_CREATION_SECONDS: Final = 60.0
_IDLE_SECONDS: Final = 20.0
"""After which a connection is replaced: a Thrift server closes an idle one, after a minute unless configured."""


class HBaseTable:
    """The table of that name, with these column families if it is to be made. Connects again after an error or a
    pause."""

    def __init__(self, thrift: str, name: str, families: Mapping[str, object], timeout: float) -> None:
        self.thrift = thrift
        self._name, self._families, self._timeout = name, families, timeout
        self._connection: happybase.Connection | None = None
        self._used = 0.0

    def open(self, *, is_scanned: bool = False) -> happybase.Table:
        """Return the table on a connection that was used lately; while it `is_scanned`, on the same one."""
        now = monotonic()
        if not is_scanned and now - self._used > _IDLE_SECONDS:
            self.close()
        self._used = now
        if self._connection is None:
            connection = self._connect(self._timeout)
            if self._name.encode() not in connection.tables():
                # Once in a cluster's life; slow, for the master opens a region.
                with closing(self._connect(_CREATION_SECONDS)) as patient, suppress(AlreadyExists):
                    patient.create_table(self._name, self._families)
            self._connection = connection
        return self._connection.table(self._name)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def give_up(self, error: Exception, what: str) -> UnreachableError:
        """Close the connection, so that the next request opens another one; return the error of ours: the server did
        not do `what`."""
        self.close()
        return UnreachableError(
            f"HBase's Thrift server at {self.thrift} did not {what} ({describe(error)}); start it (`onceover stack up "
            "hbase`) or set ONCEOVER_HBASE; the log of the region server has more"
        )

    def _connect(self, timeout: float) -> happybase.Connection:
        host, _, port = self.thrift.rpartition(":")
        if not host or not port.isdecimal():
            raise ConfigurationError(f"ONCEOVER_HBASE={self.thrift!r}: write HOST:PORT of HBase's Thrift server")
        return happybase.Connection(host, int(port), timeout=int(timeout * 1000))


def describe(error: Exception) -> str:
    """Return the kind of an error of HBase or of the connection, and the first line of what it says."""
    message = getattr(error, "message", b"") or str(error)
    text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
    return f"{type(error).__name__}: {text.strip().partition(chr(10))[0][:160]}"
