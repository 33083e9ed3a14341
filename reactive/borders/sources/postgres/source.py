"""Tables of Postgres as a source, by logical replication.

    new --snapshot--> streaming --connection lost--> waits --> streaming
                          |
                          +-- slot lost, columns changed --> SourceError

The token is the name of the slot and the end of the last transaction that is in the tables. The
server keeps its log from the last confirmed position on, and only committed positions are
confirmed: a transaction is sent again until its commit is confirmed, and a repeated one is skipped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from typing import Any

from optimizer.errors import PlanError
from reactive.api.internal_interface import engine_of
from reactive.api.table import Table
from reactive.borders.sources.batch import Batch, Token, is_stream, refuse_streams
from reactive.borders.sources.postgres import feed
from reactive.borders.sources.postgres import stream as slots
from reactive.borders.sources.postgres.feed import TableFeed
from reactive.borders.sources.postgres.notify import BACKOFF, Reconnecting, line, snapshot_batches
from reactive.borders.sources.postgres.rows import postgres_row_class
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
"""The rows of a batch of a snapshot."""
MOMENT = 0.1
"""The seconds between two questions to a server that does not answer."""


class PostgresSource:
    """Tables of a Postgres database, followed by logical replication.

    Each transaction of Postgres becomes one commit, in order, exactly once.

    First the existing rows are read in batches, which views see one after the other; the last batch
    has the token. Rows that are rolled back never appear. The changes of one transaction are held
    in memory until its end: one row for each row that it changed.

    Parameters
    ----------
    dsn: the address of the database, in the form of `psycopg2.connect` or SQLAlchemy. The user
        needs the attribute REPLICATION, and must own the tables unless there is a `publication`.
        The server needs `wal_level = logical`.
    tables: the name of a table, or names -> classes of rows for several; `ingest` then takes a
        table for each class: `into={User: users, Order: orders}`. Columns are matched to fields by
        name; columns without a field are ignored.
    name: the name under which the token is stored, and from which those of publication and slot are
        made.
    temporary: True to drop the slot with the connection. Nothing remains on the server then; after
        a lost connection the tables are read again, and the differences are one commit. A slot that
        is not temporary keeps the server's log until the source continues or `drop` is called: a
        forgotten one fills the server's disk. By default, it is temporary if the tables are not
        durable, because there is no stored position to continue from; not for streams, which cannot
        take the differences.
    publication: the name of an existing publication of the tables.
    resnapshot: True to begin anew, ignoring the token: the tables are read, and the differences are
        one commit. `start(anew=True)` of the ingestion does so later.
    size: the number of rows in a batch of the snapshot.
    backoff: the seconds before the first retry of a server that does not answer, and the longest
        pause. A source that starts before its server waits for it, too.
    give_up: the seconds without a connection after which it stops with an error. A server that
        answers with a refusal (wrong password, no such database) at the start stops the source
        immediately.
    decode: bytes -> a message of `feed.py`, to replace its decoder.

    State: the rows that a transaction changes; the columns of each table.
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
        _check_arguments(dsn, tables, size)
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
        """The name under which the token is stored."""
        return self._name

    @property
    def schema_changes(self) -> list[str]:
        """The reported changes of columns: added, dropped or renamed, or of another type."""
        return list(self._progress.schema_changes)

    @property
    def position(self) -> str:
        """The position in the server's log before which all commits are in the tables."""
        return lsn_text(self._progress.position)

    def waiting(self) -> int:
        """Return the number of changes received of the current transaction."""
        return self._progress.waiting

    def behind(self) -> int:
        """Return the bytes of the server's log that are not in the tables, as of a second ago."""
        return self._progress.behind()

    def catch_up(self, timeout: float | None = None) -> None:
        """Wait until the tables contain all transactions that are committed in Postgres now.

        While the source waits for its server, this waits too.

        Raises
        ------
        TimeoutError: it takes longer than `timeout` seconds. The cause is the reason why the server
            cannot be reached, if so.
        SourceError: the source has stopped earlier, or does not run and the server cannot be
            reached. The cause is the error that stopped the source.
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
        """Return the end of the server's log; wait while the source waits for the server.

        Raises `SourceError` if the source has stopped, `TimeoutError` after `timeout`
        seconds.
        """
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
        """Return the error for callers that wait for a stopped source."""
        cause = self._progress.cause
        return SourceError(
            f"source {self._name!r} has stopped {when}{_because(cause)}\n"
            "  start() of what ingest gave goes on once that is mended"
        )

    def trouble(self) -> SourceError | None:
        """Return the reason why it waits for a connection; `None` while it has one."""
        return self._reconnecting.trouble

    def stopped_by(self, error: BaseException | None) -> None:
        """Record the error that stopped the source; called by the ingestion."""
        self._progress.cause = error

    def begin_anew(self) -> None:
        """Read the tables at the next start, ignoring the token; called by `start(anew=True)`.

        The differences are one commit.

        Raises
        ------
        PlanError: it feeds a stream, whose events cannot be removed.
        """
        why = "the difference of two readings\n  make the stream anew, and ingest into that one"
        refuse_streams(self._name, self._into, why)
        self._resnapshot = True

    def row_class(self, table: str | None = None, *, without: Collection[str] = ()) -> type[Any]:
        """Make a class of rows with a field per column, from the schema of a table.

        Type checkers do not know its fields. `python -m reactive.sources.postgres` writes the class
        to a file, for them.

        Parameters
        ----------
        without: columns that the class leaves out. It must include generated columns, because
            Postgres does not replicate their values.

        Raises
        ------
        SourceError: there is no such table; a column is generated and not left out; `without` names
            no column; or no field can have the name of a column.
        """
        with asking(self._dsn) as connection:
            found = table or next(iter(self._wanted))
            return postgres_row_class(
                read_schema(connection, found, PostgresTypes(connection)), without
            )

    def drop(self) -> None:
        """Drop the publication, and the slots without readers, of sources of this name.

        Afterwards, such a source must begin anew.

        Raises
        ------
        SourceError: the source is running.
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
        """Set the tables that take the rows; called by `ingest`.

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
        """Yield batches; see `Source.batches`."""
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
        """Yield the batches of one connection."""
        with (
            closing(Connection(self._dsn, stop)) as control,
            closing(Connection(self._dsn, stop, replicates=True)) as replication,
        ):
            self._reconnecting.note_answer()
            feeds = self._feeds(control)
            yield from self._begin(position, control, replication, feeds)
            self._reconnecting.state = "streaming"
            self._reconnecting.note_connection()
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
        """Return the feed of each table. Raises `SourceError` if one cannot be followed."""
        slots.check_server(control)
        types = PostgresTypes(control)
        found = []
        for name, kind in self._wanted.items():
            row_type = kind or next(iter(self._into))
            schema = read_schema(control, name, types)
            feed = TableFeed(schema, row_type, self._into[row_type])
            found.append(self._reconnecting.check_feed(feed))
        return found

    def _begin(
        self,
        position: _Position,
        control: Connection,
        replication: Connection,
        feeds: list[TableFeed],
    ) -> Iterator[Batch[Any]]:
        """Continue with the slot; if that is impossible, create one and yield its snapshot."""
        schemas = [feed.schema for feed in feeds]
        temporary = self._temporary()
        is_new = position.lsn == 0
        if not (is_new or position.is_lost or temporary):
            slots.check_slot(control, position.slot)
            slots.check_published(control, self._publication, schemas)
            return
        if not is_new and any(feed.is_stream for feed in feeds):
            raise SourceError(
                f"source {self._name!r} cannot go on at its position: slot {position.slot!r} is "
                "gone, and a stream does not take the rows again\n"
                "  make the stream anew, and ingest into that one; temporary=False keeps the slot"
            )
        slots.publish(control, self._publication, schemas, ours=self._is_ours)
        if position.slot:
            slots.drop_slot(control, position.slot)
        self._reconnecting.state = "snapshot"
        slot = slots.new_slot_name(self._name)
        if not temporary:
            yield Batch(token=position.unfinished_token(slot))
        at, exported = slots.make_slot(replication, slot, temporary=temporary)
        filters = slots.row_filters(control, self._publication)
        position.slot = slot
        token = position.token(at)
        batches = snapshot_batches(
            control, feeds, exported, filters, token, size=self._size, whole=not is_new
        )
        yield from batches
        position.is_at(token)

    def _temporary(self) -> bool:
        """Return True if the slot ends with its connection; by default without durable tables."""
        if self._is_temporary is not None:
            return self._is_temporary
        return self._journal() is None and not any(map(is_stream, self._into.values()))

    def _is_settled(self) -> bool:
        """Return True if all commits are durable, as far as the database promises."""
        journal = self._journal()
        return journal is None or bool(journal.is_settled())

    def _journal(self) -> Any:
        """Return the journal of the tables; None if they are not durable."""
        table = next(iter(self._into.values()))
        journal = engine_of(table).journal
        return journal if journal is not None and table in journal.kept else None

    def __repr__(self) -> str:
        return f"PostgresSource({', '.join(map(repr, self._wanted))}, {self._reconnecting.state})"


class _Position:
    """The position to continue from, as in the token."""

    def __init__(self, token: Token) -> None:
        self.slot: str = "" if token is None else token["slot"]
        self.lsn: int = 0 if token is None or token["lsn"] is None else lsn(token["lsn"])
        self.is_lost = False

    def token(self, position: int) -> Token:
        """Return the token of a position of this slot."""
        return {"slot": self.slot, "lsn": lsn_text(position)}

    def unfinished_token(self, slot: str) -> Token:
        """Set the slot to read, and return the token of its unfinished snapshot."""
        self.slot = slot
        return {"slot": slot, "lsn": None}

    def is_at(self, token: Token) -> None:
        """Record that a batch is committed."""
        self.lsn = lsn(token["lsn"])
        self.is_lost = False


def _check_arguments(dsn: Any, tables: Any, size: Any) -> None:
    """Raise `PlanError` for arguments that cannot be an address, tables or a number of rows."""
    if not isinstance(dsn, str):
        raise PlanError(f"dsn={dsn!r:.100} is no text\n  such as postgresql://ann@localhost/shop")
    is_map = (
        isinstance(tables, Mapping) and tables and all(map(_is_name_with_class, tables.items()))
    )
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


def _is_name_with_class(item: tuple[Any, Any]) -> bool:
    return isinstance(item[0], str) and isinstance(item[1], type)
