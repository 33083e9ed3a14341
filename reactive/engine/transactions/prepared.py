"""A commit in two separate phases, for callers that commit in another system in between.

    begin      a transaction is open: others see the last commit, writers wait
    prepare    operators have stepped, so callables can no longer raise; tables and views still show
               others the last commit, and refuse further statements
    publish    the commit stands, and subscribers are notified
    undo       instead of publishing, at any time: restore tables and operators

    prepared = PreparedTransaction(db._engine)
    prepared.begin()
    orders.add(order)
    prepared.prepare()      raises what a view raises: then it is already undone
    connection.commit()     of the other system
    prepared.publish()      or prepared.undo(), if the other commit was refused

Between `prepare` and its end no lock is held; only the transaction is open. A task that writes
meanwhile sets it aside (`pending.py`), and is refused only changes that conflict with it. A reader
of a view meanwhile, in any thread or task, first undoes the operators (`Commit.park`): readers see
the last commit and do not wait for the other system. In that case `publish` steps the operators
once more.

`publish` does not fail: if an operator raises that had not raised before, because a callable is no
function of its row, or if an asynchronous exception occurs, the tables keep their changes, and all
views are recomputed at the next access. Only the asynchronous exception is raised, after the commit
stands.

The garbage collector undoes a handle that is neither published nor undone, in any thread; so also
after its thread has ended. Any thread may publish or undo. Ctrl-C is deferred from `prepare` to the
end, if the main thread prepares; a second one is immediate. A plan that bails out is replaced
within `prepare`.

The handle cannot begin within an open transaction of the caller, which might still fail after the
other system has committed. Each of several databases has its own handle; begin them in the same
order everywhere, prepare all, then publish all or undo all.

State:  the changes of the transaction, and what operators need to undo their step.
Cost:   a commit and some 25 us; if read between its phases, twice the time of its operators.

`RetriedTransaction` runs a function in a transaction, and again after a conflict with another
commit.

    @db.transaction(retry=3)
    async def move(key, amount): ...

Cost: a transaction per try.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from optimizer.errors import PlanError
from reactive.engine.runtime.boundary import boundary
from reactive.engine.runtime.closeable import Uncopyable
from reactive.engine.runtime.interrupts import SIGINT, is_asynchronous
from reactive.engine.runtime.left_out import optional
from reactive.engine.runtime.lock import BROKEN
from reactive.engine.transactions.commit import Between, Commit, ParkReason, break_off, repair
from reactive.engine.transactions.pending import bring_back, check_beside, note_beneath, rebase
from reactive.engine.transactions.transaction import Transaction, changes_of, deliver_by
from reactive.errors import ConflictError, TransactionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reactive.engine.transactions.engine import Engine
    from reactive.engine.transactions.pending import Pending
    from reactive.engine.transactions.row_gate import Base


log = logging.getLogger("reactive")


class PreparedTransaction(Uncopyable):
    """A transaction that commits in two phases. See the module for its contract.

    Parameters
    ----------
    engine: of the database, `db._engine`.

    As a context manager, it begins at the start of the block, and undoes at the end if it was not
    published.

    >>> from reactive import Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> view = words.materialize()
    >>> with PreparedTransaction(db._engine) as prepared:
    ...     words.add("be")
    ...     prepared.prepare()
    ...     print(len(view))
    ...     prepared.publish()
    0
    >>> len(view)
    1
    """

    __slots__ = (
        *("__weakref__", "_commit", "_engine", "_holds_back", "_pending", "_stands"),
        "_transaction",
    )

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._transaction: Transaction | None = None
        self._pending: Pending | None = None
        self._commit: Commit | None = None
        self._stands = False
        self._holds_back = False
        """True if Ctrl-C is deferred until its end."""

    _copy_instead = "each transaction is committed once"
    _pickle_instead = "pickle the rows of its tables, list(table) of each of db.tables()"

    def _called(self) -> str:
        return "a commit that is under way"

    @property
    def is_open(self) -> bool:
        """True if it has begun, and is neither published nor undone."""
        pending, engine = self._pending, self._engine
        if pending is None or engine.pending is pending:
            return pending is not None
        return any(each is pending for each in engine.aside)

    @property
    def is_prepared(self) -> bool:
        """True if it is open, and refuses further statements."""
        return self.is_open and self._commit is not None

    def changed_tables(self) -> Sequence[Base]:
        """Return the tables that its statements have changed."""
        pending = self._pending if self._commit is None else self._commit.changes
        found = {table: None for table, changes in pending or () if changes}
        return [table for table in found if table._node is not None]

    def flush(self) -> None:
        """Convert assignments to objects to statements, which otherwise `prepare` does."""
        objects, pending = self._engine.objects, self._pending
        if objects is not None and pending is not None and self._commit is None:
            self._inside(lambda: objects.flush(pending))

    def begin(self) -> PreparedTransaction:
        """Open a transaction, after others have ended theirs.

        Raises
        ------
        TransactionError: the caller has one open; another task of this event loop has one open;
            a callable of a query calls this.
        ClosedError: the database is closed.
        """
        transaction = self._fresh()
        transaction.__enter__()
        self._take(transaction)
        return self

    async def begin_async(self) -> PreparedTransaction:
        """Do as `begin`, without blocking the event loop while it waits."""
        transaction = self._fresh()
        await transaction.__aenter__()
        self._take(transaction)
        return self

    def take(self, transaction: Transaction) -> None:
        """Use a transaction that was entered exactly once, in place of `begin`."""
        self._take(transaction)

    def _take(self, transaction: Transaction) -> None:
        self._transaction, self._pending = transaction, transaction._entered[0]
        self._commit, self._stands = None, False

    def _fresh(self) -> Transaction:
        """Return a new transaction; raise `TransactionError` within another transaction."""
        engine = self._engine
        if engine.mine is not None:
            raise TransactionError(_NESTED)
        return Transaction(engine)

    def prepare(self) -> None:
        """Step the operators; subscribers are not notified, and readers see the last commit.

        Raises
        ------
        Exception: a callable of a query raised; then all has been undone, and the transaction is
            over.
        TransactionError: it is not open, or prepared already; or a nested transaction had failed:
            then all has been undone, too.
        """
        if self._commit is not None or not self.is_open:
            raise TransactionError(_NOT_OPEN)
        self._holds_back = SIGINT.hold_back(self._engine.db_lock)
        self._inside(self._prepare)

    def publish(self) -> None:
        """Let the commit stand, and notify subscribers.

        Raises
        ------
        TransactionError: it is not prepared; or it was undone, by the garbage collector.
        """
        if not self.is_prepared:
            raise TransactionError(_NOT_PREPARED)
        self._stands = True
        self._inside(self._publish)

    def undo(self) -> None:
        """Undo all; do nothing if it is over; finish an interrupted `publish`."""
        if self.is_open:
            self._inside(self._publish if self._stands else self._undo)

    def __enter__(self) -> PreparedTransaction:
        return self.begin()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.undo()

    def __del__(self) -> None:
        if getattr(self, "_pending", None) is not None and self.is_open:
            self._inside(self._publish if self._stands else self._undo, is_finalizer=True)

    # Inside the lock.

    def _inside(self, act: Callable[[], None], *, is_finalizer: bool = False) -> None:
        """Run `act` inside the lock, without undoing the prepared operators."""
        engine = self._engine
        db_lock = engine.db_lock
        try:
            db_lock.lock.acquire()
            db_lock.depth = max(db_lock.depth, 0) + 1
        except BaseException:
            db_lock.let_go()
            raise
        try:
            db_lock.critical = True
            if engine.aside and self._pending is not None:
                bring_back(engine, self._pending)
            act()
        finally:
            is_out, is_over = db_lock.depth == 1, not self.is_open
            if is_out:
                db_lock.sequence += 1
                db_lock.critical = False
                db_lock.depth = db_lock.at_rest
            else:
                db_lock.depth -= 1
            db_lock.lock.release()
            if is_over:
                self._look_after(is_out, is_finalizer)

    def _look_after(self, is_out: bool, is_finalizer: bool) -> None:
        """Notify subscribers after the end, and raise a deferred Ctrl-C."""
        engine = self._engine
        db_lock = engine.db_lock
        if self._holds_back:
            db_lock.is_held_back = False
        if is_out and not db_lock.is_held_back:  # or the function that holds it back does it
            if is_finalizer and db_lock.noted is not None:
                SIGINT.release_later(db_lock)
            engine.after()

    def _prepare(self) -> None:
        """Step the operators over the changes, unpublished; if anything raises, undo all."""
        engine, pending = self._engine, self._pending
        assert pending is not None
        engine.check_entered()
        version = engine.version + 1
        try:
            if engine.broken is not None:
                repair(engine)
            if pending.beneath:
                rebase(engine, pending)
            if pending.failed:
                raise TransactionError(_FAILED)
            pending.is_prepared, engine.pending = True, None
            changes = changes_of(engine, pending)
            if engine.aside:
                check_beside(engine, changes)
            self._commit = Commit(engine, version, [*changes], pending)
            self._step(self._commit, pending.between)
            pending.forget()
        except BaseException as error:
            self._undo_after(error, version)
            raise
        engine.prepared, engine.db_lock.at_rest, engine.pending = self._commit, BROKEN, pending

    def _step(self, commit: Commit, between: Between) -> None:
        """Step the operators and run `between`; repeat both if other plans may avoid an error."""

        def step() -> None:
            commit.prepare()
            with self._engine.graph.running():
                for act in between:
                    act()

        try:
            step()
        except BaseException as error:
            if not commit.undo_and_retry(error, step):
                raise

    def _undo_after(self, error: BaseException, version: int) -> None:
        """Undo after an error before it was prepared; a commit that raised is already undone."""
        engine, pending = self._engine, self._pending
        assert pending is not None
        self._end()
        if is_asynchronous(error) or engine.broken is not None:
            self._leave_to_repair(version)
        elif pending:
            Commit(engine, version, (), pending).undo(None)
        engine.updates.discard()

    def _leave_to_repair(self, version: int) -> None:
        """Note the table changes, for the next access to undo."""
        engine, pending = self._engine, self._pending
        assert pending is not None
        if engine.broken is not None:
            engine.broken.back += [change for change in pending if change[1]]
            pending.clear()
        break_off(engine, pending, version)

    def _publish(self) -> None:
        """Make the commit stand and publish it; other errors are logged and repaired later."""
        engine, commit = self._engine, self._commit
        assert commit is not None
        is_stepped = engine.prepared is commit
        try:
            if is_stepped:
                engine.prepared, engine.db_lock.at_rest = None, engine.db_lock.idle
            engine.pending = None
            if engine.broken is not None:  # the state of the operators is unknown
                commit.stand()
            else:
                if not is_stepped:
                    commit.version = engine.version + 1  # others may have committed meanwhile
                    commit.prepare()
                commit.publish()
        except BaseException as error:
            commit.stand()
            if is_asynchronous(error):
                raise
            log.exception("a commit stands, and an operator raised: all views are computed again")
        finally:
            commit.back.clear()
            self._end()
            engine.updates.discard()
            if engine.aside:
                note_beneath(engine, commit.changes)

    def _undo(self) -> None:
        """Undo the changes, and the steps if there were any."""
        engine, commit, pending = self._engine, self._commit, self._pending
        assert pending is not None
        version = engine.version + 1
        is_stepped = commit is not None and engine.prepared is commit
        try:
            if is_stepped:
                engine.prepared, engine.db_lock.at_rest = None, engine.db_lock.idle
            self._end()
            if engine.broken is not None:
                self._leave_to_repair(version)
            elif is_stepped:
                assert commit is not None
                commit.undo(ParkReason())
            else:
                Commit(engine, version, (), pending).undo(None)
        except BaseException:
            self._leave_to_repair(version)
            raise
        finally:
            engine.updates.discard()

    def _end(self) -> None:
        """Close the transaction."""
        engine, db_lock = self._engine, self._engine.db_lock
        assert self._transaction is not None
        self._transaction._has_ended()
        db_lock.owner, db_lock.is_special = None, db_lock.is_closed
        engine.pending = None
        if db_lock.waiting:
            db_lock.end()


_NESTED = (
    "a commit in two phases cannot begin inside a transaction, which may fail after the other "
    "system has committed\n"
    "  commit after the `with` block, or have it commit both: db.transaction(commit_with=...)"
)
_FAILED = (
    "the transaction was rolled back: one nested in it had failed\n"
    "  let the inner exception pass, or do not nest what may fail"
)
_NOT_OPEN = "there is nothing to prepare: begin() first, and prepare() once"
_NOT_PREPARED = (
    "there is nothing to publish: it was not prepared, or is over\n"
    "  begin(), make the statements, prepare(), and then publish() or undo(), once"
)


F = TypeVar("F", bound=Callable[..., Any])


def make_transaction(
    engine: Engine,
    commit_with: Any,
    retry: int | None,
    deliver: str | None,
    timeout: float | None,
    label: str | None = None,
) -> Transaction:
    """Return a transaction that has not begun. For the parameters see `Database.transaction`.

    Raises
    ------
    PlanError: `retry` is no number of tries, or `commit_with` cannot be committed.
    """

    def begun() -> Transaction:
        if commit_with is None:
            made = Transaction(engine)
        else:
            made = optional("borders.two_commits.joint").JointTransaction(engine, commit_with)
        made._label = label
        return deliver_by(made, deliver, timeout)

    if retry is None:
        return begun()
    if isinstance(retry, bool) or not isinstance(retry, int) or retry < 0:
        raise PlanError(
            f"cannot try a transaction again {retry!r} times\n"
            "  give a number from 0 on: db.transaction(retry=3)"
        )
    return RetriedTransaction(engine, begun, retry)


@boundary
class RetriedTransaction(Transaction):
    """The decorator that `Database.transaction(retry=...)` returns."""

    __slots__ = ("_begun", "_retry")

    def __init__(self, engine: Engine, begun: Callable[[], Transaction], retry: int) -> None:
        super().__init__(engine)
        self._begun = begun
        self._retry = retry

    def __call__(self, function: F) -> F:
        if iscoroutinefunction(function):

            @wraps(function)
            async def asynchronous(*arguments: Any, **named: Any) -> Any:
                left = self._retry
                while True:
                    try:
                        async with self._begun():
                            return await function(*arguments, **named)
                    except ConflictError:
                        if self._is_last(left):
                            raise
                        left -= 1

            return asynchronous  # type: ignore[return-value]

        @wraps(function)
        def synchronous(*arguments: Any, **named: Any) -> Any:
            left = self._retry
            while True:
                try:
                    with self._begun():
                        return function(*arguments, **named)
                except ConflictError:
                    if self._is_last(left):
                        raise
                    left -= 1

        return synchronous  # type: ignore[return-value]

    def _is_last(self, left: int) -> bool:
        """Return True if there is no further try.

        Within an open transaction of the caller there is none, since the caller's statements would
        not be repeated.
        """
        return not left or self._engine.mine is not None

    def __enter__(self) -> NoReturn:
        raise TransactionError(_NO_BLOCK)

    async def __aenter__(self) -> NoReturn:
        raise TransactionError(_NO_BLOCK)


_NO_BLOCK = (
    "cannot run the block of a `with` again: Python has no way to do that\n"
    "  decorate a function: `@db.transaction(retry=3)`, also `async def`"
)
