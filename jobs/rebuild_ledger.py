"""spark-submit entry: rebuild a pipeline's batches, landings, windows and frontiers from its raw alone."""

from __future__ import annotations

from collections.abc import Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from onceover.context import open_pipeline
from onceover.entrypoint import make_parser, run
from onceover.errors import TransientError
from onceover.ledger.database import upgrade_schema
from onceover.model.json_text import to_json
from onceover.recovery.job import rebuild_pipeline
from onceover.recovery.rebuild_ledger import require_no_batches
from onceover.spark.failure import reject_unblamed, summarize
from onceover.spark.session import open_session


def main(arguments: Sequence[str]) -> None:
    """Rebuild the ledger in one transaction. Exits 0 when all of raw is in it."""
    chosen = make_parser("rebuild_ledger", __doc__).parse_args(arguments)
    with open_pipeline(chosen.pipeline, "rebuild") as context:
        upgrade_schema(context.address("postgres"))
        require_no_batches(context.ledger, context.name)  # before Spark takes its time
        with open_session(f"onceover rebuild {context.name}") as spark:
            try:
                result = rebuild_pipeline(spark, context)
            except (PySparkException, Py4JError) as error:
                reject_unblamed(error)
                raise TransientError(f"Spark failed, nothing was written: {summarize(error)}") from error
    print(to_json(result))


if __name__ == "__main__":
    run("rebuild", main)
