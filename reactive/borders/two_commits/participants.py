"""Participants in a joint commit: any object with `commit()` and `rollback()`, and SQLite.

    begin      begin a transaction if the object does not by itself; an open one is joined
    flush      send waiting statements, so that their errors are raised before anything commits
    check      raise unless there is a transaction that can be committed, in one database
    commit     an exception means refused, or outcome unknown (`joint.py`)
    rollback   undo everything since the last commit

Methods are coroutines, which never wait for synchronous objects: `with` runs them in one step.

`why_autocommit` and `why_not_ready` check the driver's connection before a commit:

    autocommit    each statement commits by itself, so there is nothing to commit or roll back
    failed        after a failed statement, Postgres rolls back at COMMIT without an error

State:  none, beside that of the given object.
Cost:   a few attribute reads; for Postgres with a driver other than psycopg, a query.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from functools import lru_cache
from inspect import isawaitable, iscoroutinefunction
from typing import Any

from optimizer.errors import PlanError
from reactive.errors import TransactionError


class AnyConnection:
    """An object with `commit()` and `rollback()`, such as a connection of PEP 249."""

    is_local = False
    """True if no answer can be pending after its connection is closed."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.was_sent = True
        """True if COMMIT may have been sent although `commit` raised."""
        self.is_acknowledged = False
        """True if it has committed although `commit` raised in code that ran afterwards."""

    @property
    def identity(self) -> Any:
        """The object that identifies the participant: equal for wrappers of the same connection."""
        return self.given

    @property
    def is_asynchronous(self) -> bool:
        """True if its methods must be awaited."""
        known = getattr(type(self.given), "commit", None)
        return iscoroutinefunction(self.given.commit) if known is None else _is_awaited(known)

    def __str__(self) -> str:
        kind = type(self.given)
        root = kind.__module__.partition(".")[0]
        return kind.__name__ if root in ("__main__", "builtins") else f"{root}'s {kind.__name__}"

    async def begin(self) -> None:
        """Begin a transaction, or raise `TransactionError`."""
        self.refuse_autocommit(self.given)

    async def flush(self) -> None:
        """Send waiting statements."""

    async def gather(self, mirrors: Iterable[Any]) -> None:
        """Update tables that mirror the same database, in the same commit."""

    async def check(self) -> None:
        """Raise `TransactionError` if a commit would not commit everything that was done."""
        self.refuse_unready(self.given)

    async def commit(self) -> None:
        await await_result(self.given.commit())

    async def rollback(self) -> None:
        await await_result(self.given.rollback())

    def refuse_autocommit(self, connection: Any) -> None:
        """Raise `TransactionError` if a driver's connection commits each statement by itself."""
        why = why_autocommit(connection)
        if why is not None:
            raise TransactionError(
                f"{self} cannot commit with the tables: {why}, so each statement is committed by "
                "itself, and nothing could be taken back\n"
                "  turn that off for this connection, or give another one"
            )

    def refuse_unready(self, connection: Any) -> None:
        """Raise `TransactionError` if a driver's connection would not commit its work."""
        why = why_not_ready(connection)
        if why is not None:
            raise TransactionError(
                f"{self} was not committed: {why}\n  nothing has changed, here or there; let the "
                "exception of the statement that failed pass, or use a savepoint for it"
            )


class OfSqlite(AnyConnection):
    """A connection of `sqlite3` or `aiosqlite`, which may leave BEGIN to the user."""

    is_local = True

    def __init__(self, given: Any) -> None:
        super().__init__(given)
        self._is_begun = False
        self._changes = 0

    async def begin(self) -> None:
        """Run BEGIN if the connection leaves it to the user; note the count of changes."""
        given = self.given
        if not given.in_transaction and (given.isolation_level is None or self._is_manual):
            await await_result(given.execute("BEGIN"))
        self._is_begun, self._changes = given.in_transaction, given.total_changes

    async def check(self) -> None:
        """Raise `TransactionError` if the transaction was ended inside the block."""
        given = self.given
        is_changed = self._is_begun or given.total_changes != self._changes
        if is_changed and not given.in_transaction:
            raise ended_early_error(self)

    async def commit(self) -> None:
        await (self._do("COMMIT") if self._is_manual else await_result(self.given.commit()))

    async def rollback(self) -> None:
        await (self._do("ROLLBACK") if self._is_manual else await_result(self.given.rollback()))

    @property
    def _is_manual(self) -> bool:
        """True if its `commit` and `rollback` do nothing, as with `autocommit=True`."""
        return getattr(self.given, "autocommit", None) is True

    async def _do(self, statement: str) -> None:
        """Run COMMIT or ROLLBACK, if a transaction is open."""
        if self.given.in_transaction:
            await await_result(self.given.execute(statement))


class OfApsw(AnyConnection):
    """A connection of `apsw`, which has no methods for transactions."""

    is_local = True

    @property
    def is_asynchronous(self) -> bool:
        return False

    async def begin(self) -> None:
        if not self.given.in_transaction:
            self.given.execute("BEGIN")

    async def check(self) -> None:
        if not self.given.in_transaction:
            raise ended_early_error(self)

    async def commit(self) -> None:
        if self.given.in_transaction:
            self.given.execute("COMMIT")

    async def rollback(self) -> None:
        if self.given.in_transaction:
            self.given.execute("ROLLBACK")


def ended_early_error(other: AnyConnection) -> TransactionError:
    """Return the error for a participant that committed or rolled back inside the block."""
    return TransactionError(
        f"{other} has committed or rolled back within the block, so it is not one commit with the "
        "tables\n  they are as they were before the block, and there stands what was committed: "
        "leave out commit(), rollback() and close(), as the end of the block sees to both"
    )


def participant_refusal(given: Any) -> PlanError:
    """Return the error for an object that cannot be committed."""
    return PlanError(
        f"commit_with takes what has commit() and rollback(), not {given!r:.100}\n"
        "  give a connection or a session, such as Session() of a sessionmaker"
    )


def await_result(result: Any) -> Awaitable[Any]:
    """Return an awaitable for the result of a call, which may be one already."""
    return result if isawaitable(result) else _return_result(result)


@lru_cache(maxsize=64)
def _is_awaited(function: Any) -> bool:
    return iscoroutinefunction(function)


async def _return_result(result: Any) -> Any:
    return result


IN_ERROR = 3
"""`PQTRANS_INERROR` of libpq."""


def why_autocommit(connection: Any) -> str | None:
    """Return the reason why each statement commits by itself.

    None if it does not, or if unknown.
    """
    if getattr(connection, "autocommit", False) is True:
        return "it is in autocommit mode"
    if is_without_begin(connection):
        return "its isolation_level is None"
    return None


def is_without_begin(connection: Any) -> bool:
    """Return True for a SQLite connection that does not begin transactions, and has none open."""
    kinds = {kind.__module__.partition(".")[0] for kind in type(connection).__mro__}
    if not kinds & {"sqlite3", "_sqlite3", "aiosqlite"}:
        return False
    begins = (
        connection.isolation_level is not None or getattr(connection, "autocommit", -1) is False
    )
    return not begins and not connection.in_transaction


def why_not_ready(connection: Any) -> str | None:
    """Return the reason why a COMMIT would not commit the work.

    None if there is none known.
    """
    if getattr(connection, "closed", False) not in (False, 0):
        return "its connection is closed"
    information = getattr(connection, "info", None)
    if getattr(information, "transaction_status", None) == IN_ERROR:
        return (
            "a statement of its transaction has failed, and Postgres would roll back at COMMIT "
            "without an error"
        )
    return None
