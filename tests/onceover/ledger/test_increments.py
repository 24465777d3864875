"""Step 4 of a batch on a real ledger: staged rows are added whole or not at all, under their window's revision."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.onceover.ledger.driven_pipeline import NOON, drive, of, register

from onceover.errors import TransientError
from onceover.ledger import batches
from onceover.ledger.database import Connection
from onceover.ledger.increments import increment, stage_name
from onceover.model.batch import Increment
from onceover.model.digest import Digest

pytestmark = pytest.mark.stack


class Driver:
    """A pipeline's driver, and its batches of one window."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.known = register(connection)
        self.epoch = drive(connection, self.known.name)

    def stage(self, kinds: str) -> tuple[int, int]:
        """Begin a batch and stage one record a kind; return the batch and the number of rows."""
        batch_id = batches.begin(self.connection, self.epoch, 1, [of(0, len(kinds))])
        rows = [f"{NOON.isoformat()}\t{kind}\t1" for kind in kinds]
        return batch_id, self.known.table.stage(self.connection, stage_name(batch_id), rows)

    def increment(self, batch_id: int, staged: int) -> None:
        added = Increment(NOON, NOON + timedelta(hours=1), Digest(staged, 1, 2, 3, 4))
        increment(self.connection, self.epoch, self.known.table, batch_id, [added], staged)

    def read_rows(self) -> list[tuple[str, int, int]]:
        rows = self.connection.execute(f"SELECT kind, events, revision FROM aggregates.{self.known.name} ORDER BY kind")
        return [(row["kind"], row["events"], row["revision"]) for row in rows]

    def set_revision(self, revision: int) -> None:
        """Give the window and its rows that revision, as a repair does."""
        self.connection.execute(
            'UPDATE onceover."window" SET revision = %s WHERE pipeline = %s', [revision, self.known.name]
        )
        self.connection.execute(f"UPDATE aggregates.{self.known.name} SET revision = %s", [revision])


@pytest.fixture
def driver(connection: Connection) -> Driver:
    return Driver(connection)


def test_increment_refuses_rows_lost_from_the_stage(driver: Driver) -> None:
    batch_id, staged = driver.stage("ab")
    driver.connection.execute(f"DELETE FROM staging.{driver.known.name} WHERE kind = 'b'")
    with pytest.raises(TransientError, match=r"1 of the 2 rows that were staged .* are left"):
        driver.increment(batch_id, staged)
    assert driver.read_rows() == []
    windows = driver.connection.execute(
        'SELECT count(*) AS n FROM onceover."window" WHERE pipeline = %s', [driver.known.name]
    )
    assert windows.fetchall() == [{"n": 0}], "the control row counts nothing either"


def test_new_key_takes_the_revision_of_its_window(driver: Driver) -> None:
    driver.increment(*driver.stage("ab"))
    assert driver.read_rows() == [("a", 1, 0), ("b", 1, 0)]
    driver.set_revision(3)
    driver.increment(*driver.stage("bc"))
    assert driver.read_rows() == [("a", 1, 3), ("b", 2, 3), ("c", 1, 3)]
