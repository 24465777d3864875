"""Cut logs: detection compares Kafka's log with what landed where no ingest does."""

from __future__ import annotations

import logging
from contextlib import closing

from onceover.context import PipelineContext
from onceover.errors import BusyError, OnceoverError
from onceover.kafka.reader import KafkaSource
from onceover.kafka.topic import Topic
from onceover.ledger.log_comparison import LogComparison
from onceover.ledger.root import RootRefusedError

log = logging.getLogger(__name__)
_PATIENCE_SECONDS = 5.0


def compare_log(context: PipelineContext) -> None:
    """Compare the pipeline's log with what landed, unless ingest runs, which does. A broker that does not answer is
    logged: what it holds is then compared by the next detection, or by ingest before it reads."""
    pipeline, policy, bootstrap = context.pipeline, context.pipeline.ingest, context.address("kafka")
    try:
        with closing(
            Topic(bootstrap, pipeline.contract.topic, policy.isolation, pipeline.kafka, timeout=_PATIENCE_SECONDS)
        ) as topic:
            context.require_own_root(topic.read_cluster_id())  # a mirror's log says nothing of what landed
            facts = topic.facts()
            source = KafkaSource(
                bootstrap,
                facts.topic,
                facts.topic_id,
                policy.isolation,
                pipeline.kafka,
                stall_seconds=_PATIENCE_SECONDS,
            )
            LogComparison(context.ledger, context.name).compare(facts, source)
    except BusyError:
        return
    except RootRefusedError:
        raise
    except OnceoverError as error:
        log.warning("the log of %s was not compared with what landed: %s", context.name, error)
