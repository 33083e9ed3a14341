"""What is known of an object that is in tables: its last snapshot, what has changed since, and
where it is.

    object  -->  RECORDS  -->  record:  row     Order(7, 20.0)       its last snapshot
                                        late    {"total"}            assigned since
                                        places  orders: its row there

A record is kept by the rows of its object; so it is there for as long as a table has it, or
somebody holds a row. An object knows nothing of its record, so that copies and pickles have none,
and an object that is in no table costs one look-up for each assignment.

State:  weakly, the record of each object by its `id`: of the process, as objects are.

What a snapshot holds of the value of an attribute: something that does not change.

    plain values, frozen records     as they are, NaN as the one that all rows have
    lists, dictionaries, sets        what they hold now (`containers`)
    objects that are tracked         their snapshots, which are made anew when these change
    others                           refused, unless the table promises `identity=True`

State:  which classes do not change in place.
Cost:   a look at the class of a value; of a tuple, at those of its items.
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
    """That an object is in a table: the row that the table holds of it."""

    __slots__ = ("row", "store")

    def __init__(self, store: Any, row: Any) -> None:
        self.store = store
        self.row = row


class ObjectRecord:
    """What is known of an object."""

    __slots__ = (
        *("__weakref__", "_is_busy", "_is_marking", "late", "left", "object", "owners", "places"),
        *("_before", "home", "row", "shape", "trusted"),
    )

    def __init__(self, instance: Any) -> None:
        self.object = instance
        self.shape: ClassShape = shape_of(type(instance))
        self.row: Any = None
        """Its last snapshot."""
        self.late: dict[str, None] = {}
        """The attributes that were assigned since."""
        self.places: tuple[TablePlace, ...] = ()
        self.left: Any = None
        """What tracks the objects of a database of which a table has lost this one, and the version
        that there was then: a transaction that has removed it restores it too."""
        self.owners: dict[tuple[int, Any], weakref.ref[Any]] | None = None
        """Objects that have this one as the value of an attribute, and containers that have it."""
        self.home: weakref.ref[Any] | None = None
        """What tracks the objects of the database in whose rows it has been, as a part of others or
        by itself: a transaction of it restores it too, also if it has just been taken out."""
        self._before: tuple[int, Any] | None = None
        """The last snapshot of the version that there was when another one was made."""
        self.trusted = False
        """Whether a table promises that values of any class do not change."""
        self._is_busy = False
        self._is_marking = False

    def mark(self, name: Any, value: Any = None) -> None:
        """An attribute is another one now, or changed inside, and so have the snapshots that hold
        the one of this object."""
        self.late[name] = None
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
        """Whether a value is still that of an attribute, or perhaps in a tuple that is."""
        stored = self.shape.read(self.object, name)
        return stored is value or isinstance(stored, tuple)

    @staticmethod
    def change_all(records: Sequence[ObjectRecord], do: Callable[[], Any]) -> None:
        """As `containers.container.Owner` says."""
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
        """The snapshot of now."""
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
        """Whether an attribute is not what the last snapshot says, assigned or not.

        anew: whether containers are looked through for what changed in them unseen.
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
        return anew and any(row._record_.changed_unseen() for row in _rows_in(now))

    def changed_unseen(self) -> list[str]:
        """The attributes that are not what the last snapshot says, and were not assigned."""
        return [name for name in self.suspects() if self.is_other(name)]

    def suspects(self) -> list[str]:
        """The attributes that were not assigned, and are not what the last snapshot holds: perhaps
        other ones, or containers and objects, of which it holds what they were."""
        names = self.shape.names if self.row is None else self.shape.unlike(self.object, self.row)
        return [name for name in names if name not in self.late]

    def look_inside(self) -> None:
        """Find the objects in containers that changed, which from now on tell of their changes.

        Raises
        ------
        TableError: a value there may change unseen.
        """
        for name in self.late if self.places or self.owners else ():
            self._frozen(name)

    def is_in_transaction(self) -> bool:
        """As `containers.container.Owner` says."""
        every = [place.store.objects for place in self.places]
        home = None if self.home is None else self.home()
        every += [] if home is None else [home]
        every += [] if self.left is None else [self.left[0]]
        return any(each.engine.pending is not None for each in every)

    def check(self, name: str) -> None:
        """Raise what is wrong with the value of an attribute."""
        if self.places or self.owners:
            self._frozen(name)

    def settle(self) -> None:
        """Forget what was assigned where the row says it again, of this and all that hold it."""
        for each in self.with_owners():
            each._settle()

    def _settle(self) -> None:
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
        """An attribute has been put back: so is the last snapshot, as it was at the last commit."""
        for place in self.places[:1]:
            self.went_back(place.row)
        before = None if self.places else self._before
        if before is not None and before[0] == self._version():
            self.went_back(before[1])

    def _keep(self, row: Any) -> None:
        """Keep a snapshot that is to be the last one again if the transaction fails."""
        version = self._version()
        if self._before is None or self._before[0] != version:
            self._before = version, row

    def _version(self) -> int:
        """How many commits there were in the database in whose rows it is as a part of others."""
        home = None if self.home is None else self.home()
        return -1 if home is None else home.engine.version

    def went_back(self, row: Any) -> None:
        """An older snapshot is the last one again."""
        if self.row is row or self.row is None:
            return
        read, last = self.shape.read, self.row
        for name in self.shape.names:
            if differs(read(row, name), read(last, name)):
                self.late[name] = None
        self.row = row

    def enter(self, store: Any, row: Any) -> None:
        """It is in a table, with this row."""
        for place in self.places:
            if place.store is store:
                place.row = row
                return
        self.places = (*self.places, TablePlace(store, row))

    def leave(self, store: Any, row: Any) -> None:
        """It is not in a table any more, if this is its row there."""
        self.places = tuple(p for p in self.places if p.store is not store or p.row is not row)
        objects = store.objects
        if not any(place.store.objects is objects for place in self.places):
            objects.forget(self)  # which would keep it until a row of the table is read

    def row_in(self, store: Any) -> Any:
        """The row that a table holds of it, or None."""
        return next((place.row for place in self.places if place.store is store), None)

    def with_owners(self, so_far: dict[int, Any] | None = None) -> list[ObjectRecord]:
        """It, and all that have it as part of their snapshots."""
        found = {} if so_far is None else so_far
        found[id(self)] = self
        for owner, _ in self.owned_by() if self.owners else ():
            if id(owner) not in found:
                owner.with_owners(found)
        return list(found.values())

    def owned_by(self) -> Iterator[tuple[Any, Any]]:
        """The objects and containers that have it, each with where in there."""
        for key, reference in list((self.owners or {}).items()):
            owner = reference()
            if owner is not None:
                if owner.holds(key[1], self.object):  # a transaction that fails may put it back
                    yield owner, key[1]
            elif self.owners is not None:
                self.owners.pop(key, None)

    def _frozen(self, name: str) -> Any:
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
        """What is held of a value that is no container, in an attribute or in a container in it."""
        if is_settled(value.__class__):
            return value
        where = f"{name!r} of an object of {self.shape.kind.__name__}"
        key = name if owner is self else None
        if owner is not self and isinstance(value, tuple):
            check_objects(value, where)
        return frozen(value, partial(self._nested, name, owner, key), where, trusted=self.trusted)

    def _nested(self, name: str, owner: Any, key: Any, value: Any) -> Any:
        """The snapshot of an object that is the value of an attribute, or in it."""
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


def _rows_in(value: Any) -> Iterator[Any]:
    """The snapshots of objects in a part of a snapshot."""
    if is_twin(value.__class__):
        if value._record_ is not None:
            yield value
    elif isinstance(value, tuple | Foldable):
        held: Any = value
        for each in held.values() if hasattr(held, "values") else held:
            yield from _rows_in(each)


RECORDS: dict[int, weakref.ref[ObjectRecord]] = {}


def known_record(instance: Any) -> ObjectRecord | None:
    """The record of an object, if there is one."""
    reference = RECORDS.get(id(instance))
    found = None if reference is None else reference()
    return found if found is not None and found.object is instance else None


def record_of(instance: Any) -> ObjectRecord:
    """The record of an object; a new one, if there is none."""
    found = known_record(instance)
    if found is None:
        found = ObjectRecord(instance)
        RECORDS[id(instance)] = weakref.ref(found, partial(_forget, id(instance)))
    return found


def current_row(instance: Any) -> Any:
    """The snapshot of an object, as it is now."""
    return record_of(instance).current()


def _forget(number: int, reference: weakref.ref[ObjectRecord]) -> None:
    if RECORDS.get(number) is reference:
        del RECORDS[number]


def of(row: T) -> T:
    """The object that a row is a snapshot of.

    Parameters
    ----------
    row: what a table or view of tracked objects shows.

    It is there for as long as somebody holds the row, also after the object has left the table.

    Raises
    ------
    LookupError: the row came from elsewhere, such as a pickle, and no object belongs to it.
    TableError: it is no snapshot.

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
"""What to use in the place of classes that cannot be followed."""

EVENTED = {"EventedList": "list", "EventedDict": "dict", "EventedSet": "set"}
"""Containers of psygnal, and what is followed in their place."""


def frozen(value: Any, nested: Callable[[Any], Any], where: str, *, trusted: bool) -> Any:
    """What a snapshot holds of a value.

    Parameters
    ----------
    nested: the snapshot of an object that is tracked.
    where: the attribute, for messages.
    trusted: whether it was promised that values of other classes do not change.

    Raises
    ------
    TableError: the value may change, and nobody would notice.
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
        items = [frozen(item, nested, where, trusted=trusted) for item in value]
        if all(map(_is, items, value)):
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
    """What may be there in the place of a value that changes."""
    if kind in (list, dict, set):
        return f"a {kind.__name__} is followed in attributes, not in tuples: put in a tuple"
    for followed in (list, dict, set):
        if issubclass(kind, followed):
            return f"of those only a {followed.__name__} itself is followed: put in one"
    if issubclass(kind, Foldable):
        return "as a key or in a set, put in a tuple or frozenset"
    return INSTEAD.get(kind) or f"make {kind.__name__} @tracked or frozen"


def differs(value: Any, old: Any) -> bool:
    """Whether a value of a snapshot is another one than that of an older snapshot."""
    if value is old:
        return False
    kind = value.__class__
    if kind is old.__class__ and isinstance(value, Foldable):
        return not is_same(value, old)
    if kind is not old.__class__ or issubclass(kind, tuple):
        return kind is not old.__class__ or not _are_same(value, old)
    return kind not in PLAIN or value != old


def _are_same(items: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    return len(items) == len(others) and not any(map(differs, items, others))


def _is(one: Any, other: Any) -> bool:
    return one is other


@by_recent_class(64)
def is_settled(kind: Any) -> bool:
    """Whether values of a class are held as they are: none holds an object that is tracked."""
    return is_lasting(kind) and kind not in PLAIN and not may_hold_objects(kind)


@by_recent_class(64)
def is_lasting(kind: Any) -> bool:
    """Whether what is of a class stays as it is, with all that it holds."""
    if is_twin(kind):
        return True
    if is_tracked(kind) or issubclass(kind, tuple) or kind.__hash__ is None:
        return False
    return why_changeable(kind) is None
