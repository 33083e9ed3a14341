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
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from optimizer.errors import PlanError
from reactive.api.table import Table
from reactive.borders.sources.batch import Batch, Token
from reactive.borders.sources.postgres.connection import Connection, asking
from reactive.borders.sources.postgres.feed import Feed, fit
from reactive.borders.sources.postgres.reconnecting import BACKOFF, Reconnecting
from reactive.borders.sources.postgres.schema import Schema, Types, read_schema
from reactive.borders.sources.postgres.snapshot import Held, read_rows
from reactive.engine.runtime.postgres import literal
from reactive.engine.runtime.sql_names import quoted
from reactive.errors import SourceError

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

    def _feed(self, connection: Connection) -> Feed:
        schema = self._schema(connection)
        (row_type,) = self._into
        return self._reconnecting.checked(Feed(schema, row_type, self._into[row_type]))

    def _schema(self, connection: Connection) -> Schema:
        """The table with its primary key as what tells rows apart."""
        schema = read_schema(connection, self._table, Types(connection), is_queried=True)
        if not schema.primary:
            raise SourceError(
                f"{self._table!r} has no primary key, by which its rows could be told\n"
                f"  ALTER TABLE {schema.sql} ADD PRIMARY KEY (...)"
            )
        return replace(schema, identity=schema.primary, is_full=False)

    def __repr__(self) -> str:
        return f"NotifySource({self._table!r}, {self._channel!r}, {self._reconnecting.state})"


def _all(connection: Connection, feed: Feed) -> Batch[Any]:
    """What differs from all rows."""
    held, new = Held(feed), []
    connection.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    for rows in read_rows(connection, feed, None, SIZE):
        new += held.new(rows)
    connection.rows("COMMIT")
    rows, refused = fit(new)
    kind = feed.row_type
    return Batch(rows, deletes=held.gone(), refused={kind: refused}, anew=[kind])


def _of(connection: Connection, feed: Feed, told: list[str]) -> Batch[Any]:
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


def _key_columns(schema: Schema) -> list[str]:
    return sorted(schema.primary)


def _trigger(schema: Schema, channel: str) -> str:
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
