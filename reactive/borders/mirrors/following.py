"""An engine of SQLAlchemy, followed: what its transactions touch, and their ends.

    begin                          nothing is touched
    insert, update, delete, text   rows are touched
    rollback                       nothing is
    COMMIT                         publish(touched, commit): the mirror reads what was touched, by
                                   the same connection, and commits together with it

It is the engine that is followed, not its sessions: the same statements come of all of them, and a
session whose transaction is part of an outer one of its connection has committed only when that
one is. A savepoint that is rolled back leaves rows touched that are as they were.

`COMMIT` is wrapped where the dialect sends it, since no event of an engine comes after it. What is
noted belongs to the connection of the driver, in `Connection.info`.

A driver may commit by itself. That of SQLite begins a transaction only before a text whose first
word is INSERT, UPDATE, DELETE or REPLACE: before SAVEPOINT, and before other texts that write to a
mirrored table, BEGIN is sent here. A statement that ends the transaction (COMMIT as a text) is seen
by the state of the driver's connection (`statements.py`): what was touched is published then.

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
from reactive.borders.mirrors.touching.touched import TouchedRows, commit_over, reads_one_state
from reactive.errors import TransactionError

Publish = Callable[[TouchedRows, Callable[[], None]], None]
"""Commits both: what was touched, and what commits the SQL transaction when it is called."""


class Follower:
    """Follows an engine until `stop`.

    Parameters
    ----------
    engine: a synchronous one, or the one inside of an asynchronous one.
    watched: the tables whose statements are looked at.
    publish: is called in the place of each COMMIT of a transaction that touched something.
    read_again: is called after a statement that ended such a transaction by itself.
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
        """The transactions that read one state of the SQL database."""
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
        """Leave the engine as it was."""
        if self.is_stopped:
            return
        self.is_stopped = True
        for name, listener, _ in self._listeners:
            event.remove(self.engine, name, listener)
        dialect: Any = self.engine.dialect
        if dialect.do_commit == self._do_commit:  # or else another one calls this, which hands on
            dialect.do_commit, dialect.do_rollback = self._commit, self._rollback

    def touched(self, connection: Connection) -> TouchedRows:
        """By the transaction of a connection, so far; everything if nobody has seen it begin."""
        found: TouchedRows | None = connection.info.get(self)
        if found is None:
            found = connection.info[self] = TouchedRows(connection, everything=True)
        return found

    def others(self, touched: TouchedRows) -> list[TouchedRows]:
        """The transactions that are open beside one, and read one state."""
        return [each for each in self.open if each.connection is not touched.connection]

    def taken(self, connection: Connection) -> TouchedRows:
        """What was touched so far, by who sees to it: it is forgotten here."""
        found = self.touched(connection)
        taken = TouchedRows(connection)
        taken.take(found)
        found.forget()
        return taken

    def _noted(self, connection: Any) -> TouchedRows | None:
        """Of what the pool gave; nothing of a connection that is not the pool's."""
        try:
            found: TouchedRows | None = connection.info.get(self)
        except (AttributeError, NotImplementedError):
            return None
        return found

    def _on_begin(self, connection: Connection) -> None:
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
        touched = self.touched(connection)
        if not touched or not statements.may_end(text):
            return
        if statements.in_transaction(connection) is False:
            ended = self.taken(connection)
            self._read_again(ended)

    def _on_commit(self, connection: Connection) -> None:
        self.touched(connection).connection = connection

    def _on_two_phases(self, connection: Connection, xid: Any) -> None:
        if self.touched(connection):
            raise TransactionError(_TWO_PHASES)

    def _do_commit(self, connection: Any) -> None:
        touched = None if self.is_stopped else self._noted(connection)
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
        self._rollback(connection)
        touched = self._noted(connection)
        if touched is not None:
            touched.end()


def _check_transaction(connection: Connection) -> None:
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
