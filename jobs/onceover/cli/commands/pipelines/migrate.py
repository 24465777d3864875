"""`onceover pipelines migrate`: the change of a contract from an offset on."""

from __future__ import annotations

from collections.abc import Iterator

from onceover.cli.arguments import DryRun, PipelineName, Reason, get_user, require_reason
from onceover.cli.command import command
from onceover.cli.exit_codes import TRY_LATER, WRONG_TOML
from onceover.cli.output import Answer, Part, Table, get_stderr
from onceover.config.pipelines import name_toml
from onceover.context import open_pipeline
from onceover.ingest import cutover
from onceover.ingest.cutover import Check, Migration
from onceover.model.contract import Columns, Contract
from onceover.spark.contract_diff import check_change
from onceover.spark.session import open_session


@command(
    "onceover pipelines migrate flights --dry-run",
    'onceover pipelines migrate flights --reason "INC-42: also count cancelled flights"',
    codes={
        0: "the TOML's contract is in force, or had not changed",
        TRY_LATER: "ingest runs, stop it first; or a long query holds the aggregates, retry later",
        WRONG_TOML: "the TOML has a mistake",
    },
)
def migrate(pipeline: PipelineName, reason: Reason = None, dry_run: DryRun = False) -> Answer:
    """Put a pipeline's changed contract into force for all records from now on.

    Stop ingest, change the TOML, migrate, start ingest. Earlier records keep the contract under which they were read,
    in every replay, repair and audit. A new measure is null in rows of earlier records only. Topic, window length, keys
    and existing measures cannot change: to change those, make a new pipeline.
    """
    with open_pipeline(pipeline, "pipelines migrate") as context:
        why = "a dry run" if dry_run else require_reason(reason, "a migration", ", or --dry-run")
        done = cutover.migrate_contract(
            context, _make_check(name_toml(context.name)), get_user(), why, write=not dry_run
        )
    return Answer({**done.as_dict(), "dry_run": dry_run}, describe(done, dry_run))


def _make_check(file: str) -> Check:
    def check(old: Contract, new: Contract) -> tuple[Columns, list[str]]:
        with get_stderr().status("Spark checks the SQL ..."), open_session("onceover pipelines migrate") as spark:
            return check_change(spark, old, new, file)

    return check


def describe(done: Migration, dry_run: bool) -> Iterator[Part]:
    if done.old == done.new:
        yield f"nothing to migrate: the contract in {done.pipeline}'s TOML equals version {done.new}, which is in force"
        return
    follows = "would follow" if dry_run else "follows"
    yield f"version {done.new} of {done.pipeline}'s contract {follows} version {done.old}"
    yield f"changed: {', '.join(done.changed)}"
    if done.added:
        yield f"new measures: {', '.join(done.added)}"
    yield Table(
        done.cutovers,
        ("generation", lambda each: each[0].generation),
        (">partition", lambda each: str(each[0].kafka_partition)),
        (f">first offset of version {done.new}", 1),
        most=None,
    )
    yield "Nothing was written." if dry_run else f"Start ingest again: `onceover ingest {done.pipeline}`"
