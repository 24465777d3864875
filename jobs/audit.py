"""spark-submit entry: check one window's certificate again, or raw and the aggregates against Kafka's log; or preview
a restatement."""

from __future__ import annotations

from collections.abc import Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from onceover.audit import store as audit_store
from onceover.audit.log_job import audit_log
from onceover.audit.restatement_job import preview_restatement
from onceover.audit.verify_job import verify_window
from onceover.context import open_pipeline
from onceover.entrypoint import make_parser, run
from onceover.errors import TerminalError, TransientError
from onceover.ledger.catalog import require_in_force
from onceover.model.json_text import to_json
from onceover.spark.failure import find_refusal, reject_unblamed, summarize
from onceover.spark.session import open_session

_CARRIED_OUT_BY = {"window": verify_window, "log": audit_log, "restatement": preview_restatement}


def main(arguments: Sequence[str]) -> None:
    """Write the audit's result into the ledger and change nothing else. Exits 0, equal or not."""
    parser = make_parser("audit", __doc__)
    parser.add_argument("--audit", required=True, type=int, help="id of an audit in the ledger")
    chosen = parser.parse_args(arguments)
    with open_pipeline(chosen.pipeline, "audit") as context:
        registered = context.require_same_contract()
        audit, _ = audit_store.read_audit(context.ledger, registered.name, chosen.audit)
        context.files.check()
        with open_session(f"onceover audit {registered.name}") as spark:
            try:
                result = _CARRIED_OUT_BY[audit.kind](spark, context, registered, audit)
            except (PySparkException, Py4JError) as error:
                reject_unblamed(error)
                if refusal := find_refusal(error):
                    raise TerminalError(
                        f"{refusal}; nothing was compared: audit the ranges before and after it, and prove its window "
                        f"by `onceover verify {registered.name} WINDOW`"
                    ) from error
                raise TransientError(f"Spark failed, nothing was changed: {summarize(error)}") from error
        require_in_force(context.ledger, registered)
        audit_store.record_result(context.ledger, audit.audit_id, result)
    print(to_json({"audit_id": audit.audit_id, "equal": result["equal"]}))


if __name__ == "__main__":
    run("audit", main)
