from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from onceover.context import PipelineContext
from onceover.errors import UsageError
from onceover.kafka.topic import TopicFacts
from onceover.recovery.job import _require_trace

TOPIC = TopicFacts("things", "1f2e3d4c", "id", {}, {})


def context(*, holds_raw: bool, has_rows: bool) -> PipelineContext:
    facts = SimpleNamespace(holds_raw=holds_raw, has_rows=has_rows)
    root = SimpleNamespace(path="/raw/things", read_facts=lambda marker, cluster: facts)
    contract = SimpleNamespace(topic="things")
    made: Any = SimpleNamespace(name="things", root=root, pipeline=SimpleNamespace(contract=contract))
    return cast("PipelineContext", made)


def test_pipeline_without_topic_raw_and_rows_is_not_rebuilt() -> None:
    with pytest.raises(UsageError, match=r"nothing to rebuild: .*the topic things does not exist"):
        _require_trace(context(holds_raw=False, has_rows=False), None)


@pytest.mark.parametrize(
    ("holds_raw", "has_rows", "topic"), [(True, False, None), (False, True, None), (False, False, TOPIC)]
)
def test_one_trace_of_a_pipeline_is_enough(holds_raw: bool, has_rows: bool, topic: TopicFacts | None) -> None:
    _require_trace(context(holds_raw=holds_raw, has_rows=has_rows), topic)
