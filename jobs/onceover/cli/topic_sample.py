"""A sample of a topic for a contract that may not be registered yet: also of records that its SQL dies of."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from onceover.context import PipelineContext, open_pipeline
from onceover.errors import HungSparkError, OnceoverError, PoisonRecordError, TerminalError
from onceover.ingest.micro_batch import attempt, silence_tasks
from onceover.kafka import Topic, TopicFacts
from onceover.kafka.last_offsets import plan_sample
from onceover.kafka.reader import KafkaSource
from onceover.model.pipeline import Pipeline
from onceover.model.poison import PoisonRecord
from onceover.spark.hang_watch import end_hung_spark
from onceover.spark.poison_probe import ProbeRequest
from onceover.spark.poison_search import search
from onceover.spark.sample import TopicSample, sample_topic


def take_sample(spark: Any, pipeline: Pipeline, most: int) -> TopicSample:
    """Return what the contract makes of the topic's last `most` records. Raise TerminalError with the records that its
    SQL never ends for: Spark ends with them."""
    contract, isolation = pipeline.contract, pipeline.ingest.isolation
    with (
        open_pipeline(pipeline, "pipelines check") as context,
        closing(Topic(context.address("kafka"), contract.topic, isolation, pipeline.kafka)) as topic,
    ):
        facts = topic.facts()
        schemas = context.ask_registry(keep=False)
        source, poison = _build_source(context, facts), _list_known(context)
        try:
            with end_hung_spark(spark, most), attempt(), silence_tasks(spark):
                return sample_topic(spark, source, facts, contract, most, poison, schemas)
        except (PoisonRecordError, HungSparkError) as error:
            ranges, asked = plan_sample(facts, most), ProbeRequest(source, contract, tuple(poison), schemas)
            found = [record for _, records in search(asked, 1, ranges) for record in records]
            if isinstance(error, HungSparkError) or not found:
                named = "; ".join(f"{each.source}, offset {each.offset}: {each.reason}: {each.error}" for each in found)
                raise TerminalError(f"{error}; {named or 'no record alone is to blame'}") from error
        with attempt(), silence_tasks(spark):
            return sample_topic(spark, source, facts, contract, most, (*poison, *found), schemas)


def _build_source(context: PipelineContext, facts: TopicFacts) -> KafkaSource:
    """Return the log, with what a ledger knows of it: a first sample needs none."""
    try:
        return context.build_source(facts)
    except OnceoverError:
        return context.build_source(facts, has_ledger=False)


def _list_known(context: PipelineContext) -> tuple[PoisonRecord, ...]:
    """Return the poison records of this contract, none where no ledger knows it."""
    try:
        return context.require_same_contract().list_poison()
    except OnceoverError:
        return ()
