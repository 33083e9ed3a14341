"""An open transaction of one task is set aside while another task of its event loop writes.

    in the tables       the rows at its first statement  +  its own changes
    set aside           the rows of the last commit; a statement of others is a commit, as always
    brought back        when its own task comes to a table again, or ends it
    at its end          its changes are put over the rows of the last commit, and committed

So a statement never waits for a task that cannot go on meanwhile, and each transaction reads its
own changes over the rows as of its first statement. If a commit has touched a row or a key that the
transaction touches too, the later one of the two is refused: the transaction at its end, or the
statement, if the transaction is at its end already and waits for the COMMIT of a SQL database. That
two add equal rows to a table without a key is no conflict: there are two copies then.

A transaction that has changed tracked objects cannot be set aside, as what others hold are the
objects themselves; nor for a task that it has started, which would not be part of it.

State:  in each transaction what others have committed beneath it.
Cost:   of a statement beside an open transaction O(changes of that one), once for each time that
        the tasks alternate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from reactive.engine.collections.zset import Pair, negate
from reactive.engine.runtime.interrupts import surely
from reactive.engine.runtime.lock import ANOTHER_TASK, BROKEN, IDLE, me
from reactive.engine.transactions.commit import Commit, at_once
from reactive.engine.transactions.pending import NOTHING
from reactive.engine.transactions.repair import Broken
from reactive.engine.transactions.updates import Updates
from reactive.errors import ConflictError, TransactionError

if TYPE_CHECKING:
    from reactive.engine.transactions.base import Base
    from reactive.engine.transactions.commit import Change
    from reactive.engine.transactions.engine import Engine
    from reactive.engine.transactions.pending import Pending


def set_aside(engine: Engine) -> None:
    """Take the open transaction out of the tables, until it is brought back.

    Raises
    ------
    TransactionError: it cannot be set aside.
    """
    pending, db_lock = engine.pending, engine.db_lock
    assert pending is not None
    if engine.objects is not None and engine.objects.has_changed(pending):
        raise TransactionError(_OBJECTS)
    if engine.prepared is not None:
        engine.prepared.park()
    owner, updates, broken = db_lock.owner, Updates(), Broken(_away(pending), views=False)
    assert owner is not None
    # no call stands between the following, at which an interrupt could come
    pending.owner, pending.updates, engine.updates = owner, engine.updates, updates
    engine.broken, engine.aside = broken, (*engine.aside, pending)
    db_lock.aside, db_lock.idle, db_lock.at_rest = owner[0], BROKEN, BROKEN
    engine.pending, db_lock.owner, db_lock.is_special = None, None, db_lock.is_closed
    surely(broken.put_back)
    engine.broken = None


def bring_back(engine: Engine, pending: Pending) -> None:
    """Open a transaction again, with its changes in the tables."""
    if all(each is not pending for each in engine.aside):
        return
    if engine.pending is not None:
        set_aside(engine)
    db_lock, broken = engine.db_lock, Broken([], views=False)
    engine.broken, db_lock.at_rest = broken, BROKEN
    for table, delta in reversed(pending.beneath):
        _change(broken.back, table, negate(delta))
    for table, delta in pending:
        _change(broken.back, table, delta)
        table._do.keep_lost()
    pending.updates.move_to(engine.version + 1)
    left = tuple([each for each in engine.aside if each is not pending])
    # no call stands between the following either
    engine.updates, engine.aside = pending.updates, left
    engine.pending, db_lock.owner, db_lock.is_special = pending, pending.owner, True
    if not left:
        db_lock.aside, db_lock.idle = None, IDLE
    engine.broken, db_lock.at_rest = None, db_lock.idle


def bring_mine_back(engine: Engine) -> None:
    """Bring back the transaction of the running task, if it has one."""
    mine = me()
    for pending in engine.aside:
        if pending.owner == mine:
            bring_back(engine, pending)


def rebase(engine: Engine, pending: Pending) -> None:
    """Put a transaction that ends over what others have committed meanwhile.

    Raises
    ------
    ConflictError: both have touched a row, or a key. Then its changes are taken back.
    """
    statements, beneath = [*pending], pending.beneath
    engine.broken, engine.db_lock.at_rest = Broken(_away(pending), views=False), BROKEN
    pending.beneath = NOTHING
    pending.clear()
    pending.forget()
    surely(engine.broken.put_back)
    engine.broken, engine.db_lock.at_rest = None, engine.db_lock.idle
    if pending.failed:
        return
    refuse_both(statements, beneath, _LATER)
    engine.updates.move_to(engine.version + 1)
    for table, delta in statements:
        table._store.revert(negate(delta))
        pending.append((table, delta))
        table._do.keep_lost()


def check_beside(engine: Engine, changes: Sequence[Change]) -> None:
    """Refuse a commit beside transactions that are set aside, if none of these could be.

    Raises
    ------
    ConflictError: it touches a row of one that waits for the COMMIT of a SQL database.
    TransactionError: the running task was started in one of them.
    """
    transaction = engine.db_lock.transaction
    if transaction is not None and started_in.get() is transaction:
        raise TransactionError(_STARTED)
    for pending in engine.aside:
        if pending.is_prepared:
            refuse_both(pending, changes, _BEING_COMMITTED)


def commit_beside(engine: Engine, table: Base, changes: Sequence[Pair], version: int) -> None:
    """Commit a statement while transactions of other tasks are set aside."""
    check_beside(engine, [(table, changes)])
    if not at_once(engine, table, changes, version):
        Commit(engine, version, [(table, changes)], []).run()
    note_beneath(engine, [(table, changes)])


def note_beneath(engine: Engine, changes: Sequence[Change]) -> None:
    """Note a commit of others, which transactions that are set aside do not see."""
    for pending in engine.aside:
        if pending and not pending.is_prepared:
            if pending.beneath is NOTHING:
                pending.beneath = []
            pending.beneath += changes


def refuse_both(one: Sequence[Change], other: Sequence[Change], why: str) -> None:
    """Raise if both touch a row, or a key, in a way whose order matters."""
    touched = _touched(other, {table for table, _ in one})
    for table, delta in one:
        known, is_keyed = touched.get(table, {}), table._keyed is not None
        for part, weight in _parts(table, delta) if known else ():
            if part in known and (is_keyed or weight < 0 or known[part]):
                what = f"{'key' if is_keyed else 'row'} {part!r:.200}"
                raise ConflictError(why.format(what, table.name))


def _touched(changes: Sequence[Change], tables: set[Base]) -> dict[Base, dict[Any, bool]]:
    """The rows or keys of each table, with whether one was removed."""
    found: dict[Base, dict[Any, bool]] = {}
    for table, delta in changes:
        if table in tables and table.plan.stored:
            known = found.setdefault(table, {})
            for part, weight in _parts(table, delta):
                known[part] = known.get(part, False) or weight < 0
    return found


def _parts(table: Base, delta: Sequence[Pair]) -> Iterable[Pair]:
    """Return the keys of the rows that have changed, or the rows of a table without a key."""
    if table._keyed is None:
        return delta
    key = table._keyed.key
    return [(key(row), weight) for row, weight in delta]


def _away(pending: Pending) -> list[tuple[Base, Sequence[Pair]]]:
    """Return the changes between the last commit and the tables; the last one is undone first."""
    return [*((table, negate(delta)) for table, delta in reversed(pending.beneath)), *pending]


def _change(back: list[tuple[Base, Sequence[Pair]]], table: Base, delta: Sequence[Pair]) -> None:
    table._store.revert(negate(delta))
    back.append((table, delta))


started_in: ContextVar[Any] = ContextVar("transaction", default=None)
"""The transaction that this task is in, or was started in."""
_OBJECTS = f"{ANOTHER_TASK}, or change no tracked objects in that one"
_STARTED = (
    "this task was started in the transaction that is open, and its changes would be no part of it"
    "\n  make them in the task that opened it, or start this task before or after it"
)
_LATER = (
    "the transaction was rolled back: {} of table {!r} was changed by another commit since it began"
    " to write\n  do it again, or have it done again: @db.transaction(retry=3)"
)
_BEING_COMMITTED = (
    "{} of table {!r} is changed by a transaction that is being committed\n"
    "  do it again when that is over: `async with db.transaction()` waits for it"
)
