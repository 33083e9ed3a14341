"""A table of tracked objects; its rows are snapshots of them.

    orders.add(order)     the row is a snapshot of the object
    order.total = 7       a new snapshot replaces it
    orders[7], list(...)  snapshots
    of(orders[7])         the object

Statements take an object, or a row in place of its object.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from optimizer.plans.explain import Explanation
from reactive.api.table import Table
from reactive.borders.objects.changes import Objects
from reactive.borders.objects.records import ObjectRecord, known_record, of, record_of
from reactive.borders.objects.shapes import is_tracked, is_twin, shape_of
from reactive.borders.objects.store import ObjectStore
from reactive.engine.collections.zset import Pair
from reactive.engine.runtime.boundary import boundary, hide
from reactive.engine.storage.store import RowStore
from reactive.engine.transactions import patches
from reactive.engine.transactions.transaction import Transaction
from reactive.errors import PlanError, TableError

T = TypeVar("T")
K = TypeVar("K")


@boundary
class ObjectTable(Table[T, K]):
    """A table of mutable objects: a `Table` whose rows are snapshots.

    Created by `Database.table` for a class that is `@tracked`. Each object has its own row, which
    equals only itself: two objects with the same values are two rows, and an object is in the table
    at most once.

    State: the snapshot of each object. Cost: an assignment costs an `update`.

    >>> from reactive import Database, of, tracked
    >>> @tracked
    ... class Order:
    ...     id: int
    ...     total: float
    >>> orders = Database().table(Order, key="id")
    >>> large = orders.where(lambda o: o.total > 10).materialize()
    >>> order = Order(7, 20.0)
    >>> orders.add(order)
    >>> list(large), of(orders[7]) is order
    ([Order(id=7, total=20.0)], True)
    >>> order.total = 5.0
    >>> list(large), orders[7]
    ([], Order(id=7, total=5.0))
    """

    def __init__(self, engine: Any, number: int, row_type: Any, *given: Any) -> None:
        if engine.objects is None:
            engine.objects = Objects(engine)
        self._objects: Objects = engine.objects
        self._home = weakref.ref(self._objects)
        super().__init__(engine, number, row_type, *given)
        self._objects.tables.append(self)

    # Changes.

    def add(self, row: T, count: int = 1) -> None:
        """Add an object.

        Raises
        ------
        TableError: it has another class, is in the table already, its key is taken, `count` is not
            1, or one of its values may change unnoticed.

        Cost: O(attributes), and the work of the dependent views.
        """
        self._write(lambda row: self._do.add(self._new_row(row), count), row)

    def add_all(self, rows: Iterable[T]) -> None:
        """Add objects in one commit: all of them, or none if one is refused."""
        self._write(lambda rows: self._do.add_all([*map(self._new_row, rows)]), list(rows))

    def remove(self, row: T, count: int = 1) -> None:
        """Remove an object; later assignments to it are not commits.

        Raises
        ------
        TableError: it is not in the table.
        """
        self._write(lambda row: self._do.remove(self._held_row(row), count), row)

    def remove_all(self, rows: Iterable[T]) -> None:
        """Remove objects in one commit: all of them, or none if one is absent."""
        self._write(lambda rows: self._do.remove_all([*map(self._held_row, rows)]), list(rows))

    def discard(self, row: T) -> None:
        """Remove an object if it is in the table."""
        self._write(
            lambda row: self._do.remove(self._held_row(row)) if self.count(row) else (), row
        )

    if not TYPE_CHECKING:

        def update(self, key, /, *new, **fields):
            """Replace an object by another; or assign to fields of the object with a key.

            One commit.
            """
            if len(new) != 1 or fields:
                super().update(key, *new, **fields)
            else:
                self._write(self._update_row, (key, *new))

    def _change(self, key: Any, fields: dict[str, Any]) -> None:
        """Assign to the object in one commit."""
        changed = self[key]
        patches.check_fields(self.name, changed, fields)
        with Transaction(self._engine):
            for name, value in fields.items():
                setattr(of(changed), name, value)

    def upsert(self, row: T) -> None:
        """Replace the object with the same key, or add it. Only for keyed tables."""
        self._need_key("upsert")
        self._write(self._upsert_row, row)

    def upsert_all(self, rows: Iterable[T]) -> None:
        """Upsert each object, in one commit. Only for keyed tables."""
        self._need_key("upsert_all")
        self._write(
            lambda rows: self._do.together(*((lambda r=row: self._upsert_row(r)) for row in rows)),
            list(rows),
        )

    def replace_all(self, rows: Iterable[T]) -> None:
        """Make the given objects those of the table; only the difference is a change."""
        self._write(lambda rows: self._do.replace_all([*map(self._any_row, rows)]), list(rows))

    def replace_where(self, predicate: Callable[[T], object], rows: Iterable[T]) -> None:
        """Replace the objects that satisfy a predicate, which is called with snapshots."""
        if not callable(predicate):
            super().replace_where(predicate, rows)
        self._write(
            lambda rows: self._do.replace_where(predicate, [*map(self._any_row, rows)]), list(rows)
        )

    def delete(self, key: K) -> None:
        """Remove the object with a key. Only for keyed tables."""
        self._need_key("delete")
        self._write(self._do.delete, key)

    def _patch(self, given: Any) -> list[T]:
        """Raise `TableError`: a row that is a snapshot is changed by its object."""
        raise TableError(
            f"patch of table {self.name!r}, whose rows are snapshots of objects\n"
            "  change the object: reactive.of(table[key])"
        )

    # Reading.

    def __contains__(self, item: object) -> bool:
        """Return True if an object is in the table; for a keyed table, also if a key is."""
        if self._keyed is not None and not isinstance(item, self._kind):
            return self._find(item) is not None
        return self.count(item) > 0

    def count(self, row: object) -> int:
        """Return the copies of an object in the table: 1 or 0."""
        with self._reading():
            record = self._find_record(row)
            row = None if record is None else record.row_in(self._store)
            return 0 if row is None else int(self._visible().count(row))

    def explain(self, *, optimized: bool = True, costs: bool = False) -> Explanation:
        """Explain the table, and list the attributes that queries read.

        Only assignments to these attributes are commits. See `Relation.explain`.

        >>> from reactive import Database, tracked
        >>> @tracked
        ... class Order:
        ...     id: int
        ...     total: float
        ...     note: str = ""
        >>> orders = Database().table(Order, key="id", name="orders")
        >>> large = orders.where(lambda o: o.total > 10).select(lambda o: o.id).materialize()
        >>> print(orders.explain(optimized=False))
        table orders (key id)
        queries read: id, total; an assignment to note is no commit
        """
        made = super().explain(optimized=optimized, costs=costs)
        store: Any = self._store
        with self._engine.inside():
            read = store.attributes_read()
        names = shape_of(self._kind).names
        unread = [name for name in names if read is not None and name not in read]
        if read is None:
            told = "queries read: all, or nobody knows what; each assignment is a commit"
        elif unread:
            here = [name for name in names if name in read]
            told = f"queries read: {', '.join(here) or 'nothing'}; an assignment to "
            told += f"{', '.join(unread)} is no commit"
        else:
            told = f"queries read: {', '.join(names)}; each assignment is a commit"
        return Explanation(f"{made}\n{told}", made.drawing)

    # Implementation.

    @property
    def _kind(self) -> Any:
        return getattr(self.row_type, "__origin__", self.row_type)

    @property
    def _is_near(self) -> bool:
        """True if rows can be read in place, because they include all assignments."""
        return not self._objects.unread

    @_is_near.setter
    def _is_near(self, value: bool) -> None: ...

    def _new_store(self, hashable: Any) -> RowStore:
        """Return the store of the table's objects.

        Raises `PlanError` if the table is not stored.
        """
        if not self.plan.stored:
            raise PlanError(
                f"table {self.name!r} of objects must be stored: an object that changes takes the "
                "place of its snapshot"
            )
        keyed = self._keyed
        key, call = (None, None) if keyed is None else (keyed.key, keyed.call)
        store = ObjectStore(self._objects, self, key, call)
        if keyed is not None:
            self._keyed = store
        return store

    def _give_up(self, why: str) -> None:
        """Drop the table, and stop tracking its objects for it."""
        self._objects.tables.remove(self)
        if isinstance(self._store, ObjectStore):
            self._store.give_up()
        super()._give_up(why)

    def _write(self, statement: Callable[[Any], Sequence[Pair]], of: Any) -> None:
        """Run a statement after the transaction's earlier assignments to objects are flushed."""
        objects = self._objects

        def change(of: Any) -> Sequence[Pair]:
            pending = self._engine.pending
            if objects.changed and pending is not None:
                objects.flush(pending)
            return statement(of)

        try:
            self._engine.write(self, change, of)
        except Exception as error:
            hide(error)
            raise

    def _reading(self) -> AbstractContextManager[None]:
        """Return the context of a read, after rows were brought up to date with their objects."""
        objects, engine = self._objects, self._engine
        if (objects.changed or objects.unread) and not engine.db_lock.depth_here:
            pending = engine.pending
            if pending is None and objects.unread:
                objects.show_all()
            elif pending is not None and engine.db_lock.is_mine and not engine.graph.stepping:
                objects.bring_up()
                with engine.inside(to_write=True):
                    objects.flush(pending)
        return super()._reading()

    def _upsert_row(self, given: Any) -> Sequence[Pair]:
        return self._do.upsert(self._any_row(given))

    def _update_row(self, given: tuple[Any, Any]) -> Sequence[Pair]:
        """Return the changes of replacing one object by another; none if both are the same."""
        old, new = map(self._record, given)
        if old is new and old.row_in(self._store) is not None:
            return ()
        return self._do.together(
            lambda: self._do.remove(self._held_row(given[0])),
            lambda: self._do.add(self._new_row(given[1])),
            is_noted=True,
        )

    def _record(self, given: Any) -> ObjectRecord:
        """Return the record of an object, or of the object of a row.

        Raises `TableError` for an object of another class, and for a row without an object.
        """
        if is_twin(type(given)) and given._record_ is not None:
            given = given._record_.object
        if not isinstance(given, self._kind) or not is_tracked(type(given)):
            self._do.check(given)
            if is_twin(type(given)):
                raise TableError(
                    f"{given!r:.200} stands for no object of table {self.name!r}: it is a row that "
                    "came from elsewhere, such as a pickle\n  make an object of its values"
                )
            raise TableError(
                f"table {self.name!r} takes objects of {self._kind.__name__}, not {given!r:.100}"
            )
        record = record_of(given)
        record.trusted |= self.identity
        return record

    def _find_record(self, given: Any) -> ObjectRecord | None:
        """Return the record of an object, or of a row's object; None if it has none."""
        if is_twin(type(given)):
            found: ObjectRecord | None = given._record_
            return found
        return known_record(given)

    def _new_row(self, given: Any) -> Any:
        """Return the snapshot of an object to add. Raises `TableError` if it is there already."""
        record = self._record(given)
        if record.row_in(self._store) is not None:
            raise TableError(
                f"cannot add {given!r:.200} to table {self.name!r}: the object is there already\n"
                "  a change of it needs no statement"
            )
        return self._row_now(record)

    def _held_row(self, given: Any) -> Any:
        """Return the row of an object in the table. Raises `TableError` if the table has none."""
        row = self._record(given).row_in(self._store)
        if row is None:
            raise TableError(
                f"cannot remove {given!r:.200} from table {self.name!r}: it is not there\n"
                f"  {self._holds()}; discard() removes only what is present"
                "\n  an object of equal values is another one: remove(row) of a row that is there"
            )
        return row

    def _any_row(self, given: Any) -> Any:
        """Return the row of an object in the table, or else a snapshot of it."""
        record = self._record(given)
        return record.row_in(self._store) or self._row_now(record)

    def _row_now(self, record: ObjectRecord) -> Any:
        """Return the current snapshot of an object; an object in no table is read anew."""
        if not record.places:
            record.late = dict.fromkeys(record.shape.names)
            record.home = self._home
        return record.current()
