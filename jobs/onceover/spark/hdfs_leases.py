"""Leases and blocks of HDFS files, through the Spark driver's Hadoop client: no other says whether a file is closed.

Other raw stores have no leases: an append there ends with the call.
"""

from __future__ import annotations

import time
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from onceover.config.endpoints import address, name_lease_server
from onceover.context import PipelineContext
from onceover.errors import AccessDeniedError
from onceover.raw.hdfs import describe_denial
from onceover.raw.kerberos import find_keytab, read_ticket, uses_kerberos

SOFT_LIMIT_SECONDS = 60.0  # HdfsConstants.LEASE_SOFTLIMIT_PERIOD: after it any client may take the lease
_RECOVERY_SECONDS = 30.0


class Leases:
    """Whether files are closed, and recovery of those whose writer is dead. This is a store's that has no leases: every
    file is closed, and what cannot be read has no other copy."""

    def is_closed(self, path: str) -> bool:
        """Return whether no writer has the file open."""
        return True

    def recover(self, path: str) -> None:
        """Take the lease from a dead writer and have the file closed, which may take longer than this waits.

        Only for a writer that is dead or past the soft limit: under a live one, this tears the append under way.
        """

    def has_copy(self, path: str, start: int) -> bool:
        """Return whether the servers know a copy, not corrupt, of the file's bytes at that offset."""
        return False

    def wait_until_closed(self, path: str, seconds: float) -> bool:
        """Give a live writer that long to finish its append; returns whether the file is closed now."""
        return True


def open_leases(spark: SparkSession, context: PipelineContext) -> Leases:
    """Return the leases of the pipeline's raw store."""
    if context.pipeline.storage.raw_store != "hdfs":
        return Leases()
    return _HdfsLeases(spark, name_lease_server(context.address("hdfs")))


class _HdfsLeases(Leases):
    """A client of HDFS for leases."""

    def __init__(self, spark: SparkSession, hdfs: str) -> None:
        jvm: Any = spark.sparkContext._jvm  # typed as optional: None only in Spark Connect
        if uses_kerberos() and (keytab := find_keytab()):
            login = jvm.org.apache.hadoop.security.UserGroupInformation
            if not login.isLoginKeytabBased():
                login.loginUserFromKeytab(read_ticket(address("webhdfs")).principal, keytab)
        configuration = spark.sparkContext._jsc.hadoopConfiguration()
        self._path = jvm.org.apache.hadoop.fs.Path
        self._files = self._path(hdfs).getFileSystem(configuration)

    def is_closed(self, path: str) -> bool:
        return bool(self._files.isFileClosed(self._path(path)))

    def recover(self, path: str) -> None:
        deadline = time.monotonic() + _RECOVERY_SECONDS
        # The NameNode starts a block recovery and answers false until a DataNode has finished it.
        try:
            while not self._files.recoverLease(self._path(path)) and time.monotonic() <= deadline:
                time.sleep(0.2)
        except Py4JJavaError as error:
            if "Permission denied" in str(error.java_exception.getMessage()):
                raise AccessDeniedError(describe_denial(str(error.java_exception.getMessage()))) from error
            raise

    def has_copy(self, path: str, start: int) -> bool:
        blocks = self._files.getFileBlockLocations(self._path(path), start, 1)
        return any(len(block.getHosts()) and not block.isCorrupt() for block in blocks)

    def wait_until_closed(self, path: str, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not self.is_closed(path):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True
