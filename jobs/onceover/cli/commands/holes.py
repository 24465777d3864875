"""`onceover holes`: offsets that are missing, and why."""

from __future__ import annotations

import typer

from onceover.cli.arguments import AsJson, PipelineName
from onceover.cli.exit_codes import FAILED, epilog
from onceover.cli.output import as_json, draw_table, print_progress, say
from onceover.context import open_pipeline
from onceover.detection.holes import probe_holes
from onceover.model.gap import Reason as Gone

_NEXT = {
    Gone.LOST: "Kafka still has them; the next repair of any range reads them again: `onceover repair {name}`",
    Gone.EXPIRED: "Kafka has them no more; windows beyond wait for a person's decision: `onceover accept-loss {name}`",
}


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=epilog(
            "onceover holes flights",
            "onceover holes flights --json",
            codes={0: "nothing is lost", FAILED: "offsets are lost or expired"},
        )
    )(holes)


def holes(pipeline: PipelineName, json: AsJson = False) -> None:
    """List the offsets that ingest skipped, and ask Kafka why.

    lost: Kafka still has records there; the next repair reads them again. expired: Kafka has them no more. aborted,
    compacted, control marker: nobody will ever be given a record there; no finding.
    """
    with open_pipeline(pipeline, "holes") as context:
        context.read_registration()
        print_progress("asking Kafka what it still holds of the holes")
        gaps = probe_holes(context)
    if json:
        as_json(
            [
                {
                    "range": gap.offsets.format(),
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
        say(
            draw_table(
                ["range", ">offsets", "reason"], ((g.offsets.format(), len(g.offsets), str(g.reason)) for g in gaps)
            )
        )
        for reason, what in _NEXT.items():
            if any(gap.reason is reason for gap in gaps):
                say(f"{reason}: {what.format(name=context.name)}")
    else:
        say("there is no hole: every offset up to the largest one that was read is accounted for")
    if any(gap.reason.is_loss for gap in gaps):
        raise typer.Exit(FAILED)
