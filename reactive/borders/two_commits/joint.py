"""A joint transaction: a SQL database commits with the tables, or neither does.

    the block      tables change immediately, and so does what the SQL transaction sees
    flush          waiting statements of a session are sent
    prepare        operators step: exceptions of a view's callables are raised here
    COMMIT         of the SQL database
    publish        views show the commit, and subscribers are notified

    raised before COMMIT, or refused by it     both are unchanged, and the exception is raised
    the answer to COMMIT is lost               tables are unchanged; with `reread`, they are read
                                               again: `TransactionError`, or the interrupt
    raised after the answer                    both are committed, and the exception is raised

Only writers wait for the SQL database: until its answer, readers see the last commit
(`prepared.py`). Ctrl-C is delayed from the end of the block on, a cancellation for at most
`PATIENCE` seconds; a second Ctrl-C is immediate.

`is_refusal` classifies an exception at COMMIT: refused, or outcome unknown:

    refused    the database has answered no, or was not asked
    unknown    the answer was lost, or never came: it may have committed

                            refused                          unknown
    SQLite (result code)    busy, locked, constraint, full,  I/O error, corrupt, and others
                            interrupt, read only, ...
    SQLSTATE                all others                       08, 57P01 to 57P05, 40003, 58, XX
    MySQL (number)          of the server                    of the client (2000 to 2999), 1053
    PEP 249 class           IntegrityError, DataError,       OperationalError, InterfaceError,
                            ProgrammingError, NotSupported   InternalError, Error
    SQLAlchemy              of its own, nothing was sent     `connection_invalidated`

Anything else is unknown: an interrupt, a time-out, an exception of another object.

`await_surely` awaits an operation even if the task is cancelled meanwhile: a cancelled COMMIT has
an unknown outcome, and most take a millisecond. A cancellation waits for at most `PATIENCE`
seconds, because a server may never answer.

State:  that of the transaction.
Cost:   those of a transaction and of the SQL commit, and some 60 us, half of them for the two
        phases.
Source: a commit in two phases with one participant that cannot prepare, which commits in between:
        the "last resource" of transaction managers; PEP 249; the codes of SQLite, appendix A of the
        manual of Postgres, the errors of MySQL.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from reactive.borders.two_commits.of_sqlalchemy import participant_of
from reactive.borders.two_commits.rereading import CommitInDoubt
from reactive.engine.runtime.boundary import hide
from reactive.engine.runtime.interrupts import SIGINT, is_asynchronous
from reactive.engine.transactions.prepared import PreparedTransaction
from reactive.engine.transactions.transaction import Transaction
from reactive.errors import TransactionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reactive.engine.transactions.engine import Engine


log = logging.getLogger("reactive")


class JointTransaction(Transaction):
    """The context manager of `Database.transaction(commit_with=...)`, also for `async with`."""

    __slots__ = ("_is_awaited", "_other")

    def __init__(self, engine: Engine, given: Any) -> None:
        super().__init__(engine)
        self._other = participant_of(given)
        self._is_awaited = False

    def __enter__(self) -> JointTransaction:
        is_again = bool(self._entered)
        try:
            if self._other.is_asynchronous:
                raise TransactionError(_AWAITED.format(self._other))
            self._check_nesting()
            super().__enter__()
            run_without_waiting(self._join())
        except BaseException as error:
            if not is_again:
                self._give_up()
            if isinstance(error, Exception):
                hide(error)
            raise
        return self

    async def __aenter__(self) -> JointTransaction:
        try:
            self._is_awaited = True
            self._check_nesting()
            await super().__aenter__()
            await self._join()
        except Exception as error:
            hide(error)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._is_nested:
                super().__exit__(kind, error, traceback)
            else:
                self._end_both_at_once(error)
        except Exception as own:
            hide(own)
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._is_nested:
                await super().__aexit__(kind, error, traceback)
            else:
                await self._end_both(error)
        except Exception as own:
            hide(own)
            raise

    def _end_both_at_once(self, error: BaseException | None) -> None:
        """End both transactions without an event loop.

        If that raises, and nothing is prepared, undo this one.
        """
        try:
            run_without_waiting(self._end_both(error))
        except BaseException:
            self._give_up()
            raise

    def _give_up(self) -> None:
        """Undo the transaction if an interrupt arrived before anything else could."""
        if self._entered and not self._entered[0].depth and not self._entered[0].is_prepared:
            self._end_all()

    @property
    def _is_nested(self) -> bool:
        """True if it is left inside another one, or has been ended otherwise."""
        entered = self._entered
        return not entered or entered[0].depth > 0 or self._engine.mine is not entered[0]

    def _check_nesting(self) -> None:
        """Raise if it is entered inside a transaction that does not commit the same participant."""
        pending = self._engine.mine
        if pending is None:
            return
        if pending.other is None:
            raise TransactionError(_OUTERMOST.format(self._other))
        if pending.other.identity is not self._other.identity:
            raise TransactionError(_ANOTHER.format(self._other, pending.other))

    async def _join(self) -> None:
        """Begin the SQL transaction, if this is the outermost one."""
        pending = self._entered[0]
        if pending.depth:
            return
        joined, key = self._engine.joined, id(self._other.identity)
        try:
            pending.other = self._other
            if key in joined:
                log.warning(_BROKEN_OFF, self._other)
                await joined[key].rollback()
            joined[key] = self._other
            await self._other.begin()
        except BaseException as error:
            await self._undo_both(self._take_prepared(), error)
            raise

    def _take_prepared(self) -> PreparedTransaction:
        prepared = PreparedTransaction(self._engine)
        prepared.take(self)
        return prepared

    async def _end_both(self, error: BaseException | None) -> None:
        """Commit both, or undo both because the block has raised `error`."""
        db_lock = self._engine.db_lock
        holds_back = SIGINT.hold_back(db_lock)
        try:
            prepared = self._take_prepared()
            if error is None:
                await self._commit_both(prepared)
            else:
                await self._undo_both(prepared, error)
        finally:
            if holds_back:
                db_lock.is_held_back = False
            self._engine.after()

    async def _commit_both(self, prepared: PreparedTransaction) -> None:
        """Commit the other side, then publish here; undo both if the other side refuses.

        Raises `TransactionError` if the outcome of the other commit is unknown.
        """
        engine, sql = self._engine, self._other
        if engine.rereading is not None:
            await self._refuse_doubtful(prepared)
        cancelled, lost = None, CommitInDoubt()
        try:
            await sql.flush()
            await sql.check()
            if engine.mirrors:
                await sql.gather(engine.mirrors)
            if engine.journal is not None:
                self._check_durable(prepared)
            prepared.prepare()
            if engine.rereading is not None:
                engine.rereading.expect(prepared.changed_tables(), lost)
        except BaseException as error:
            lost.is_known = True
            await self._undo_both(prepared, error)
            raise
        try:
            cancelled = await self._patiently(sql.commit())
            lost.is_known = True
            self._is_over()
            prepared.publish()
        except BaseException as error:
            if lost.is_known or sql.is_acknowledged:
                lost.is_known = True
                self._is_over()
                if prepared.is_open:
                    prepared.publish()
                raise
            if sql.was_sent and not is_refusal(error):
                await self._end_unknown(prepared, error, lost)
            lost.is_known = True
            await self._undo_both(prepared, error)
            error.add_note(f"  {sql} refused the commit: nothing has changed, here or there")
            raise
        if cancelled is not None:
            raise cancelled

    async def _undo_both(self, prepared: PreparedTransaction, error: BaseException) -> None:
        """Undo the tables, and roll the SQL database back."""
        try:
            prepared.undo()
        finally:
            try:
                cancelled = await self._patiently(self._other.rollback())
                if cancelled is not None:
                    comes_again()
            except Exception as own:
                if is_asynchronous(own):
                    raise
                error.add_note(_NOT_ROLLED_BACK.format(self._other, own))
            self._is_over()

    def _is_over(self) -> None:
        """Forget the participant after its commit or rollback."""
        self._engine.joined.pop(id(self._other.identity), None)

    async def _end_unknown(
        self, prepared: PreparedTransaction, error: BaseException, lost: CommitInDoubt
    ) -> NoReturn:
        """Undo the tables after an unknown outcome, read again what can be, and raise."""
        known, changed = self._engine.rereading, prepared.changed_tables()
        again = () if known is None else tuple(table for table in changed if table in known.by)
        try:
            await self._undo_both(prepared, error)
            if again:
                await self._settle(lost)
        finally:
            if again:
                known.watch()
        text = self._describe_settled(again) if again else ""
        rest = [repr(table.name) for table in changed if table not in again]
        if rest:
            text += _LEFT.format(", ".join(rest))
        told = _UNKNOWN.format(self._other, f"{type(error).__name__}: {error}".strip(": ")) + text
        if is_asynchronous(error):
            error.add_note(f"  {told}")
            raise error
        raise TransactionError(told) from error

    async def _settle(self, lost: BaseException) -> None:
        """Read the tables in doubt again; in a thread of its own if the transaction is awaited."""
        settle, confirms = self._engine.rereading.settle, not self._other.is_local
        if self._is_awaited:
            await asyncio.to_thread(settle, lost, confirms=confirms)
        else:
            settle(lost, confirms=confirms)

    def _describe_settled(self, again: Sequence[Any]) -> str:
        """Describe the outcome for the tables that can be read again."""
        doubts = self._engine.rereading.doubts
        text = ""
        if known := [repr(table.name) for table in again if table not in doubts]:
            text += _READ.format(", ".join(known))
        if behind := [table for table in again if table in doubts]:
            names, why = ", ".join(repr(table.name) for table in behind), doubts[behind[0]]
            text += _IN_DOUBT.format(names, f"{type(why).__name__}: {why}")
        return text

    async def _refuse_doubtful(self, prepared: PreparedTransaction) -> None:
        """If a changed table is in doubt, undo both, read that table again, and raise."""
        known = self._engine.rereading
        if not known.doubts:
            return
        try:
            prepared.flush()
        except BaseException as error:
            await self._undo_both(prepared, error)
            raise
        doubtful = [table for table in prepared.changed_tables() if table in known.doubts]
        if doubtful:
            doubt = TransactionError(_DOUBTFUL.format(doubtful[0].name, self._other))
            await self._undo_both(prepared, doubt)
            await self._settle(known.doubts.get(doubtful[0], doubt))
            raise doubt

    def _check_durable(self, prepared: PreparedTransaction) -> None:
        """Raise if a table could be in its file but not in the SQL database, permanently."""
        known, journal = self._engine.rereading, self._engine.journal
        prepared.flush()
        for table in prepared.changed_tables():
            if table in journal.kept and (known is None or table not in known.by):
                raise TransactionError(_DURABLE.format(table.name, self._other))

    async def _patiently(self, act: Coroutine[Any, Any, None]) -> BaseException | None:
        """Await an operation; return a cancellation that arrived meanwhile, None without one.

        Only an asynchronous operation outlives a cancellation.
        """
        if self._is_awaited and self._other.is_asynchronous:
            return await await_surely(act)
        await act
        return None


def run_without_waiting(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()
    raise AssertionError("what is not asynchronous has waited")


_AWAITED = (
    "{} is asynchronous, and `with` cannot wait for its commit\n"
    "  write `async with db.transaction(commit_with=...)`"
)
_OUTERMOST = (
    "{} cannot be committed within a transaction that is open: that one may fail after it\n"
    "  give commit_with to the outermost transaction"
)
_ANOTHER = (
    "{} cannot be committed within a transaction that commits {}: they commit one after the other,"
    " and the second may refuse when the first has committed\n"
    "  use one connection for both, or a transaction after the other"
)
_BROKEN_OFF = (
    "%s was rolled back first: an exception from outside had kept a transaction of it from its end"
)
_NOT_ROLLED_BACK = "  rolling {} back raised too: {!r:.200}"
_UNKNOWN = "outcome unknown: {} may have committed, or not; the answer was lost ({:.200})"
_READ = "\n  read again from there, and right: table {}"
_IN_DOUBT = (
    "\n  in doubt: table {}, with the rows from before; reading it again raised {:.200}"
    "\n  it is tried until it does not; db.in_doubt says what is left, db.reread() tries now"
)
_LEFT = (
    "\n  as before the commit: table {}, which may differ from there"
    "\n  look there, and make the changes again if it has committed; or have them read again: "
    "db.table(..., reread=callable)"
)
_DOUBTFUL = (
    "table {!r} was in doubt: the answer to an earlier commit was lost, and it had not been read "
    "again; so {} was not committed\n"
    "  nothing has changed, here or there; do it again; it has been tried to read it meanwhile, "
    "see db.in_doubt"
)
_DURABLE = (
    "table {!r} is durable, and {} would commit its changes too: of two files one may be written "
    "when the process ends, and the other not\n"
    "  nothing has changed, here or there; make it with reread=callable, which gives its rows from "
    "there; or with durable=False"
)


SQLITE_REFUSES = frozenset({1, 3, 4, 5, 6, 8, 9, 13, 17, 19, 20, 21, 23})
"""The result codes that mean refused.

ERROR, PERM, ABORT, BUSY, LOCKED, READONLY, INTERRUPT, FULL, SCHEMA, CONSTRAINT, MISMATCH, MISUSE
and AUTH.
"""
LOST_CLASSES = ("08", "58", "XX")
"""The SQLSTATE classes of errors of the connection, the system, and the server itself."""
LOST_STATES = frozenset({"40003", "57P01", "57P02", "57P03", "57P04", "57P05"})
"""The completion is unknown; the server is shutting down, or has crashed."""
MYSQL = frozenset({"pymysql", "MySQLdb", "mysql", "aiomysql", "asyncmy"})
MYSQL_LOST = frozenset({1053, 1927, *range(2000, 3000)})
NOT_DONE = frozenset({"IntegrityError", "DataError", "ProgrammingError", "NotSupportedError"})
"""The classes of PEP 249 that mean refused."""


def is_refusal(error: BaseException) -> bool:
    """Return True if a database that raised this error at COMMIT has surely not committed.

    >>> import sqlite3
    >>> is_refusal(sqlite3.IntegrityError("FOREIGN KEY constraint failed"))
    True
    >>> is_refusal(sqlite3.OperationalError("disk I/O error"))
    False
    """
    if not isinstance(error, Exception) or is_asynchronous(error):
        return False
    root = _module(error)
    if root == "sqlalchemy":
        return _of_sqlalchemy(error)
    if root == "django" and isinstance(error.__cause__, Exception):
        return is_refusal(error.__cause__)
    for said in (_sqlite_code(error), _state(error), _mysql_number(error, root)):
        if said is not None:
            return said
    return any(kind.__name__ in NOT_DONE for kind in type(error).__mro__)


def _module(error: Exception) -> str:
    return type(error).__module__.partition(".")[0]


def _of_sqlalchemy(error: Any) -> bool:
    """Return True if an error of SQLAlchemy is a refusal.

    Its own errors are raised before it sends anything; others wrap one of the driver.
    """
    if not hasattr(error, "connection_invalidated"):
        return True
    return not error.connection_invalidated and is_refusal(error.orig)


def _sqlite_code(error: Any) -> bool | None:
    """Return True if the code of a SQLite error is a refusal; None for an error without a code."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None and _module(error) == "apsw":
        code = getattr(error, "result", None)
    return None if not isinstance(code, int) else (code & 0xFF) in SQLITE_REFUSES


def _state(error: Any) -> bool | None:
    """Return True if the SQLSTATE of an error is a refusal; None for an error without one."""
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    if not isinstance(state, str):
        return None
    return not (state.startswith(LOST_CLASSES) or state in LOST_STATES)


def _mysql_number(error: Exception, root: str) -> bool | None:
    """Return True if the number of a MySQL error is a refusal; None for other errors."""
    if root not in MYSQL or not error.args or not isinstance(error.args[0], int):
        return None
    return error.args[0] not in MYSQL_LOST


PATIENCE = 5.0
"""The seconds that a cancellation waits."""


async def await_surely(act: Coroutine[Any, Any, None]) -> BaseException | None:
    """Await an operation in a task of its own. Return the cancellation that arrived meanwhile.

    Raises
    ------
    BaseException: the operation raised it; `CancelledError` after `PATIENCE` seconds.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(act)
    cancelled, until = None, 0.0
    while not task.done():
        left = None if cancelled is None else until - loop.time()
        if left is not None and left <= 0:
            task.cancel()
            raise cancelled or asyncio.CancelledError
        try:
            await asyncio.wait([task], timeout=left)
        except asyncio.CancelledError as error:
            if cancelled is None:
                cancelled, until = error, loop.time() + PATIENCE
    task.result()
    return cancelled


def comes_again() -> None:
    """Deliver a delayed cancellation at the next point where the task waits."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
        task.cancel()
