"""`onceover restore` and `onceover decide`: what only a person can decide about one window, kept with who and why."""

from __future__ import annotations

from typing import Annotated

import typer

from onceover.cli.arguments import PipelineName, window_of
from onceover.cli.commands.explain import WindowStart
from onceover.cli.commands.repair import Reason, given, who
from onceover.cli.exit_codes import TRY_LATER, epilog
from onceover.cli.output import say
from onceover.errors import UsageError
from onceover.explain.finding_text import counted, records
from onceover.model.line import parse_id
from onceover.model.window import written

Revision = Annotated[
    int | None, typer.Option("--revision", metavar="N", help="Which kept revision; the last one, if left out.")
]
RecordId = Annotated[str, typer.Argument(metavar="ID", help="A record's ID, as `onceover explain` names it.")]
Keep = Annotated[str, typer.Option("--keep", metavar="HASH", help="Hash of the content that counts.")]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=epilog(
            'onceover restore flights 2013-01-05T14:00Z --reason "the contract was wrong, see INC-42"',
            codes={TRY_LATER: "a repair holds the window"},
        )
    )(restore)
    app.command(
        epilog=epilog(
            "onceover decide flights 2013-01-05T14:00Z 1f2e3d4c-00000-0000000000000001200 "
            '--keep 00112233445566778899aabbccddeeff --reason "the leader that lost its log had the test data"',
        )
    )(decide)


def restore(pipeline: PipelineName, window: WindowStart, revision: Revision = None, reason: Reason = None) -> None:
    """Put rows that a repair replaced back into the aggregates, as a new revision.

    Nothing proves such rows: the window is certified no longer, and it is blocked, so that no scheduled repair undoes
    what you decided. `onceover repair` over its range lifts that.
    """
    from onceover.config.endpoints import address
    from onceover.config.pipelines import find
    from onceover.ledger.catalog import registered
    from onceover.ledger.database import connect, require_current
    from onceover.repair import revisions

    known = find(pipeline)
    chosen, why = window_of(known, window), given(reason, "a restore")
    with connect(address("postgres"), f"onceover restore {known.name}") as connection:
        require_current(connection)
        done = revisions.restore(connection, registered(connection, known.name), chosen.start, revision, who(), why)
    say(
        f"window {chosen} holds the {counted(done.rows, 'row')} of revision {done.source} again, as revision "
        f"{done.revision}: {records(done.records)}. It is blocked until somebody repairs it by its range"
    )


def decide(pipeline: PipelineName, window: WindowStart, record: RecordId, keep: Keep, reason: Reason = None) -> None:
    """Decide which of several contents of one ID counts; the next repair publishes with it.

    A conflict comes from a log that was cut and written anew. The other contents stay in raw, and the certificate
    names the decision. A later decision about the same ID replaces it.
    """
    from onceover.config.endpoints import address
    from onceover.config.pipelines import find
    from onceover.ledger import decisions
    from onceover.ledger.catalog import registered
    from onceover.ledger.database import connect, require_current
    from onceover.model.claim import Decision

    known = find(pipeline)
    chosen, why = window_of(known, window), given(reason, "a decision")
    source, offset = parse_id(record.strip().encode("ascii", "replace"))
    if len(keep) != 32 or set(keep) - set("0123456789abcdef"):
        raise UsageError("--keep takes the 32 hex digits of a content's hash; `onceover explain` shows them")
    with connect(address("postgres"), f"onceover decide {known.name}") as connection:
        require_current(connection)
        registered(connection, known.name)
        decisions.decide(connection, known.name, chosen.start, Decision(source, offset, keep), who(), why)
    say(
        f"of {record} the content {keep} counts. Now repair the window: "
        f'onceover repair {known.name} --from {chosen} --to {written(chosen.end)} --reason "..."'
    )
