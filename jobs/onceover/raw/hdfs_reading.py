"""A file on HDFS read by a task over WebHDFS. A read that breaks off or hangs goes on once, where it stopped, through
another DataNode."""

from __future__ import annotations

from http.client import HTTPException
from urllib.parse import urlsplit

import requests
import urllib3
from hdfs import HdfsError

from onceover.errors import OnceoverError, TerminalError, UnreachableError
from onceover.raw.failover import split_asked
from onceover.raw.hdfs import SmallFiles, get_exception_name, is_missing, take_first_line, translate_error

_PART = 1024 * 1024  # bytes taken from the connection at a time
_BROKEN = (requests.RequestException, urllib3.exceptions.HTTPError, HTTPException, OSError)


class HdfsReading:
    """A `Reading`."""

    def __init__(self, files: SmallFiles, address: str, path: str, at: int, end: int) -> None:
        self._files, self._address = files, address
        self._path, self._at, self._end = path, at, end
        self._opened: requests.Response | None = None
        self._failure: OnceoverError | None = None  # since when not a byte has come
        self._avoided: str | None = None

    def fill(self, view: memoryview) -> None:
        """See Reading."""
        filled = 0
        while filled < len(view):
            try:
                got = self._read(view[filled : filled + _PART])
            except _BROKEN as error:
                self._give_up(self._describe(type(error).__name__), error)
                continue
            if not got:
                self._give_up(self._describe("the connection ended"), None)
                continue
            self._failure = None
            filled, self._at = filled + got, self._at + got

    def close(self) -> None:
        """See Reading."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _read(self, view: memoryview) -> int:
        self._opened = self._opened or self._open()
        return int(self._opened.raw.readinto(view))

    def _open(self) -> requests.Response:
        avoided = {} if self._avoided is None else {"excludedatanodes": self._avoided}
        try:
            return self._files.open_stream(self._path, offset=self._at, length=self._end - self._at, **avoided)
        except HdfsError as error:
            if self._failure is not None:  # no other DataNode holds it
                raise self._failure from error
            if is_missing(error):
                raise TerminalError(
                    f"{self._path} is missing, of which {self._end} bytes were frozen; `onceover explain` has more"
                ) from error
            if "out of the range" in str(error):
                raise self._report_short() from error
            if get_exception_name(error) in ("IOException", "BlockMissingException"):
                raise UnreachableError(
                    f"{self._path} cannot be read at byte {self._at}: {take_first_line(error)}; `hdfs fsck` says which "
                    "DataNodes hold it"
                ) from error
            raise translate_error(self._address, error) from error

    def _give_up(self, failure: OnceoverError, cause: Exception | None) -> None:
        """Raise the failure, if no byte has come since the one before; else close the connection."""
        host = split_asked(cause).hostname if self._opened is None else urlsplit(self._opened.url).hostname
        self.close()
        if self._failure is not None:
            raise self._failure from cause
        length = self._files.read_length(self._path)
        if length is not None and length < self._end:
            raise self._report_short() from cause
        self._failure, self._avoided = failure, host

    def _describe(self, what: str) -> UnreachableError:
        return UnreachableError(
            f"reading {self._path} stopped at byte {self._at} of {self._end} ({what}); a DataNode does not answer, or "
            "lost the block: `hdfs fsck` says which ones hold it"
        )

    def _report_short(self) -> TerminalError:
        return TerminalError(
            f"{self._path} ends before byte {self._end}, where it was frozen; it was cut or replaced: run the command "
            "again, which freezes it again"
        )
