"""`onceover holes`: offsets that are missing, and why."""

from __future__ import annotations

from onceover.cli.arguments import PipelineName
from onceover.cli.command import command
from onceover.cli.exit_codes import FAILED
from onceover.cli.output import Answer, Table, print_progress
from onceover.context import open_pipeline
from onceover.detection.holes import probe_holes
from onceover.model.gap import Reason
from onceover.model.offsets import span_sources

_MAX_SHOWN = 100
_NEXT = {
    Reason.LOST: "Kafka still has them; the next repair of any range reads them again: "
    '`onceover repair {name} --from TIME --to TIME --reason "..."`',
    Reason.EXPIRED: "Kafka no longer has them. Later windows stay open until a person accepts their loss; records of "
    'them that raw holds count all the same: `onceover accept-loss {name} RANGE --from TIME --to TIME --reason "..."`',
}


@command(
    "onceover holes flights",
    "onceover holes flights --json",
    codes={0: "no offset is lost or expired", FAILED: "offsets are lost or expired"},
)
def holes(pipeline: PipelineName) -> Answer:
    """List the offsets that ingest skipped, and find out from Kafka why.

    lost: Kafka still has records there; the next repair reads them again. expired: Kafka no longer has the records.
    aborted, compacted, control marker: Kafka delivers no record there, so nothing is missing.
    """
    with open_pipeline(pipeline, "holes") as context:
        context.read_registration()
        print_progress("checking which of the skipped offsets Kafka still has")
        gaps = probe_holes(context)
    rows = [
        {
            "range": str(gap.offsets),
            "generation": gap.offsets.source.generation,
            "kafka_partition": gap.offsets.source.kafka_partition,
            "start": gap.offsets.start,
            "end": gap.offsets.end,
            "reason": str(gap.reason),
        }
        for gap in gaps
    ]
    expired = [gap.offsets for gap in gaps if gap.reason is Reason.EXPIRED]
    spans = span_sources(expired) if len(gaps) > _MAX_SHOWN else ()
    return Answer(
        rows,
        [
            Table(
                rows, "range", (">offsets", lambda row: row["end"] - row["start"]), "reason", most=_MAX_SHOWN,
                empty="there is no hole: every offset up to the highest one read is accounted for",
            ),
            *(f"expired, from the first to the last: {span}" for span in spans),
            *(
                f"{reason}: {what.format(name=context.name)}"
                for reason, what in _NEXT.items() if any(gap.reason is reason for gap in gaps)
            ),
        ],
        FAILED if any(gap.reason.is_loss for gap in gaps) else 0,
    )  # fmt: skip
