"""Collect the changes of a transaction, and set it aside while another task writes.

`Pending` lists the changes of each statement, in their order.

Facts that follow are computed on demand: the net changes of a table, which readers outside the
transaction subtract (`row_gate.py`), and the removed rows, whose objects are used again if equal
rows are added.

State:  the changes; per table read so far, their sum.
Cost:   a list append per statement; O(its rows) for facts that follow.

An open transaction of one task is set aside while another task of its event loop writes.

    in the tables       the rows at its first statement  +  its own changes
    set aside           the rows of the last commit; a statement of others is a commit, as always
    brought back        when its own task accesses a table again, or ends it
    at its end          its changes are applied to the rows of the last commit, and committed

So a statement never waits for a task that cannot run meanwhile, and each transaction reads its own
changes over the rows as of its first statement. If a commit touches a row or key that the
transaction touches too, the later of the two is refused: the transaction at its end, or the
statement, if the transaction is at its end and waits for the COMMIT of a SQL database. Adding equal
rows to a table without a key is no conflict: then there are two copies.

A transaction that has changed tracked objects cannot be set aside, as other tasks hold the same
objects; nor for a task that it has started, whose changes would not be part of it.

State:  in each transaction, the commits of others since it was set aside.
Cost:   of a statement beside an open transaction O(its changes), once each time that the tasks
        alternate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from itertools import chain
from typing import TYPE_CHECKING, Any

from reactive.engine.collections.zset import (
    Pair,
    Row,
    UniformDelta,
    consolidate,
    have_one_hash,
    negate,
    net_by_identity,
)
from reactive.engine.dataflow import schedule
from reactive.engine.runtime.interrupts import reraise_asynchronous, surely
from reactive.engine.runtime.lock import ANOTHER_TASK, BROKEN, IDLE, me
from reactive.engine.transactions.commit import Commit, InterruptedCommit, commit_few_rows
from reactive.engine.transactions.row_gate import UpdateLog
from reactive.errors import ConflictError, TransactionError

if TYPE_CHECKING:
    from reactive.engine.storage.plain_rows import RowField
    from reactive.engine.transactions.commit import Between, Change
    from reactive.engine.transactions.engine import Engine
    from reactive.engine.transactions.row_gate import Base


class Pending(list["Change"]):
    """The changes that are committed or undone at the end: one per statement.

    Made by `new_pending`, which takes half of the time of an `__init__`.
    """

    __slots__ = (
        *("_lost", "_sums", "beneath", "between", "depth", "failed", "is_prepared", "other"),
        *("owner", "updates"),
    )
    beneath: list[Change]
    """The commits of others since this was first set aside, which it does not see."""
    between: Between
    """The functions to call between the phases of the commit."""
    depth: int
    """The number of transactions open within the outermost one."""
    failed: bool
    is_prepared: bool
    """True if statements are refused: its operators step, or have stepped."""
    owner: Any
    """The task or thread that has it open, while it is set aside."""
    updates: Any
    """The updates that it has recorded, while it is set aside."""
    other: Any
    """The participant committed with it (`two_commits/participants.py`), or None."""
    _sums: dict[Base, _NetChanges] | None
    _lost: dict[Base, _RemovedRows] | None

    def has(self, changes: Sequence[Pair]) -> bool:
        """Return True if `changes` are those of the last statement."""
        return bool(self) and self[-1][1] is changes

    def intern_rows(self, table: Base, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the rows, each replaced by the equal object that was removed, if any."""
        return self._lost_of(table).intern_rows(rows)

    def intern_row(self, table: Base, row: Row) -> Row:
        """Return the row, or the equal object that was removed.

        After one statement of one row, the two rows are compared, without a dictionary of them.
        """
        if self._lost is None and len(self) == 1:
            changed, delta = self[0]
            if changed is not table:
                return row
            if len(delta) == 1 and type(delta) is not UniformDelta:
                kept, weight = delta[0]
                if weight < 0 and (kept is row or _are_equal(kept, row)):
                    return kept
                return row
        return self._lost_of(table).intern_row(row)

    def _lost_of(self, table: Base) -> _RemovedRows:
        """Return the rows that statements have removed from a table so far."""
        if self._lost is None:
            self._lost = {}
        lost = self._lost.get(table)
        if lost is None:
            lost = self._lost[table] = _RemovedRows(table)
        if lost.seen < len(self):
            lost.scan(self)
        return lost

    def forget(self) -> None:
        """Drop the sums, because the statements were replaced."""
        self._sums = self._lost = None

    def net_changes(self, table: Base) -> list[Pair]:
        """Return the net difference of a table from its last commit.

        The difference has the changes so far and, negated, the commits of others that the
        transaction does not see.
        """
        net = [pair for pair in self._net_of(table).values() if pair[1]]
        if not self.beneath:
            return net
        others = [pair for changed, delta in self.beneath if changed is table for pair in delta]
        return consolidate([*net, *negate(others)])

    def changes(self) -> list[Change]:
        """Return the changes of all changed tables, each as one delta."""
        found: dict[Base, list[Sequence[Pair]]] = {}
        for table, changes in self:
            if table._node is not None:  # not an assignment to an object
                found.setdefault(table, []).append(changes)
        each = [(table, self._delta(table, parts)) for table, parts in found.items()]
        return [change for change in each if change[1]]

    def _delta(self, table: Base, parts: Sequence[Sequence[Pair]]) -> Sequence[Pair]:
        """Return the statements' changes as one delta; net, if rows are inserted and deleted."""
        if len(parts) == 1:
            return parts[0]
        batches = [part for part in parts if type(part) is UniformDelta]
        if len(batches) == len(parts) and self._are_apart(table, batches):
            return _join_batches(batches)
        pairs = list(chain.from_iterable(parts))
        gone = {id(row) for row, weight in pairs if weight < 0}
        if not gone or len(gone) == len(pairs):
            return pairs
        if not table.plan.stored:
            return consolidate(pairs)
        if not table._store.interns:
            return self.net_changes(table)
        are_others = gone.isdisjoint([id(row) for row, weight in pairs if weight > 0])
        return pairs if are_others else net_by_identity(pairs)

    def _are_apart(self, table: Base, batches: Sequence[UniformDelta]) -> bool:
        """Return True if batches of rows were removed, then others added, and none again."""
        signs = [batch.weight for batch in batches]
        if signs != sorted(signs) or not table._store.interns:
            return False
        lost = None if self._lost is None else self._lost.get(table)
        return lost is not None and not lost.has_returned

    def changes_of_two_rows(self) -> list[Change] | None:
        """Return the changes if two statements have changed a row each, of one table; else None."""
        if len(self) != 2:
            return None
        (table, one), (other, two) = self
        if table is not other or len(one) != 1 or len(two) != 1 or table._node is None:
            return None
        if not table._store.interns:
            return None
        (row, weight), (same, more) = one[0], two[0]
        if row is not same:
            return [(table, [one[0], two[0]])]
        return [] if weight + more == 0 else None

    def _net_of(self, table: Base) -> dict[Row, Pair]:
        """Return the net changes of a table so far, brought up to date at each call."""
        if self._sums is None:
            self._sums = {}
        net = self._sums.get(table)
        if net is None:
            net = self._sums[table] = _NetChanges(table)
        return net.after(self)


def _join_batches(parts: Sequence[UniformDelta]) -> Sequence[Pair]:
    """Return batches as one delta; if they are large, the pairs are made when they are read."""
    if sum(map(len, parts)) < schedule.MANY:
        return list(chain.from_iterable(parts))
    from reactive.engine.collections.whole_rows import JoinedDelta

    return JoinedDelta(parts)


class _RemovedRows:
    """The rows that statements have removed from a table.

    If an equal row is added again, the table must store the removed object, which the indexes hold.
    Rows are found by the field by which the store finds them, if there is one: hashing its value
    takes a fraction of the time.
    """

    __slots__ = ("_field", "_others", "_rows", "_table", "has_returned", "seen")

    def __init__(self, table: Base) -> None:
        self._rows: dict[Any, Row] = {}
        """The rows by that field, or by themselves."""
        self._others: dict[Row, Row] = {}
        """The rows by themselves, if another row in `_rows` has their value of the field."""
        self._field: RowField | None = getattr(table._store, "field", None)
        self._table = table
        self.has_returned = False
        """True if a removed row was added again."""
        self.seen = 0
        """The number of statements that were scanned."""

    def scan(self, statements: Sequence[Change]) -> None:
        """Add the rows of statements that were not scanned before."""
        while self.seen < len(statements):
            table, changes = statements[self.seen]
            if table is self._table and (gone := _rows_of_sign(changes, come=False)):
                self._insert(gone)
            self.seen += 1

    def intern_row(self, row: Row) -> Row:
        """Return the equal object that was removed, and note that it returned; else the row."""
        field = self._field
        if field is None or row.__class__ is not field.kind:
            return self.intern_rows((row,))[0]
        kept = self._rows.get(field.of(row))
        if kept is None:
            return row
        if kept is not row and not _are_equal(kept, row):
            if row not in self._others:
                return row
            kept = self._others[row]
        self.has_returned = True
        return kept

    def intern_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the rows, each replaced by the equal object that was removed, if any."""
        keys = self._keys(rows)  # may change how rows are found
        if self._rows.keys().isdisjoint(keys):
            return rows
        if self._field is None:
            self.has_returned = True
            return list(map(self._rows.get, rows, rows))
        kept = list(map(self._rows.get, keys))
        if not self._others and not _have_equal(self._field, kept, rows):
            return rows
        return list(map(self.intern_row, rows))

    def _insert(self, rows: Sequence[Row]) -> None:
        """Add removed rows."""
        keys, known = self._keys(rows), self._rows
        if self._field is None:
            self._rows.update(zip(rows, rows, strict=True))
            return
        if len(rows) > 1:
            new = dict(zip(keys, rows, strict=True))
            if len(new) == len(rows) and known.keys().isdisjoint(new.keys()):
                known.update(new)
                return
        for key, row in zip(keys, rows, strict=True):
            if known.setdefault(key, row) is not row:
                self._others[row] = row

    def _keys(self, rows: Sequence[Row]) -> Sequence[Any]:
        """Return the keys of rows; rows are their own keys once one has another class."""
        field = self._field
        if field is None:
            return rows
        if {*map(type, rows)} == {field.kind}:
            return list(map(field.of, rows))
        self._field = None
        self._rows, self._others = {row: row for row in self._rows.values()} | self._others, {}
        return rows


class _NetChanges:
    """The changes of a table's statements, summed per row."""

    __slots__ = ("_pairs", "_seen", "_table")

    def __init__(self, table: Base) -> None:
        self._table = table
        self._pairs: dict[Row, Pair] = {}
        self._seen = 0

    def after(self, statements: Sequence[Change]) -> dict[Row, Pair]:
        """Return the sum; statements not seen before are added."""
        try:
            while self._seen < len(statements):
                table, changes = statements[self._seen]
                if table is self._table:
                    for row, weight in changes:
                        known, old = self._pairs.get(row, (row, 0))
                        self._pairs[row] = (known, old + weight)
                self._seen += 1
        except BaseException:  # half added: start again the next time
            self._pairs, self._seen = {}, 0
            raise
        return self._pairs


def _have_equal(field: RowField, kept: Sequence[Row | None], rows: Sequence[Row]) -> bool:
    """Return True if a row equals the one in its place in `kept`, or comparing them raises."""
    try:
        return field.have_equal(kept, rows)
    except Exception as error:
        reraise_asynchronous(error)
        return True


def _are_equal(one: Row, other: Row) -> bool:
    """Return True if two rows with equal keys are equal; as in a dictionary, if hashes are."""
    try:
        return bool(one == other)
    except Exception as error:
        if have_one_hash(one, other, error):
            raise
        return False


NOTHING: list[Any] = []
"""The `beneath` of a transaction that was never set aside. Never mutated."""


def new_pending(between: Between) -> Pending:
    """Create the empty `Pending` of a new transaction; `between` is called between its phases."""
    pending = Pending()
    pending.between, pending.depth = between, 0
    pending.failed = pending.is_prepared = False
    pending._sums = pending._lost = pending.other = None
    pending.beneath = NOTHING
    return pending


def _rows_of_sign(changes: Sequence[Pair], *, come: bool) -> Sequence[Row]:
    """Return the inserted rows, or the deleted rows."""
    if type(changes) is UniformDelta:
        return changes.rows if (changes.weight > 0) is come else ()
    return [row for row, weight in changes if (weight > 0) is come]


def set_aside(engine: Engine) -> None:
    """Undo the open transaction in the tables, until it is brought back.

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
    owner, updates, broken = (
        db_lock.owner,
        UpdateLog(),
        InterruptedCommit(_changes_to_undo(pending), views=False),
    )
    assert owner is not None
    # no call in between, so no interrupt can occur here
    pending.owner, pending.updates, engine.updates = owner, engine.updates, updates
    engine.broken, engine.aside = broken, (*engine.aside, pending)
    db_lock.aside, db_lock.idle, db_lock.at_rest = owner[0], BROKEN, BROKEN
    engine.pending, db_lock.owner, db_lock.is_special = None, None, db_lock.is_closed
    surely(broken.restore_tables)
    engine.broken = None


def bring_back(engine: Engine, pending: Pending) -> None:
    """Reopen a transaction that was set aside, and apply its changes to the tables.

    Another open transaction is set aside first. Nothing happens if `pending` is not set aside.
    """
    if all(each is not pending for each in engine.aside):
        return
    if engine.pending is not None:
        set_aside(engine)
    db_lock, broken = engine.db_lock, InterruptedCommit([], views=False)
    engine.broken, db_lock.at_rest = broken, BROKEN
    for table, delta in reversed(pending.beneath):
        _apply_change(broken.back, table, negate(delta))
    for table, delta in pending:
        _apply_change(broken.back, table, delta)
        table._do.note_removal()
    pending.updates.move_to(engine.version + 1)
    left = tuple([each for each in engine.aside if each is not pending])
    # no call in between here either
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
    """Apply the changes of an ending transaction to the commits of others since it was set aside.

    Raises
    ------
    ConflictError: both have touched a row, or a key. Then its changes are undone.
    """
    statements, beneath = [*pending], pending.beneath
    engine.broken, engine.db_lock.at_rest = (
        InterruptedCommit(_changes_to_undo(pending), views=False),
        BROKEN,
    )
    pending.beneath = NOTHING
    pending.clear()
    pending.forget()
    surely(engine.broken.restore_tables)
    engine.broken, engine.db_lock.at_rest = None, engine.db_lock.idle
    if pending.failed:
        return
    refuse_both(statements, beneath, _LATER)
    engine.updates.move_to(engine.version + 1)
    for table, delta in statements:
        table._store.revert(negate(delta))
        pending.append((table, delta))
        table._do.note_removal()


def check_beside(engine: Engine, changes: Sequence[Change]) -> None:
    """Raise if a commit beside transactions that are set aside is not allowed.

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
    if not commit_few_rows(engine, table, changes, version):
        Commit(engine, version, [(table, changes)], []).run()
    note_beneath(engine, [(table, changes)])


def note_beneath(engine: Engine, changes: Sequence[Change]) -> None:
    """Record a commit of others, which transactions that are set aside do not see."""
    for pending in engine.aside:
        if pending and not pending.is_prepared:
            if pending.beneath is NOTHING:
                pending.beneath = []
            pending.beneath += changes


def refuse_both(one: Sequence[Change], other: Sequence[Change], why: str) -> None:
    """Raise if both touch a row, or a key, in a way whose order matters."""
    touched = _find_touched(other, {table for table, _ in one})
    for table, delta in one:
        known, is_keyed = touched.get(table, {}), table._keyed is not None
        for part, weight in _keys_or_rows(table, delta) if known else ():
            if part in known and (is_keyed or weight < 0 or known[part]):
                what = f"{'key' if is_keyed else 'row'} {part!r:.200}"
                raise ConflictError(why.format(what, table.name))


def _find_touched(changes: Sequence[Change], tables: set[Base]) -> dict[Base, dict[Any, bool]]:
    """Return the touched rows or keys of each table, each with True if one was removed."""
    found: dict[Base, dict[Any, bool]] = {}
    for table, delta in changes:
        if table in tables and table.plan.stored:
            known = found.setdefault(table, {})
            for part, weight in _keys_or_rows(table, delta):
                known[part] = known.get(part, False) or weight < 0
    return found


def _keys_or_rows(table: Base, delta: Sequence[Pair]) -> Iterable[Pair]:
    """Return the keys of the rows that have changed, or the rows of a table without a key."""
    if table._keyed is None:
        return delta
    key = table._keyed.key
    return [(key(row), weight) for row, weight in delta]


def _changes_to_undo(pending: Pending) -> list[tuple[Base, Sequence[Pair]]]:
    """Return the changes between the last commit and the tables, in the order they were made."""
    return [*((table, negate(delta)) for table, delta in reversed(pending.beneath)), *pending]


def _apply_change(
    back: list[tuple[Base, Sequence[Pair]]], table: Base, delta: Sequence[Pair]
) -> None:
    """Apply a delta to the store of its table, and append both to `back`."""
    table._store.revert(negate(delta))
    back.append((table, delta))


started_in: ContextVar[Any] = ContextVar("transaction", default=None)
"""The transaction that contains this task, or that started it."""
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
