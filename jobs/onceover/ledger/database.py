"""Connections to the ledger's database, its schema's version, and the making of its tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import set_json_dumps

from onceover.config.endpoints import start_or_set
from onceover.errors import (
    BusyError,
    ConfigurationError,
    OnceoverError,
    TerminalError,
    TransientError,
    UnreachableError,
)
from onceover.ledger.schema import batches, missing_records, pipelines, sketches, windows
from onceover.model.json_text import to_json
from onceover.model.root_marker import LedgerIdentity

Connection = psycopg.Connection[DictRow]
DatabaseError = psycopg.Error  # for rooms that may not import the driver
SCHEMA_VERSION = "9"
"""Of the tables in `schema`; a change of them takes a new one."""
_LOCK = 0x6F6E6365  # any constant: an advisory lock's name, so that two first starts do not race
_SESSION = {
    "onceover.session": "pinned",  # a pooler that drops these settings drops this one too
    "timezone": "UTC",
    "lock_timeout": "60s",
    "jit": "off",
    # Whatever the role and the database have. First what the text of a row depends on, and with it a fingerprint.
    "datestyle": "ISO,MDY",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "standard_conforming_strings": "on",
    "search_path": "pg_catalog",
    "default_transaction_isolation": "read\\ committed",
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
}
_PIN_REST = """
SELECT current_setting('onceover.session', true) AS session, (
  SELECT count(set_config(name, CASE name WHEN 'synchronous_commit' THEN 'on' ELSE '0' END, false)) FROM pg_settings
  WHERE name = 'transaction_timeout' OR (name = 'synchronous_commit' AND setting = 'off'))
"""  # not every version has transaction_timeout, and only `off` acknowledges what may be lost


@contextmanager
def connect(address: str, application: str = "onceover") -> Iterator[Connection]:
    """Open an autocommit connection in UTC; transactions are opened by name with `connection.transaction()`.

    Raises UnreachableError if the server does not answer within 5 seconds or refuses.
    """
    try:
        connection = open_session(address, application)
    except psycopg.Error as error:
        raise explain_failure(address, error) from error
    set_json_dumps(to_json, connection)
    with connection:
        try:
            yield connection
        except psycopg.errors.DeadlockDetected as error:
            raise BusyError(
                "this process and another waited for each other's rows of the ledger, and PostgreSQL ended this one's "
                "transaction; nothing of it was changed, try again"
            ) from error
        except psycopg.errors.LockNotAvailable as error:
            raise BusyError(
                "another process has held rows of the ledger for more than a minute; try again, or look for it with "
                "SELECT * FROM pg_stat_activity"
            ) from error
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
            if not connection.closed and read_version(connection) is None:
                raise TerminalError(_describe_missing(connection)) from error
            raise
        except psycopg.errors.QueryCanceled as error:
            raise TransientError(
                "PostgreSQL ended a statement that took longer than it may; try again, or look for what slows it with "
                "SELECT * FROM pg_stat_activity"
            ) from error
        except psycopg.OperationalError as error:
            if connection.broken or connection.closed:
                raise explain_failure(address, error) from error
            raise TransientError(_describe_refusal(address, error)) from error
        except psycopg.InternalError as error:
            is_damage = isinstance(error, psycopg.errors.DataCorrupted | psycopg.errors.IndexCorrupted)
            raise (TerminalError if is_damage else TransientError)(_describe_refusal(address, error)) from error


def open_session(address: str, application: str) -> Connection:
    """Open an autocommit connection whose settings are the same whatever its role, its database and its server have.
    Raises ConfigurationError if a pooler drops them, and psycopg's errors."""
    connection: Connection = psycopg.connect(
        address,
        autocommit=True,
        row_factory=dict_row,
        connect_timeout=5,
        application_name=application,
        options=" ".join(f"-c {name}={value}" for name, value in _SESSION.items()),
    )
    row = connection.execute(_PIN_REST).fetchone()
    if row is None or row["session"] != _SESSION["onceover.session"]:
        connection.close()
        raise ConfigurationError(_describe_pooler(address))
    return connection


@contextmanager
def by_index(connection: Connection) -> Iterator[None]:
    """Have the block's queries read large tables by an index: of offset ranges the planner cannot know how few overlap,
    and would read all, once for each given range."""
    with connection.transaction():
        connection.execute("SET LOCAL enable_seqscan = off")
        yield
        connection.execute("SET LOCAL enable_seqscan TO DEFAULT")


@contextmanager
def in_snapshot(connection: Connection) -> Iterator[None]:
    """Have the block's queries read one snapshot of the database; it cannot write."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def hold_lock(connection: Connection, name: str, what: str, patience_ms: int = 10_000) -> None:
    """Hold the lock of that name until the connection ends. Raises BusyError, which says that another process does
    `what`, if one holds it beyond `patience_ms`; a killed process frees it within moments."""
    try:
        with connection.transaction():
            connection.execute("SELECT set_config('lock_timeout', %s, true)", [f"{patience_ms}ms"])
            connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [name])
    except psycopg.errors.LockNotAvailable as error:
        raise BusyError(f"another process {what}; try again when it has ended") from error


def _describe_pooler(address: str) -> str:
    return (
        f"{redact_address(address)} is a connection pooler, which drops the settings of a session: locks that Onceover "
        "holds for a session would be another's, and times would be read in another zone. Name PostgreSQL's own port "
        "in ONCEOVER_POSTGRES, not PgBouncer's; a process opens a few connections only"
    )


def _describe_refusal(address: str, error: psycopg.Error) -> str:
    return (
        f"PostgreSQL at {redact_address(address)} could not carry out a statement ({str(error).splitlines()[0]}), and "
        "changed nothing by its transaction; see its log, and whether its disk has room and is whole"
    )


def explain_failure(address: str, error: Exception) -> OnceoverError:
    """Return the error for a database that does not answer or refuses the login, without the address's password."""
    shown = redact_address(address)
    if isinstance(error, psycopg.ProgrammingError):
        return ConfigurationError(
            "ONCEOVER_POSTGRES is not a PostgreSQL URI; write it like postgresql://USER@HOST:5432/DATABASE"
        )
    if "startup parameter" in str(error) or "command-line options" in str(error):  # PgBouncer; RDS Proxy
        return ConfigurationError(_describe_pooler(address))
    if "authentication failed" in str(error) or "no password supplied" in str(error):
        return ConfigurationError(
            f"PostgreSQL at {shown} does not accept this user and password; name the user in ONCEOVER_POSTGRES and the "
            "password in PGPASSWORD or a PGPASSFILE"
        )
    if "does not exist" in str(error):
        return ConfigurationError(
            f"PostgreSQL at {shown} answers, but {str(error).strip().splitlines()[0].rpartition('FATAL:')[2].strip()}; "
            "correct ONCEOVER_POSTGRES, or create it first"
        )
    why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return UnreachableError(f"PostgreSQL at {shown} does not answer ({why}); {start_or_set('postgres')}")


def redact_address(address: str) -> str:
    """Return host, port and database of a URI or of a keyword string; never a user, a password or an option."""
    try:
        parts = conninfo_to_dict(address)
    except psycopg.ProgrammingError:
        return "an address that is not a PostgreSQL URI"
    return f"{parts.get('host', 'local socket')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"


def locate_server(connection: Connection) -> tuple[str, int, str]:
    """Return host (`localhost` for a local socket), port and database of the server that answered, libpq's defaults
    included."""
    info = connection.info
    return "localhost" if info.host.startswith(("/", "@")) else info.host, info.port, info.dbname


def read_identity(connection: Connection) -> LedgerIdentity:
    """Return the identity of the ledger and of the database that holds it."""
    (row,) = connection.execute(
        """
        SELECT ledger_id, (SELECT system_identifier FROM pg_control_system()) AS cluster,
          (SELECT oid FROM pg_database WHERE datname = current_database()) AS database
        FROM onceover.ledger
        """
    ).fetchall()
    return LedgerIdentity(row["ledger_id"], f"{row['cluster']}/{row['database']}")


def carries_password(address: str) -> bool:
    """Return whether the address contains a password; True for one that cannot be parsed."""
    try:
        return "password" in conninfo_to_dict(address)
    except psycopg.ProgrammingError:
        return True


def read_clock(connection: Connection) -> datetime:
    """Return the server's time."""
    (row,) = connection.execute("SELECT clock_timestamp() AS now").fetchall()
    now: datetime = row["now"]
    return now


def require_current(connection: Connection) -> None:
    """Raise TerminalError unless the ledger is at this code's version: no other one can be migrated."""
    version = read_version(connection)
    if version is None:
        raise TerminalError(_describe_missing(connection))
    if version != SCHEMA_VERSION:
        host, port, database = locate_server(connection)
        raise TerminalError(
            f"the ledger at {host}:{port}/{database} is at version {version}, and no migration leads from there to "
            f"{SCHEMA_VERSION}; keep that database, set ONCEOVER_POSTGRES to an empty one, run `onceover ledger "
            "migrate`, and then `onceover ledger rebuild PIPELINE` for each pipeline"
        )


def _describe_missing(connection: Connection) -> str:
    host, port, database = locate_server(connection)
    return (
        f"{host}:{port}/{database} has no ledger: the database is new, or another one than ingest writes to, or its "
        "ledger was lost. Correct ONCEOVER_POSTGRES, or run `onceover ledger migrate`, which makes an empty ledger; "
        "after a loss restore a backup instead, or then run `onceover ledger rebuild PIPELINE`"
    )


def read_version(connection: Connection) -> str | None:
    """Return the version of the ledger's schema, None if there is no ledger; `unknown` of one that does not say."""
    table = connection.execute("SELECT to_regclass('onceover.ledger') IS NOT NULL AS present").fetchone()
    if not table or not table["present"]:
        return None
    row = connection.execute("SELECT to_jsonb(l) ->> 'schema_version' AS version FROM onceover.ledger l").fetchone()
    return str((row and row["version"]) or "unknown")


def upgrade_schema(address: str) -> None:
    """Bring a database to this code's schema, in one transaction, once even if two processes start together.

    Raises TerminalError, and writes nothing, if it has a ledger of another version.
    """
    with connect(address, "onceover migrate") as connection, connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        if read_version(connection) is not None:
            require_current(connection)
            return
        connection.execute("CREATE SCHEMA IF NOT EXISTS onceover")
        for part in (pipelines, batches, windows, missing_records, sketches):
            connection.execute(part.TABLES.encode())
        connection.execute("INSERT INTO onceover.ledger (schema_version) VALUES (%s)", [SCHEMA_VERSION])
