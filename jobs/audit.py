"""spark-submit entry: check one window's certificate again, or raw and the aggregates against Kafka's log."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from onceover.audit import store as audit_store
from onceover.audit.log_job import audit_log
from onceover.audit.verify_job import verify_window
from onceover.config.endpoints import address
from onceover.config.pipelines import find
from onceover.entrypoint import run
from onceover.errors import TransientError
from onceover.ledger.catalog import require_in_force, require_same_contract
from onceover.ledger.database import connect, require_current
from onceover.raw.window_files import Layout, WindowFiles
from onceover.spark.failure import one_line
from onceover.spark.session import running


def main(arguments: Sequence[str]) -> int:
    """Exit 0 when the audit has a result, whatever it says: it stands in the ledger. Changes nothing else."""
    parser = argparse.ArgumentParser(prog="audit.py", description=__doc__)
    parser.add_argument("--pipeline", required=True, help="name of a pipeline under pipelines/")
    parser.add_argument("--audit", required=True, type=int, help="id of an audit in the ledger")
    chosen = parser.parse_args(arguments)
    pipeline, hdfs = find(chosen.pipeline), address("hdfs")
    with connect(address("postgres"), f"onceover audit {pipeline.name}") as connection:
        require_current(connection)
        known = require_same_contract(connection, pipeline)
        audit, _ = audit_store.read(connection, pipeline.name, chosen.audit)
        files = WindowFiles(address("webhdfs"), Layout(pipeline.storage.raw_root, pipeline.name))
        files.check()
        with running(f"onceover audit {pipeline.name}") as spark:
            try:
                if audit.kind == "window":
                    result = verify_window(spark, connection, known, files, hdfs, audit)
                else:
                    result = audit_log(spark, connection, pipeline, known, files, hdfs, audit)
            except (PySparkException, Py4JError) as error:
                raise TransientError(f"Spark failed, nothing was changed: {one_line(error)}") from error
        require_in_force(connection, known)
        audit_store.finish(connection, audit.audit_id, result)
    print(f"audit {audit.audit_id}: {'equal' if result['equal'] else 'not equal'}")
    return 0


if __name__ == "__main__":
    run("audit", main)
