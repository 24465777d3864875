"""Rows of the table `onceover_raw` in HBase, through its Thrift server: values that are put once, or compared and set.

No row is overwritten blindly and none has a client's timestamp, so that no write hides another one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

import happybase
from Hbase_thrift import BatchMutation, IllegalArgument, Mutation  # happybase makes this module

from onceover.errors import TerminalError
from onceover.raw.hbase_table import FAILURES, HBaseTable, describe

TABLE: Final = "onceover_raw"
_FAMILY: Final = {"max_versions": 1, "bloom_filter_type": "ROW", "block_cache_enabled": True}
_COLUMN: Final = b"d:b"
_TIMEOUT_SECONDS: Final = 60.0  # a region that moves to another server is away for some seconds
_ANSWER: Final = f"answer for table {TABLE}"
_LENGTHS: Final = b"KeyOnlyFilter(true)"  # a value's length of four bytes in its place
_SMALL_AT_ONCE: Final = 2000
_LENGTHS_AT_ONCE: Final = 64  # the region server reads the values, up to 1 MiB each, to tell their lengths
_VALUES_AT_ONCE: Final = 4  # of 1 MiB: what a Thrift server holds for one scan
_REMOVED_AT_ONCE: Final = 1000


class Cells:
    """The table's rows of one value each."""

    def __init__(self, thrift: str) -> None:
        self.thrift = thrift
        self._table = HBaseTable(thrift, TABLE, {"d": _FAMILY}, _TIMEOUT_SECONDS)
        self._scans = 0

    def get(self, row: str) -> bytes | None:
        """Return the row's value, None if it is missing."""
        with self._translate_errors():
            found = self._client.get(TABLE.encode(), _encode(row), _COLUMN, {})
        return bytes(found[0].value) if found else None

    def swap(self, row: str, expected: bytes | None, value: bytes) -> bool:
        """Set the row's value if it is the expected one, None for a missing row; return whether it was."""
        mutation = Mutation(column=_COLUMN, value=value)
        with self._translate_errors():
            return bool(self._client.checkAndPut(TABLE.encode(), _encode(row), _COLUMN, expected or b"", mutation, {}))

    def scan(self, first: str, end: str) -> Iterator[tuple[str, bytes]]:
        """Yield the rows of `[first, end)` with their values of up to 1 MiB, in order."""
        for row, value, _ in self._scan(first, end, _VALUES_AT_ONCE):
            yield row, value

    def scan_small(self, first: str, end: str) -> Iterator[tuple[str, bytes]]:
        """Yield the rows of `[first, end)` with their values of some bytes, in order."""
        for row, value, _ in self._scan(first, end, _SMALL_AT_ONCE):
            yield row, value

    def scan_lengths(self, first: str, end: str) -> Iterator[tuple[str, int]]:
        """Yield the rows of `[first, end)` with the lengths of their values, in order."""
        for row, value, _ in self._scan(first, end, _LENGTHS_AT_ONCE, filter=_LENGTHS):
            yield row, struct.unpack(">i", value)[0]

    def find_last(self, after: str, last: str) -> tuple[str, int, int] | None:
        """Return the last row after `after` up to `last`, the length of its value and its time in ms, None if there is
        none."""
        reverse: dict[str, Any] = {"filter": _LENGTHS, "reverse": True, "limit": 1}
        for row, value, at in self._scan(last, after, 1, **reverse):
            return row, struct.unpack(">i", value)[0], at
        return None

    def remove(self, rows: list[str]) -> None:
        """Delete these rows, in this order in batches."""
        for start in range(0, len(rows), _REMOVED_AT_ONCE):
            batch = [
                BatchMutation(row=_encode(row), mutations=[Mutation(column=_COLUMN, isDelete=True)])
                for row in rows[start : start + _REMOVED_AT_ONCE]
            ]
            with self._translate_errors():
                self._client.mutateRows(TABLE.encode(), batch, {})

    def require_regions(self) -> None:
        """Raise UnreachableError while a region of the table is on no server."""
        with self._translate_errors():
            regions = self._client.getTableRegions(TABLE.encode())
        for region in regions:
            start = region.startKey.decode("utf-8", "replace")
            for _ in self._scan(start, "", 1, filter=_LENGTHS, limit=1):
                break

    def _scan(self, first: str, end: str, at_once: int, **options: Any) -> Iterator[tuple[str, bytes, int]]:
        with self._translate_errors():
            scan = self._open().scan(
                row_start=_encode(first), row_stop=_encode(end) or None, batch_size=at_once, include_timestamp=True,
                **options,
            )  # fmt: skip
            self._scans += 1
            try:
                with closing(scan):
                    for row, columns in scan:
                        value, at = columns[_COLUMN]
                        yield to_text(row), value, at
            finally:
                self._scans -= 1

    @property
    def _client(self) -> Any:
        return self._open().connection.client

    def _open(self) -> happybase.Table:
        return self._table.open(is_scanned=self._scans > 0)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except IllegalArgument as error:
            if "scanner" not in (what := describe(error)):
                raise TerminalError(f"HBase refused the request: {what}") from error
            raise self._table.give_up(error, _ANSWER) from error  # it has forgotten a scan that waited for minutes
        except FAILURES as error:
            raise self._table.give_up(error, _ANSWER) from error


def _encode(row: str) -> bytes:
    return row.encode("utf-8", "surrogateescape")


def to_text(key: bytes) -> str:
    """Return the text of a row's key, or of a short value: another program may have put one that is no UTF-8."""
    return key.decode("utf-8", "surrogateescape")
