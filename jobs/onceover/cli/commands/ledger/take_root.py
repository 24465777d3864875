"""`onceover ledger take-root`: a person's word that this ledger owns a raw root, kept with name and reason."""

from __future__ import annotations

from typing import Annotated

from onceover.cli.arguments import PipelineName, get_user, option, require_reason
from onceover.cli.command import command
from onceover.cli.exit_codes import FAILED, TRY_LATER
from onceover.cli.output import Answer
from onceover.context import open_pipeline
from onceover.kafka.topic import read_cluster_id
from onceover.model.window import format_moment

Reason = Annotated[
    str | None, option("--reason", "TEXT", "Why you do this; kept in the ledger and in the marker. Required.")
]
Cluster = Annotated[
    str | None, option("--kafka-cluster", "ID", "ID of the Kafka cluster that replaces the marked one for good.")
]


@command(
    'onceover ledger take-root flights --reason "restored from the backup of last night, see INC-42"',
    'onceover ledger take-root flights --kafka-cluster 4L6g3nShT-eMCtK--X86sw --reason "a new cluster"',
    codes={
        FAILED: "the root was read from another Kafka cluster; the message names the option to accept this one",
        TRY_LATER: "a service does not answer, or ingest runs; stop ingest first",
    },
)
def take_root(pipeline: PipelineName, reason: Reason = None, kafka_cluster: Cluster = None) -> Answer:
    """Make a pipeline's raw root this ledger's, after a restore of the ledger or a move of its database.

    Run it only if no process uses another ledger for this root any more: two ledgers on one root count and delete each
    other's files. Ingest of this ledger must be stopped. The next ingest and repairs land what raw and Kafka hold and
    this ledger lacks. A ledger without a landed batch of the pipeline has to be rebuilt instead.
    """
    with open_pipeline(pipeline, "take-root") as context:
        why = require_reason(reason, "taking a raw root")
        cluster = read_cluster_id(context.address("kafka"), context.pipeline)
        change = context.root.take(cluster, kafka_cluster, get_user(), why)
        path = context.root.path
    before = f"{path} had no marker"
    if change.before is not None:
        written = f"by {change.before.who} at {format_moment(change.before.written_at)}: {change.before.why}"
        before = f"{path} was marked {written}" + ("" if change.problem else "; it was this ledger's already")
    after = f"{path} belongs to this ledger now. Start ingest: `onceover ingest {pipeline}`"
    return Answer({"root": path, "before": change.before}, [before, after])
