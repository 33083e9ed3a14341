"""A transaction: changes of several tables that become one commit, or none.

Tables change immediately and are restored if the transaction fails; views change at its end.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any

from reactive.errors import TransactionError
from reactive.runtime.boundary import hide
from reactive.runtime.copying import NotCopied
from reactive.runtime.interrupts import SIGINT
from reactive.runtime.lock import running_task
from reactive.transactions.commit import Between, Change, Commit, at_once, break_off
from reactive.transactions.pending import Pending

if TYPE_CHECKING:
    from reactive.transactions.engine import Engine


_holder: ContextVar[Any] = ContextVar("transaction", default=None)
"""The transaction that this task is in, or was started in."""


class Transaction(NotCopied):
    """Context manager of `Database.transaction()`, also for `async with`.

    Inside it tables show the changes made so far, views the last commit. Others see the last
    commit, and wait only if they write.

    >>> from reactive import Database
    >>> db = Database()
    >>> words = db.table(str)
    >>> view = words.materialize()
    >>> with db.transaction():
    ...     words.add("be")
    ...     print(len(words), len(view))
    1 0
    >>> len(view)
    1
    """

    __slots__ = ("_between", "_engine", "_entered", "_outer")

    def __init__(self, engine: Engine, between: Callable[[], object] | None = None) -> None:
        self._entered: tuple[Pending, ...] = ()
        """The pending changes of each time it was entered and not yet left."""
        self._engine = engine
        self._between: Between = () if between is None else (between,)
        """What is called between the phases of the commit (`commit.py`)."""
        self._outer: Token[Any] | None = None

    _copy_instead = "each call of db.transaction() makes another one"
    _pickle_instead = "pickle the rows of its tables, list(table) of each of db.tables()"

    def _called(self) -> str:
        return "a transaction"

    def __repr__(self) -> str:
        return f"Transaction of {self._engine!r}"

    def __enter__(self) -> Transaction:
        db_lock = self._engine.db_lock
        try:
            if db_lock.depth or db_lock.is_special or self._entered or not self._begin_at_once():
                db_lock.enter_to_write()
                try:
                    self._engine.check_entered()
                    self._begin()
                finally:
                    db_lock.depth -= 1
                    if not db_lock.depth:
                        db_lock.sequence, db_lock.depth = db_lock.sequence + 1, db_lock.at_rest
                    db_lock.lock.release()
        except Exception as error:
            hide(error)
            raise
        if db_lock.noted is not None:
            try:
                SIGINT.release(db_lock)
            except BaseException:
                self._leave(failed=True)
                raise
        return self

    async def __aenter__(self) -> Transaction:
        db_lock = self._engine.db_lock
        try:
            try:
                await db_lock.begin_async(_holder.get())
                self._engine.check_entered()
                self._begin()
            except BaseException:
                if self._engine.pending is None and db_lock.is_mine:
                    with db_lock.lock:
                        db_lock.end()
                raise
        except Exception as error:
            hide(error)
            raise
        if db_lock.transaction is None:
            db_lock.transaction = self
            self._outer = _holder.set(self)
        if db_lock.noted is not None:
            try:
                SIGINT.release(db_lock)
            except BaseException as error:
                await self.__aexit__(type(error), error, error.__traceback__)
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._leave(failed=error is not None)
        except Exception as own:
            hide(own)
            raise

    def __del__(self) -> None:
        """An interrupt came before its end."""
        while getattr(self, "_entered", ()):
            self._leave(failed=True, is_lost=True)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._outer is not None:
            _holder.reset(self._outer)
            self._outer = self._engine.db_lock.transaction = None
        try:
            self._leave(failed=error is not None)
        except Exception as own:
            hide(own)
            raise

    def _begin_at_once(self) -> bool:
        """As `_begin`, if nobody is inside and nobody has a transaction open; whether that is so.

        As nothing is called while it has the lock, nothing can come between.
        """
        engine, pending, owner = self._engine, Pending(self._between), (get_ident(), running_task())
        db_lock = engine.db_lock
        try:
            db_lock.lock.acquire()
            is_free = not (db_lock.depth or db_lock.is_special)
            if is_free:
                self._entered, engine.pending = (pending,), pending
                db_lock.owner, db_lock.is_special = owner, True
            db_lock.lock.release()
        except BaseException:
            db_lock.let_go()
            raise
        return is_free

    def _begin(self) -> None:
        engine = self._engine
        pending = engine.pending
        if pending is None:
            pending = Pending(self._between)
        else:
            pending.depth += 1
            if pending not in self._entered:
                pending.between = (*pending.between, *self._between)
        self._entered = (*self._entered, pending)
        engine.pending = pending
        engine.db_lock.begin()

    def _leave(self, *, failed: bool, is_lost: bool = False) -> None:
        """End it as often as it was entered; the outermost time, commit or take all back.

        One that is lost may be ended by any thread: that of the garbage collector.
        """
        engine, entered = self._engine, self._entered
        db_lock, pending = engine.db_lock, entered[-1]
        try:
            if is_lost:
                db_lock.enter()
            else:
                db_lock.enter_to_write()
        except BaseException:
            if db_lock.noted is not None and not db_lock.held:
                SIGINT.release(db_lock)
            raise
        version, is_last = engine.version + 1, False
        try:
            db_lock.critical = True
            self._entered = entered[:-1]
            if engine.pending is pending:
                if failed:
                    pending.failed = True
                pending.depth -= 1
                is_last = not pending.depth
                if is_last:
                    self._end(pending, version)
                    if pending.failed and not failed:
                        raise TransactionError(_NESTED)
        except BaseException:
            if is_last:
                if engine.pending is pending:
                    engine.pending = None
                    db_lock.end()
                break_off(engine, pending.statements, version)
            raise
        finally:
            db_lock.depth -= 1
            is_out, is_open = not db_lock.depth, db_lock.owner is not None
            if is_out:
                db_lock.sequence, db_lock.critical, db_lock.depth = (
                    db_lock.sequence + 1,
                    False,
                    db_lock.at_rest,
                )
            db_lock.lock.release()
            if is_open:
                if db_lock.noted is not None:
                    SIGINT.release(db_lock)
            elif is_out:
                if engine.delivery_queue:
                    engine.delivery_queue.deliver()
                if engine.dropped or engine.overflow is not None or db_lock.noted:
                    engine.look_after()

    def _end(self, pending: Pending, version: int) -> None:
        """Commit what is pending, or undo it."""
        engine, statements, between = self._engine, pending.statements, pending.between
        db_lock = engine.db_lock
        db_lock.owner, db_lock.is_special, engine.pending = None, db_lock.is_closed, None
        if db_lock.waiting:
            db_lock.end()
        if pending.failed:
            engine.updates.forget()
            Commit(engine, version, (), statements).undo(None)
            return
        if not (statements or between):
            return
        changes: list[Change] = []
        commit: Commit | None = None
        try:
            if len(statements) == 1 and not between:
                table, delta = statements[0]
                if at_once(engine, table, delta, version):
                    return
            changes = pending.changes()
            commit = Commit(engine, version, changes, statements, between)
            commit.run()
        except BaseException as error:
            if commit is None:
                commit = Commit(engine, version, [*statements], statements)
            if not commit.failed(error):
                raise


_NESTED = (
    "the transaction was rolled back: one nested in it had failed\n"
    "  let the inner exception pass, or do not nest what may fail"
)
