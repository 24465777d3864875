"""`onceover pipelines check`: the mistakes in TOMLs and their SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from onceover.cli.arguments import NO_PIPELINE, complete_name, flag, option
from onceover.cli.command import command
from onceover.cli.exit_codes import FAILED, WRONG_TOML
from onceover.cli.output import Answer, Table, get_stderr
from onceover.cli.sample_report import describe_sample, list_as_json
from onceover.cli.topic_sample import take_sample
from onceover.config.mistakes import Mistake, MistakesError
from onceover.config.pipelines import find, name_toml, read_valid
from onceover.errors import ConfigurationError, UsageError
from onceover.model.contract import Columns
from onceover.model.pipeline import Pipeline
from onceover.model.wording import pluralize
from onceover.spark.contract_check import check_contract as check_contract
from onceover.spark.contract_patterns import list_warnings
from onceover.spark.sample import TopicSample
from onceover.spark.session import open_session

Name = Annotated[
    str | None,
    typer.Argument(metavar="PIPELINE", help="Name of a pipeline. Default: all of them.", autocompletion=complete_name),
]
Sample = Annotated[
    int | None,
    option("--sample", "N", "Show what the contract makes of the topic's last N records.", min=1, max=10_000),
]
NoSpark = Annotated[bool, flag("--no-spark", "Do not check SQL, which needs Spark.")]


@command(
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
def check(name: Name = None, sample: Sample = None, no_spark: NoSpark = False) -> Answer:
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
        with get_stderr().status("Spark checks the SQL ..."), open_session("onceover pipelines check") as spark:
            columns, more, warnings, sampled = _check_sql(spark, good, sample)
        mistakes = [*mistakes, *more]
    value = {
        "pipelines": [{"name": p.name, "columns": columns.get(p.name)} for p in good],
        "mistakes": [asdict(mistake) for mistake in mistakes],
        "warnings": [asdict(warning) for warning in warnings],
        **({"sample": list_as_json(sampled)} if sampled else {}),
    }
    states = {**{each.file: "note" for each in warnings}, **{each.file: "wrong" for each in mistakes}}
    parts = [
        Table(
            good,
            ("pipeline", "name"),
            ("check", lambda each: states.get(name_toml(each.name), "fine")),
            ("topic", lambda each: each.contract.topic),
            ("window", lambda each: str(each.contract.windowing)),
            ("columns", lambda each: _format_columns(columns.get(each.name), no_spark)),
            most=None,
            empty=None if mistakes else NO_PIPELINE,
        ),
        *map(str, mistakes),
        *(f"warning: {warning}" for warning in warnings),
        pluralize(len(mistakes), "mistake") if mistakes else None,
        *(describe_sample(sampled, good[0].contract.topic) if sampled else ()),
    ]
    is_refused = sampled is not None and 2 * sampled.quarantined > sampled.records
    return Answer(value, parts, WRONG_TOML if mistakes else FAILED if is_refused else 0)


def _read(name: str | None) -> tuple[Sequence[Pipeline], list[Mistake]]:
    if name is None:
        return read_valid()
    try:
        return [find(name)], []
    except MistakesError as error:
        return [], list(error.mistakes)


def _check_sql(
    spark: Any, pipelines: Sequence[Pipeline], sample: int | None
) -> tuple[dict[str, Columns], list[Mistake], list[Mistake], TopicSample | None]:
    columns: dict[str, Columns] = {}
    mistakes: list[Mistake] = []
    warnings: list[Mistake] = []
    for pipeline in pipelines:
        try:
            columns[pipeline.name] = check_contract(spark, pipeline.contract, name_toml(pipeline.name))
            warnings += list_warnings(spark, pipeline.contract, name_toml(pipeline.name))
        except MistakesError as error:
            mistakes += error.mistakes
        except ConfigurationError as error:
            mistakes.append(Mistake(name_toml(pipeline.name), "contract", str(error), "correct it"))
    sampled = take_sample(spark, pipelines[0], sample) if sample is not None and not mistakes else None
    return columns, mistakes, warnings, sampled


def _format_columns(columns: Columns | None, no_spark: bool) -> str | None:
    if columns is None:
        return "SQL not checked" if no_spark else None
    return ", ".join(f"{column.name} {column.type}" for column in (*columns.keys, *columns.values))
