"""The marker of a raw root: which ledger and which Kafka cluster a pipeline's raw belongs to, and where reading began.

A marker is one small JSON file. It outlives the ledger, so that an empty ledger, a restored one and a copy of one can
be distinguished from the ledger that wrote the raw.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from onceover.errors import TerminalError
from onceover.model.json_text import to_json
from onceover.model.offsets import KafkaPartition
from onceover.model.window import parse_moment

FORMAT: Final = 3
"""Of raw below the root, the lines and this marker together."""


class UnreadableMarkerError(TerminalError):
    """A file that is no marker; the message lacks its path, which its reader adds."""


class OtherFormatError(TerminalError):
    """The marker of a root in another raw format; the message lacks the file's path, which its reader adds."""


@dataclass(frozen=True, slots=True)
class LedgerIdentity:
    """One ledger in one database. `ledger_id` is the schema's own and moves with a backup or a copy; `database` is
    PostgreSQL's system identifier and the database's OID, which no copy by `pg_dump` or `CREATE DATABASE` shares."""

    ledger_id: UUID
    database: str


@dataclass(frozen=True, slots=True)
class DriverMark:
    """The last driver that a marker knows: a ledger restored from an older backup lacks its `holder`."""

    holder: UUID
    epoch: int


@dataclass(frozen=True, slots=True)
class RootMarker:
    """The owner of a raw root. `origins` are the offsets at which accounting begins, by generation and Kafka partition,
    each written before the ledger registers it."""

    ledger: LedgerIdentity
    kafka_cluster: str
    driver: DriverMark | None
    origins: Mapping[KafkaPartition, int]
    written_at: datetime
    who: str
    why: str

    def as_dict(self) -> dict[str, object]:
        """Return the marker's values for JSON."""
        driver = None if self.driver is None else {"holder": self.driver.holder, "epoch": self.driver.epoch}
        origins = [[at.generation, at.kafka_partition, origin] for at, origin in sorted(self.origins.items())]
        return {
            "format": FORMAT,
            "ledger_id": self.ledger.ledger_id,
            "database": self.ledger.database,
            "kafka_cluster": self.kafka_cluster,
            "driver": driver,
            "origins": origins,
            "written_at": self.written_at,
            "who": self.who,
            "why": self.why,
        }

    def to_bytes(self) -> bytes:
        """Return the marker's file."""
        return to_json(self, indent=1).encode() + b"\n"


def parse_marker(content: bytes) -> RootMarker:
    """Return the marker that `to_bytes` wrote. Raise OtherFormatError for one of another format, UnreadableMarkerError
    for any other content."""
    try:
        values: Mapping[str, Any] = json.loads(content)
        if values["format"] != FORMAT:
            raise OtherFormatError(
                f"says that raw is of format {repr(values['format'])[:40]}, and this version of Onceover reads and "
                f"writes format {FORMAT}: run the version that wrote it, or give the pipeline another raw_root, or "
                "another name, and read the topic again from there"
            )
        driver = values["driver"]
        return RootMarker(
            LedgerIdentity(UUID(values["ledger_id"]), str(values["database"])),
            str(values["kafka_cluster"]),
            None if driver is None else DriverMark(UUID(driver["holder"]), int(driver["epoch"])),
            {KafkaPartition(generation, number): int(origin) for generation, number, origin in values["origins"]},
            parse_moment(values["written_at"]),
            str(values["who"]),
            str(values["why"]),
        )
    except OtherFormatError:
        raise
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        TerminalError,
    ) as error:
        raise UnreadableMarkerError(
            f"is not a marker ({type(error).__name__}); put it back, or run "
            '`onceover ledger take-root PIPELINE --reason "..."`, which replaces it'
        ) from error


def join_origins(several: Iterable[Mapping[KafkaPartition, int]]) -> dict[KafkaPartition, int]:
    """Return the smallest origin of each Kafka partition."""
    joined: dict[KafkaPartition, int] = {}
    for origins in several:
        for source, origin in origins.items():
            joined[source] = min(origin, joined.get(source, origin))
    return joined
