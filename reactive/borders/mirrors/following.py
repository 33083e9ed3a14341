"""The follower of a SQLAlchemy engine, which records the rows that its transactions touch.

    begin                          no rows are touched
    insert, update, delete, text   rows are touched
    rollback                       touched rows are forgotten
    COMMIT                         publish(touched, commit): the mirror reads the touched rows over
                                   the same connection, and commits together with it

The engine is followed, not its sessions: all of them run their statements through it, and a session
whose transaction is part of an outer one of its connection has committed only when that one has. A
savepoint that is rolled back leaves unchanged rows marked as touched.

`COMMIT` is wrapped in the dialect, which sends it, because an engine has no event after it. The
touched rows belong to the connection of the driver, in `Connection.info`.

A driver may commit by itself. The driver of SQLite begins a transaction only before a text whose
first word is INSERT, UPDATE, DELETE or REPLACE: before SAVEPOINT, and before other texts that write
to a mirrored table, the follower sends BEGIN. A statement that ends the transaction (COMMIT as a
text) is noticed by the state of the driver's connection (`statements.py`): the touched rows are
published then.

Source: SQLAlchemy: core events; `Dialect.do_commit`; its page on SQLite, "Serializable isolation /
        Savepoints / Transactional DDL".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import WeakSet

from sqlalchemy import Connection, Engine, event

from reactive.borders.mirrors.touching import statements
from reactive.borders.mirrors.touching.statements import OPTION, WatchedTables
from reactive.borders.mirrors.touching.touched_rows import TouchedRows, commit_over, reads_one_state
from reactive.errors import TransactionError

Publish = Callable[[TouchedRows, Callable[[], None]], None]
"""Commit both: the touched rows, and the SQL transaction, by the given function."""


class Follower:
    """The follower of an engine, until `stop`.

    Parameters
    ----------
    engine: a synchronous one, or the one inside an asynchronous one.
    watched: the tables whose statements are inspected.
    publish: called in place of each COMMIT of a transaction that touched rows.
    read_again: called after a statement that has ended such a transaction by itself.
    """

    def __init__(
        self,
        engine: Engine,
        watched: WatchedTables,
        publish: Publish,
        read_again: Callable[[TouchedRows], None],
    ) -> None:
        self.engine = engine
        self.watched = watched
        self._publish = publish
        self._read_again = read_again
        self.is_stopped = False
        self.open: WeakSet[TouchedRows] = WeakSet()
        """The transactions that read a snapshot of the SQL database."""
        dialect: Any = engine.dialect
        self._commit, self._rollback = dialect.do_commit, dialect.do_rollback
        self._listeners: list[tuple[str, Callable[..., Any], bool]] = [
            ("begin", self._on_begin, False),
            ("before_execute", self._before_execute, True),
            ("after_execute", self._after_execute, False),
            ("before_cursor_execute", self._before_cursor_execute, False),
            ("after_cursor_execute", self._after_cursor_execute, False),
            ("commit", self._on_commit, False),
            ("prepare_twophase", self._on_two_phases, False),
        ]
        for name, listener, gives in self._listeners:
            event.listen(engine, name, listener, retval=gives)
        dialect.do_commit, dialect.do_rollback = self._do_commit, self._do_rollback

    def stop(self) -> None:
        """Restore the engine."""
        if self.is_stopped:
            return
        self.is_stopped = True
        for name, listener, _ in self._listeners:
            event.remove(self.engine, name, listener)
        dialect: Any = self.engine.dialect
        if dialect.do_commit == self._do_commit:  # else a later wrapper calls this one
            dialect.do_commit, dialect.do_rollback = self._commit, self._rollback

    def touched(self, connection: Connection) -> TouchedRows:
        """Return the rows that the transaction of a connection has touched.

        All if its begin was missed.
        """
        found: TouchedRows | None = connection.info.get(self)
        if found is None:
            found = connection.info[self] = TouchedRows(connection, everything=True)
        return found

    def others(self, touched: TouchedRows) -> list[TouchedRows]:
        """Return the other open transactions that read a snapshot."""
        return [each for each in self.open if each.connection is not touched.connection]

    def take_touched(self, connection: Connection) -> TouchedRows:
        """Return the touched rows, and forget them here: the caller handles them."""
        found = self.touched(connection)
        taken = TouchedRows(connection)
        taken.take(found)
        found.forget()
        return taken

    def _pooled_rows(self, connection: Any) -> TouchedRows | None:
        """Return the touched rows of a pool's connection; None for a connection without a pool."""
        try:
            found: TouchedRows | None = connection.info.get(self)
        except (AttributeError, NotImplementedError):
            return None
        return found

    def _on_begin(self, connection: Connection) -> None:
        """Start recording touched rows for a transaction that begins."""
        touched = connection.info[self] = TouchedRows(connection)
        if reads_one_state(connection):
            self.open.add(touched)

    def _before_execute(
        self,
        connection: Connection,
        statement: Any,
        many: Sequence[dict[str, Any]],
        one: dict[str, Any],
        options: dict[str, Any],
    ) -> tuple[Any, Any, Any]:
        """Record the rows that a statement will touch; return the statement to run instead."""
        if getattr(statement, "is_dml", False):
            touched = self.touched(connection)
            touched.connection = connection
            if self.watched.concerns(statement):
                _check_transaction(connection)
            statement = self.watched.before(touched, statement, many or [one])
        return statement, many, one

    def _after_execute(
        self,
        connection: Connection,
        statement: Any,
        many: Sequence[dict[str, Any]],
        one: dict[str, Any],
        options: dict[str, Any],
        result: Any,
    ) -> None:
        """Record the rows known only after a statement, and the tables that its option names."""
        if getattr(statement, "is_dml", False) or getattr(statement, "is_select", False):
            self.watched.after(self.touched(connection), statement, result)
        self.touched(connection).has_state = True
        if OPTION in options:
            self.watched.note_named(self.touched(connection), options[OPTION])

    def _before_cursor_execute(
        self,
        connection: Connection,
        cursor: Any,
        text: str,
        parameters: Any,
        context: Any,
        is_many: bool,
    ) -> None:
        """Record the tables that a text may write to; begin SQLite's transaction if needed."""
        touched = self.touched(connection)
        touched.is_begun = True
        if context is None or OPTION not in context.execution_options:
            self.watched.note_text(touched, text, context)
            if touched:
                _check_transaction(connection)
        if touched or statements.is_savepoint(text):
            statements.begin_sqlite(connection, cursor, text)

    def _after_cursor_execute(
        self,
        connection: Connection,
        cursor: Any,
        text: str,
        parameters: Any,
        context: Any,
        is_many: bool,
    ) -> None:
        """Publish what was touched if the statement has ended the transaction by itself."""
        touched = self.touched(connection)
        if not touched or not statements.may_end(text):
            return
        if statements.in_transaction(connection) is False:
            ended = self.take_touched(connection)
            self._read_again(ended)

    def _on_commit(self, connection: Connection) -> None:
        self.touched(connection).connection = connection

    def _on_two_phases(self, connection: Connection, xid: Any) -> None:
        """Raise `TransactionError` if a two-phase transaction has touched mirrored rows."""
        if self.touched(connection):
            raise TransactionError(_TWO_PHASES)

    def _do_commit(self, connection: Any) -> None:
        """Commit the connection, together with the tables if it has touched rows of the mirror."""
        touched = None if self.is_stopped else self._pooled_rows(connection)
        commit = partial(self._commit, connection)
        if touched:
            self._publish(touched, commit)
        elif touched is not None and touched.gathered:
            others = partial(self.others, touched)
            commit_over(others, touched.gathered, commit)
        else:
            commit()
            return
        touched.end()

    def _do_rollback(self, connection: Any) -> None:
        """Roll the connection back, and forget the rows that it has touched."""
        self._rollback(connection)
        touched = self._pooled_rows(connection)
        if touched is not None:
            touched.end()


def _check_transaction(connection: Connection) -> None:
    """Raise `TransactionError` if each statement of a connection is committed by itself."""
    if connection._is_autocommit_isolation() or statements.is_autocommit(connection):
        raise TransactionError(_AUTOCOMMIT)


_AUTOCOMMIT = (
    "a mirror cannot follow a connection in AUTOCOMMIT: each statement is committed before the "
    "mirror could read what it did\n"
    "  write to mirrored tables in transactions, or without a mirror, and m.reload() afterwards"
)
_TWO_PHASES = (
    "a mirror cannot follow a two-phase transaction: once it is prepared nothing can be read in "
    "it, and others may commit it\n"
    "  write to mirrored tables in transactions of one phase, or m.reload() afterwards"
)
