"""`onceover holes` and `accept-loss`: offsets that are missing, why, and the decision about those that are gone."""

from __future__ import annotations

from typing import Annotated

import typer

from onceover.cli.arguments import AsJson, PipelineName, range_of
from onceover.cli.commands.repair import From, Reason, To, given, who
from onceover.cli.exit_codes import FAILED, epilog
from onceover.cli.output import as_json, progress, say, table
from onceover.explain.finding_text import counted
from onceover.model.gap import Reason as Gone
from onceover.model.offsets import parse_range
from onceover.model.window import written

Range = Annotated[
    str,
    typer.Argument(
        metavar="RANGE", help="GENERATION-PARTITION:START-END, as `onceover holes` prints it; END is exclusive."
    ),
]


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
    app.command(
        "accept-loss",
        epilog=epilog(
            "onceover accept-loss flights 1f2e3d4c-0:1200-1300 --from 2013-01-05T14:00Z --to 2013-01-05T16:00Z "
            '--reason "INC-42: retention was an hour"',
        ),
    )(accept_loss)


def holes(pipeline: PipelineName, json: AsJson = False) -> None:
    """List the offsets that ingest skipped, and ask Kafka why.

    lost: Kafka still has records there; the next repair reads them again. expired: Kafka has them no more. aborted,
    compacted, control marker: nobody will ever be given a record there; no finding.
    """
    from onceover.config.endpoints import address
    from onceover.config.pipelines import find
    from onceover.detection import holes as asked
    from onceover.ledger.catalog import registered
    from onceover.ledger.database import connect, require_current

    known = find(pipeline)
    with connect(address("postgres"), f"onceover holes {known.name}") as connection:
        require_current(connection)
        registered(connection, known.name)
        progress("asking Kafka what it still holds of the holes")
        gaps = asked.ask(connection, known)
    if json:
        as_json(
            [
                {
                    "range": gap.offsets.written(),
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
            table(["range", ">offsets", "reason"], ((g.offsets.written(), len(g.offsets), str(g.reason)) for g in gaps))
        )
        for reason, what in _NEXT.items():
            if any(gap.reason is reason for gap in gaps):
                say(f"{reason}: {what.format(name=known.name)}")
    else:
        say("there is no hole: every offset up to the largest one that was read is accounted for")
    if any(gap.reason.is_loss for gap in gaps):
        raise typer.Exit(FAILED)


def accept_loss(pipeline: PipelineName, offsets: Range, start: From, end: To, reason: Reason = None) -> None:
    """Decide that offsets which Kafka has no more are lost, and which windows may lack their records.

    The frontier moves over them, so that windows beyond close again. The windows of the range are judged again, and
    their certificates state the loss for ever. There is no way back: what was lost stays lost.
    """
    from onceover.config.endpoints import address
    from onceover.config.pipelines import find
    from onceover.detection import holes as asked
    from onceover.ledger.catalog import require_same_contract
    from onceover.ledger.database import connect, require_current

    known = find(pipeline)
    lost = parse_range(offsets)
    windows = range_of(known, start, end)
    why = given(reason, "accepting a loss")
    with connect(address("postgres"), f"onceover accept-loss {known.name}") as connection:
        require_current(connection)
        require_same_contract(connection, known)
        reopened = asked.accept(connection, known, lost, windows, who(), why)
    say(
        f"{counted(len(lost), 'offset')} of {lost.source} accepted as lost; {counted(len(reopened), 'window')} from "
        f"{written(windows.start)} to {written(windows.end)} will be judged again and say so in their certificates"
    )
