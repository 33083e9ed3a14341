"""A transaction: changes of several tables that become one commit, or none.

Tables change at once and are put back if the transaction fails; views change at its end.
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
from reactive.runtime.gate import running_task
from reactive.runtime.interrupts import SIGINT
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
        gate = self._engine.gate
        try:
            if gate.depth or gate.is_special or self._entered or not self._begin_at_once():
                gate.enter_to_write()
                try:
                    self._engine.check_entered()
                    self._begin()
                finally:
                    gate.depth -= 1
                    if not gate.depth:
                        gate.turns, gate.depth = gate.turns + 1, gate.at_rest
                    gate.lock.release()
        except Exception as error:
            hide(error)
            raise
        if gate.noted is not None:
            try:
                SIGINT.release(gate)
            except BaseException:
                self._leave(failed=True)
                raise
        return self

    async def __aenter__(self) -> Transaction:
        gate = self._engine.gate
        try:
            try:
                await gate.begin_async(_holder.get())
                self._engine.check_entered()
                self._begin()
            except BaseException:
                if self._engine.pending is None and gate.is_mine:
                    with gate.lock:
                        gate.end()
                raise
        except Exception as error:
            hide(error)
            raise
        if gate.transaction is None:
            gate.transaction = self
            self._outer = _holder.set(self)
        if gate.noted is not None:
            try:
                SIGINT.release(gate)
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
            self._outer = self._engine.gate.transaction = None
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
        gate = engine.gate
        try:
            gate.lock.acquire()
            is_free = not (gate.depth or gate.is_special)
            if is_free:
                self._entered, engine.pending = (pending,), pending
                gate.owner, gate.is_special = owner, True
            gate.lock.release()
        except BaseException:
            gate.let_go()
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
        engine.gate.begin()

    def _leave(self, *, failed: bool, is_lost: bool = False) -> None:
        """End it as often as it was entered; the outermost time, commit or take all back.

        One that is lost may be ended by any thread: that of the garbage collector.
        """
        engine, entered = self._engine, self._entered
        gate, pending = engine.gate, entered[-1]
        try:
            if is_lost:
                gate.enter()
            else:
                gate.enter_to_write()
        except BaseException:
            if gate.noted is not None and not gate.held:
                SIGINT.release(gate)
            raise
        version, is_last = engine.version + 1, False
        try:
            gate.critical = True
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
                    gate.end()
                break_off(engine, pending.statements, version)
            raise
        finally:
            gate.depth -= 1
            is_out, is_open = not gate.depth, gate.owner is not None
            if is_out:
                gate.turns, gate.critical, gate.depth = gate.turns + 1, False, gate.at_rest
            gate.lock.release()
            if is_open:
                if gate.noted is not None:
                    SIGINT.release(gate)
            elif is_out:
                if engine.outbox:
                    engine.outbox.deliver()
                if engine.dropped or engine.overflow is not None or gate.noted:
                    engine.look_after()

    def _end(self, pending: Pending, version: int) -> None:
        """Commit what is pending, or take it back."""
        engine, statements, between = self._engine, pending.statements, pending.between
        gate = engine.gate
        gate.owner, gate.is_special, engine.pending = None, gate.is_closed, None
        if gate.waiting:
            gate.end()
        if pending.failed:
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
