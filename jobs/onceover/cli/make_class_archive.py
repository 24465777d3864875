"""The program that makes the class archive: runs a small plan with Spark, makes a client of HDFS, and has Java keep the
classes loaded. `python -m onceover.cli.make_class_archive`; takes as long as one cold job."""

from __future__ import annotations

import os
from typing import Any

from onceover.spark.class_archive import ARCHIVE, OPTIONS
from onceover.spark.session import build


def main() -> None:
    """Write the archive, whole or not at all. Raises FileNotFoundError if Java wrote none; its message is on standard
    error."""
    fresh = ARCHIVE.with_name(f"{ARCHIVE.name}.{os.getpid()}")
    os.environ["PYSPARK_SUBMIT_ARGS"] = "--master local[2] pyspark-shell"
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Otherwise Java logs every class that it leaves out, a thousand of them.
    os.environ[OPTIONS] = f'"-XX:ArchiveClassesAtExit={fresh}" -Xlog:disable'
    try:
        spark = build("class archive")
        records = spark.range(100).mapInArrow(lambda batches: batches, "id BIGINT")
        records.selectExpr("from_json(concat('[', id, ']'), 'ARRAY<INT>')[0] AS n", "id").groupBy("n").count().collect()
        jvm: Any = spark._jvm
        jvm.org.apache.hadoop.fs.Path("hdfs://127.0.0.1:9").getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        gateway: Any = spark.sparkContext._gateway
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # Java ends with its standard input, and writes the archive then
        gateway.proc.wait()
        fresh.chmod(0o644)  # for every user of this installation
        fresh.replace(ARCHIVE)
    finally:
        fresh.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
