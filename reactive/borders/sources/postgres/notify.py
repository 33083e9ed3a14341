"""A Postgres table followed by NOTIFY: a trigger sends keys, and their rows are read again.

    trigger --NOTIFY orders_changed, '["7"]'--> keys 7, 9 --SELECT--> upserts, deletes
    connection lost                         --> all rows  --> differences

For servers and users without replication. Notifications without a listener are lost, so all rows
are read when a connection begins. One commit contains the notified keys since the last one, with
their rows as of now: transactions in quick succession become one commit, and of a transaction that
commits while two tables are read, one part may appear before the other.

`Reconnecting` retries lost connections with growing pauses:

    connected --lost--> pause --> try --> connected
                          ^        |
                          +--------+  twice as long, up to a limit

It also waits for a server that does not answer at the start: a service may start before its server.
A server that answers with a refusal is not retried: its error explains the refusal.

`snapshot_batches` yields the differences between a snapshot of the tables and the held rows:

    rows held   1 2 3      if none are held, all rows are inserted in batches without comparison
    snapshot    2 3 4      2 and 3 are skipped, 4 is inserted; at the end 1 is deleted

So an interrupted snapshot is simply repeated, and a repeated one, after the loss of the slot,
changes only rows that differ.

State:  the held keys or rows that are not seen yet; with `whole`, the differences.
Cost:   O(notified keys); O(rows) for a new connection or a snapshot, each row read once.
Source: PostgreSQL, "NOTIFY": messages come after the commit, in its order, each once per
        transaction.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from optimizer.errors import PlanError
from reactive.api.table import Table
from reactive.borders.sources.batch import Batch, Refused, Token, refuse_streams
from reactive.borders.sources.postgres.feed import TableFeed, split_refused
from reactive.borders.sources.postgres.rows import native_types, nullable
from reactive.borders.sources.postgres.schema import (
    Connection,
    PostgresSchema,
    PostgresTypes,
    WaitingStopped,
    asking,
    is_transient,
    read_schema,
    refuses_us,
)
from reactive.engine.runtime.needs import driver, sql_literal
from reactive.engine.runtime.sql_names import quote_name
from reactive.errors import SourceError

log = logging.getLogger("reactive")
BACKOFF = (0.1, 30.0)
"""The seconds before the first reconnection, and the longest pause."""
IN_USE = 120.0
"""The seconds after which a slot in use belongs to another process.

A server ends a silent connection after 60 seconds.
"""


class SlotInUse(SourceError):
    """The slot is in use, perhaps by a lost connection that the server has not noticed."""


class Reconnecting:
    """The loop that runs a source over successive connections.

    backoff: the seconds before the first reconnection, and the longest pause.
    give_up: the seconds without a connection after which it raises.
    """

    def __init__(self, name: str, backoff: tuple[float, float], give_up: float | None) -> None:
        if not 0 < backoff[0] <= backoff[1]:
            raise PlanError(
                f"backoff={backoff!r} is no pair of seconds\n  the first, and the longest"
            )
        self._name = name
        self._backoff = backoff
        self._give_up = give_up
        self.state = "new"
        self.trouble: SourceError | None = None
        """The reason why there is no connection; None while there is one."""
        self._is_connected = False
        self._has_waited = False
        self._lost: tuple[float, float] | None = None

    def note_answer(self) -> None:
        """Record that the server has accepted the connection; requests may still be refused."""
        self.trouble = None

    def note_connection(self) -> None:
        """Record that the connection works."""
        self._is_connected, self._lost, self.trouble = True, None, None

    def check_feed(self, feed: TableFeed) -> TableFeed:
        """Return a feed, none of whose columns may be NULL over a field that may not be None.

        A source that had to wait for its server only logs a warning, and stops at the first row
        that has a NULL there.

        Raises
        ------
        SourceError: there is such a column, and the server answered without delay.
        """
        for text in nullable(feed.schema, feed.row_type, feed.fields):
            if not self._has_waited:
                raise SourceError(text)
            log.warning("source %r: %s", self._name, text)
        return feed

    def run(
        self, session: Callable[[], Iterator[Batch[Any]]], stop: threading.Event
    ) -> Iterator[Batch[Any]]:
        """Yield the batches of successive sessions, each over a new connection, until `stop`."""
        self._is_connected, self._has_waited, self._lost = False, False, None
        try:
            yield from self._sessions(session, stop)
        finally:
            self.trouble = None

    def _sessions(
        self, session: Callable[[], Iterator[Batch[Any]]], stop: threading.Event
    ) -> Iterator[Batch[Any]]:
        """Yield the batches of sessions, beginning another after each lost connection."""
        while True:
            try:
                yield from session()
                return
            except WaitingStopped:
                self.state = "stopped"
                return
            except (driver().Error, SlotInUse) as error:
                pause = self._pause(error)
            if stop.wait(pause):
                self.state = "stopped"
                return

    def _pause(self, error: Exception) -> float:
        """Note that the connection is lost, log it, and return the seconds until the next try.

        Raises `SourceError` if there is to be none.
        """
        is_in_use = isinstance(error, SlotInUse)
        now = time.monotonic()
        began, before = self._lost or (now, 0.0)
        patience = self._give_up
        if is_in_use and not self._is_connected:
            patience = IN_USE if patience is None else min(patience, IN_USE)
        is_over = patience is not None and now - began > patience
        waits = is_transient(error) and (self._is_connected or not refuses_us(error))
        if is_over or not (is_in_use or waits):
            raise self._refusal(error) from error
        first, longest = self._backoff
        pause = min(longest, before * 2) if before else first
        self._lost, self._has_waited = (began, pause), True
        self.state = "waits for the server"
        self.trouble = self._waiting(error)
        log.warning("source %r: %s; trying again in %.1f s", self._name, line(error), pause)
        return pause

    def _refusal(self, error: Exception) -> SourceError:
        """Return the error with which a source stops that cannot read Postgres."""
        if isinstance(error, SlotInUse):
            return SourceError(str(error))
        return SourceError(
            f"source {self._name!r} cannot read Postgres: {line(error)}\n"
            "  start() of what ingest gave goes on once it can"
        )

    def _waiting(self, error: Exception) -> SourceError:
        """Return the error to show while a source waits for its server, caused by `error`."""
        found = SourceError(
            f"source {self._name!r} waits for its server: {line(error)}\n"
            "  it goes on by itself once the server answers; give_up= sets a limit"
        )
        found.__cause__ = error
        return found


def line(error: BaseException) -> str:
    """Return the text of an error in one line."""
    return " ".join(str(error).split())


SIZE = 5000
"""The number of rows read together."""
ALL = ""
"""The notification that all rows have changed, as by TRUNCATE."""
LIMIT = 8000
"""The bytes that a notification must not reach; a longer key would fail the user's statement."""
Keys = list[tuple[str | None, ...]]


class NotifySource:
    """A Postgres table followed by a trigger that sends changed keys, whose rows are read again.

    It needs neither `wal_level = logical` nor the right to replicate. The owner of the table
    creates the trigger with the statements that `trigger_sql()` returns. After a lost connection
    the table is read again, and the differences are one commit. Rows are as of their commit or a
    later one: the tables are eventually consistent, not after each commit.

    Parameters
    ----------
    dsn: the address of the database, in the form of `psycopg2.connect` or SQLAlchemy.
    table: the name of the table. It needs a primary key, which must be the key of the table that it
        feeds.
    channel: the channel to listen to; by default the name of the table with `_changed`.
    name: the name of the ingestion.
    backoff: the seconds before the first retry of a server that does not answer, and the longest
        pause. A source that starts before its server waits for it, too.
    give_up: the seconds without a connection after which it stops with an error.

    State: none.
    Cost:  O(notified keys); O(rows) when a connection begins.

    >>> source = NotifySource("postgresql://ann@db/shop", "orders")
    >>> source
    NotifySource('orders', 'orders_changed', new)
    """

    def __init__(
        self,
        dsn: str,
        table: str,
        *,
        channel: str | None = None,
        name: str | None = None,
        backoff: tuple[float, float] = BACKOFF,
        give_up: float | None = None,
    ) -> None:
        if not isinstance(dsn, str) or not isinstance(table, str) or not table:
            raise PlanError(
                f"NotifySource takes an address and the name of a table, not {dsn!r:.50}, "
                f'{table!r:.50}\n  NotifySource("postgresql://ann@localhost/shop", "orders")'
            )
        self._dsn = dsn
        self._table = table
        self._channel = channel or f"{table.rpartition('.')[2]}_changed"
        self._name = name or table
        self._reconnecting = Reconnecting(self._name, backoff, give_up)
        self._into: dict[type, Table[Any]] = {}

    @property
    def name(self) -> str:
        """The name of the ingestion."""
        return self._name

    def trigger_sql(self) -> str:
        """Return the statements that create the trigger, for the owner of the table; repeatable.

        Raises
        ------
        SourceError: there is no such table, or it has no primary key.
        """
        with asking(self._dsn) as connection:
            return _trigger(self._schema(connection), self._channel)

    def trouble(self) -> SourceError | None:
        """Return the reason why it waits for a connection; `None` while it has one."""
        return self._reconnecting.trouble

    def feeds(self, into: Mapping[type, Table[Any]]) -> None:
        """Set the table that takes the rows; called by `ingest`.

        Raises
        ------
        PlanError: there are several tables, or the table has no key, as a stream has none.
        """
        refuse_streams(
            self._name,
            into,
            "it reads rows that have changed\n  PostgresSource gives what is inserted",
        )
        if len(into) != 1 or next(iter(into.values())).plan.key is None:
            raise PlanError(
                f"source {self._name!r} feeds one table with a key\n"
                "  db.table(Order, key=...); a source for each table"
            )
        self._into = dict(into)

    def batches(self, since: Token, stop: threading.Event) -> Iterator[Batch[Any]]:
        """Yield batches; see `Source.batches`."""
        if not self._into:
            raise SourceError(f"source {self._name!r} is run by db.ingest, which tells its table")
        yield from self._reconnecting.run(lambda: self._session(stop), stop)

    def _session(self, stop: threading.Event) -> Iterator[Batch[Any]]:
        """Yield all rows, then a batch for each round of notifications, until an error."""
        with closing(Connection(self._dsn, stop)) as connection:
            self._reconnecting.note_answer()
            feed = self._feed(connection)
            connection.rows(f"LISTEN {quote_name(self._channel)}")
            yield _full_batch(connection, feed)
            self._reconnecting.state = "listening"
            self._reconnecting.note_connection()
            while True:
                keys = connection.told()
                if keys:
                    made = time.time()
                    yield replace(_notified_batch(connection, feed, keys), made=made)

    def _feed(self, connection: Connection) -> TableFeed:
        """Return the feed of the table. Raises `SourceError` if it cannot be followed."""
        schema = self._schema(connection)
        (row_type,) = self._into
        return self._reconnecting.check_feed(TableFeed(schema, row_type, self._into[row_type]))

    def _schema(self, connection: Connection) -> PostgresSchema:
        """Return the schema of the table. Raises `SourceError` if it has no primary key."""
        schema = read_schema(connection, self._table, PostgresTypes(connection), is_queried=True)
        if not schema.primary:
            raise SourceError(
                f"{self._table!r} has no primary key, by which its rows could be told\n"
                f"  ALTER TABLE {schema.sql} ADD PRIMARY KEY (...)"
            )
        return replace(schema, identity=schema.primary, is_full=False)

    def __repr__(self) -> str:
        return f"NotifySource({self._table!r}, {self._channel!r}, {self._reconnecting.state})"


def _full_batch(connection: Connection, feed: TableFeed) -> Batch[Any]:
    """Return the difference between all rows and the held ones."""
    held, new = UnseenRows(feed), []
    connection.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    for rows in read_table_rows(connection, feed, None, SIZE):
        new += held.new(rows)
    connection.rows("COMMIT")
    rows, refused = split_refused(new)
    kind = feed.row_type
    return Batch(rows, deletes=held.unseen_keys(), refused={kind: refused}, anew=[kind])


def _notified_batch(connection: Connection, feed: TableFeed, told: list[str]) -> Batch[Any]:
    """Return the current rows of the notified keys."""
    if ALL in told:
        return _full_batch(connection, feed)
    columns = _key_columns(feed.schema)
    keys: Keys = [tuple(json.loads(text)) for text in dict.fromkeys(told)]
    listed = ", ".join(quote_name(name) for name in columns)
    rows: list[Any] = []
    connection.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    for start in range(0, len(keys), SIZE):
        some = keys[start : start + SIZE]
        marks = ", ".join(["(" + ", ".join(["%s"] * len(columns)) + ")"] * len(some))
        values = [value for key in some for value in key]
        for found in read_table_rows(connection, feed, f"({listed}) in ({marks})", SIZE, values):
            rows += found
    connection.rows("COMMIT")
    there = {feed.key(row) for row in rows}
    wanted = (feed.key_of_texts(dict(zip(columns, key, strict=True))) for key in keys)
    gone = [key for key in wanted if key not in there]
    come, refused = split_refused(rows)
    return Batch(come, deletes=gone, refused={feed.row_type: refused})


def _key_columns(schema: PostgresSchema) -> list[str]:
    return sorted(schema.primary)


def _trigger(schema: PostgresSchema, channel: str) -> str:
    """Return the SQL that makes a table notify the channel of the keys of its changed rows."""
    name = f"reactive_notify_{schema.table}"
    function = f"{quote_name(schema.schema)}.{quote_name(name)}"

    def key(row: str) -> str:
        parts = (f"{row}.{quote_name(column)}::text" for column in _key_columns(schema))
        text = f"json_build_array({', '.join(parts)})::text"
        return f"CASE WHEN octet_length({text}) < {LIMIT} THEN {text} ELSE '{ALL}' END"

    told = sql_literal(channel)
    return f"""\
CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        PERFORM pg_notify({told}, '{ALL}');
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        PERFORM pg_notify({told}, {key("OLD")});
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM pg_notify({told}, {key("NEW")});
    END IF;
    RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS {quote_name(name)} ON {schema.sql};
CREATE TRIGGER {quote_name(name)} AFTER INSERT OR UPDATE OR DELETE ON {schema.sql}
    FOR EACH ROW EXECUTE FUNCTION {function}();
DROP TRIGGER IF EXISTS {quote_name(name + "_all")} ON {schema.sql};
CREATE TRIGGER {quote_name(name + "_all")} AFTER TRUNCATE ON {schema.sql}
    FOR EACH STATEMENT EXECUTE FUNCTION {function}();
"""


def snapshot_batches(
    connection: Connection,
    feeds: list[TableFeed],
    exported: str,
    filters: dict[tuple[str, str], str],
    token: Token,
    *,
    size: int,
    whole: bool,
) -> Iterator[Batch[Any]]:
    """Yield batches that change the tables to a snapshot; the last one has the token.

    Parameters
    ----------
    exported: the name of the snapshot.
    filters: the row filters of tables.
    size: the number of rows in a batch.
    whole: True to make it one batch.
    """
    connection.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    connection.rows(f"SET TRANSACTION SNAPSHOT {sql_literal(exported)}")
    come: dict[type, list[Any]] = {}
    deletes: dict[type, list[Any]] = {}
    removes: dict[type, list[Any]] = {}
    refused: dict[type, list[Refused]] = {}
    anew = [feed.row_type for feed in feeds]
    for feed in feeds:
        condition = filters.get((feed.schema.schema, feed.schema.table))
        held = UnseenRows(feed)
        for rows in read_table_rows(connection, feed, condition, size):
            new, unfit = split_refused(held.new(rows))
            if whole:
                come.setdefault(feed.row_type, []).extend(new)
                refused.setdefault(feed.row_type, []).extend(unfit)
            elif new or unfit:
                yield Batch({feed.row_type: new}, refused={feed.row_type: unfit}, anew=anew)
                anew = []
        (deletes if feed.is_keyed else removes)[feed.row_type] = held.unseen_keys()
    connection.rows("COMMIT")
    yield Batch(
        come,
        deletes=deletes,
        removes=removes,
        refused=refused,
        anew=anew,
        token=token,
    )


class UnseenRows:
    """The rows of a table that were not seen yet."""

    def __init__(self, feed: TableFeed) -> None:
        self._feed = feed
        self._by_key = {feed.key(row): row for row in feed.table} if feed.is_keyed else {}
        holds_rows = not feed.is_keyed and not feed.is_stream
        self._counts = Counter(dict(feed.table.zset().items())) if holds_rows else Counter()

    def new(self, rows: list[Any]) -> list[Any]:
        """Return the rows that the table does not hold, and mark the others as seen.

        All rows are returned once each row of the table was seen.
        """
        if self._by_key:
            key, take = self._feed.key, self._by_key.pop
            return [row for row in rows if not _is_equal_row(take(key(row), None), row)]
        if self._counts:
            return [row for row in rows if not self._takes(row)]
        return rows

    def unseen_keys(self) -> list[Any]:
        """Return the keys of unseen rows; without a key, the rows."""
        return list(self._by_key) if self._feed.is_keyed else list(self._counts.elements())

    def _takes(self, row: Any) -> bool:
        """Mark one copy of a row as seen; False if the table has no unseen copy of it."""
        if self._counts.get(row, 0) > 0:
            self._counts[row] -= 1
            return True
        return False


def _is_equal_row(held: Any, row: Any) -> bool:
    return held is not None and bool(held == row)


def read_table_rows(
    connection: Connection,
    feed: TableFeed,
    condition: str | None,
    size: int,
    values: Sequence[Any] | None = None,
) -> Iterator[list[Any]]:
    """Yield the rows of a table, `size` at a time; `Refused` for rows that cannot be made.

    condition: a WHERE with placeholders for `values`; None for all rows.

    Called inside a transaction.
    """
    fields, schema = feed.fields, feed.schema
    native = native_types(fields)
    make = feed.maker(range(len(fields)), native)
    columns = ", ".join(quote_name(field.column.name) for field in fields)
    where = f" where {condition}" if condition else ""
    cursor = connection.cursor(native)
    query = f"select {columns} from {schema.rows_sql}{where}{feed.order_sql()}"
    connection.rows(f"DECLARE all_rows NO SCROLL CURSOR FOR {query}", values)
    while found := connection.rows(f"FETCH {size} FROM all_rows", cursor=cursor):
        yield list(map(make, found))
    connection.rows("CLOSE all_rows")
