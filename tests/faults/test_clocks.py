"""Clocks that jump: PostgreSQL's, which decides about leases, and a driver's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo

import pytest
from tests.faults.ends import assert_counts_once
from tests.integration.extras import produce
from tests.integration.lane import Lanes
from tests.integration.program import as_json

from onceover.config.endpoints import address
from onceover.errors import BusyError, FencedError
from onceover.ingest import batch_query
from onceover.ledger import database
from onceover.ledger.database import connect, read_clock

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]
DAY = 86_400


@contextmanager
def server_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Yield a function that sets the clock of the ledger's database so many seconds ahead, for connections that this
    process opens within the block: a role's own search path has no effect on them."""
    monkeypatch.setitem(database._SESSION, "search_path", "clock,pg_catalog")
    superuser = address("postgres").replace("//onceover@", "//postgres@")

    with connect(superuser, "test") as server:

        def set_ahead(seconds: int) -> None:
            server.execute(
                "CREATE OR REPLACE FUNCTION clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS "
                f"'SELECT pg_catalog.clock_timestamp() + interval ''{seconds} seconds'''".encode()
            )

        server.execute("CREATE SCHEMA clock")
        server.execute("GRANT USAGE ON SCHEMA clock TO onceover")
        try:
            set_ahead(0)
            yield set_ahead
        finally:
            server.execute("DROP SCHEMA clock CASCADE")


def test_server_clock_that_jumps_lets_the_next_driver_in(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = lanes()
    produce(lane, range(10))
    with server_clock(monkeypatch) as set_ahead, lane.ledger() as ledger:
        began = read_clock(ledger)
        with lane.driver() as first:
            first.turn()
            with pytest.raises(BusyError, match="has a driver already"), lane.driver():
                pass
            set_ahead(DAY)
            produce(lane, range(10, 20))
            with lane.driver() as second:
                second.turn()
                assert read_clock(ledger) - began > timedelta(seconds=DAY)
                with pytest.raises(FencedError):
                    first.turn()
                set_ahead(-DAY)
                assert read_clock(ledger) < began
                produce(lane, range(20, 30))
                with lane.driver() as third:  # not a day later, when the second one's lease would end
                    third.turn()
                    with pytest.raises(FencedError):
                        second.turn()
    assert_counts_once(lane, range(30))


def test_driver_clock_that_jumps_costs_no_quarantined_record(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = lanes()
    seen = []
    for days in (0, 3, -3):

        class Shifted(datetime):
            ahead = timedelta(days=days)

            @classmethod
            def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
                seen.append(cls.ahead)
                return datetime.now(tz) + cls.ahead

        monkeypatch.setattr(batch_query, "datetime", Shifted)
        produce(lane, range(10))
        lane.produce([b"rubbish"])
        lane.turn()
    assert set(seen) == {timedelta(days=days) for days in (0, 3, -3)}
    listed = as_json("quarantine", lane.name, "list")
    assert (listed["records"], len(listed["days"])) == (3, 3)
    assert_counts_once(lane, [*range(10)] * 3)
