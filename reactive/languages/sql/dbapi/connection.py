"""`connect(db)`: connections and cursors of PEP 249.

>>> from reactive import Database
>>> from reactive.sql import connect
>>> con = connect(Database())
>>> _ = con.execute("create table towns (name text primary key, people int)")
>>> _ = con.cursor().executemany("insert into towns values (?, ?)", [("Bonn", 3), ("Ulm", 1)])
>>> cur = con.execute("select name from towns where people > :least", {"least": 2})
>>> cur.fetchall(), [column[0] for column in cur.description]
([Row(name='Bonn')], ['name'])
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from threading import get_ident
from types import TracebackType
from typing import Any, Self, TypeAlias
from weakref import WeakValueDictionary

from reactive.api.internal_interface import engine_of
from reactive.engine.runtime.closeable import Closeable
from reactive.languages.sql import entry
from reactive.languages.sql.dbapi import errors
from reactive.languages.sql.dbapi.errors import (
    InterfaceError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    translated,
)
from reactive.languages.sql.dbapi.placeholders import with_names
from reactive.languages.sql.terms.session import Session
from reactive.languages.sql.terms.types import sql_name
from reactive.languages.sql.terms.values import BindingSchema

Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any] | None
Description: TypeAlias = tuple[str, str, None, None, None, None, bool]
"""Name, name of the type, and whether there may be NULL."""
BEGINNING = re.compile(r"(?:\s+|--[^\n]*\n|/\*.*?\*/|\()*(\w*)", re.DOTALL)
QUERIES = frozenset(
    {"select", "with", "values", "from", "show", "describe", "desc", "explain", "pragma"}
)
ENDS = {"commit": "commit", "end": "commit", "rollback": "rollback", "abort": "rollback"}
"""The method that a statement about a transaction stands for; another one is `begin`."""
OF_TRANSACTION = re.compile(
    r"(?:start\s+transaction|(?:begin|commit|end|rollback|abort)(?:\s+(?:transaction|work))?"
    r"|begin\s+(?:deferred|immediate|exclusive)(?:\s+transaction)?)"
    r"(?:\s+isolation\s+level\s+\w+(?:\s+\w+)?)?(?:\s|;|--[^\n]*|/\*.*?\*/)*",
    re.DOTALL | re.IGNORECASE,
)
"""`begin`, `commit` and `rollback` of whole transactions."""
ABOUT_TRANSACTIONS = frozenset({*ENDS, "begin", "start", "savepoint", "release"})
OF_TABLES = frozenset({"create", "drop", "alter", "prepare", "deallocate", "refresh", "comment"})
"""Statements that no transaction undoes, and that begin none."""


OPENED = WeakValueDictionary[int, "SqlConnection"]()
"""The connection whose transaction is open, by the number of the engine of its database."""


class SqlConnection:
    """A connection of PEP 249 to a database of this process; made by `connect`.

    Its statements are those of `db.execute`, its queries those of `db.sql`, evaluated once, with
    the state of the last commit. Use a connection in one thread at a time.
    """

    Warning = Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, db: Any, *, autocommit: bool) -> None:
        self.db = db
        """The database."""
        self._autocommit = autocommit
        self._session = Session()
        self._open: Any = None
        self._thread = 0
        self._is_closed = False

    @property
    def autocommit(self) -> bool:
        """True if each statement outside of `begin()` is a commit of its own."""
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        if self._open is not None:
            raise ProgrammingError("a transaction is open: commit() or rollback() first")
        self._autocommit = value

    @property
    def in_transaction(self) -> bool:
        """True while a transaction is open."""
        return self._open is not None

    def cursor(self) -> SqlCursor:
        """Return a new cursor."""
        self.check()
        return SqlCursor(self)

    def execute(self, text: str, parameters: Parameters = None) -> SqlCursor:
        """Run a statement or query by a new cursor, and return the cursor."""
        return self.cursor().execute(text, parameters)

    def begin(self) -> None:
        """Open a transaction; it ends with `commit()` or `rollback()`, in the same thread.

        Other threads that write wait for its end.
        """
        self.check()
        if self._open is not None:
            raise OperationalError("a transaction is open already: commit() or rollback() first")
        self.check_others()
        with translated():
            made = self.db.transaction()
            made.__enter__()
            self._open, self._thread = made, get_ident()
            OPENED[id(engine_of(self.db))] = self

    def begin_for(self, word: str) -> None:
        """Open a transaction if the statement with this first word begins one."""
        self.check_others()
        if not self._autocommit and self._open is None and word not in OF_TABLES:
            self.begin()

    def commit(self) -> None:
        """Commit the open transaction; nothing if there is none."""
        self.check()
        self._leave(None)

    def rollback(self) -> None:
        """Undo the open transaction; nothing if there is none."""
        self.check()
        self._leave(OperationalError("rolled back"))

    def close(self) -> None:
        """Undo an open transaction, and refuse everything from now on. The database stays open."""
        if not self._is_closed:
            self._leave(OperationalError("rolled back"))
            self._is_closed = True

    def _leave(self, error: Exception | None) -> None:
        """End the open transaction, with an error if it is undone."""
        made, self._open = self._open, None
        if made is not None:
            OPENED.pop(id(engine_of(self.db)), None)
            with translated():
                made.__exit__(None if error is None else type(error), error, None)

    def check(self) -> None:
        """Refuse the use of a closed connection, and of another thread's transaction."""
        if self._is_closed:
            raise InterfaceError("the connection is closed")
        if self._open is not None and self._thread != get_ident():
            raise ProgrammingError(
                "another thread has opened the transaction of this connection\n"
                "  a thread has a connection of its own: connect(db)"
            )

    def check_others(self) -> None:
        """Refuse changes while this thread has the transaction of another connection open."""
        other = OPENED.get(id(engine_of(self.db)))
        if other is not None and other is not self and other._thread == get_ident():
            raise OperationalError(
                "another connection of this thread has a transaction open\n"
                "  end it first, or change the database by that connection"
            )

    def __enter__(self) -> Self:
        """Return the connection; the end of the block commits, or undoes if it raises."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._is_closed:
            self.commit() if error is None else self.rollback()

    def __del__(self) -> None:
        """Undo a transaction that nobody can end."""
        with suppress(Exception):
            self.close()

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "open"
        return f"<{state} connection of {self.db!r}>"


class SqlCursor(Closeable):
    """A cursor of PEP 249: runs statements, and has the rows of the last query."""

    arraysize = 1
    """Number of rows that `fetchmany()` returns."""
    lastrowid = None
    """None: rows have the keys that they are given."""

    def __init__(self, connection: SqlConnection) -> None:
        self.connection = connection
        self.description: tuple[Description, ...] | None = None
        """The columns of the last query: seven values for each, see PEP 249. None after a
        statement."""
        self.rowcount = -1
        """Number of rows of the last query, or that the last statement changed; -1 before."""
        self._rows: Iterator[Any] | None = None
        self._is_closed = False

    @property
    def rownumber(self) -> None:
        """Return None: rows are not counted."""

    def execute(self, text: str, parameters: Parameters = None) -> Self:
        """Run one statement or query, and return the cursor.

        Parameters
        ----------
        text: SQL in the dialect of the database; also `begin`, `commit` and `rollback`.
        parameters: a sequence for `?`, a mapping for `:name`; docs/sql.md lists the others.

        Cost: that of `db.execute`; of a query, that of evaluating it once.

        Raises
        ------
        ProgrammingError: the text is no SQL, names something unknown, or has other parameters.
        IntegrityError: a table refuses a row.
        DataError: a value cannot be computed.
        OperationalError: a query in a transaction that has changed something, which it does not
            see.
        """
        self._check()
        self._forget()
        word = _first_word(text)
        if word in ABOUT_TRANSACTIONS:
            getattr(self.connection, _of_transaction(text, word))()
        else:
            with translated():
                self._run(text, parameters, word)
        return self

    def executemany(
        self, text: str, parameters: Iterable[Sequence[Any] | Mapping[str, Any]]
    ) -> Self:
        """Run one statement with each of several sequences or mappings, as one commit."""
        self._check()
        self._forget()
        word = _first_word(text)
        if word in (QUERIES - {"with"}):
            raise ProgrammingError("executemany takes a statement, not a query")
        count = 0
        self.connection.begin_for(word)
        with translated(), self.connection.db.transaction():
            for each in parameters:
                self._run(text, each, word, is_query=False)
                count += max(self.rowcount, 0)
        self._forget()
        self.rowcount = count
        return self

    def _run(self, text: str, parameters: Parameters, word: str, *, is_query: bool = True) -> None:
        """Run a statement or a query by its first word; a WITH is first tried as a query."""
        engine = engine_of(self.connection.db)
        text, named = with_names(text, parameters, entry.dialect_of(engine).name)
        asked = text
        if word == "execute":
            name = re.match(r"\s*execute\s+(\w+)", text, re.IGNORECASE)
            prepared = self.connection._session.prepared
            asked = prepared.get(name[1].casefold(), "") if name else ""
            word = _first_word(asked)
        if (
            is_query
            and word in QUERIES
            and (word != "with" or entry.is_query(engine, asked, named))
        ):
            self._ask(engine, text, named)
            return
        self.connection.begin_for(word)
        returned = list[Any]()
        self.rowcount = entry.execute(
            self.connection.db, text, named, returned, self.connection._session
        )
        if returned:
            schema, rows = returned
            self.description, self._rows = _describe(schema), iter(rows)

    def _ask(self, engine: Any, text: str, named: Mapping[str, Any]) -> None:
        """Evaluate a query once."""
        if engine.mine:
            raise OperationalError(
                "a query does not see what its transaction has changed\n"
                "  commit() first, or ask before the changes"
            )
        relation = entry.query_relation(engine, text, named, self.connection._session)
        with relation.materialize(on_error="raise") as view:
            rows = list(view)
        self.description = _describe(relation.schema)
        self.rowcount = len(rows)
        self._rows = iter(rows)

    def fetchone(self) -> Any:
        """Return the next row of the last query, a named tuple; None after the last."""
        return next(self._found(), None)

    def fetchmany(self, size: int | None = None) -> list[Any]:
        """Return the next rows, at most `size` or `arraysize`."""
        rows = self._found()
        count = self.arraysize if size is None else size
        return [row for _, row in zip(range(count), rows, strict=False)]

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        return list(self._found())

    def __iter__(self) -> Iterator[Any]:
        return self._found()

    def __next__(self) -> Any:
        return next(self._found())

    def close(self) -> None:
        """Refuse everything from now on."""
        self._rows = None
        self._is_closed = True

    def setinputsizes(self, sizes: object) -> None:
        """Do nothing: values have their own sizes."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing: values have their own sizes."""

    def callproc(self, name: str, parameters: Sequence[Any] = ()) -> None:
        """Refuse a call: there are no stored procedures."""
        raise NotSupportedError(f"there is no procedure {name!r}: there are none at all")

    def _forget(self) -> None:
        """Forget the last statement."""
        self._rows, self.description, self.rowcount = None, None, -1

    def _check(self) -> None:
        """Refuse the use of a closed cursor, or one of a closed connection."""
        if self._is_closed:
            raise InterfaceError("the cursor is closed")
        self.connection.check()

    def _found(self) -> Iterator[Any]:
        """Return the rows of the last query that are left."""
        self._check()
        if self._rows is None:
            raise ProgrammingError("there are no rows to fetch: the last statement was no query")
        return self._rows


def _first_word(text: str) -> str:
    """Return the first word of a text, in small letters."""
    found = BEGINNING.match(text)
    return "" if found is None else found[1].lower()


def _of_transaction(text: str, word: str) -> str:
    """Return the method of a connection for a statement about its transaction."""
    found = BEGINNING.match(text)
    start = 0 if found is None else found.start(1)
    if OF_TRANSACTION.fullmatch(text, start) is None:
        raise NotSupportedError(
            f"{text.strip()[:60]!r} is not supported\n"
            "  begin, commit and rollback are those of a whole transaction; there are no savepoints"
        )
    return ENDS.get(word, "begin")


def _describe(schema: BindingSchema | None) -> tuple[Description, ...]:
    """Return the seven values of PEP 249 for each column."""
    columns = () if schema is None else schema.columns
    return tuple([(c.name, sql_name(c.type), None, None, None, None, c.nullable) for c in columns])


def connect(db: Any, *, autocommit: bool = True) -> SqlConnection:
    """Return a connection of Python's database interface (PEP 249) to a database.

    pandas, notebooks' SQL cells and everything that takes such a connection can ask by it.

    Parameters
    ----------
    db: a `Database`.
    autocommit: False if the first statement of a connection, and the first after a commit or
        rollback, begins a transaction, as PEP 249 has it; CREATE and DROP begin none. By default
        each statement is a commit, unless `con.begin()` or `begin` as a statement opens one.
    """
    check_database(db)
    return SqlConnection(db, autocommit=autocommit)


def check_database(db: Any) -> None:
    """Refuse what is no database, such as a path or an address."""
    if not (hasattr(db, "_engine") and hasattr(db, "transaction")):
        raise InterfaceError(
            f"a Database is needed, not {db!r:.60}\n"
            "  connect(db) and create_engine(db) take one of this process, made by Database(path)"
        )
