"""Connections to Postgres, and the schema of a table, read from the catalogs.

A `Connection` waits for its server until `stop` is set:

    connection = Connection(dsn, stop)
    connection.rows("select 1")        # raises WaitingStopped once `stop` is set

The session is in autocommit mode; callers that need a transaction send BEGIN.
"""

from __future__ import annotations

import selectors
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from reactive.borders.sources.postgres.values import (
    BUILT_IN,
    SETTINGS,
    TEXT,
    Conversion,
    array_conversion,
)
from reactive.engine.runtime.needs import driver, driver_dsn
from reactive.engine.runtime.sql_names import quote_name
from reactive.errors import SourceError

# The catalog entries of a table: its columns, and its identity.

FULL, NOTHING = "f", "n"
TABLE = """
    select c.oid::int8, n.nspname, c.relname, c.relkind, c.relreplident
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass(%s)
"""
COLUMNS = """
    select attname, atttypid::int8, attnotnull, attgenerated <> '' from pg_attribute
    where attrelid = %s and attnum > 0 and not attisdropped order by attnum
"""
KEYS = """
    select i.indexrelid = any(array(
             select k.indexrelid from pg_index k where k.indrelid = i.indrelid and
             case %s when 'd' then k.indisprimary when 'i' then k.indisreplident else false end
             and k.indimmediate)),
           array(select a.attname::text from pg_attribute a
                 where a.attrelid = i.indrelid and a.attnum = any(i.indkey)), i.indisprimary
    from pg_index i where i.indrelid = %s and i.indisunique and i.indpred is null
    and i.indexprs is null and i.indisvalid
"""
LEAVES = """
    select relid::regclass::text, c.relreplident, exists(
        select 1 from pg_index where indrelid = relid and indisprimary and indimmediate)
    from pg_partition_tree(%s) t join pg_class c on c.oid = t.relid where isleaf
"""
TYPE = "select typtype, typbasetype::int8, typelem::int8, typcategory from pg_type where oid = %s"


NO_COLUMNS = frozenset[str]()


@dataclass(frozen=True, slots=True)
class PostgresColumn:
    """A column, and the conversion of its texts."""

    name: str
    type: int
    conversion: Conversion
    not_null: bool


@dataclass(frozen=True, slots=True)
class PostgresSchema:
    """A table of Postgres.

    name: the requested name.
    number: its number in the server, which no later table of the same name has.
    identity: the columns that a change sends of the old row; all columns if `is_full`.
    uniques: the columns of each unique index.
    primary: the columns of the primary key.
    generated: the columns that Postgres computes and does not replicate, not in `columns`.
    """

    name: str
    number: int
    schema: str
    table: str
    is_partitioned: bool
    columns: tuple[PostgresColumn, ...]
    identity: frozenset[str]
    is_full: bool
    uniques: tuple[frozenset[str], ...]
    primary: frozenset[str]
    generated: tuple[str, ...]

    @property
    def sql(self) -> str:
        """The qualified name of the table in SQL."""
        return f"{quote_name(self.schema)}.{quote_name(self.table)}"

    @property
    def rows_sql(self) -> str:
        """The table in SQL with rows of partitions, but not of inheriting tables.

        Changes of inheriting tables are published under their own names.
        """
        return self.sql if self.is_partitioned else f"ONLY {self.sql}"


def read_schema(
    connection: Connection, name: str, types: PostgresTypes, *, is_queried: bool = False
) -> PostgresSchema:
    """Read the columns and keys of a table from the catalogs.

    Parameters
    ----------
    is_queried: True if rows are read by queries only, which return generated columns too; the
        stream of changes does not.

    Raises
    ------
    SourceError: there is none of this name, or it is not a table.
    """
    errors = driver().errors
    try:
        found = connection.rows(TABLE, [name])
    except (errors.InvalidName, errors.SyntaxError, errors.FeatureNotSupported):
        found = []  # not a valid name of a table
    if not found:
        raise SourceError(
            f"there is no table {name!r} in the database\n"
            '  a name is as in SQL: "shop.orders" of another schema, quotes around capitals'
        )
    number, schema, table, kind, identity = found[0]
    if kind not in ("r", "p"):
        raise SourceError(
            f"{name!r} is no table of rows that are stored\n"
            "  changes of views and of foreign tables are not told; name the tables they read"
        )
    told = connection.rows(COLUMNS, [number])
    columns = tuple(
        PostgresColumn(column, kind, types.conversion(kind), not_null)
        for column, kind, not_null, is_generated in told
        if is_queried or not is_generated
    )
    found_keys = connection.rows(KEYS, [identity, number])
    keys = [(is_chosen, frozenset(names), first) for is_chosen, names, first in found_keys]
    chosen = {names for is_chosen, names, _ in keys if is_chosen}
    primary = {names for _, names, is_primary in keys if is_primary}
    is_full = identity == FULL
    if kind == "p":
        _check_leaves(connection, name, number, is_full=is_full)
    return PostgresSchema(
        name,
        number,
        schema,
        table,
        kind == "p",
        columns,
        frozenset(column.name for column in columns) if is_full else next(iter(chosen), NO_COLUMNS),
        is_full,
        tuple(names for _, names, _ in keys),
        next(iter(primary), NO_COLUMNS),
        () if is_queried else tuple(each[0] for each in told if each[3]),
    )


def check_identity(schema: PostgresSchema) -> None:
    """Raise `SourceError` if changes do not identify their row."""
    if not schema.identity:
        raise SourceError(
            f"changes of {schema.name!r} do not tell which row they are of: it has no primary key "
            "that is its replica identity, and Postgres would refuse updates of it\n"
            f"  ALTER TABLE {schema.sql} ADD PRIMARY KEY (...); "
            f"or ALTER TABLE {schema.sql} REPLICA IDENTITY FULL"
        )


def _check_leaves(connection: Connection, name: str, number: int, *, is_full: bool) -> None:
    """Raise `SourceError` if a partition's replica identity is missing, or not that of `name`.

    is_full: True if the identity of `name` is full.
    """
    for leaf, identity, has_key in connection.rows(LEAVES, [number]):
        if (
            (identity == FULL) != is_full
            or identity == NOTHING
            or (identity == "d" and not has_key)
        ):
            raise SourceError(
                f"partition {leaf} of {name!r} has another replica identity than {name!r}, or "
                f"none\n  ALTER TABLE {leaf} REPLICA IDENTITY {'FULL' if is_full else 'DEFAULT'}"
            )


class PostgresTypes:
    """The conversions of the types of a database."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[int, Conversion] = dict(BUILT_IN)

    def conversion(self, number: int) -> Conversion:
        """Return the conversion of a type: of a domain by its base, of an array by its items."""
        found = self._known.get(number)
        if found is None:
            found = self._known[number] = self._looked_up(number)
        return found

    def _looked_up(self, number: int) -> Conversion:
        """Return the conversion of a type in the catalog; as text if it is unknown."""
        rows: list[Any] = self._connection.rows(TYPE, [number])
        if not rows:
            return TEXT
        kind, base, item, category = rows[0]
        if kind == "d":
            return self.conversion(base)
        if category == "A" and item:
            return array_conversion(self.conversion(item))
        return TEXT


STEP = 0.1
"""The seconds between two checks whether to stop."""
KEEPALIVES = {
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "connect_timeout": "20",
}
"""The settings that reveal a silently lost peer within a minute."""


class WaitingStopped(Exception):
    """The source was stopped while it waited."""


class Connection:
    """A connection that waits for its server until `stop` is set."""

    def __init__(self, dsn: str, stop: threading.Event, *, replicates: bool = False) -> None:
        self._stop = stop
        module = driver()
        given = module.extensions.parse_dsn(driver_dsn(dsn))
        options = {
            **KEEPALIVES,
            "application_name": "reactive",
            **given,
            "client_encoding": "UTF8",
            "options": f"{given.get('options', '')} {SETTINGS}",
        }
        kind = {"connection_factory": module.extras.LogicalReplicationConnection}
        self.raw = module.connect(**options, **(kind if replicates else {}), async_=1)
        self._selector = selectors.DefaultSelector()
        try:
            self.wait()
            self._cursor = self.raw.cursor()
        except BaseException:
            self.close()
            raise

    def rows(
        self, statement: str, values: Sequence[Any] | None = None, *, cursor: Any = None
    ) -> list[tuple[Any, ...]]:
        """Run a statement, and return its rows."""
        cursor = cursor or self._cursor
        cursor.execute(statement, values)
        self.wait()
        return cursor.fetchall() if cursor.description else []

    def cursor(self, native: Collection[int]) -> Any:
        """Return a cursor of texts, except for types in `native`, which the driver converts."""
        extensions = driver().extensions
        numbers = tuple(number for number in extensions.string_types if number not in native)
        texts = extensions.new_type(numbers, "TEXTS", lambda value, cursor: value)
        cursor = self.raw.cursor()
        extensions.register_type(texts, cursor)
        return cursor

    def replicate(self, command: str) -> Any:
        """Start streaming. Return the cursor that reads messages."""
        cursor = self.raw.cursor()
        cursor.start_replication_expert(command, decode=False, status_interval=5)
        self.wait()
        return cursor

    def wait(self) -> None:
        """Wait until the current operation is finished. Raises `WaitingStopped` if told to stop."""
        while (state := self.raw.poll()) != 0:
            self._ready(selectors.EVENT_READ if state == 1 else selectors.EVENT_WRITE)

    def told(self) -> list[str]:
        """Return the payloads of new notifications, after waiting a moment if there are none.

        Raises
        ------
        WaitingStopped: the source must stop.
        """
        self.raw.poll()
        if not self.raw.notifies:
            self.wait_readable()
            self.raw.poll()
        found = [each.payload for each in self.raw.notifies]
        self.raw.notifies.clear()
        return found

    def wait_readable(self) -> None:
        """Wait until data arrives, or for a moment.

        Raises
        ------
        WaitingStopped: the source must stop.
        """
        self._ready(selectors.EVENT_READ)

    def close(self) -> None:
        """Close the connection and abort its current operation."""
        self._selector.close()
        self.raw.close()

    def _ready(self, events: int) -> None:
        """Wait a moment for the connection to be ready.

        Raises `WaitingStopped` if the source must stop.
        """
        if self._stop.is_set():
            raise WaitingStopped
        key = self._selector.register(self.raw.fileno(), events)
        try:
            self._selector.select(STEP)
        finally:
            self._selector.unregister(key.fd)


def is_transient(error: Exception) -> bool:
    """Return True if the connection is lost, or the server is full or shutting down.

    False if the server refused the request itself.
    """
    code = getattr(error, "pgcode", None)
    return code is None or code[:2] in ("08", "53", "57") or code == "55006"


REFUSALS = (
    "authentication failed",
    "does not exist",
    "does not support",
    "invalid ",
    "must be ",
    "no password supplied",
    "not permitted to log in",
    "permission denied",
    "pg_hba.conf",
)
"""The words in errors of servers, and of the driver, that no waiting will change."""


def refuses_us(error: Exception) -> bool:
    """Return True if an error of connecting is permanent.

    For example a wrong password, a missing database, or an unknown option. The driver gives no code
    for these. An error in another language counts as temporary.
    """
    text = str(error)
    return any(words in text for words in REFUSALS)


def lsn(text: str) -> int:
    """Return a position in the log as a number.

    >>> lsn("16/B374D848") == 0x16B374D848
    True
    """
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def lsn_text(position: int) -> str:
    """Return a position in the log in the notation of Postgres.

    >>> lsn_text(0x16B374D848)
    '16/B374D848'
    """
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


@contextmanager
def asking(dsn: str) -> Iterator[Connection]:
    """Open a connection for questions outside the session of a source.

    Raises
    ------
    SourceError: the server cannot be reached.
    """
    try:
        connection = Connection(dsn, threading.Event())
    except driver().OperationalError as error:
        raise SourceError(
            f"Postgres cannot be asked: {' '.join(str(error).split())}\n"
            "  see that the server can be reached, and that the user may do this"
        ) from error
    with closing(connection):
        yield connection
