"""Participants in a joint commit: transactions of SQLAlchemy, Django and psycopg.

SQLAlchemy: sessions and connections, synchronous or not, also of SQLModel and Flask. A
    session with one engine takes its connection when the block begins, so that a statement that
    commits by itself is refused before it runs. A session of several engines commits in one after
    the other, so it is refused if it has used more than one, unless it is `twophase`.

Django: a connection, given by its alias or itself, with `transaction.atomic` around the block. The
    block is the outermost `atomic` of its connection, because only the end of that one commits.
    Functions given to `transaction.on_commit` run when Django has committed, before views are
    published; an exception of theirs is raised after both commits.

psycopg and psycopg2 do not report that they have committed inside the block:

    psycopg    the block is a `transaction()` of the connection: inside it, `commit()` and
               `rollback()` are refused, and another `transaction()` is a savepoint
    psycopg2, and a transaction that is joined
               a setting in the server marks it, and ends with it

`participant_of` chooses the participant by the package of the given object's class:

    sqlalchemy          a session or a connection, asynchronous or not
    django, a string    a connection by its alias
    sqlite3, apsw       connections of SQLite, which begin in their own ways
    psycopg, psycopg2   connections of Postgres, which must not commit inside the block
    others              any object with `commit()` and `rollback()`

State:  Django's open `atomic`; the open block of psycopg; in the server, the setting.
Cost:   none for a block of psycopg; a mark costs a round trip at the start of the block, and one at
        its end.
Source: SQLAlchemy 2, "Session Basics" and "Working with Engines and Connections"; Django 5,
        "Database transactions"; psycopg 3, "Transaction contexts"; Postgres: `set_config`, with
        `is_local` true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from functools import lru_cache
from sys import exc_info, modules
from typing import Any

from optimizer.errors import PlanError
from reactive.borders.two_commits.participants import (
    AnyConnection,
    OfApsw,
    OfSqlite,
    await_result,
    ended_early_error,
    participant_refusal,
)
from reactive.errors import TransactionError


class OfConnection(AnyConnection):
    """A `Connection` or `AsyncConnection` of SQLAlchemy."""

    _joined: Any = None
    """The transaction that it has when the block begins."""

    @property
    def identity(self) -> Any:
        return getattr(self.given, "sync_connection", None) or self.given

    @property
    def is_local(self) -> bool:  # type: ignore[override]
        return bool(self.identity.dialect.name == "sqlite")

    async def begin(self) -> None:
        """Join the open transaction, or begin one. Raises `TransactionError` for AUTOCOMMIT."""
        self._refuse_autocommit(self.identity)
        if not self.identity.in_transaction():
            await await_result(self.given.begin())  # sends nothing
        self._joined = self.identity.get_transaction()

    async def check(self) -> None:
        self._refuse_ended()
        await self._check(self.identity)

    def _refuse_ended(self) -> None:
        """Raise `TransactionError` if the joined transaction has ended inside the block."""
        if self._joined is not None and self.identity.get_transaction() is not self._joined:
            raise ended_early_error(self)

    def _refuse_autocommit(self, connection: Any) -> None:
        """Raise `TransactionError` if each statement of a connection is committed by itself."""
        if connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT":
            raise TransactionError(
                f"{self} cannot commit with the tables: its isolation level is AUTOCOMMIT, so each "
                "statement is committed by itself, and nothing could be taken back\n"
                "  give one of an engine without that"
            )
        self.refuse_autocommit(_driver(connection))

    async def _check(self, connection: Any) -> None:
        """Raise `TransactionError` if a connection is lost, or would not commit its work."""
        if connection.invalidated:
            raise TransactionError(
                f"{self} was not committed: its connection was lost\n"
                "  nothing has changed, here or there; do it again"
            )
        driver = _driver(connection)
        self.refuse_unready(driver)
        if connection.dialect.name == "postgresql" and not hasattr(driver, "info"):
            await self._ask()  # this driver hides a failed statement

    async def gather(self, mirrors: Iterable[Any]) -> None:
        """Update the tables of each mirror that follows one of the connections."""
        for connection in list(self._connections()):
            for mirror in mirrors:
                if mirror.follows(connection):
                    if self.is_asynchronous:
                        await modules["sqlalchemy.util"].greenlet_spawn(mirror.gather, connection)
                    else:
                        mirror.gather(connection)

    def _connections(self) -> Iterable[Any]:
        """Return the connections that it commits."""
        return [self.identity]

    async def _ask(self) -> None:
        await await_result(self.given.exec_driver_sql("select 1"))


class OfSession(OfConnection):
    """A `Session` or `AsyncSession` of SQLAlchemy."""

    @property
    def identity(self) -> Any:
        return getattr(self.given, "sync_session", None) or self.given

    @property
    def is_local(self) -> bool:  # type: ignore[override]
        used = list(self._connections())
        return all(connection.dialect.name == "sqlite" for connection in used)

    async def begin(self) -> None:
        """Join or begin the session's transaction; without a single engine, begin nothing yet."""
        try:
            connection: Any = await await_result(self.given.connection())
        except modules["sqlalchemy.exc"].UnboundExecutionError:  # each class has an engine
            return
        finally:
            self._joined = self.identity.get_transaction()
        self._refuse_autocommit(getattr(connection, "sync_connection", None) or connection)

    async def flush(self) -> None:
        await await_result(self.given.flush())

    async def check(self) -> None:
        """Raise `TransactionError` unless one database is used, and its transaction can commit.

        Several databases are accepted with `twophase=True`; an open savepoint is not.
        """
        self._refuse_ended()
        if self.identity.in_nested_transaction():
            raise TransactionError(
                f"{self} was not committed: it has a savepoint open, of begin_nested()\n"
                "  nothing has changed, here or there; end it within the block"
            )
        used = list(self._connections())
        if len(used) > 1 and not self.identity.twophase:
            engines = ", ".join(sorted(str(connection.engine.url) for connection in used))
            raise TransactionError(
                f"{self} was not committed: it has used several databases ({engines}), which "
                "commit one after the other, and the second may refuse when the first has "
                "committed\n  nothing has changed, here or there; use a session for each, or one "
                "with twophase=True"
            )
        for connection in used:
            self._refuse_autocommit(connection)
            await self._check(connection)

    async def commit(self) -> None:
        """Commit the session; if that raises, record whether COMMIT may have been sent."""
        events, session = modules["sqlalchemy.event"], self.identity
        self.is_acknowledged, self.was_sent = False, True
        used = list(self._connections())
        events.listen(session, "after_commit", self._note, insert=True)
        try:
            await await_result(self.given.commit())
        except BaseException:
            self.was_sent = not all(connection.in_transaction() for connection in used)
            raise
        finally:
            events.remove(session, "after_commit", self._note)

    def _note(self, session: Any) -> None:
        self.is_acknowledged = True

    async def _ask(self) -> None:
        await await_result(self.given.execute(modules["sqlalchemy"].text("select 1")))

    def _connections(self) -> Iterable[Any]:
        """Return the connections that it commits."""
        transaction = self.identity.get_transaction()
        used = {} if transaction is None else transaction._connections
        return {id(found[0]): found[0] for found in used.values()}.values()


def sqlalchemy_participant(given: Any, names: Set[str]) -> AnyConnection:
    """Return the participant for a session or a connection of SQLAlchemy.

    Raises `PlanError` for any other object.
    """
    if names & {"scoped_session", "async_scoped_session"}:
        given = given()
        names = frozenset(kind.__name__ for kind in type(given).__mro__)
    if names & {"Session", "AsyncSession"}:
        return OfSession(given)
    if names & {"Connection", "AsyncConnection"}:
        return OfConnection(given)
    if names & {"Transaction", "AsyncTransaction"}:
        return OfConnection(given.connection)
    raise participant_refusal(given)


def _driver(connection: Any) -> Any:
    """Return the connection of the driver; for an asynchronous dialect, the adapter around it."""
    found = connection.connection
    return getattr(found, "driver_connection", None) or found.dbapi_connection


class OfDjango(AnyConnection):
    """A connection of Django in this thread, by its alias."""

    def __init__(self, alias: str) -> None:
        super().__init__(modules["django.db"].connections[alias])
        self._alias = alias
        self._atomic: Any = None

    @property
    def identity(self) -> Any:
        return self._alias

    @property
    def is_local(self) -> bool:  # type: ignore[override]
        return bool(self.given.vendor == "sqlite")

    @property
    def is_asynchronous(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"Django's connection {self._alias!r}"

    async def begin(self) -> None:
        """Enter an outermost `atomic()`. Raises `TransactionError` inside another one."""
        atomic = modules["django.db.transaction"].Atomic(self._alias, True, True)
        try:
            atomic.__enter__()
        except RuntimeError as error:
            raise TransactionError(
                f"{self} is inside an atomic() that was there before, and commits at the end of "
                "that one only\n"
                "  begin with `with db.transaction(commit_with=...)`, and use atomic() inside it; "
                "a view of a request with ATOMIC_REQUESTS is to be non_atomic_requests"
            ) from error
        self._atomic, self.is_acknowledged = atomic, False
        self.given.on_commit(self._note)

    def _note(self) -> None:
        self.is_acknowledged = True

    async def check(self) -> None:
        """Raise `TransactionError` if Django has marked the transaction for rollback."""
        if self.given.needs_rollback:
            raise TransactionError(
                f"{self} was not committed: an error in an atomic() has marked it for rollback\n"
                "  nothing has changed, here or there; let the exception pass"
            )

    async def commit(self) -> None:
        atomic, self._atomic = self._atomic, None
        atomic.__exit__(None, None, None)

    async def rollback(self) -> None:
        """Leave `atomic()` by an exception, which rolls back; do nothing if it has ended."""
        atomic, self._atomic = self._atomic, None
        if atomic is None:  # its end has rolled back
            return
        try:
            raise _AtomicRolledBack
        except _AtomicRolledBack:
            atomic.__exit__(*exc_info())


class _AtomicRolledBack(Exception):
    """The exception that makes `atomic` roll back."""


def django_participant(given: Any) -> AnyConnection:
    """Return the participant for an alias, a connection, or an `atomic` that is not entered.

    Raises `PlanError` for any other object, and for an alias that Django does not know.
    """
    if "django.db" not in modules:
        raise PlanError(
            f"commit_with={given!r:.100} is the alias of a connection of Django, which is not "
            "imported\n  give a connection or a session of what you use"
        )
    alias = given if isinstance(given, str) else _alias(given)
    if alias is None:
        raise participant_refusal(given)
    connections = modules["django.db"].connections
    if alias not in connections:
        raise PlanError(
            f"Django has no connection {alias!r}\n  there are: {', '.join(map(repr, connections))}"
        )
    return OfDjango(alias)


def _alias(given: Any) -> str | None:
    """Return the alias of a connection, its proxy `connection`, or an `Atomic`; else None."""
    if hasattr(given, "durable") and hasattr(given, "using"):
        return given.using or "default"
    found = getattr(given, "_alias", None) or getattr(given, "alias", None)
    return found if isinstance(found, str) else None


MANY = (list, tuple, set, frozenset, dict)
SQLITE = frozenset({"sqlite3", "aiosqlite"})
PSYCOPG = frozenset({"psycopg", "psycopg2"})
KNOWN = frozenset({"sqlalchemy", "django", "apsw", *SQLITE, *PSYCOPG})
METHODS = ("commit", "rollback")


def participant_of(given: Any) -> AnyConnection:
    """Return the participant for an object given as `commit_with`.

    Raises
    ------
    PlanError: it cannot be committed; or it is several.
    """
    kind: Any = type(given)
    simple = _simple(kind)
    if simple is not None:
        return simple(given)
    if isinstance(given, MANY):
        raise PlanError(
            "commit_with takes one connection or session, not several: two databases commit one "
            "after the other, and the second may refuse when the first has committed\n"
            "  that takes a commit in two phases in each of them, which this does not do; write to "
            "one of them, and have the other follow it"
        )
    root, names = _package_and_names(kind)
    if root == "sqlalchemy":
        return sqlalchemy_participant(given, names)
    if root == "django" or isinstance(given, str):
        return django_participant(given)
    if isinstance(given, type) or not all(callable(getattr(given, n, None)) for n in METHODS):
        raise participant_refusal(given)
    return AnyConnection(given)


@lru_cache(maxsize=64)
def _simple(kind: Any) -> Callable[[Any], AnyConnection] | None:
    """Return the participant's class for objects of a class, if the class alone decides.

    Else None.
    """
    if issubclass(kind, (*MANY, str, type)):
        return None
    root, names = _package_and_names(kind)
    if root == "apsw" and "Connection" in names:
        return OfApsw
    if not all(callable(getattr(kind, name, None)) for name in METHODS):
        return None
    if root in PSYCOPG and names & {"BaseConnection", "connection"}:
        return OfPsycopg
    return OfSqlite if root in SQLITE else None


@lru_cache(maxsize=64)
def _package_and_names(given: type) -> tuple[str, frozenset[str]]:
    """Return the package of a class, or of a base, and the names of all its bases."""
    classes = given.__mro__
    roots = [kind.__module__.partition(".")[0] for kind in classes]
    known = (root.removeprefix("_") for root in roots)
    found = next((root for root in known if root in KNOWN), roots[0])
    return found, frozenset(kind.__name__ for kind in classes)


MARK = "select set_config('reactive.block', 'open', true)"
MARKED = "select 1 where current_setting('reactive.block', true) = 'open'"
IDLE = 0
"""`PQTRANS_IDLE` of libpq: no transaction is open."""


class OfPsycopg(AnyConnection):
    """A `Connection` or `AsyncConnection` of psycopg, or one of psycopg2."""

    _block: Any = None
    """The open block from `transaction()`; None without one."""
    _is_marked = False

    async def begin(self) -> None:
        """Open a block of psycopg; within an open transaction, or for psycopg2, set a mark."""
        self.refuse_autocommit(self.given)
        self.refuse_unready(self.given)
        if self._is_idle and hasattr(self.given, "transaction"):
            block = self.given.transaction()
            await await_result(block.__aenter__() if self.is_asynchronous else block.__enter__())
            self._block = block
        else:
            await self._rows(MARK)
            self._is_marked = True

    async def check(self) -> None:
        self.refuse_unready(self.given)
        if self._is_idle or (self._is_marked and not await self._rows(MARKED)):
            raise ended_early_error(self)

    async def commit(self) -> None:
        """Commit, or leave the block.

        Raises `TransactionError` if the work would not be committed.
        """
        self.refuse_unready(self.given)  # without this, a lost block ends silently
        if self._block is None:
            await super().commit()
        else:
            await self._leave(None)

    async def rollback(self) -> None:
        """Roll back, or leave the block by an exception."""
        if self._block is None:
            await super().rollback()
        else:
            await self._leave(_BlockRolledBack())

    async def _leave(self, error: Exception | None) -> None:
        """Leave the open block, by an error or None; the block commits or rolls back."""
        block, self._block = self._block, None
        leave = block.__aexit__ if self.is_asynchronous else block.__exit__
        await await_result(leave(None if error is None else type(error), error, None))

    @property
    def _is_idle(self) -> bool:
        return bool(self.given.info.transaction_status == IDLE)

    async def _rows(self, statement: str) -> int:
        """Return the number of rows of a query, whatever their class."""
        cursor = self.given.cursor()
        try:
            await await_result(cursor.execute(statement))
            return len(await await_result(cursor.fetchall()))
        finally:
            await await_result(cursor.close())


class _BlockRolledBack(Exception):
    """The exception that makes the block roll back."""
