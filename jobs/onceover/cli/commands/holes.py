"""`onceover holes`: offsets that are missing, and why."""

from __future__ import annotations

import typer

from onceover.cli.arguments import AsJson, PipelineName
from onceover.cli.exit_codes import FAILED, format_epilog
from onceover.cli.output import draw_table, print_json, print_progress, say
from onceover.context import open_pipeline
from onceover.detection.holes import probe_holes
from onceover.model.gap import Reason
from onceover.model.offsets import span_sources

_MOST_SHOWN = 100
_NEXT = {
    Reason.LOST: "Kafka still has them; the next repair of any range reads them again: "
    '`onceover repair {name} --from TIME --to TIME --reason "..."`',
    Reason.EXPIRED: "Kafka no longer has them. Later windows stay open until a person accepts their loss; records of "
    'them that raw holds count all the same: `onceover accept-loss {name} RANGE --from TIME --to TIME --reason "..."`',
}


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=format_epilog(
            "onceover holes flights",
            "onceover holes flights --json",
            codes={0: "no offset is lost or expired", FAILED: "offsets are lost or expired"},
        )
    )(holes)


def holes(pipeline: PipelineName, json: AsJson = False) -> None:
    """List the offsets that ingest skipped, and find out from Kafka why.

    lost: Kafka still has records there; the next repair reads them again. expired: Kafka no longer has the records.
    aborted, compacted, control marker: Kafka delivers no record there, so nothing is missing.
    """
    with open_pipeline(pipeline, "holes") as context:
        context.read_registration()
        print_progress("checking which of the skipped offsets Kafka still has")
        gaps = probe_holes(context)
    if json:
        print_json(
            [
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
        )
    elif gaps:
        shown = [(str(gap.offsets), len(gap.offsets), str(gap.reason)) for gap in gaps[:_MOST_SHOWN]]
        say(draw_table(["range", ">offsets", "reason"], shown))
        if len(gaps) > _MOST_SHOWN:
            say(f"and {len(gaps) - _MOST_SHOWN:,} more ranges: `onceover holes {context.name} --json` lists all")
            for span in span_sources(gap.offsets for gap in gaps if gap.reason is Reason.EXPIRED):
                say(f"expired, from the first to the last: {span}", whole=True)
        for reason, what in _NEXT.items():
            if any(gap.reason is reason for gap in gaps):
                say(f"{reason}: {what.format(name=context.name)}")
    else:
        say("there is no hole: every offset up to the highest one read is accounted for")
    if any(gap.reason.is_loss for gap in gaps):
        raise typer.Exit(FAILED)
