"""A table of Postgres by NOTIFY: keys are told, and their rows read again; `NotifySource`.

    trigger --NOTIFY orders_changed, '["7"]'--> keys 7, 9 --SELECT--> upserts, deletes
    connection lost                         --> all rows  --> what differs

For servers and users that may not replicate. What was told while nobody listened is lost, so all is
read when a connection begins. One commit has what was told since the last one, as it is by then:
transactions that follow each other closely are one, and of one between which two tables are read a
part may come before the other.

State:  none; while all rows are read, what differs.
Cost:   O(keys that were told); of a new connection O(rows).
Source: PostgreSQL, "NOTIFY": messages come after the commit, in its order, each once per
        transaction.

Go on after a connection is lost: again and again, with longer and longer pauses.

    connected --lost--> pause --> try --> connected
                          ^        |
                          +--------+  twice as long, up to a limit

A server that does not answer is waited for, also the first time: a service may begin before its
server does. A server that answers, and refuses, is not asked again: it says what is wrong.

The rows of tables as they were when a slot was made: batches of what differs from what is held.

    rows held   1 2 3      of nothing, all rows come: in batches, and nothing is compared
    snapshot    2 3 4      2 and 3 are passed over, 4 comes; at the end 1 goes

So a snapshot that was broken off is simply taken again, and one that is taken anew, after the slot
was lost, changes only what has changed meanwhile.

State:  the keys or rows that were held and have not been seen yet; with `whole` what differs.
Cost:   O(rows), each read once.
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
from reactive.borders.sources.batch import Batch, Refused, Token
from reactive.borders.sources.postgres.feed import TableFeed, fit
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
from reactive.engine.runtime.needs import driver, literal
from reactive.engine.runtime.sql_names import quoted
from reactive.errors import SourceError

log = logging.getLogger("reactive")
BACKOFF = (0.1, 30.0)
"""Seconds before the first try to connect again, and at most before another one."""
IN_USE = 120.0
"""Seconds after which a slot that is read is taken to be somebody else's: a server that is told
nothing ends a connection after 60."""


class SlotInUse(SourceError):
    """It may be the connection that was lost, of which the server does not know yet."""


class Reconnecting:
    """Runs a source over one connection after the other.

    backoff: seconds before the first try to connect again, and at most.
    give_up: seconds without a connection after which it raises.
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
        """Why there is no connection now, while another one is waited for."""
        self._is_connected = False
        self._has_waited = False
        self._lost: tuple[float, float] | None = None

    def answered(self) -> None:
        """The server has taken the connection; what is asked of it may still be refused."""
        self.trouble = None

    def connected(self) -> None:
        """What is asked of a connection is answered."""
        self._is_connected, self._lost, self.trouble = True, None, None

    def checked(self, feed: TableFeed) -> TableFeed:
        """Return a feed, none of whose columns may be NULL over a field that may not be None.

        A service that has begun without its server, or has lost it, goes on with a warning, and
        stops at the first row that has a NULL there.

        Raises
        ------
        SourceError: there is such a column, and the server has answered at once.
        """
        for text in nullable(feed.schema, feed.row_type, feed.fields):
            if not self._has_waited:
                raise SourceError(text)
            log.warning("source %r: %s", self._name, text)
        return feed

    def run(
        self, session: Callable[[], Iterator[Batch[Any]]], stop: threading.Event
    ) -> Iterator[Batch[Any]]:
        """What the sessions give, each over another connection, until it is to stop."""
        self._is_connected, self._has_waited, self._lost = False, False, None
        try:
            yield from self._sessions(session, stop)
        finally:
            self.trouble = None

    def _sessions(
        self, session: Callable[[], Iterator[Batch[Any]]], stop: threading.Event
    ) -> Iterator[Batch[Any]]:
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
        """Seconds until the next try; raises if there is to be none."""
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
        if isinstance(error, SlotInUse):
            return SourceError(str(error))
        return SourceError(
            f"source {self._name!r} cannot read Postgres: {line(error)}\n"
            "  start() of what ingest gave goes on once it can"
        )

    def _waiting(self, error: Exception) -> SourceError:
        found = SourceError(
            f"source {self._name!r} waits for its server: {line(error)}\n"
            "  it goes on by itself once the server answers; give_up= sets a limit"
        )
        found.__cause__ = error
        return found


def line(error: BaseException) -> str:
    """The text of an error in one line."""
    return " ".join(str(error).split())


SIZE = 5000
"""Rows that are read together."""
ALL = ""
"""What is told when all rows have changed, as by TRUNCATE."""
LIMIT = 8000
"""Bytes that a message of NOTIFY has not; who changes a row with a longer key would fail."""
Keys = list[tuple[str | None, ...]]


class NotifySource:
    """A table of a Postgres database, of which a trigger tells the keys that change; their rows are
    read again. Needs neither `wal_level = logical` nor the right to replicate.

    The trigger is made by whoever may: `trigger_sql()` is what to run. A database that a connection
    is lost to is read anew, and what differs is one commit. Rows are of their commit or a later
    one: what comes to the tables is right at last, not in each commit.

    Parameters
    ----------
    dsn: where the database is, as `psycopg2.connect` or SQLAlchemy has it.
    table: its name. It needs a primary key, which is that of the table that is fed.
    channel: the name that is listened to; by default that of the table with `_changed`.
    name: by which the ingestion goes.
    backoff: seconds before a server that does not answer is tried again for the first time, and at
        most. A source that begins before its server waits for it, too.
    give_up: seconds without a connection after which it stops with an error.

    State: none.
    Cost:  O(keys told); O(rows) when a connection begins.

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
        """By which the ingestion goes."""
        return self._name

    def trigger_sql(self) -> str:
        """What makes the trigger, to be run by the owner of the table; it may be run again.

        Raises
        ------
        SourceError: there is no such table, or it has no primary key.
        """
        with asking(self._dsn) as connection:
            return _trigger(self._schema(connection), self._channel)

    def trouble(self) -> SourceError | None:
        """Why it has no connection now, while it waits for another one; `None` otherwise."""
        return self._reconnecting.trouble

    def feeds(self, into: Mapping[type, Table[Any]]) -> None:
        """Called by `ingest`: the table that takes its rows.

        Raises
        ------
        PlanError: they are several, or it has no key.
        """
        if len(into) != 1 or next(iter(into.values())).plan.key is None:
            raise PlanError(
                f"source {self._name!r} feeds one table with a key\n"
                "  db.table(Order, key=...); a source for each table"
            )
        self._into = dict(into)

    def batches(self, since: Token, stop: threading.Event) -> Iterator[Batch[Any]]:
        """See `Source`."""
        if not self._into:
            raise SourceError(f"source {self._name!r} is run by db.ingest, which tells its table")
        yield from self._reconnecting.run(lambda: self._session(stop), stop)

    def _session(self, stop: threading.Event) -> Iterator[Batch[Any]]:
        with closing(Connection(self._dsn, stop)) as connection:
            self._reconnecting.answered()
            feed = self._feed(connection)
            connection.rows(f"LISTEN {quoted(self._channel)}")
            yield _all(connection, feed)
            self._reconnecting.state = "listening"
            self._reconnecting.connected()
            while True:
                keys = connection.told()
                if keys:
                    made = time.time()
                    yield replace(_of(connection, feed, keys), made=made)

    def _feed(self, connection: Connection) -> TableFeed:
        schema = self._schema(connection)
        (row_type,) = self._into
        return self._reconnecting.checked(TableFeed(schema, row_type, self._into[row_type]))

    def _schema(self, connection: Connection) -> PostgresSchema:
        """The table with its primary key as what tells rows apart."""
        schema = read_schema(connection, self._table, PostgresTypes(connection), is_queried=True)
        if not schema.primary:
            raise SourceError(
                f"{self._table!r} has no primary key, by which its rows could be told\n"
                f"  ALTER TABLE {schema.sql} ADD PRIMARY KEY (...)"
            )
        return replace(schema, identity=schema.primary, is_full=False)

    def __repr__(self) -> str:
        return f"NotifySource({self._table!r}, {self._channel!r}, {self._reconnecting.state})"


def _all(connection: Connection, feed: TableFeed) -> Batch[Any]:
    """What differs from all rows."""
    held, new = UnseenRows(feed), []
    connection.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    for rows in read_rows(connection, feed, None, SIZE):
        new += held.new(rows)
    connection.rows("COMMIT")
    rows, refused = fit(new)
    kind = feed.row_type
    return Batch(rows, deletes=held.gone(), refused={kind: refused}, anew=[kind])


def _of(connection: Connection, feed: TableFeed, told: list[str]) -> Batch[Any]:
    """The rows of the keys that were told, as they are by now."""
    if ALL in told:
        return _all(connection, feed)
    columns = _key_columns(feed.schema)
    keys: Keys = [tuple(json.loads(text)) for text in dict.fromkeys(told)]
    listed = ", ".join(quoted(name) for name in columns)
    rows: list[Any] = []
    connection.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    for start in range(0, len(keys), SIZE):
        some = keys[start : start + SIZE]
        marks = ", ".join(["(" + ", ".join(["%s"] * len(columns)) + ")"] * len(some))
        values = [value for key in some for value in key]
        for found in read_rows(connection, feed, f"({listed}) in ({marks})", SIZE, values):
            rows += found
    connection.rows("COMMIT")
    there = {feed.key(row) for row in rows}
    wanted = (feed.key_of_texts(dict(zip(columns, key, strict=True))) for key in keys)
    gone = [key for key in wanted if key not in there]
    come, refused = fit(rows)
    return Batch(come, deletes=gone, refused={feed.row_type: refused})


def _key_columns(schema: PostgresSchema) -> list[str]:
    return sorted(schema.primary)


def _trigger(schema: PostgresSchema, channel: str) -> str:
    name = f"reactive_notify_{schema.table}"
    function = f"{quoted(schema.schema)}.{quoted(name)}"

    def key(row: str) -> str:
        parts = (f"{row}.{quoted(column)}::text" for column in _key_columns(schema))
        text = f"json_build_array({', '.join(parts)})::text"
        return f"CASE WHEN octet_length({text}) < {LIMIT} THEN {text} ELSE '{ALL}' END"

    told = literal(channel)
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
DROP TRIGGER IF EXISTS {quoted(name)} ON {schema.sql};
CREATE TRIGGER {quoted(name)} AFTER INSERT OR UPDATE OR DELETE ON {schema.sql}
    FOR EACH ROW EXECUTE FUNCTION {function}();
DROP TRIGGER IF EXISTS {quoted(name + "_all")} ON {schema.sql};
CREATE TRIGGER {quoted(name + "_all")} AFTER TRUNCATE ON {schema.sql}
    FOR EACH STATEMENT EXECUTE FUNCTION {function}();
"""


def snapshot(
    connection: Connection,
    feeds: list[TableFeed],
    exported: str,
    filters: dict[tuple[str, str], str],
    token: Token,
    *,
    size: int,
    whole: bool,
) -> Iterator[Batch[Any]]:
    """Batches after which the tables are as they were in a snapshot; the last one has the token.

    Parameters
    ----------
    exported: the name of the snapshot.
    filters: conditions that rows of a table must meet.
    size: rows of a batch.
    whole: whether all of it is one batch.
    """
    connection.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    connection.rows(f"SET TRANSACTION SNAPSHOT {literal(exported)}")
    come: dict[type, list[Any]] = {}
    deletes: dict[type, list[Any]] = {}
    removes: dict[type, list[Any]] = {}
    refused: dict[type, list[Refused]] = {}
    anew = [feed.row_type for feed in feeds]
    for feed in feeds:
        condition = filters.get((feed.schema.schema, feed.schema.table))
        held = UnseenRows(feed)
        for rows in read_rows(connection, feed, condition, size):
            new, unfit = fit(held.new(rows))
            if whole:
                come.setdefault(feed.row_type, []).extend(new)
                refused.setdefault(feed.row_type, []).extend(unfit)
            elif new or unfit:
                yield Batch({feed.row_type: new}, refused={feed.row_type: unfit}, anew=anew)
                anew = []
        (deletes if feed.is_keyed else removes)[feed.row_type] = held.gone()
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
    """The rows that a table has and that were not seen yet."""

    def __init__(self, feed: TableFeed) -> None:
        self._feed = feed
        self._by_key = {feed.key(row): row for row in feed.table} if feed.is_keyed else {}
        self._counts = Counter(dict(feed.table.zset().items())) if not feed.is_keyed else Counter()

    def new(self, rows: list[Any]) -> list[Any]:
        """The rows that are not held."""
        if self._by_key:
            key, take = self._feed.key, self._by_key.pop
            return [row for row in rows if not _equal(take(key(row), None), row)]
        if self._counts:
            return [row for row in rows if not self._takes(row)]
        return rows

    def gone(self) -> list[Any]:
        """The keys of those that are left; or rows."""
        return list(self._by_key) if self._feed.is_keyed else list(self._counts.elements())

    def _takes(self, row: Any) -> bool:
        if self._counts.get(row, 0) > 0:
            self._counts[row] -= 1
            return True
        return False


def _equal(held: Any, row: Any) -> bool:
    return held is not None and bool(held == row)


def read_rows(
    connection: Connection,
    feed: TableFeed,
    condition: str | None,
    size: int,
    values: Sequence[Any] | None = None,
) -> Iterator[list[Any]]:
    """The rows of a table, some at a time, with a `Refused` for each that cannot be made. Inside a
    transaction."""
    fields, schema = feed.fields, feed.schema
    native = native_types(fields)
    make = feed.maker(range(len(fields)), native)
    columns = ", ".join(quoted(field.column.name) for field in fields)
    where = f" where {condition}" if condition else ""
    cursor = connection.cursor(native)
    query = f"select {columns} from {schema.rows_sql}{where}"
    connection.rows(f"DECLARE all_rows NO SCROLL CURSOR FOR {query}", values)
    while found := connection.rows(f"FETCH {size} FROM all_rows", cursor=cursor):
        yield list(map(make, found))
    connection.rows("CLOSE all_rows")
