"""A pipeline opened once: its TOML, the ledger, its raw store and the addresses, for callers to pass on."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from onceover.config import endpoints
from onceover.config.pipelines import find
from onceover.config.registry import locate_registry
from onceover.errors import OnceoverError
from onceover.kafka import Topic, TopicFacts
from onceover.kafka.log_bounds import read_held
from onceover.ledger import catalog
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection, connect, require_current
from onceover.ledger.log_limits import list_known_unreadable
from onceover.ledger.root import Root, RootRefusedError
from onceover.ledger.writer_schemas import list_judged
from onceover.model.offsets import OffsetRange
from onceover.model.pipeline import Pipeline
from onceover.model.windowing import Windowing
from onceover.raw.layout import Layout
from onceover.raw.store import make_address

if TYPE_CHECKING:
    from onceover.kafka.reader import KafkaSource
    from onceover.raw.marker import MarkerFiles
    from onceover.raw.schema_files import SchemaFiles
    from onceover.raw.window_files import WindowFiles

log = logging.getLogger(__name__)


class PipelineContext:
    """One pipeline with its ledger, raw store and addresses. Each part is opened once, when it is first used, so that
    arguments are checked before any server has to answer."""

    def __init__(self, pipeline: Pipeline, purpose: str, held: ExitStack) -> None:
        self.pipeline, self.name = pipeline, pipeline.name
        self._purpose, self._held = purpose, held
        self._addresses: dict[str, str] = {}
        self._own_for: set[str | None] = set()  # the Kafka clusters for which the root was found to be the ledger's own

    @cached_property
    def ledger(self) -> Connection:
        """Connect to the ledger. Raise UnreachableError if PostgreSQL does not answer, TerminalError for another schema
        version."""
        return self._held.enter_context(open_ledger(f"{self._purpose} {self.name}"))

    @property
    def windowing(self) -> Windowing:
        """Where windows begin: as the ledger has it, which keeps what it knew of a zone; without it, as the TOML."""
        if self.pipeline.contract.window_zone:
            with suppress(OnceoverError):
                return self.read_registration().windowing
        return self.pipeline.contract.windowing

    @cached_property
    def files(self) -> WindowFiles:
        """Return the raw files without connecting to their store. Raise as `address` does."""
        from onceover.raw.window_files import WindowFiles  # 0.2 s that a command without files need not pay

        return WindowFiles(self.raw_address, self.layout)

    @cached_property
    def markers(self) -> MarkerFiles:
        """Return the raw root's markers without connecting to the store. Raise as `address` does."""
        from onceover.raw.marker import MarkerFiles  # as `files`

        return MarkerFiles(self.raw_address, self.layout)

    @property
    def root(self) -> Root:
        """Return the raw root beside the ledger; connects to the ledger."""
        return Root(self.ledger, self.name, self.files, self.markers, self.pipeline.storage.raw_store)

    def require_own_root(self, kafka_cluster: str | None = None) -> None:
        """Raise RootRefusedError unless the raw root is this ledger's, or unused; where a cluster is given, unless raw
        is that Kafka cluster's as well. Each process reads the marker once, for a cluster once more."""
        if kafka_cluster not in self._own_for:
            self.root.require_own(kafka_cluster)
            self._own_for |= {None, kafka_cluster}

    def require_known_format(self) -> None:
        """Raise OtherFormatError if raw is of a format that this version does not read: its lines would look damaged.
        Whose root it is does not matter."""
        self.markers.read_newest_readable()

    def open_topic(self, **limits: float) -> closing[Topic]:
        """Open the topic until the end of the block, in whichever Kafka cluster; `limits` are those of Topic."""
        contract, isolation = self.pipeline.contract, self.pipeline.ingest.isolation
        return closing(Topic(self.address("kafka"), contract.topic, isolation, self.pipeline.kafka, **limits))

    @contextmanager
    def open_own_topic(self, **limits: float) -> Iterator[Topic]:
        """Open the topic in the Kafka cluster that raw was read from, until the end of the block; `limits` are those of
        Topic. Raise RootRefusedError for another cluster: a mirror's log says nothing of the offsets in raw."""
        with self.open_topic(**limits) as topic:
            self.require_own_root(topic.read_cluster_id())
            yield topic

    def read_held(self, wanted: str) -> tuple[OffsetRange, ...] | None:
        """Return what Kafka's log holds now, nothing of a topic that does not exist. None if Kafka does not answer:
        what was `wanted` of it then waits, as the log says. Raise RootRefusedError as `open_own_topic`."""
        try:
            with self.open_own_topic() as topic:
                return read_held(topic)
        except RootRefusedError:
            raise
        except OnceoverError as error:
            log.error("Kafka does not say what it holds, so %s wait: %s", wanted, error)
            return None

    def build_source(self, facts: TopicFacts, *, stall_seconds: float = 30.0, has_ledger: bool = True) -> KafkaSource:
        """Return the topic's log, with these facts, as readers take it, which wait so long for a broker, and take care
        near the offsets of which the ledger knows that no reader gets them."""
        from onceover.kafka.reader import KafkaSource  # as `files`: Arrow

        known = list_known_unreadable(self.ledger, self.name, facts.generation) if has_ledger else ()
        return KafkaSource(
            self.address("kafka"), facts.topic, facts.topic_id, self.pipeline.ingest.isolation, self.pipeline.kafka,
            stall_seconds, unreadable=known,
        )  # fmt: skip

    @property
    def schemas(self) -> SchemaFiles:
        """Return the schemas that raw has, all that its lines need. Raise as `address` does."""
        from onceover.raw.schema_files import SchemaFiles  # as `files`

        return SchemaFiles(self.raw_address, self.layout.schema_folder, self.pipeline.contract.format)

    def require_schemas(self) -> None:
        """Raise TerminalError unless raw has each schema that ingest has met, as it was written."""
        for name in list_judged(self.ledger, self.name):
            self.schemas.read_by_text(name)

    def ask_registry(self, *, keep: bool) -> SchemaFiles:
        """Return the schemas that raw has or the registry, which raw is to `keep`. Raise as `locate_registry` where the
        contract needs one."""
        is_known = self.pipeline.contract.needs_registry or endpoints.find_address("registry")
        return self.schemas.ask(locate_registry() if is_known else "", keep=keep)

    @property
    def layout(self) -> Layout:
        return Layout(self.pipeline.storage.raw_root, self.name)

    @property
    def raw_address(self) -> str:
        """Return the address of the raw store that the TOML names, as `open_store` takes it. Raise as `address`."""
        store = self.pipeline.storage.raw_store
        return make_address(store, endpoints.locate_hdfs() if store == "hdfs" else self.address(store))

    def require_addresses(self, *parts: str) -> None:
        """Raise as `address` unless these parts, and all that the raw store needs, have addresses."""
        store = self.pipeline.storage.raw_store
        for part in (*parts, *(("webhdfs", "hdfs") if store == "hdfs" else (store,))):
            self.address(part)

    def address(self, part: str) -> str:
        """Return the part's address. Raise UnreachableError if neither the environment nor endpoints.json names one."""
        if part not in self._addresses:
            self._addresses[part] = endpoints.address(part)
        return self._addresses[part]

    def is_registered(self) -> bool:
        """Return whether the pipeline ever ran."""
        return catalog.is_registered(self.ledger, self.name)

    def read_registration(self) -> RegisteredPipeline:
        """Return the pipeline's current row in the ledger. Raise UsageError if the pipeline never ran."""
        return catalog.read_registered(self.ledger, self.name)

    def require_same_contract(self) -> RegisteredPipeline:
        """Read the registration. Raise ContractChangedError if the TOML's contract differs from the ledger's."""
        return catalog.require_same_contract(self.ledger, self.pipeline)


@contextmanager
def open_pipeline(pipeline: str | Pipeline, purpose: str) -> Iterator[PipelineContext]:
    """Open a pipeline, given by name or as a value, until the end of the block. PostgreSQL lists the connection as
    `onceover PURPOSE PIPELINE`. Raise UsageError for an unknown name, MistakesError for a wrong TOML."""
    with ExitStack() as held:
        yield PipelineContext(find(pipeline) if isinstance(pipeline, str) else pipeline, purpose, held)


@contextmanager
def open_ledger(purpose: str) -> Iterator[Connection]:
    """Connect to the ledger for work on no single pipeline. Raise as `PipelineContext.ledger` does."""
    with connect(endpoints.address("postgres"), f"onceover {purpose}") as connection:
        require_current(connection)
        yield connection
