"""Tables of Postgres as a source; `PostgresSource`.

    new --snapshot--> streaming --connection lost--> waits --> streaming
                          |
                          +-- slot lost, columns changed --> SourceError

The token is the slot's name and the end of the last transaction whose changes are in the tables.
The server keeps its log from what it was told is committed, never beyond: a transaction comes again
until its commit is there, and one that comes again is skipped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from typing import Any

from optimizer.errors import PlanError
from reactive.api.table import Table
from reactive.borders.sources.batch import Batch, Token
from reactive.borders.sources.postgres import feed
from reactive.borders.sources.postgres import stream as slots
from reactive.borders.sources.postgres.feed import TableFeed
from reactive.borders.sources.postgres.notify import BACKOFF, Reconnecting, line, snapshot
from reactive.borders.sources.postgres.rows import row_class
from reactive.borders.sources.postgres.schema import (
    Connection,
    PostgresTypes,
    asking,
    lsn,
    lsn_text,
    read_schema,
)
from reactive.borders.sources.postgres.stream import SlotStream, StreamProgress
from reactive.errors import SourceError

SIZE = 5000
"""Rows of a batch of a snapshot."""
MOMENT = 0.1
"""Seconds after which who waits for a server asks it again."""


class PostgresSource:
    """Tables of a Postgres database, followed by logical replication: each of its transactions
    becomes one commit, in order, and is in the tables exactly once.

    First come the rows that are there, in batches, of which views see one after the other; the
    token is there with the last one. Rows that are rolled back never show. What one transaction
    has changed is held in memory until its end: a row for each row that it changed.

    Parameters
    ----------
    dsn: where the database is, as `psycopg2.connect` or SQLAlchemy has it. The user needs the
        attribute REPLICATION, and has to own the tables unless there is a `publication` already.
        The server has `wal_level = logical`.
    tables: the name of a table, or names -> classes of rows if there are several; `ingest` then
        takes a table for each class: `into={User: users, Order: orders}`. Columns are fields by
        their names. Columns that are no field are left out.
    name: by which its token is kept, and after which publication and slot are named.
    temporary: whether the slot goes with the connection. Nothing is left on the server then; after
        a lost connection the tables are read anew, and what differs is applied as one commit. A
        slot that is not temporary keeps the server's log until the source goes on, or `drop` is
        called: forgotten, it fills the server's disk. Without a word it is temporary if the
        database keeps nothing itself, and so would have no position to go on from.
    publication: one that is there already, and tells of the tables.
    resnapshot: whether to begin anew, in spite of a token: the tables are read, and what differs
        is applied as one commit. `start(anew=True)` of what `ingest` gives does so later.
    size: rows of a batch of the snapshot.
    backoff: seconds before a server that does not answer is tried again for the first time, and at
        most. A source that begins before its server waits for it, too.
    give_up: seconds without a connection after which it stops with an error. A server that answers
        and refuses (a wrong password, no such database) stops a source that begins at once.
    decode: bytes -> a message of `feed.py`, in the place of the decoder there.

    State: of a transaction the rows that it changes; of each table its columns.
    Cost:  O(rows) of the snapshot, then O(changes).

    >>> source = PostgresSource("postgresql://ann@db/shop", "users")
    >>> source
    PostgresSource('users', new)
    """

    def __init__(
        self,
        dsn: str,
        tables: str | Mapping[str, type],
        *,
        name: str | None = None,
        temporary: bool | None = None,
        publication: str | None = None,
        resnapshot: bool = False,
        size: int = SIZE,
        backoff: tuple[float, float] = BACKOFF,
        give_up: float | None = None,
        decode: Callable[[bytes], feed.Message] = feed.decode,
    ) -> None:
        _check(dsn, tables, size)
        self._dsn = dsn
        self._wanted: Mapping[str, type | None] = (
            {tables: None} if isinstance(tables, str) else dict(tables)
        )
        self._name = name or "_".join(self._wanted)
        self._is_temporary = temporary
        self._publication = publication or slots.base_name(self._name)
        self._is_ours = publication is None
        self._resnapshot = resnapshot
        self._size = size
        self._decode = decode
        self._into: dict[type, Table[Any]] = {}
        self._is_running = False
        self._progress = StreamProgress(self._name)
        self._reconnecting = Reconnecting(self._name, backoff, give_up)

    @property
    def name(self) -> str:
        """By which its token is kept."""
        return self._name

    @property
    def schema_changes(self) -> list[str]:
        """What was told of columns that were added, are gone or have another type."""
        return list(self._progress.schema_changes)

    @property
    def position(self) -> str:
        """All that was committed before this position of the server's log is in the tables."""
        return lsn_text(self._progress.position)

    def waiting(self) -> int:
        """Changes that have come and are not committed: of the transaction at hand."""
        return self._progress.waiting

    def behind(self) -> int:
        """Bytes of the server's log that are not in the tables yet, as it was some second ago."""
        return self._progress.behind()

    def catch_up(self, timeout: float | None = None) -> None:
        """Wait until the tables have all that is committed in Postgres by now.

        A server that does not answer yet is waited for as long as the source waits for it.

        Raises
        ------
        TimeoutError: it takes longer than `timeout` seconds. Its cause is why the server cannot be
            reached, if it cannot.
        SourceError: the source has stopped before that, or does not run and the server cannot be
            reached. Its cause is what has stopped the source.
        """
        until = None if timeout is None else time.monotonic() + timeout
        there = self._server_position(until, timeout)
        left = None if until is None else max(0.0, until - time.monotonic())
        if self._progress.wait_for(lsn(there), left):
            return
        where = f"{there}; it is at {self.position}"
        if self._progress.has_ended():
            raise self._has_stopped(f"before {where}") from self._progress.cause
        why = self._reconnecting.trouble
        raise TimeoutError(
            f"source {self._name!r} has not come in {timeout:g} s to {where}{_because(why)}"
        ) from why

    def _server_position(self, until: float | None, timeout: float | None) -> str:
        """Ask the server for the end of its log. While this source waits for the server, the caller
        waits too."""
        while True:
            try:
                with asking(self._dsn) as connection:
                    return str(connection.rows("select pg_current_wal_flush_lsn()")[0][0])
            except SourceError as error:
                cause = self._progress.cause
                if cause is not None and not self._is_running:
                    raise self._has_stopped("before its server was reached") from cause
                if not self._is_running:
                    raise
                if until is not None and time.monotonic() > until:
                    why = self._reconnecting.trouble or error
                    raise TimeoutError(
                        f"source {self._name!r} has not come in {timeout:g} s to what is committed"
                        f"{_because(why)}"
                    ) from why
            time.sleep(MOMENT)

    def _has_stopped(self, when: str) -> SourceError:
        """The error for who waits for a source that runs no more."""
        cause = self._progress.cause
        return SourceError(
            f"source {self._name!r} has stopped {when}{_because(cause)}\n"
            "  start() of what ingest gave goes on once that is mended"
        )

    def trouble(self) -> SourceError | None:
        """Why it has no connection now, while it waits for another one; `None` otherwise."""
        return self._reconnecting.trouble

    def stopped_by(self, error: BaseException | None) -> None:
        """Called by what `ingest` gives: what has stopped it, if it was an error."""
        self._progress.cause = error

    def begin_anew(self) -> None:
        """Called by `start(anew=True)`: read the tables at the next start, in spite of the token;
        what differs is applied as one commit."""
        self._resnapshot = True

    def row_class(self, table: str | None = None, *, without: Collection[str] = ()) -> type[Any]:
        """A class of rows with a field per column, made of what the database says of a table.

        Type checkers do not know its fields. `python -m reactive.sources.postgres` writes the
        class to a file, for them.

        Parameters
        ----------
        without: columns that the class leaves out. A generated column must be one of them, because
            Postgres does not replicate its values.

        Raises
        ------
        SourceError: there is no such table; a column is generated and not left out; `without` names
            no column; or a column has a name that no field can have.
        """
        with asking(self._dsn) as connection:
            found = table or next(iter(self._wanted))
            return row_class(read_schema(connection, found, PostgresTypes(connection)), without)

    def drop(self) -> None:
        """Remove what the server keeps for sources of this name: the publication, and slots that
        nobody reads. After it, one has to begin anew.

        Raises
        ------
        SourceError: this one is running.
        """
        if self._is_running:
            raise SourceError(
                f"source {self._name!r} is running, and needs what would be dropped\n"
                "  stop() what ingest gave first"
            )
        with asking(self._dsn) as connection:
            publication = self._publication if self._is_ours else None
            slots.drop_all(connection, self._name, publication)

    def feeds(self, into: Mapping[type, Table[Any]]) -> None:
        """Called by `ingest`: the tables that take its rows.

        Raises
        ------
        PlanError: a class of rows has no table.
        """
        missing = [kind for kind in self._wanted.values() if kind is not None and kind not in into]
        if missing or len(into) != len(self._wanted):
            raise PlanError(
                f"source {self._name!r} gives rows of {len(self._wanted)} tables, and ingest was "
                f"given {len(into)}\n  into={{User: users, Order: orders}}, a table for each class"
            )
        self._into = dict(into)

    def batches(self, since: Token, stop: threading.Event) -> Iterator[Batch[Any]]:
        """See `Source`."""
        if not self._into:
            raise SourceError(f"source {self._name!r} is run by db.ingest, which tells its tables")
        position = _Position(since)
        if self._resnapshot:
            self._resnapshot, position.is_lost = False, True
        self._progress.starts_at(position.lsn)
        self._is_running = True
        try:
            yield from self._reconnecting.run(lambda: self._session(position, stop), stop)
        finally:
            self._is_running = False
            self._progress.ends()

    def _session(self, position: _Position, stop: threading.Event) -> Iterator[Batch[Any]]:
        """All that comes over one connection."""
        with (
            closing(Connection(self._dsn, stop)) as control,
            closing(Connection(self._dsn, stop, replicates=True)) as replication,
        ):
            self._reconnecting.answered()
            feeds = self._feeds(control)
            yield from self._begin(position, control, replication, feeds)
            self._reconnecting.state = "streaming"
            self._reconnecting.connected()
            self._progress.starts_at(position.lsn)
            stream = SlotStream(
                control,
                replication,
                feeds,
                self._progress,
                position.token,
                self._decode,
                self._is_settled,
            )
            at = lsn_text(position.lsn)
            command = slots.start_command(position.slot, at, self._publication)
            for batch in stream.batches(command, position.lsn):
                yield batch
                position.is_at(batch.token)

    def _feeds(self, control: Connection) -> list[TableFeed]:
        slots.check_server(control)
        types = PostgresTypes(control)
        found = []
        for name, kind in self._wanted.items():
            row_type = kind or next(iter(self._into))
            schema = read_schema(control, name, types)
            feed = TableFeed(schema, row_type, self._into[row_type])
            found.append(self._reconnecting.checked(feed))
        return found

    def _begin(
        self,
        position: _Position,
        control: Connection,
        replication: Connection,
        feeds: list[TableFeed],
    ) -> Iterator[Batch[Any]]:
        """Have a slot that tells what comes after the position; if there is none, a snapshot."""
        schemas = [feed.schema for feed in feeds]
        temporary = self._temporary()
        is_new = position.lsn == 0
        if not (is_new or position.is_lost or temporary):
            slots.check_slot(control, position.slot)
            slots.check_published(control, self._publication, schemas)
            return
        slots.publish(control, self._publication, schemas, ours=self._is_ours)
        if position.slot:
            slots.drop_slot(control, position.slot)
        self._reconnecting.state = "snapshot"
        slot = slots.new_slot_name(self._name)
        if not temporary:
            yield Batch(token=position.unfinished(slot))
        at, exported = slots.make_slot(replication, slot, temporary=temporary)
        filters = slots.row_filters(control, self._publication)
        position.slot = slot
        token = position.token(at)
        batches = snapshot(
            control, feeds, exported, filters, token, size=self._size, whole=not is_new
        )
        yield from batches
        position.is_at(token)

    def _temporary(self) -> bool:
        if self._is_temporary is not None:
            return self._is_temporary
        return self._journal() is None

    def _is_settled(self) -> bool:
        """Whether what has been committed is there to stay, as far as the database promises."""
        journal = self._journal()
        return journal is None or bool(journal.is_settled())

    def _journal(self) -> Any:
        """What keeps the tables, if anything does."""
        table = next(iter(self._into.values()))
        journal = table._engine.journal
        return journal if journal is not None and table in journal.kept else None

    def __repr__(self) -> str:
        return f"PostgresSource({', '.join(map(repr, self._wanted))}, {self._reconnecting.state})"


class _Position:
    """Where to go on, as the token has it."""

    def __init__(self, token: Token) -> None:
        self.slot: str = "" if token is None else token["slot"]
        self.lsn: int = 0 if token is None or token["lsn"] is None else lsn(token["lsn"])
        self.is_lost = False

    def token(self, position: int) -> Token:
        """That of a position of this slot."""
        return {"slot": self.slot, "lsn": lsn_text(position)}

    def unfinished(self, slot: str) -> Token:
        """That of a snapshot that has not come to its end."""
        self.slot = slot
        return {"slot": slot, "lsn": None}

    def is_at(self, token: Token) -> None:
        """A batch is committed."""
        self.lsn = lsn(token["lsn"])
        self.is_lost = False


def _check(dsn: Any, tables: Any, size: Any) -> None:
    if not isinstance(dsn, str):
        raise PlanError(f"dsn={dsn!r:.100} is no text\n  such as postgresql://ann@localhost/shop")
    is_map = isinstance(tables, Mapping) and tables and all(map(_is_named, tables.items()))
    if not (is_map or (isinstance(tables, str) and tables)):
        raise PlanError(
            f"tables={tables!r:.100} names no tables\n"
            '  "users", or {"users": User, "orders": Order} with the classes of their rows'
        )
    if isinstance(tables, Mapping) and len(set(tables.values())) < len(tables):
        raise PlanError("two tables give rows of one class\n  each table needs a class of its own")
    if type(size) is not int or size < 1:
        raise PlanError(f"size={size!r} is no number of rows\n  give an integer from 1 on")


def _because(error: BaseException | None) -> str:
    return "" if error is None else f": {line(error)}"


def _is_named(item: tuple[Any, Any]) -> bool:
    return isinstance(item[0], str) and isinstance(item[1], type)
