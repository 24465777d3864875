"""`onceover pipelines check`: the mistakes in TOMLs and their SQL."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated

import typer

from onceover.cli.arguments import AsJson, complete_name
from onceover.cli.exit_codes import FAILED, WRONG_TOML, format_epilog
from onceover.cli.output import draw_table, get_stderr, print_json, say, style
from onceover.cli.sample_report import list_as_json, show_sample
from onceover.cli.topic_sample import take_sample
from onceover.config.mistakes import Mistake, MistakesError
from onceover.config.pipelines import find, name_toml, read_valid
from onceover.errors import ConfigurationError, UsageError
from onceover.model.contract import Columns
from onceover.model.pipeline import Pipeline
from onceover.model.wording import pluralize
from onceover.printable import escape
from onceover.spark.contract_check import check_contract as check_contract
from onceover.spark.contract_patterns import list_warnings
from onceover.spark.sample import TopicSample
from onceover.spark.session import build

Name = Annotated[
    str | None,
    typer.Argument(metavar="PIPELINE", help="Name of a pipeline. Default: all of them.", autocompletion=complete_name),
]
Sample = Annotated[
    int | None,
    typer.Option(
        "--sample", metavar="N", min=1, max=10_000, help="Show what the contract makes of the topic's last N records."
    ),
]
NoSpark = Annotated[bool, typer.Option("--no-spark", metavar="", help="Do not check SQL, which needs Spark.")]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=format_epilog(
            "onceover pipelines check",
            "onceover pipelines check flights",
            "onceover pipelines check flights --sample 100",
            "onceover pipelines check --no-spark --json",
            codes={
                0: "no TOML has a mistake",
                FAILED: "most records of the sample would go to quarantine",
                WRONG_TOML: "a TOML has a mistake",
            },
        )
    )(check)


def check(name: Name = None, sample: Sample = None, no_spark: NoSpark = False, json: AsJson = False) -> None:
    """Check pipelines' TOMLs; name every mistake with file, key and remedy.

    A warning is about SQL that runs, and means something else than its author hardly wants, such as `hh` without `a`.
    Checks the file first, then with Spark whether its SQL runs and which types the columns get. Reads no data, but
    with --sample: SQL that runs may still refuse every record, as a regex does that lacks a backslash. The sample is
    interpreted as ingest would, and written nowhere.
    """
    if sample is not None and (name is None or no_spark):
        raise UsageError("--sample needs the name of one pipeline, and Spark")
    good, mistakes = _read(name)
    columns: dict[str, Columns] = {}
    warnings: Sequence[Mistake] = ()
    sampled: TopicSample | None = None
    if good and not no_spark:
        with get_stderr().status("Spark checks the SQL ..."):
            columns, more, warnings, sampled = _check_sql(good, sample)
        mistakes = [*mistakes, *more]
    if json:
        print_json(
            {
                "pipelines": [{"name": p.name, "columns": columns.get(p.name)} for p in good],
                "mistakes": [asdict(mistake) for mistake in mistakes],
                "warnings": [asdict(warning) for warning in warnings],
                **({"sample": list_as_json(sampled)} if sampled else {}),
            }
        )
    else:
        _show(good, columns, mistakes, warnings, no_spark)
        if sampled:
            show_sample(sampled, good[0].contract.topic)
    if mistakes:
        raise typer.Exit(WRONG_TOML)
    if sampled and 2 * sampled.quarantined > sampled.records:
        raise typer.Exit(FAILED)


def _read(name: str | None) -> tuple[Sequence[Pipeline], list[Mistake]]:
    if name is None:
        return read_valid()
    try:
        return [find(name)], []
    except MistakesError as error:
        return [], list(error.mistakes)


def _check_sql(
    pipelines: Sequence[Pipeline], sample: int | None
) -> tuple[dict[str, Columns], list[Mistake], list[Mistake], TopicSample | None]:
    columns: dict[str, Columns] = {}
    mistakes: list[Mistake] = []
    warnings: list[Mistake] = []
    sampled: TopicSample | None = None
    spark = build("onceover pipelines check")
    try:
        for pipeline in pipelines:
            try:
                columns[pipeline.name] = check_contract(spark, pipeline.contract, name_toml(pipeline.name))
                warnings += list_warnings(spark, pipeline.contract, name_toml(pipeline.name))
            except MistakesError as error:
                mistakes += error.mistakes
            except ConfigurationError as error:
                mistakes.append(Mistake(name_toml(pipeline.name), "contract", str(error), "correct it"))
        if sample is not None and not mistakes:
            sampled = take_sample(spark, pipelines[0], sample)
    finally:
        with suppress(Exception):  # stopping fails if the JVM was interrupted
            spark.stop()
    return columns, mistakes, warnings, sampled


def _show(
    good: Sequence[Pipeline],
    columns: dict[str, Columns],
    mistakes: Sequence[Mistake],
    warnings: Sequence[Mistake],
    no_spark: bool,
) -> None:
    states = {**{each.file: "note" for each in warnings}, **{each.file: "wrong" for each in mistakes}}
    rows = [
        (
            pipeline.name,
            style(states.get(name_toml(pipeline.name), "fine")),
            pipeline.contract.topic,
            f"{pipeline.contract.window_minutes} min",
            _format_columns(columns.get(pipeline.name), no_spark),
        )
        for pipeline in good
    ]
    if rows:
        say(draw_table(["pipeline", "check", "topic", "window", "columns"], rows))
    if not rows and not mistakes:
        say("there is no pipeline; write a TOML into pipelines/, its name is the pipeline's")
    for mistake in mistakes:
        say(escape(str(mistake)), whole=True)
    for warning in warnings:
        say(f"warning: {escape(str(warning))}", whole=True)
    if mistakes:
        say(f"{pluralize(len(mistakes), 'mistake')}")


def _format_columns(columns: Columns | None, no_spark: bool) -> str | None:
    if columns is None:
        return "SQL not checked" if no_spark else None
    return ", ".join(f"{column.name} {column.type}" for column in (*columns.keys, *columns.measures))
