"""A transaction: changes of several tables that become one commit, or none.

Tables change immediately and are restored if the transaction fails; views change at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from optimizer.errors import PlanError
from reactive.engine.dataflow.discrimination import check_delivery
from reactive.engine.runtime.boundary import hide
from reactive.engine.runtime.closeable import Uncopyable
from reactive.engine.runtime.collector import in_pause
from reactive.engine.runtime.interrupts import SIGINT
from reactive.engine.runtime.lock import me
from reactive.engine.transactions.commit import (
    Between,
    Change,
    Commit,
    break_off,
    commit_few_rows,
    commit_tables_directly,
)
from reactive.engine.transactions.pending import (
    Pending,
    bring_back,
    check_beside,
    new_pending,
    note_beneath,
    rebase,
    started_in,
)
from reactive.errors import TransactionError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine


T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
NEVER: tuple[Pending, ...] = ()


class Transaction(Uncopyable):
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

    __slots__ = (*("_between", "_deliver", "_engine", "_entered", "_label", "_outer", "_timeout"),)

    def __init__(self, engine: Engine, between: Callable[[], object] | None = None) -> None:
        self._entered = NEVER
        """The pending changes of each `with` block that was entered and not yet left."""
        self._engine = engine
        self._between: Between = () if between is None else (between,)
        """The functions to call between the phases of the commit (`commit.py`)."""
        self._outer: Token[Any] | None = None
        self._deliver: str | None = None
        """The delivery mode, if not the database's."""
        self._timeout: float | None = None
        self._label: str | None = None
        """The name of the commit in the history."""

    _copy_instead = "each call of db.transaction() makes another one"
    _pickle_instead = "pickle the rows of its tables, list(table) of each of db.tables()"

    def _called(self) -> str:
        return "a transaction"

    def __repr__(self) -> str:
        return f"Transaction of {self._engine!r}"

    def __call__(self, function: F) -> F:
        """Refuse to decorate a function; `db.transaction(retry=...)` does that."""
        raise TransactionError(
            "cannot decorate a function: a transaction is for one block\n"
            "  say how often it may run again: @db.transaction(retry=0)"
        )

    def __enter__(self) -> Transaction:
        db_lock = self._engine.db_lock
        if not self._begins_at_once():
            self._begin_in_turn()
        if db_lock.noted is not None:
            try:
                SIGINT.release(db_lock)
            except BaseException:
                self._leave(True)
                raise
        return self

    async def __aenter__(self) -> Transaction:
        db_lock = self._engine.db_lock
        if not self._begins_at_once():
            await self._begin_in_turn_of_tasks()
        if db_lock.transaction is None:
            db_lock.transaction = self
            self._outer = started_in.set(self)
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
            self._leave(error is not None)
        except Exception as count_entry:
            hide(count_entry)
            raise

    def __del__(self) -> None:
        """Roll back a transaction whose block an interrupt prevented from ending."""
        if getattr(self, "_entered", NEVER):  # missing if `__init__` did not run
            self._end_all()

    def _end_all(self) -> None:
        while self._entered:
            self._leave(True)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._outer is not None:
            started_in.reset(self._outer)
            self._outer = self._engine.db_lock.transaction = None
        try:
            self._leave(error is not None)
        except Exception as count_entry:
            hide(count_entry)
            raise
        queue = self._engine.delivery_queue
        if queue and not self._is_told_in_background():
            await queue.until_told(self._engine.version, self._patience())

    def _is_told_in_background(self) -> bool:
        if self._deliver is None:
            return self._engine.delivery_queue.in_background
        return self._deliver == "background"

    def _patience(self) -> float | None:
        """Return the seconds to wait for subscribers; None for no limit."""
        return self._engine.delivery_queue.timeout if self._timeout is None else self._timeout

    def _tell(self) -> None:
        """Deliver the deltas in the mode of this transaction."""
        queue = self._engine.delivery_queue
        if self._is_told_in_background():
            queue.deliver_in_background(self._engine.version)
        else:
            queue.deliver_here(self._engine.version, self._patience())

    def _has_ended(self) -> None:
        """Reset, after `PreparedTransaction` has committed or undone the changes."""
        self._entered = NEVER
        if self._outer is not None:
            with suppress(ValueError):  # in another context, which has no such variable
                started_in.reset(self._outer)
            self._outer = self._engine.db_lock.transaction = None

    def _begins_at_once(self) -> bool:
        """Begin, if the lock is free and no transaction is open; otherwise return False.

        Nothing is called while the lock is held, so no interrupt can occur there.
        """
        engine = self._engine
        db_lock = engine.db_lock
        if db_lock.depth or db_lock.is_special or self._entered:
            return False
        pending, owner = new_pending(self._between), me()
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

    def _begin_in_turn(self) -> None:
        """Begin within the open transaction, or after others have ended theirs."""
        db_lock = self._engine.db_lock
        try:
            db_lock.enter_to_write(self._engine.set_aside)
            try:
                self._engine.check_entered()
                self._engine.check_filling()
                if self._engine.aside and self._engine.pending is None:
                    check_beside(self._engine, ())
                self._begin()
            finally:
                db_lock.depth -= 1
                if not db_lock.depth:
                    db_lock.sequence, db_lock.depth = db_lock.sequence + 1, db_lock.at_rest
                db_lock.lock.release()
        except Exception as error:
            hide(error)
            raise

    async def _begin_in_turn_of_tasks(self) -> None:
        """Do as `_begin_in_turn`, without blocking the event loop."""
        db_lock = self._engine.db_lock
        try:
            try:
                await db_lock.begin_async(started_in.get())
                self._engine.check_entered()
                self._engine.check_filling()
                self._begin()
            except BaseException:
                if self._engine.pending is None and db_lock.is_mine:
                    with db_lock.lock:
                        db_lock.end()
                raise
        except Exception as error:
            hide(error)
            raise

    def _begin(self) -> None:
        """Open a transaction, or enter the open one once more. Call it inside the lock."""
        engine = self._engine
        pending = engine.pending
        if pending is None:
            pending = new_pending(self._between)
        else:
            pending.depth += 1
            if self._between and not any(known is pending for known in self._entered):
                pending.between = (*pending.between, *self._between)
        self._entered = (pending, *self._entered)
        engine.pending = pending
        engine.db_lock.begin()

    def _leave(self, failed: bool) -> None:
        """Leave one block; the outermost one commits, or undoes everything.

        Any thread may do it: the garbage collector ends a transaction that was never left.
        """
        engine, entered = self._engine, self._entered
        db_lock, pending = engine.db_lock, entered[0]
        try:
            db_lock.lock.acquire()
            if db_lock.depth:
                db_lock.count_entry()
            else:
                db_lock.depth = 1
        except BaseException:
            db_lock.let_go()
            if db_lock.noted is not None and not db_lock.depth_here:
                SIGINT.release(db_lock)
            raise
        version, is_last = engine.version + 1, False
        try:
            db_lock.critical = True
            if engine.aside:
                bring_back(engine, pending)
            self._entered = entered[1:]
            if engine.pending is pending:
                if failed:
                    pending.failed = True
                if pending.depth:
                    pending.depth -= 1
                else:
                    db_lock.owner, db_lock.is_special = None, db_lock.is_closed
                    engine.pending, is_last = None, True
                    if db_lock.waiting:
                        db_lock.end()
                    if pending or pending.failed or pending.between:
                        if self._label is None:
                            self._end(pending, version)
                        else:
                            self._end_labelled(pending, version)
                        if pending.failed and not failed:
                            raise TransactionError(_NESTED)
        except BaseException:
            if is_last:
                break_off(engine, pending, version)
            raise
        finally:
            is_out, is_open = db_lock.depth == 1, db_lock.owner is not None
            if is_out:
                db_lock.sequence += 1
                db_lock.critical = False
                db_lock.depth = db_lock.at_rest
            else:
                db_lock.depth -= 1
            db_lock.lock.release()
            if is_open:
                if db_lock.noted is not None:
                    SIGINT.release(db_lock)
            elif is_out:
                if engine.delivery_queue:
                    self._tell()
                if engine.dropped or engine.overflow is not None or db_lock.noted:
                    engine.look_after()

    def _end_labelled(self, pending: Pending, version: int) -> None:
        """Commit the pending changes under the label of the transaction."""
        engine = self._engine
        engine.said = (self._label, None)
        try:
            self._end(pending, version)
        finally:
            engine.said = (None, None)

    def _end(self, pending: Pending, version: int) -> None:
        """Commit the pending changes; undo them after a failure, or if the commit raises."""
        engine, between = self._engine, pending.between
        if pending.beneath:
            rebase(engine, pending)
        if pending.failed:
            engine.updates.discard()
            Commit(engine, version, (), pending).undo(None)
            return
        changes: Sequence[Change] = ()
        commit: Commit | None = None
        try:
            changes = changes_of(engine, pending)
            if engine.aside:
                check_beside(engine, changes)
            if between:
                is_committed = False
            elif not changes:
                return
            elif len(changes) == 1:
                is_committed = commit_few_rows(engine, *changes[0], version)
            else:
                is_committed = commit_tables_directly(engine, changes, version)
            if not is_committed:
                commit = Commit(engine, version, [*changes], pending, between)
                commit.run()
        except BaseException as error:
            if commit is None:
                commit = Commit(engine, version, [*(changes or pending)], pending)
            if not commit.undo_and_retry(error):
                raise
        if engine.aside:
            note_beneath(engine, changes)


def changes_of(engine: Engine, pending: Pending) -> Sequence[Change]:
    """Return the changes to commit at the end of a transaction: one per table."""
    found = _own_changes_of(engine, pending)
    if engine.feedback is not None and found:
        return engine.feedback.with_loops(found, pending)  # type: ignore[no-any-return]
    return found


def _own_changes_of(engine: Engine, pending: Pending) -> Sequence[Change]:
    """Return the changes that the statements of a transaction make, one per table."""
    if engine.objects is not None:
        engine.objects.flush(pending)
        return pending.changes()
    if len(pending) == 1:
        return pending
    few = pending.changes_of_two_rows()
    return in_pause(pending.changes, _keep) if few is None else few


def _keep(_: Sequence[Change]) -> None:
    """Do nothing: changes derived from statements need no undo."""


_NESTED = (
    "the transaction was rolled back: one nested in it had failed\n"
    "  let the inner exception pass, or do not nest what may fail"
)


def run_in_transaction(transaction: Transaction, do: Callable[[], T]) -> T:
    """Return the result of a callable inside a transaction; safe if the caller keeps exceptions.

    An interrupt may occur between the start of a transaction and its block. The exception then
    holds the frame, and that the transaction, which would stay open.
    """
    try:
        with transaction:
            return do()
    finally:
        transaction._end_all()


def deliver_by(transaction: Transaction, deliver: str | None, timeout: float | None) -> Transaction:
    """Set the delivery mode, and how long the writer waits for it; return the transaction.

    Refuses a timeout with "background", in which no writer waits.
    """
    if (deliver, timeout) != (None, None):
        check_delivery(deliver, timeout)
        if deliver == "background" and timeout is not None:
            raise PlanError(
                "deliver_timeout= says how long the writer waits, who waits for nobody with "
                "deliver='background'\n  give one of the two"
            )
        transaction._deliver, transaction._timeout = deliver, timeout
    return transaction
