"""Leases and blocks of HDFS files, through the Spark driver's Hadoop client: WebHDFS has no call for leases."""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql import SparkSession

SOFT_LIMIT_SECONDS = 60.0  # HdfsConstants.LEASE_SOFTLIMIT_PERIOD: after it any client may take the lease


class Leases:
    """A client for leases: whether files are closed, and recovery of those whose writer is dead."""

    def __init__(self, spark: SparkSession, hdfs: str) -> None:
        jvm: Any = spark.sparkContext._jvm  # typed as optional: None only in Spark Connect
        configuration = spark.sparkContext._jsc.hadoopConfiguration()
        self._path = jvm.org.apache.hadoop.fs.Path
        self._files = self._path(hdfs).getFileSystem(configuration)

    def is_closed(self, path: str) -> bool:
        return bool(self._files.isFileClosed(self._path(path)))

    def recover(self, path: str, seconds: float = 30.0) -> bool:
        """Take the lease from a dead writer and close the file; returns whether the file is closed now.

        Only for a writer that is dead or past the soft limit: under a live one, this tears the append under way.
        """
        deadline = time.monotonic() + seconds
        # The NameNode starts a block recovery and answers false until a DataNode has finished it.
        while not self._files.recoverLease(self._path(path)):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        return True

    def has_copy(self, path: str, start: int) -> bool:
        """Return whether the NameNode knows a copy, not corrupt, of the file's block at that offset."""
        blocks = self._files.getFileBlockLocations(self._path(path), start, 1)
        return any(len(block.getHosts()) and not block.isCorrupt() for block in blocks)

    def wait_until_closed(self, path: str, seconds: float) -> bool:
        """Give a live writer that long to finish its append; returns whether the file is closed now."""
        deadline = time.monotonic() + seconds
        while not self.is_closed(path):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True
