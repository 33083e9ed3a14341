"""Assignments to objects that are tracked: changes of a transaction, or one by themselves.

    order.total = 7   in no table:            stored
                      in a table:             stored under the lock, noted for the end of the
                                              transaction; without one, it is a transaction itself
                      in a query's callable:  refused

Cost: of an object in no table a look-up; of one in a table a transaction of one change.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from reactive.borders.objects.changes import NO_CHANGES, change, changed_alone, only_table
from reactive.borders.objects.containers.container import Container
from reactive.borders.objects.records import RECORDS, Record, known_record
from reactive.borders.objects.shapes import MISSING, is_twin
from reactive.engine.collections.zset import Pair, canonical
from reactive.engine.runtime.boundary import hide
from reactive.engine.storage.immutable import PLAIN
from reactive.engine.storage.row_check import row_check
from reactive.errors import TableError

Store = Callable[[Any, str, Any], object]


def setter(base: Store) -> Store:
    """The `__setattr__` of a class that is tracked, over the one that it had."""

    def __setattr__(self: Any, name: str, value: Any) -> None:
        found = RECORDS.get(id(self))
        record = None if found is None else found()
        if record is not None and record.object is self:
            assign(record, name, value, base)
        else:
            base(self, name, value)

    __setattr__.untracked = base  # type: ignore[attr-defined]
    return __setattr__


def deleter(base: Callable[[Any, str], object]) -> Callable[[Any, str], object]:
    """The `__delattr__`."""

    def __delattr__(self: Any, name: str) -> None:
        record = known_record(self)
        if record is None:
            base(self, name)
        else:
            assign(record, name, MISSING, lambda instance, name, _: base(instance, name))

    __delattr__.untracked = base  # type: ignore[attr-defined]
    return __delattr__


def assign(record: Record, name: str, value: Any, base: Store) -> None:
    """Store an attribute of an object that has a record.

    Raises
    ------
    TransactionError: in a callable of a query.
    TableError: the value may change, or is a key that is taken. The object is as it was, as it is
        if anything else is raised.
    """
    try:
        if name not in record.shape.names:
            base(record.object, name, value)
            return
        table = only_table(record)
        if table is None:
            change([record], _stored, (record, name, value, base))
        else:
            table._engine.write(table, _stored_alone, (table, record, name, value, base))
    except Exception as error:
        hide(error)
        raise


def touch(engine: Any, instance: Any) -> None:
    """Have the rows of an object be made anew, with all its attributes."""
    record = instance._record_ if is_twin(type(instance)) else known_record(instance)
    is_here = record is not None and any(
        place.store.objects is engine.objects
        for each in record.with_owners()
        for place in each.places
    )
    if record is None or not is_here:
        raise TableError(
            f"{instance!r:.200} is in no table of this database\n  touch(object) tells that an "
            "object has changed in a way that cannot be seen"
        )
    change([record], _touched, record)


def _touched(record: Record) -> list[Pair]:
    for name in record.shape.names:
        value = record.shape.read(record.object, name)
        if isinstance(value, Container):
            value.forget()
        record.mark(name)
    return [(_nothing, 1)]


def _stored(given: tuple[Record, str, Any, Store]) -> list[Pair]:
    """Store a value; what puts the one before back."""
    record, name, value, base = given
    instance, shape = record.object, record.shape
    old = shape.read(instance, name)
    undone = [(_Undo(record, name, old), 1)]
    try:
        base(instance, name, value)
        new = shape.read(instance, name)
        if new is old or (new.__class__ in PLAIN and _is_equal(new, old)):
            return NO_CHANGES
        record.mark(name)
        if new.__class__ not in PLAIN:
            record.check(name)
        if record.places and (new is None or _is_strict(record)):
            _check_declared(record, name, new)
    except BaseException:
        shape.write(instance, name, old)
        raise
    return undone


def _is_strict(record: Record) -> bool:
    return bool(record.places[0].store.objects.engine.strict)


def _check_declared(record: Record, name: str, value: Any) -> None:
    """Refuse None in an attribute that is not optional; if strict, values of other classes too."""
    kind, strict = record.shape.kind, _is_strict(record)
    why = row_check(kind, kind, strict=strict).refusal_of(name, value)
    if why is not None:
        raise TableError(f"cannot assign {value!r:.200} to {kind.__name__}.{name}: {why}")


def _is_equal(new: Any, old: Any) -> bool:
    """True if two plain values are of one class and equal; datetimes as instants."""
    if new.__class__ is not old.__class__ or new != old:
        return False
    return new.__class__ is not datetime or bool(canonical(new) == canonical(old))


def _stored_alone(given: tuple[Any, Record, str, Any, Store]) -> list[Pair]:
    """As `_stored`, without a transaction; the update of the row."""
    return changed_alone(given[0], given[1], _stored, given[1:], is_inside=False)


class _Undo:
    """Puts the value of an attribute back that it had; or has the next commit take the new one."""

    __slots__ = ("_name", "_old", "_record", "_row")

    def __init__(self, record: Record, name: str, old: Any) -> None:
        self._record = record
        self._name = name
        self._old = old
        self._row = record.row  # by which the objects are followed that the old value has

    def __call__(self) -> None:
        record = self._record
        if record.shape.options.undo:
            record.shape.write(record.object, self._name, self._old)
        record.undone()
        record.mark(self._name)
        record.settle()


def _nothing() -> None: ...
