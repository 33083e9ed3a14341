"""A supposition: changes that are shown by tables and views inside a block, and then undone.

    with db.suppose():       a transaction is open, and the lock is held
        edges.remove(edge)   the table is changed
        list(reach)          operators have stepped over all changes so far, and are not published
        edges.add(other)     first the operators are undone
    at the end               operators are undone, and then the tables

Nothing is published: there is no version, no subscriber is told, nothing is written. The operators
restore the state from before their step, as after a commit that raised.

Others wait for the end of the block, readers too. A supposition inside another one is undone alone.

State:  the changes, and what operators need to undo their step.
Cost:   that of the commit and its undoing, once for each time that views are read after changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from reactive.engine.collections.zset import Pair
from reactive.engine.runtime.closeable import Uncopyable
from reactive.engine.runtime.lock import BROKEN
from reactive.engine.transactions.commit import Commit, ParkReason
from reactive.engine.transactions.transaction import Transaction, changes_of
from reactive.errors import TransactionError

if TYPE_CHECKING:
    from reactive.engine.dataflow.node import Node
    from reactive.engine.transactions.engine import Engine


class Supposition(Uncopyable):
    """The context manager of `Database.suppose`."""

    __slots__ = ("__weakref__", "_commit", "_engine", "_keeps", "_mark", "_seen", "_transaction")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._transaction: Transaction | None = None
        """The transaction of an outermost supposition that has begun."""
        self._mark: int | None = None
        """The number of changes before an inner supposition."""
        self._commit: Commit | None = None
        """The commit whose operators have stepped."""
        self._seen = 0
        """The number of changes that they have seen."""
        self._keeps = False

    _copy_instead = "each call of db.suppose() makes another one"
    _pickle_instead = "pickle the rows of its tables, list(table) of each of db.tables()"

    def _called(self) -> str:
        return "a supposition"

    @property
    def state(self) -> tuple[int, int]:
        """A value that differs after each change."""
        return id(self), len(self._engine.pending or ())

    def __enter__(self) -> Self:
        engine = self._engine
        if self._transaction is not None or self._mark is not None:
            raise TransactionError("this supposition has begun\n  make another one: db.suppose()")
        if engine.supposition is not None and engine.mine is not None:
            self._mark = len(engine.pending or ())
            return self
        if engine.mine is not None:
            raise TransactionError(
                "a transaction is open, and its changes are no supposition\n"
                "  begin it inside db.suppose(), or after the transaction"
            )
        transaction = Transaction(engine)
        transaction.__enter__()
        db_lock = engine.db_lock
        try:
            db_lock.enter()
        except BaseException:
            transaction._leave(True)
            raise
        self._transaction = transaction
        engine.supposition = self
        db_lock.held, db_lock.sequence = 1, db_lock.sequence + 1
        db_lock.at_rest = db_lock.depth = BROKEN
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._mark is not None:
            self._undo_inner()
            return
        transaction, engine = self._transaction, self._engine
        if transaction is None:
            return
        db_lock = engine.db_lock
        db_lock.depth, db_lock.critical = 1, True
        try:
            self.park()
        finally:
            self._transaction = engine.supposition = None
            db_lock.held, db_lock.critical = 0, False
            db_lock.at_rest = db_lock.idle if engine.broken is None else BROKEN
            db_lock.sequence, db_lock.depth = db_lock.sequence + 1, db_lock.at_rest
            db_lock.lock.release()
            transaction._leave(not self._keeps or error is not None)

    def keep(self) -> None:
        """Commit the changes at the end of the outermost block, in place of undoing them.

        Raises
        ------
        TransactionError: it has not begun, or is inside another one.
        """
        if self._transaction is None:
            raise TransactionError(
                "only the changes of an outermost supposition can be kept, inside its block\n"
                "  with db.suppose() as supposed: ...; supposed.keep()"
            )
        self._keeps = True

    def _undo_inner(self) -> None:
        """Undo the changes since an inner supposition has begun."""
        engine, mark, self._mark = self._engine, self._mark, None
        pending, outer = engine.pending, engine.supposition
        assert mark is not None
        if pending is None or outer is None:
            return
        with engine.db_lock.inside(to_write=True):
            outer.park()
            while len(pending) > mark:
                table, changes = pending[-1]
                table._store.revert(changes)
                pending.pop()
            pending.forget()

    # Called inside the lock.

    def enter(self, *, is_writing: bool) -> None:
        """Prepare for a statement, or for a reader of tables and views."""
        if is_writing:
            self.park()
        else:
            self.step()

    def step(self) -> None:
        """Step the operators over all changes, if there are new ones."""
        engine = self._engine
        pending = engine.pending
        if pending is None or (self._seen == len(pending) and engine.objects is None):
            return
        self.park()
        changes = changes_of(engine, pending)
        self._seen = len(pending)
        if not changes:
            return
        commit = Commit(engine, engine.version + 1, [*changes], [])
        engine.pending = None  # operators that read tables anew read them with these changes
        try:
            commit.prepare()
        except BaseException as error:
            self._seen = -1
            if not commit.undo_and_retry(error, commit.prepare):
                raise
            self._seen = len(pending)
        finally:
            engine.pending = pending
        engine.graph.stepping = False
        self._commit = commit

    def park(self) -> None:
        """Undo the operators, until they are asked for again; the tables keep their changes."""
        commit, self._commit, self._seen = self._commit, None, 0
        if commit is not None:
            self._engine.graph.stepping = True
            commit.undo(ParkReason())

    def delta_of(self, leaf: Node) -> Sequence[Pair]:
        """Return the change of a view's rows by the changes so far."""
        if self._commit is None:
            return ()
        found: Any = [delta for node, delta in self._commit.leaf_deltas if node is leaf]
        return found[0] if found else ()
