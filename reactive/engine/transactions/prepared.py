"""A handle on a commit whose phases are apart, for those who commit elsewhere in between.

    begin      a transaction is open: others see the last commit, writers wait
    prepare    operators have stepped, so all that a callable raises has been raised; tables and
               views show others the last commit still, and take no more statements
    publish    it stands, and subscribers hear of it
    undo       instead of publishing, at any time: tables and operators are as they were

    prepared = Prepared(db._engine)
    prepared.begin()
    orders.add(order)
    prepared.prepare()      raises what a view raises: then it is undone already
    connection.commit()     of the other system
    prepared.publish()      or prepared.undo(), if that was refused

Between `prepare` and its end no lock is held, only the transaction is open. A task that writes
meanwhile has it set aside (`pending.py`), and is refused only what this one has changed too.
Whoever reads a view meanwhile, in this thread, another one or another task, finds that operators
have stepped, and has them step back first (`Commit.park`): readers see the last commit and do not
wait for the other system. If that was so, `publish` has the operators step once more.

`publish` does not fail: should operators raise that had not raised before, because a callable is no
function of its row, or an exception come from outside, then the tables keep their changes and all
views are computed again at the next access. Of these only the one from outside is raised, after the
commit stands.

A handle that is neither published nor undone is undone by the garbage collector, in whatever
thread; so is that of a thread that has ended. Any thread may publish or undo. Ctrl-C waits from
`prepare` to the end, if the main thread prepares; a second one comes immediately. A plan that bails
out is made anew within `prepare`.

It cannot begin within a transaction that the caller has open: that one may still fail when the
other system has committed. Of several databases each has a handle; begin them in the same order
everywhere, prepare all, then publish all or undo all.

State:  the changes of the transaction, and what operators need to step back.
Cost:   of an unread one that of a commit, and some 25 us; of one that is read between its phases
        twice that of its operators.

Functions that run in a transaction, and again if that meets another commit.

    @db.transaction(retry=3)
    async def move(key, amount): ...

Cost: of a call that of a transaction; of another try the same again.
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
from reactive.engine.runtime.closeable import NotCopied
from reactive.engine.runtime.interrupts import SIGINT, is_asynchronous
from reactive.engine.runtime.left_out import optional
from reactive.engine.runtime.lock import BROKEN
from reactive.engine.transactions.commit import Between, Commit, Parked, break_off, repair
from reactive.engine.transactions.pending import bring_back, check_beside, note_beneath, rebase
from reactive.engine.transactions.transaction import Transaction, changes_of
from reactive.errors import ConflictError, TransactionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reactive.engine.transactions.engine import Engine
    from reactive.engine.transactions.pending import Pending
    from reactive.engine.transactions.row_gate import Base


log = logging.getLogger("reactive")


class Prepared(NotCopied):
    """A transaction whose commit is made in two phases. See the module for its contract.

    Parameters
    ----------
    engine: of the database, `db._engine`.

    As a context manager it begins, and undoes what is not published at the end of the block.

    >>> from reactive import Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> view = words.materialize()
    >>> with Prepared(db._engine) as prepared:
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
        """Whether Ctrl-C waits for its end."""

    _copy_instead = "each transaction is committed once"
    _pickle_instead = "pickle the rows of its tables, list(table) of each of db.tables()"

    def _called(self) -> str:
        return "a commit that is under way"

    @property
    def is_open(self) -> bool:
        """Whether it has begun, and is neither published nor undone."""
        pending, engine = self._pending, self._engine
        if pending is None or engine.pending is pending:
            return pending is not None
        return any(each is pending for each in engine.aside)

    @property
    def is_prepared(self) -> bool:
        """Whether it is open, and takes no more statements."""
        return self.is_open and self._commit is not None

    def changed(self) -> Sequence[Base]:
        """The tables that its statements have changed."""
        pending = self._pending if self._commit is None else self._commit.changes
        found = {table: None for table, changes in pending or () if changes}
        return [table for table in found if table._node is not None]

    def flush(self) -> None:
        """Make statements of what was assigned to objects, which `prepare` does else."""
        objects, pending = self._engine.objects, self._pending
        if objects is not None and pending is not None and self._commit is None:
            self._inside(lambda: objects.flush(pending))

    def begin(self) -> Prepared:
        """Open a transaction, when others have ended theirs.

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

    async def begin_async(self) -> Prepared:
        """As `begin`; it waits for others without stopping the event loop."""
        transaction = self._fresh()
        await transaction.__aenter__()
        self._take(transaction)
        return self

    def take(self, transaction: Transaction) -> None:
        """In place of `begin`: end a transaction in two phases that was entered, and once only."""
        self._take(transaction)

    def _take(self, transaction: Transaction) -> None:
        self._transaction, self._pending = transaction, transaction._entered[0]
        self._commit, self._stands = None, False

    def _fresh(self) -> Transaction:
        engine = self._engine
        if engine.mine is not None:
            raise TransactionError(_NESTED)
        return Transaction(engine)

    def prepare(self) -> None:
        """Have the operators step; subscribers hear nothing, and readers see the last commit.

        Raises
        ------
        Exception: what a callable of a query raises: then all is undone, and the transaction over.
        TransactionError: it is not open, or prepared already; or a nested transaction had failed:
            then all is undone too.
        """
        if self._commit is not None or not self.is_open:
            raise TransactionError(_NOT_OPEN)
        self._holds_back = SIGINT.hold_back(self._engine.db_lock)
        self._inside(self._prepare)

    def publish(self) -> None:
        """It stands from now on.

        Raises
        ------
        TransactionError: it is not prepared; or it was undone, by the garbage collector.
        """
        if not self.is_prepared:
            raise TransactionError(_NOT_PREPARED)
        self._stands = True
        self._inside(self._publish)

    def undo(self) -> None:
        """All is as before. Nothing is done if it is over; what `publish` has begun is ended."""
        if self.is_open:
            self._inside(self._publish if self._stands else self._undo)

    def __enter__(self) -> Prepared:
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
        """Be inside, without what is prepared being undone for that."""
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
        """It is over: subscribers hear, and a Ctrl-C comes that has waited."""
        engine = self._engine
        db_lock = engine.db_lock
        if self._holds_back:
            db_lock.is_held_back = False
        if is_out and not db_lock.is_held_back:  # or else who holds it back does the rest
            if is_finalizer and db_lock.noted is not None:
                SIGINT.release_later(db_lock)
            engine.after()

    def _prepare(self) -> None:
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
        def step() -> None:
            commit.prepare()
            with self._engine.graph.running():
                for act in between:
                    act()

        try:
            step()
        except BaseException as error:
            if not commit.failed(error, step):
                raise

    def _undo_after(self, error: BaseException, version: int) -> None:
        """Something has raised before it was prepared; a commit that raised is undone already."""
        engine, pending = self._engine, self._pending
        assert pending is not None
        self._end()
        if is_asynchronous(error) or engine.broken is not None:
            self._leave_to_repair(version)
        elif pending:
            Commit(engine, version, (), pending).undo(None)
        engine.updates.forget()

    def _leave_to_repair(self, version: int) -> None:
        """Have the changes of tables undone at the next access."""
        engine, pending = self._engine, self._pending
        assert pending is not None
        if engine.broken is not None:
            engine.broken.back += [change for change in pending if change[1]]
            pending.clear()
        break_off(engine, pending, version)

    def _publish(self) -> None:
        engine, commit = self._engine, self._commit
        assert commit is not None
        is_stepped = engine.prepared is commit
        try:
            if is_stepped:
                engine.prepared, engine.db_lock.at_rest = None, engine.db_lock.idle
            engine.pending = None
            if engine.broken is not None:  # nobody knows what to step from
                commit.stand()
            else:
                if not is_stepped:
                    commit.version = engine.version + 1  # others may have committed beneath
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
            engine.updates.forget()
            if engine.aside:
                note_beneath(engine, commit.changes)

    def _undo(self) -> None:
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
                commit.undo(Parked())
            else:
                Commit(engine, version, (), pending).undo(None)
        except BaseException:
            self._leave_to_repair(version)
            raise
        finally:
            engine.updates.forget()

    def _end(self) -> None:
        """The transaction is open no more."""
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


def opened(
    engine: Engine,
    commit_with: Any,
    retry: int | None,
    deliver: str | None,
    timeout: float | None,
) -> Transaction:
    """Return a transaction that has not begun. The parameters are those of `Database.transaction`.

    Raises
    ------
    PlanError: `retry` is no number of tries, or `commit_with` nothing that can be committed.
    """

    def begun() -> Transaction:
        if commit_with is None:
            made = Transaction(engine)
        else:
            made = optional("borders.two_commits.joint").JointTransaction(engine, commit_with)
        return made._told_by(deliver, timeout)

    if retry is None:
        return begun()
    if isinstance(retry, bool) or not isinstance(retry, int) or retry < 0:
        raise PlanError(
            f"cannot try a transaction again {retry!r} times\n"
            "  give a number from 0 on: db.transaction(retry=3)"
        )
    return Retried(engine, begun, retry)


@boundary
class Retried(Transaction):
    """Decorator of `Database.transaction(retry=...)`."""

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
        """Tell if there is no other try; nor is there one within a transaction of the caller's,
        whose statements would not be made again."""
        return not left or self._engine.mine is not None

    def __enter__(self) -> NoReturn:
        raise TransactionError(_NO_BLOCK)

    async def __aenter__(self) -> NoReturn:
        raise TransactionError(_NO_BLOCK)


_NO_BLOCK = (
    "cannot run the block of a `with` again: Python has no way to do that\n"
    "  decorate a function: `@db.transaction(retry=3)`, also `async def`"
)
