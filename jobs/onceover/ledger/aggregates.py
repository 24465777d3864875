"""Aggregate tables, which readers query: one a pipeline in schema `aggregates`, with its staging table.

Increments add to a table, a repair replaces whole windows of it. The caller opens one transaction for both the
aggregates and the ledger's rows, so that no reader sees half a change.

Names of our own begin with an underscore, which no contract's can; those that readers see are reserved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg import sql

from onceover.errors import TerminalError
from onceover.ledger.aggregate_columns import define, define_staged, merge, show
from onceover.ledger.database import Connection
from onceover.model.contract import Column, Columns, DerivedColumn
from onceover.model.windowing import Windowing


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The identity of a window's rows, to detect a change: their number, and a hash of their text."""

    rows: int
    hash: str


NOTHING = Fingerprint(0, "0:0")
WITHOUT_RAW = -1
"""The revision of rows that were there without raw when a lost ledger was rebuilt: a later loss does not forget it."""


@dataclass(frozen=True, slots=True)
class AggregateTable:
    """A pipeline's aggregate table. `name` is a checked pipeline name and is still quoted as an identifier."""

    name: str
    windowing: Windowing
    columns: Columns

    @property
    def table(self) -> sql.Identifier:
        return sql.Identifier("aggregates", self.name)

    @property
    def staging(self) -> sql.Identifier:
        return sql.Identifier("staging", self.name)

    def create(self, connection: Connection) -> None:
        """Create both tables if missing. Raises TerminalError if a table of that name has other columns."""
        body = sql.SQL(", ").join(map(define, (*self.columns.keys, *self.columns.values)))
        connection.execute(
            sql.SQL(
                "CREATE TABLE IF NOT EXISTS {} (window_start timestamptz NOT NULL, window_end timestamptz NOT NULL, "
                "{}, revision integer NOT NULL DEFAULT 0, CONSTRAINT {} UNIQUE NULLS NOT DISTINCT ({}))"
            ).format(self.table, body, sql.Identifier(f"_{self.name}_key"), self._key_list())
        )
        self._identify_rows(connection)
        row = connection.execute(
            "SELECT to_regclass(quote_ident('staging') || '.' || quote_ident(%s)) IS NOT NULL AS present", [self.name]
        ).fetchone()
        if not row or not row["present"]:
            self._create_staging(connection)
        self._require_own_columns(connection)

    def add(self, connection: Connection, measures: Sequence[Column], derived: Sequence[DerivedColumn]) -> None:
        """Add these measures to both tables, NULL in existing rows, and the columns that are computed of them."""
        columns = [define(each) for each in measures]
        staged = [*columns, *map(define_staged, derived)]
        for table, added in ((self.staging, staged), (self.table, [*columns, *map(define, derived)])):
            body = sql.SQL(", ").join(sql.SQL("ADD COLUMN ") + each for each in added)
            connection.execute(sql.SQL("ALTER TABLE {} {}").format(table, body))

    def _identify_rows(self, connection: Connection) -> None:
        """Let a publication FOR ALL TABLES have the table, as tools for change data capture make one: PostgreSQL then
        takes no UPDATE or DELETE of a table without an identity, and keys may be null."""
        full = "SELECT relreplident = 'f' AS it FROM pg_class WHERE oid = ('aggregates.' || quote_ident(%s))::regclass"
        row = connection.execute(full, [self.name]).fetchone()
        if not row or not row["it"]:
            connection.execute(sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(self.table))

    def _create_staging(self, connection: Connection) -> None:
        """Create a missing staging table. On an existing one, even `IF NOT EXISTS` waits for open stagings."""
        given = map(define, (*self.columns.keys, *self.columns.measures))
        body = sql.SQL(", ").join([*given, *map(define_staged, self.columns.derived)])
        connection.execute(
            sql.SQL(
                "CREATE UNLOGGED TABLE IF NOT EXISTS {} (_stage text NOT NULL, window_start timestamptz NOT NULL, {})"
            ).format(self.staging, body)
        )
        connection.execute(
            sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {} (_stage, window_start)").format(
                sql.Identifier(f"_{self.name}_stage"), self.staging
            )
        )

    def _require_own_columns(self, connection: Connection) -> None:
        actual = [
            row["column_name"]
            for row in connection.execute(
                "SELECT column_name FROM information_schema.columns "
                "WHERE table_schema = 'aggregates' AND table_name = %s ORDER BY ordinal_position",
                [self.name],
            )
        ]
        expected = ["window_start", "window_end", *self.columns.names, "revision"]
        if sorted(actual) != sorted(expected):  # a measure that a cutover added comes last
            raise TerminalError(
                f"table aggregates.{self.name} has the columns {', '.join(actual)}, not {', '.join(expected)}; it was "
                "not made by this pipeline: rename the pipeline, or move that table away"
            )

    def stage(self, connection: Connection, stage: str, lines: Iterable[str]) -> int:
        """COPY rows (window_start, keys, measures; PostgreSQL's text format, one a line) into staging under that name,
        in place of the rows of an earlier try. Returns their number."""
        count = 0
        with connection.transaction(), connection.cursor() as cursor:
            cursor.execute(sql.SQL("DELETE FROM {} WHERE _stage = %s").format(self.staging), [stage])
            columns = sql.SQL(", ").join(map(sql.Identifier, ("_stage", "window_start", *self.columns.staged)))
            with cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(self.staging, columns)) as copy:
                for line in lines:
                    copy.write(f"{stage}\t{line}\n")
                    count += 1
        return count

    def unstage(self, connection: Connection, stage: str) -> None:
        connection.execute(sql.SQL("DELETE FROM {} WHERE _stage = %s").format(self.staging), [stage])

    def sweep(self, connection: Connection, prefix: str) -> None:
        """Delete the rows of all stages with that prefix; only the owner of those stages may call this."""
        connection.execute(sql.SQL("DELETE FROM {} WHERE starts_with(_stage, %s)").format(self.staging), [prefix])

    def increment(self, connection: Connection, stage: str) -> int:
        """Add the staged rows to the table; return their number. A second run adds the rows again, which a repair
        corrects. Rows of new keys get the revision of their window."""
        names = sql.SQL(", ").join(map(sql.Identifier, self.columns.names))
        staged = sql.SQL(", ").join(sql.Identifier("s", name) for name in self.columns.names)
        return connection.execute(
            sql.SQL(
                "INSERT INTO {table} AS t (window_start, window_end, {names}, revision) "
                "SELECT s.window_start, w.window_end, {staged}, w.revision "  # both needed: no row of no window
                'FROM {staging} s LEFT JOIN onceover."window" w ON w.pipeline = %s AND w.window_start = s.window_start '
                "WHERE s._stage = %s ORDER BY s.window_start ON CONFLICT ({keys}) DO UPDATE SET {updates}"
            ).format(
                table=self.table,
                staging=self.staging,
                names=names,
                staged=staged,
                keys=self._key_list(),
                updates=merge(self.columns),
            ),
            [self.name, stage],
        ).rowcount

    def replace(self, connection: Connection, stage: str, window_start: datetime, revision: int) -> int:
        """Replace one window's rows by the staged ones; return their number."""
        names = sql.SQL(", ").join(map(sql.Identifier, self.columns.names))
        connection.execute(sql.SQL("DELETE FROM {} WHERE window_start = %s").format(self.table), [window_start])
        return connection.execute(
            sql.SQL(
                "INSERT INTO {table} (window_start, window_end, {names}, revision) "
                'SELECT window_start, (SELECT w.window_end FROM onceover."window" w WHERE w.pipeline = %s AND '
                "w.window_start = s.window_start), {names}, %s FROM {staging} s WHERE _stage = %s AND window_start = %s"
            ).format(table=self.table, staging=self.staging, names=names),
            [self.name, revision, stage, window_start],
        ).rowcount

    def keep(self, connection: Connection, window_start: datetime, revision: int) -> None:
        """Copy one window's current rows to the ledger as that revision."""
        connection.execute(
            sql.SQL(
                "INSERT INTO onceover.revision_row (pipeline, window_start, revision, aggregates) "
                "SELECT %s, window_start, %s, to_json(_row) FROM {} AS _row WHERE window_start = %s"
            ).format(self.table),
            [self.name, revision, window_start],
        )

    def restore(self, connection: Connection, window_start: datetime, source: int, revision: int) -> int:
        """Replace one window's rows by those kept of revision `source`, as `revision`. Returns their number."""
        connection.execute(sql.SQL("DELETE FROM {} WHERE window_start = %s").format(self.table), [window_start])
        restored = connection.execute(
            sql.SQL(
                "INSERT INTO {table} SELECT (json_populate_record(NULL::{table}, aggregates)).* "
                "FROM onceover.revision_row WHERE pipeline = %s AND window_start = %s AND revision = %s"
            ).format(table=self.table),
            [self.name, window_start, source],
        )
        self.set_revision(connection, [window_start], revision)
        return restored.rowcount

    def find_filled(self, connection: Connection, starts: Sequence[datetime]) -> list[datetime]:
        """Return those of these windows that have rows."""
        if not starts:
            return []
        query = sql.SQL("SELECT DISTINCT window_start FROM {} WHERE window_start = ANY(%s)").format(self.table)
        return [row["window_start"] for row in connection.execute(query, [list(starts)])]

    def list_filled(
        self, connection: Connection, start: datetime | None = None, end: datetime | None = None
    ) -> list[datetime]:
        """Return the windows from `start` to before `end` (None: unbounded) that have rows, in order."""
        rows = connection.execute(
            sql.SQL(
                "SELECT DISTINCT window_start FROM {} WHERE (%(start)s::timestamptz IS NULL OR "
                "window_start >= %(start)s) AND (%(end)s::timestamptz IS NULL OR window_start < %(end)s) ORDER BY 1"
            ).format(self.table),
            {"start": start, "end": end},
        )
        return [row["window_start"] for row in rows]

    def list_without_raw(self, connection: Connection) -> list[datetime]:
        """Return the windows with rows that an earlier rebuild of the ledger found without raw."""
        query = sql.SQL("SELECT DISTINCT window_start FROM {} WHERE revision = %s").format(self.table)
        return [row["window_start"] for row in connection.execute(query, [WITHOUT_RAW])]

    def set_revision(self, connection: Connection, starts: Sequence[datetime], revision: int) -> None:
        """Give the rows of these windows that revision."""
        query = sql.SQL("UPDATE {} SET revision = %s WHERE window_start = ANY(%s)").format(self.table)
        connection.execute(query, [revision, list(starts)])

    def fingerprint(self, connection: Connection, window_start: datetime, stage: str | None = None) -> Fingerprint:
        """Return the fingerprint of one window's rows in the table, or in that stage."""
        return self.fingerprints(connection, [window_start], stage)[window_start]

    def fingerprints(
        self, connection: Connection, starts: Sequence[datetime], stage: str | None = None
    ) -> dict[datetime, Fingerprint]:
        """Return the fingerprints of windows: sums of MD5 halves, whatever the order of rows, in constant memory."""
        source = self.table if stage is None else self.staging
        filter_ = sql.SQL("") if stage is None else sql.SQL(" AND _stage = {}").format(sql.Literal(stage))
        names = sql.SQL(", ").join(map(sql.Identifier, self.columns.names))
        rows = connection.execute(
            sql.SQL(
                "SELECT window_start, count(*) AS rows, sum(('x' || left(h, 16))::bit(64)::bigint) || ':' || "
                "sum(('x' || right(h, 16))::bit(64)::bigint) AS hash "
                "FROM (SELECT window_start, md5(ROW({names})::text) AS h FROM {source} "
                "WHERE window_start = ANY(%s){filter}) r GROUP BY window_start"
            ).format(names=names, source=source, filter=filter_),
            [list(starts)],
        )
        fingerprints = {row["window_start"]: Fingerprint(int(row["rows"]), str(row["hash"])) for row in rows}
        return {start: fingerprints.get(start, NOTHING) for start in starts}

    def compare(
        self, connection: Connection, stage: str, starts: Sequence[datetime], most: int
    ) -> dict[datetime, tuple[int, list[str]]]:
        """Return by window how many rows are only in the table (`-`) or only in the stage (`+`), and the first `most`
        as text, as `show` has it. Rows are compared as a multiset without `revision`, NULL keys as equal."""
        names = sql.SQL(", ").join(map(sql.Identifier, ("window_start", *self.columns.names)))
        rows = connection.execute(
            sql.SQL(
                """
                WITH published AS (SELECT {names} FROM {table} WHERE window_start = ANY(%(starts)s)),
                  staged AS (SELECT {names} FROM {staging} WHERE _stage = %(stage)s AND window_start = ANY(%(starts)s)),
                  apart AS (
                    SELECT '-' AS _side, * FROM (SELECT * FROM published EXCEPT ALL SELECT * FROM staged) a
                    UNION ALL SELECT '+', * FROM (SELECT * FROM staged EXCEPT ALL SELECT * FROM published) b),
                  numbered AS (
                    SELECT window_start, _side || ' ' || ROW({own})::text AS shown,
                      count(*) OVER (PARTITION BY window_start) AS n,
                      row_number() OVER (PARTITION BY window_start ORDER BY ROW({own})::text, _side DESC) AS place
                    FROM apart)
                SELECT window_start, max(n) AS n, array_agg(shown ORDER BY place) AS shown FROM numbered
                WHERE place <= %(most)s GROUP BY window_start
                """
            ).format(
                names=names,
                own=sql.SQL(", ").join(map(show, (*self.columns.keys, *self.columns.values))),
                table=self.table,
                staging=self.staging,
            ),
            {"starts": list(starts), "stage": stage, "most": most},
        )
        return {row["window_start"]: (int(row["n"]), list(row["shown"])) for row in rows}

    def _key_list(self) -> sql.Composed:
        return sql.SQL(", ").join(map(sql.Identifier, ("window_start", *(c.name for c in self.columns.keys))))
