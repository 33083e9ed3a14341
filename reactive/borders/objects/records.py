"""Records of tracked objects: the last snapshot, attributes assigned since, and their tables.

    object  -->  RECORDS  -->  record:  row     Order(7, 20.0)       the last snapshot
                                        late    {"total"}            assigned since
                                        places  orders: its row there

The rows of an object keep its record alive: it exists while a table has the object, or a row of it
is referenced. An object does not refer to its record, so that copies and pickles have none, and an
assignment to an object in no table costs one look-up.

A snapshot holds immutable values only (`freeze_leaf`):

    plain values, frozen records     unchanged; every NaN as the canonical one
    lists, dictionaries, sets        their contents, as frozen collections (`containers`)
    tracked objects                  their snapshots, which are replaced when they change
    others                           refused, unless the table promises `identity=True`

State:  weakly, the record of each object by its `id`, per process; the classes known to be
        immutable.
Cost:   a check of the class of a value, and for a tuple of its items.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from optimizer.expressions.knowledge import Foldable
from optimizer.kinds.fields import by_recent_class
from reactive.borders.objects.containers.container import Container
from reactive.borders.objects.containers.tracked_set import is_container, is_same, wrap
from reactive.borders.objects.shapes import (
    MISSING,
    RECORD,
    ClassShape,
    is_tracked,
    is_twin,
    shape_of,
)
from reactive.engine.collections.zset import canonical
from reactive.engine.storage.rows import PLAIN, check_objects, may_hold_objects, why_changeable
from reactive.errors import TableError

T = TypeVar("T")


class TablePlace:
    """The membership of an object in a table, with its row there."""

    __slots__ = ("row", "store")

    def __init__(self, store: Any, row: Any) -> None:
        self.store = store
        self.row = row


class ObjectRecord:
    """The facts about a tracked object."""

    __slots__ = (
        *("__weakref__", "_is_busy", "_is_marking", "late", "left", "object", "owners", "places"),
        *("_before", "home", "row", "shape", "trusted"),
    )

    def __init__(self, instance: Any) -> None:
        self.object = instance
        self.shape: ClassShape = shape_of(type(instance))
        self.row: Any = None
        """The last snapshot."""
        self.late: dict[str, Any] = {}
        """The attributes assigned since the last snapshot, some with their frozen values.

        These keep the records of objects in them alive, until a snapshot of this object does.
        """
        self.places: tuple[TablePlace, ...] = ()
        self.left: Any = None
        """The `Objects` of a database whose table has lost this object, and its version then.

        A transaction that has removed the object also restores it.
        """
        self.owners: dict[tuple[int, Any], weakref.ref[Any]] | None = None
        """The objects with this one as the value of an attribute, and containers that hold it."""
        self.home: weakref.ref[Any] | None = None
        """The `Objects` of the database whose rows have contained it, alone or in other objects.

        A transaction of that database also restores this object, even if it was just taken out.
        """
        self._before: tuple[int, Any] | None = None
        """The last snapshot as of a version, kept when a newer one is made."""
        self.trusted = False
        """True if a table promises that values of any class do not change."""
        self._is_busy = False
        self._is_marking = False

    def mark(self, name: Any, value: Any = None) -> None:
        """Mark an attribute as changed, and with it all snapshots that contain this object's."""
        self.late.setdefault(name)
        for place in self.places:
            place.store.objects.note(self, name, place.store)
        if self.owners and not self._is_marking:
            self._is_marking = True
            try:
                for owner, key in self.owned_by():
                    owner.mark(key, self.object)
            finally:
                self._is_marking = False

    def holds(self, name: Any, value: Any) -> bool:
        """Return True if a value is still that of an attribute, or may be in its tuple."""
        stored = self.shape.read(self.object, name)
        return stored is value or isinstance(stored, tuple)

    @staticmethod
    def change_all(records: Sequence[ObjectRecord], do: Callable[[], Any]) -> None:
        """Change several objects in one commit; see `containers.container.Owner`."""
        for record in records:
            for place in record.places:
                place.store.objects.change_inside(records, do)
                return
            home = None if record.home is None else record.home()
            if record.left is not None or home is not None:
                (record.left[0] if home is None else home).change_inside(records, do)
                return
        do()

    def current(self) -> Any:
        """Return the current snapshot, a new one if an attribute has changed since the last."""
        row, late = self.row, self.late
        if row is None:
            every = {name: self._frozen(name) for name in self.shape.names}
            self.row = self.shape.new(self, every)
            self.late = {}
            return self.row
        if not late:
            return row
        changes, read = {}, self.shape.read
        for name in list(late):
            value = self._frozen(name)
            if differs(value, read(row, name)):
                changes[name] = value
        if changes and self.home is not None:
            self._keep(row)
        made = self.shape.copied(row, changes) if changes else row
        self.row, self.late = made, {}
        return made

    def is_other(self, name: str, *, anew: bool = True) -> bool:
        """Return True if an attribute differs from the last snapshot, assigned or not.

        anew: True to search containers for changes that bypassed tracking.
        """
        value = self.shape.read(self.object, name)
        try:
            if anew and isinstance(value, Container):
                now = value.anew(partial(self._leaf, name))
            else:
                now = self._frozen(name)
        except TableError:  # a value that no snapshot can hold
            return True
        if self.row is None or differs(now, self.shape.read(self.row, name)):
            return True
        if isinstance(value, Container) and not value.follows_any():
            return False
        return anew and any(row._record_.changed_unseen() for row in _snapshots_in(now))

    def changed_unseen(self) -> list[str]:
        """Return the attributes that differ from the last snapshot without an assignment."""
        return [name for name in self.suspects() if self.is_other(name)]

    def suspects(self) -> list[str]:
        """Return the unassigned attributes whose value is not the object in the last snapshot.

        They may have changed; or they are containers and objects, which a snapshot holds in frozen
        form.
        """
        names = self.shape.names if self.row is None else self.shape.unlike(self.object, self.row)
        return [name for name in names if name not in self.late]

    def look_inside(self) -> None:
        """Freeze the changed containers, so that objects in them report their changes.

        Raises
        ------
        TableError: a value there may change unnoticed.
        """
        for name in list(self.late) if self.places or self.owners else ():
            self.late[name] = self._frozen(name)

    def is_in_transaction(self) -> bool:
        """Return True if a transaction of a database with this object is open.

        See `containers.container.Owner`.
        """
        every = [place.store.objects for place in self.places]
        home = None if self.home is None else self.home()
        every += [] if home is None else [home]
        every += [] if self.left is None else [self.left[0]]
        return any(each.engine.pending is not None for each in every)

    def check(self, name: str) -> None:
        """Raise if the value of an attribute cannot be frozen."""
        if self.places or self.owners:
            self.late[name] = self._frozen(name)

    def settle(self) -> None:
        """Unmark attributes that are equal to the row again, here and in all owners."""
        for each in self.with_owners():
            each._settle()

    def _settle(self) -> None:
        """Unmark attributes equal to the row again, and tell the stores which ones are left."""
        for name in [name for name in self.late if not self.is_other(name, anew=False)]:
            del self.late[name]
        for place in self.places:
            place.store.objects.forget(self)
        for place in self.places:
            if place.row is not self.row:
                place.store.objects.unread[id(self)] = self
            for name in self.late:
                place.store.objects.note(self, name, place.store)

    def undone(self) -> None:
        """Restore the last snapshot after an attribute was restored, as of the last commit."""
        for place in self.places[:1]:
            self.went_back(place.row)
        before = None if self.places else self._before
        if before is not None and before[0] == self._version():
            self.went_back(before[1])

    def _keep(self, row: Any) -> None:
        """Keep a snapshot, to restore it if the transaction fails."""
        version = self._version()
        if self._before is None or self._before[0] != version:
            self._before = version, row

    def _version(self) -> int:
        """Return the version of the database whose rows contained this object; -1 without one."""
        home = None if self.home is None else self.home()
        return -1 if home is None else home.engine.version

    def went_back(self, row: Any) -> None:
        """Make an older snapshot the last one again.

        Attributes that differ between the two are pending again. Nothing changes for the
        last snapshot itself, or if there is none.
        """
        if self.row is row or self.row is None:
            return
        read, last = self.shape.read, self.row
        for name in self.shape.names:
            if differs(read(row, name), read(last, name)):
                self.late.setdefault(name)
        self.row = row

    def enter(self, store: Any, row: Any) -> None:
        """Add the object to a table, with this row, or replace its row there."""
        for place in self.places:
            if place.store is store:
                place.row = row
                return
        self.places = (*self.places, TablePlace(store, row))

    def leave(self, store: Any, row: Any) -> None:
        """Remove the object from a table, if this is its row there."""
        self.places = tuple(p for p in self.places if p.store is not store or p.row is not row)
        objects = store.objects
        if not any(place.store.objects is objects for place in self.places):
            objects.forget(self)  # else the object would stay marked until a row is read

    def row_in(self, store: Any) -> Any:
        """Return the row that a table holds of the object; None without one."""
        return next((place.row for place in self.places if place.store is store), None)

    def with_owners(self, so_far: dict[int, Any] | None = None) -> list[ObjectRecord]:
        """Return this record, and the records of all objects whose snapshots contain this one's.

        so_far: records that are known already; the others are added to it, and all are
        returned.
        """
        found = {} if so_far is None else so_far
        found[id(self)] = self
        for owner, _ in self.owned_by() if self.owners else ():
            if id(owner) not in found:
                owner.with_owners(found)
        return list(found.values())

    def owned_by(self) -> Iterator[tuple[Any, Any]]:
        """Yield the objects and containers that contain this object, with its key in them."""
        for key, reference in list((self.owners or {}).items()):
            owner = reference()
            if owner is not None:
                if owner.holds(key[1], self.object):  # a failing transaction may restore it
                    yield owner, key[1]
            elif self.owners is not None:
                self.owners.pop(key, None)

    def _frozen(self, name: str) -> Any:
        """Return the frozen value of an attribute.

        A plain container is replaced in the object by a tracked one.
        """
        value = self.shape.read(self.object, name)
        if value.__class__ in PLAIN:
            return canonical(value)
        if isinstance(value, Container) and value.is_of(self, name):
            return value.freeze(partial(self._leaf, name))
        if is_container(value):
            held = wrap(value, self, name)
            if held is not value:
                self.shape.write(self.object, name, held)
            return held.freeze(partial(self._leaf, name))
        return self._leaf(name, value, self)

    def _leaf(self, name: str, value: Any, owner: Any) -> Any:
        """Return the frozen form of a value that is no container, in an attribute or container."""
        if is_settled(value.__class__):
            return value
        where = f"{name!r} of an object of {self.shape.kind.__name__}"
        key = name if owner is self else None
        if owner is not self and isinstance(value, tuple):
            check_objects(value, where)
        return freeze_leaf(
            value, partial(self._nested_snapshot, name, owner, key), where, trusted=self.trusted
        )

    def _nested_snapshot(self, name: str, owner: Any, key: Any, value: Any) -> Any:
        """Return the snapshot of an object that is, or is inside, the value of an attribute.

        Raises `TableError` if that snapshot would contain itself.
        """
        inner = record_of(value)
        if inner._is_busy or inner is self:
            raise TableError(
                f"{name!r} of an object of {self.shape.kind.__name__} leads back to the object\n"
                "  a snapshot holds those of the objects that are values of attributes, and cannot "
                "hold itself\n  keep the key of the other object in its place, or leave the "
                "attribute out by tracked(exclude=...)"
            )
        self._is_busy = True
        try:
            inner.trusted |= self.trusted
            found = inner.current()
            if inner.owners is None:
                inner.owners = {}
            inner.owners[id(owner), key] = weakref.ref(owner)
            places = self.places[:1]
            inner.home = weakref.ref(places[0].store.objects) if places else self.home
            return found
        finally:
            self._is_busy = False


def _snapshots_in(value: Any) -> Iterator[Any]:
    """Yield the snapshots of objects inside a part of a snapshot."""
    if is_twin(value.__class__):
        if value._record_ is not None:
            yield value
    elif isinstance(value, tuple | Foldable):
        held: Any = value
        for each in held.values() if hasattr(held, "values") else held:
            yield from _snapshots_in(each)


RECORDS: dict[int, weakref.ref[ObjectRecord]] = {}


def known_record(instance: Any) -> ObjectRecord | None:
    """Return the record of an object; None if there is none."""
    reference = RECORDS.get(id(instance))
    found = None if reference is None else reference()
    return found if found is not None and found.object is instance else None


def record_of(instance: Any) -> ObjectRecord:
    """Return the record of an object; create it if there is none."""
    found = known_record(instance)
    if found is None:
        found = ObjectRecord(instance)
        RECORDS[id(instance)] = weakref.ref(found, partial(_forget_record, id(instance)))
    return found


def current_row(instance: Any) -> Any:
    """Return the current snapshot of an object."""
    return record_of(instance).current()


def _forget_record(number: int, reference: weakref.ref[ObjectRecord]) -> None:
    """Remove the record of a freed object, unless another object has its id by now."""
    if RECORDS.get(number) is reference:
        del RECORDS[number]


def of(row: T) -> T:
    """Return the object of a row.

    Parameters
    ----------
    row: a snapshot in a table or view of tracked objects.

    The object exists while the row is referenced, even after it has left the table.

    Raises
    ------
    LookupError: the row was made elsewhere, for example unpickled, and has no object.
    TableError: it is not a snapshot.

    >>> from reactive import Database, of, tracked
    >>> @tracked
    ... class Order:
    ...     id: int
    ...     total: float
    >>> orders = Database().table(Order, key="id")
    >>> order = Order(7, 20.0)
    >>> orders.add(order)
    >>> of(orders[7]) is order
    True
    """
    if not is_twin(type(row)):
        raise TableError(
            f"{row!r:.100} is no snapshot of an object\n"
            "  of(row) takes a row of a table whose class is @tracked"
        )
    record = getattr(row, RECORD, None)
    if record is None:
        raise LookupError(f"no object belongs to {row!r:.100}: it was made elsewhere")
    found: T = record.object
    return found


INSTEAD: dict[type, str] = {deque: "put in a list", bytearray: "put in bytes"}
"""The remedies for classes that cannot be tracked."""

EVENTED = {"EventedList": "list", "EventedDict": "dict", "EventedSet": "set"}
"""The containers of psygnal, and the classes to use in their place."""


def freeze_leaf(value: Any, nested: Callable[[Any], Any], where: str, *, trusted: bool) -> Any:
    """Return the form of a value in a snapshot.

    Parameters
    ----------
    nested: returns the snapshot of a tracked object.
    where: the attribute, for messages.
    trusted: True if the table promises that values of other classes do not change.

    Raises
    ------
    TableError: the value may change unnoticed.
    """
    kind = value.__class__
    if kind in PLAIN:
        return canonical(value)
    if value is MISSING:
        return value
    if is_lasting(kind):
        check_objects(value, where)
        return value
    if kind is tuple or issubclass(kind, tuple):
        items = [freeze_leaf(item, nested, where, trusted=trusted) for item in value]
        if all(map(_is_same_object, items, value)):
            return value
        return kind(*items) if hasattr(kind, "_fields") else tuple(items)
    if is_tracked(kind):
        return nested(value)
    if trusted:
        return value
    if kind.__name__ in EVENTED and kind.__module__.startswith("psygnal."):
        raise TableError(
            f"{where} is a {kind.__name__}: its signals come after a change, in no transaction, "
            "and can be blocked\n  so that a refused change could not be undone; hold a "
            f"{EVENTED[kind.__name__]}, which is followed"
        )
    why = why_changeable(kind) or "it has no hash"
    raise TableError(
        f"{where} is or holds a {kind.__name__}, which may change in place ({why}), and no view "
        f"would notice\n  {_instead(kind)}, leave the attribute out by "
        "tracked(exclude=...)\n  or promise that such values never change: "
        "db.table(..., identity=True)"
    )


def _instead(kind: type) -> str:
    """Return the remedy for a value that may change."""
    if kind in (list, dict, set):
        return f"a {kind.__name__} is followed in attributes, not in tuples: put in a tuple"
    for followed in (list, dict, set):
        if issubclass(kind, followed):
            return f"of those only a {followed.__name__} itself is followed: put in one"
    if issubclass(kind, Foldable):
        return "as a key or in a set, put in a tuple or frozenset"
    return INSTEAD.get(kind) or f"make {kind.__name__} @tracked or frozen"


def differs(value: Any, old: Any) -> bool:
    """Return True if a value of a snapshot differs from that of an older snapshot."""
    if value is old:
        return False
    kind = value.__class__
    if kind is old.__class__ and isinstance(value, Foldable):
        return not is_same(value, old)
    if kind is not old.__class__ or issubclass(kind, tuple):
        return kind is not old.__class__ or not _are_same_items(value, old)
    return kind not in PLAIN or value != old


def _are_same_items(items: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    return len(items) == len(others) and not any(map(differs, items, others))


def _is_same_object(one: Any, other: Any) -> bool:
    return one is other


@by_recent_class(64)
def is_settled(kind: Any) -> bool:
    """Return True if values of a class are held unchanged, because they hold no tracked object."""
    return is_lasting(kind) and kind not in PLAIN and not may_hold_objects(kind)


@by_recent_class(64)
def is_lasting(kind: Any) -> bool:
    """Return True if values of a class are immutable, with everything that they hold."""
    if is_twin(kind):
        return True
    if is_tracked(kind) or issubclass(kind, tuple) or kind.__hash__ is None:
        return False
    return why_changeable(kind) is None
