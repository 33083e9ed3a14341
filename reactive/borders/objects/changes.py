"""The tracked objects of a database, and those changed in the current transaction.

    order.total = 7              recorded until the end of the transaction: `total` of order changed
    end of the transaction       one update of its row per table: Order(7, 20.0) -> Order(7, 7)
    the transaction fails        the old value is restored, when changes of tables are undone

An assignment is recorded among the changes of the transaction as a change of a table that no query
reads. So the code that undoes changes (`commit.py`) also restores values, in reverse order.

State:  the objects that changed since the last commit.
Cost:   the end of a transaction takes O(changed objects).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from random import Random
from typing import TYPE_CHECKING, Any

from reactive.borders.objects import reads, silent
from reactive.borders.objects.records import ObjectRecord
from reactive.engine.collections.zset import Pair
from reactive.engine.runtime.boundary import hide
from reactive.engine.storage.store import Duplicate
from reactive.engine.transactions import transaction as transactions
from reactive.errors import TableError

if TYPE_CHECKING:
    from reactive.borders.objects.store import ObjectStore
    from reactive.engine.transactions.engine import Engine
    from reactive.engine.transactions.pending import Pending

EVERY = 64
"""The ratio of committed objects to rows checked for silent changes, in `Database(strict=True)`.

So a round over n rows takes `EVERY * n` changed objects.
"""
SEED = 1
NO_CHANGES: list[Pair] = []


class Objects:
    """The tracked objects of a database; for commits, a table of assignments (see above)."""

    name = "assignments"
    identity = True
    row_type: Any = object
    _node: Any = None
    _keyed: Any = None
    _followers: Any = None
    plan: Any = None
    interns = True

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.tables: list[Any] = []
        self.changed: dict[int, ObjectRecord] = {}
        """The objects with changes in attributes that queries read."""
        self.unread: dict[int, ObjectRecord] = {}
        """The objects with changes in other attributes since their rows were made."""
        self.inside: dict[int, ObjectRecord] = {}
        """The objects with changes inside containers in this transaction."""
        self._until = EVERY
        self._store: Any = self
        self._random = Random(SEED)

    # Changes.

    def forget(self, record: ObjectRecord) -> None:
        """Forget the changes of an object, whose rows are up to date."""
        self.changed.pop(id(record), None)
        self.unread.pop(id(record), None)

    def note(self, record: ObjectRecord, name: str, store: ObjectStore) -> None:
        """Record an assigned attribute: in `changed` if a query reads it, else in `unread`."""
        read = store.attributes_read()
        changed = self.changed if read is None or name in read else self.unread
        changed[id(record)] = record

    def has_changed(self, pending: Pending) -> bool:
        """Return True if a transaction has changed objects that other code may refer to."""
        return bool(self.changed or self.inside) or any(
            table._node is None or table in self.tables for table, _ in pending
        )

    def flush(self, pending: Pending) -> None:
        """Update the rows of changed objects, as further changes of the transaction."""
        if self.inside:
            inside, self.inside = self.inside, {}
            for record in inside.values():
                record.look_inside()
        while self.changed:
            records, self.changed = self.changed, {}
            try:
                for table, updates in self._updates(records.values()):
                    pending.append((table, _replace_rows(table, updates)))
                    if table._node.tracers:
                        self._tell(table, updates)
            except BaseException:
                self.changed.update(records)
                raise
            for number in records:
                self.unread.pop(number, None)
            self._until -= len(records)
            if self._until <= 0 and self.engine.strict:
                self._sample()

    def flush_one(self, record: ObjectRecord) -> list[Pair]:
        """Update the row of one object in one table, outside of transactions; return the changes.

        There are none if the object has no new snapshot.
        """
        (place,) = record.places
        old, new, table = place.row, record.current(), place.store.table()
        updates = [(record, old, new)]
        del self.changed[id(record)]
        if self.unread:
            self.unread.pop(id(record), None)
        self._until -= 1
        if self._until <= 0 and self.engine.strict:
            self._sample()
        if new is old:
            return NO_CHANGES
        if table._node.tracers:
            self._tell(table, updates)
        return _replace_rows(table, updates)  # no call may follow the change

    def bring_up(self) -> None:
        """Schedule updates of attributes that no query has read so far."""
        records, self.unread = self.unread, {}
        self.changed.update(records)

    def show_all(self) -> None:
        """Update rows with assignments that no query reads, in the open transaction or a new one.

        Does nothing in the middle of a commit.
        """
        engine = self.engine
        if not self.unread or engine.db_lock.depth_here or engine.db_lock.is_closed:
            return
        if engine.pending is None:
            with transactions.Transaction(engine):
                engine.write(self, self._all_shown, None)  # type: ignore[arg-type]
        elif engine.db_lock.is_mine:
            self.bring_up()

    def _all_shown(self, _: None) -> list[Pair]:
        """Schedule all updates, as the statement of a commit that has no other changes."""
        self.bring_up()
        return [(_undo_nothing, 1)]

    def forget_reads(self) -> None:
        """Forget which attributes queries read, because the queries have changed."""
        for table in self.tables:
            table._store.read = reads.UNKNOWN

    def change_inside(
        self, records: Sequence[ObjectRecord], do: Callable[[], Callable[[], object] | None]
    ) -> None:
        """Change a container inside objects; see the function `change_inside`."""
        change_inside(records, do)

    # The interface of a table, for commits.

    def revert(self, changes: Iterable[Pair]) -> None:
        for undo, _ in reversed(list(changes)):
            undo()

    def assigned_with(self, changes: Iterable[tuple[Any, Sequence[Pair]]]) -> list[Any]:
        """Return the assignments that led to changes of tables, so that they can also be undone.

        The stores forget them: a second call returns none.
        """
        stores = [(table._store, delta) for table, delta in changes if table in self.tables]
        found = [store.assigned_with(delta) for store, delta in stores]
        return [(self, undone) for undone in found if undone is not None]

    def recount(self) -> None: ...

    def __len__(self) -> int:
        return 0

    # Implementation.

    def _updates(
        self, records: Iterable[ObjectRecord]
    ) -> list[tuple[Any, list[tuple[ObjectRecord, Any, Any]]]]:
        """Return the objects with a new row, by table, with the old and the new row."""
        found: dict[int, tuple[Any, list[tuple[ObjectRecord, Any, Any]]]] = {}
        for record in records:
            for place in record.places:
                table = place.store.table()
                if place.store.objects is not self or table is None:
                    continue
                new = record.current()
                if new is not place.row:
                    mine = found.setdefault(id(place.store), (table, []))
                    mine[1].append((record, place.row, new))
        return list(found.values())

    def _tell(self, table: Any, updates: Sequence[tuple[ObjectRecord, Any, Any]]) -> None:
        """Record the updates of rows for subscribers that are told of updates."""
        version = self.engine.version + 1
        for _, old, new in updates:
            self.engine.updates.record(table, [(old, -1), (new, 1)], version)

    def _sample(self) -> None:
        """Check the due number of rows for silent changes; fewer where rows have long lists.

        Each round checks each row of each table once.
        """
        while self._until <= 0:
            table = next((each for each in self.tables if each._store.unseen), None)
            if table is None and not silent.begin_round(self.tables):
                self._until = EVERY
            elif table is not None:
                self._until += EVERY * (1 + silent.check_one(table, self._random))


def change_objects(
    records: Sequence[ObjectRecord], statement: Callable[[Any], list[Pair]], of: Any
) -> None:
    """Run `statement(of)` once, within a write to each database that has the objects.

    It runs directly if no database has them.

    statement: of -> the function that undoes the change, as a pair with weight 1; of: its
    argument.
    """
    every = _databases(records)
    if not every:
        statement(of)
        return
    first = every[0]
    engine = first.engine
    if len(every) == 1:
        if engine.mine is not None:
            engine.write(first, statement, of)  # type: ignore[arg-type]
        else:
            with transactions.Transaction(engine):
                engine.write(first, statement, of)  # type: ignore[arg-type]
        return
    with ExitStack() as open_:
        for each in every:
            open_.enter_context(transactions.Transaction(each.engine))
        done: list[list[Pair]] = []

        def once(of: Any) -> list[Pair]:
            if not done:
                done.append(statement(of))
            return done[0]

        for each in every:
            each.engine.write(each, once, of)  # type: ignore[arg-type]


def _databases(records: Sequence[ObjectRecord]) -> list[Objects]:
    """Return the `Objects` of the databases with some objects, or with others that contain them.

    The order is the same in all calls.
    """
    record = records[0]
    if len(records) == len(record.places) == 1 and not record.owners and record.left is None:
        objects: Objects = record.places[0].store.objects
        return [] if objects.engine.db_lock.is_closed else [objects]
    owners: dict[int, ObjectRecord] = {}
    for record in records:
        record.with_owners(owners)
    found: dict[int, Objects] = {}
    for each in owners.values():
        for place in each.places:
            found[id(place.store.objects)] = place.store.objects
        home = None if each.home is None else each.home()
        if home is not None and home.engine.mine is not None:
            found[id(home)] = home
        if each.left is not None:
            left, version = each.left
            if left.engine.pending is not None and left.engine.version == version:
                found[id(left)] = left
            else:
                each.left = None
    return [
        each
        for _, each in sorted(found.items(), key=_first_item)
        if not each.engine.db_lock.is_closed
    ]


def _first_item(of: tuple[int, Objects]) -> int:
    return of[0]


def change_inside(
    records: Sequence[ObjectRecord], do: Callable[[], Callable[[], object] | None]
) -> None:
    """Run a change of a container inside objects.

    `do` returns its undo, or None without a change.
    """
    table = only_table(records[0]) if len(records) == 1 else None
    try:
        if table is None:
            change_objects(records, _changed_inside, (records, do))
        else:
            table._objects.engine.write(table, _inside_alone, (table, records, do))
    except Exception as error:
        hide(error)
        raise


def _changed_inside(given: tuple[Sequence[ObjectRecord], Callable[[], Any]]) -> list[Pair]:
    """Change a container inside objects; return its undo."""
    undone = _undone_inside(given)
    for record in given[0]:
        for place in record.places:
            place.store.objects.inside[id(record)] = record
    return undone


def only_table(record: ObjectRecord) -> Any:
    """Return the table if a change of an object can be a commit of it alone; else None."""
    if len(record.places) != 1 or record.owners or record.left is not None:
        return None
    objects = record.places[0].store.objects
    if objects.engine.db_lock.is_special or objects.changed:
        return None
    return record.places[0].store.table()


def changed_alone(
    table: Any,
    record: ObjectRecord,
    statement: Callable[[Any], list[Pair]],
    of: Any,
    *,
    is_inside: bool,
) -> list[Pair]:
    """Change an object in one table: return the update of its row; none yet inside a transaction.

    Parameters
    ----------
    statement: of -> the function that undoes it, as a pair with weight 1.
    is_inside: True if it changes a container of the object.
    """
    store, objects = table._store, table._objects
    engine = objects.engine
    undone = statement(of)  # no call may stand between these lines
    if not undone:
        return NO_CHANGES
    if engine.pending is not None:
        if is_inside:
            objects.inside[id(record)] = record
        engine.pending.append((objects, undone))
        return NO_CHANGES
    try:
        if id(record) not in objects.changed:
            if is_inside:
                record.look_inside()
            return NO_CHANGES
        changes: list[Pair] = objects.flush_one(record)
        store.last = changes, undone
    except BaseException:
        undone[0][0]()
        raise
    return changes


def _inside_alone(given: tuple[Any, Sequence[ObjectRecord], Callable[[], Any]]) -> list[Pair]:
    """Change a container of an object in one table."""
    table, records, do = given
    return changed_alone(table, records[0], _undone_inside, (records, do), is_inside=True)


def _undone_inside(given: tuple[Sequence[ObjectRecord], Callable[[], Any]]) -> list[Pair]:
    """Call `do`; return its undo as a change, or no changes if it has changed nothing."""
    records, do = given
    undo = do()
    return NO_CHANGES if undo is None else [(_UndoInside(records, undo), 1)]


class _UndoInside:
    """The undo of a container's change; without `undo=True`, the next commit keeps the change."""

    __slots__ = ("_records", "_undo")

    def __init__(self, records: Sequence[ObjectRecord], undo: Callable[[], object]) -> None:
        self._records = records
        self._undo = undo

    def __call__(self) -> None:
        if all(record.shape.options.undo for record in self._records):
            self._undo()
        for record in self._records:
            for place in record.places[:1]:
                record.went_back(place.row)
            record.settle()


def _replace_rows(table: Any, updates: Sequence[tuple[ObjectRecord, Any, Any]]) -> list[Pair]:
    """Replace the rows of objects in a table; return the changes.

    Raises `TableError` if the key of a new row is taken.
    """
    try:
        store = table._store
        one = len(updates) == 1
        changes: list[Pair] = store.replace_one(*updates[0]) if one else store.replace(updates)
        return changes
    except Duplicate as taken:
        held, key_of = taken.args[0], table._store.key
        key = key_of(held)
        both = [(old, new) for _, old, new in updates if key_of(new) == key and new is not held]
        old, new = both[0]
        raise TableError(
            f"{old!r:.200} of table {table.name!r} cannot become {new!r:.200}: its key is taken by "
            f"{held!r:.200}\n  in a transaction keys may be exchanged; at its end no two objects "
            "may have the same"
        ) from None


def _undo_nothing() -> None: ...
