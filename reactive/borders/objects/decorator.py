"""Tracked classes: the decorator `tracked`, and the assignments to their objects.

    @tracked                           a class with annotations becomes a dataclass
    @tracked
    @dataclass / define / Model ...    other classes stay what they are
    tracked(TheirClass)                a class of another library

`tracked` replaces `__setattr__` and `__delattr__` by versions that also notify the tables, and
nothing else: no base class, no metaclass, and `__eq__`, `__hash__` and `__init__` are those of the
class.

Assignments are changes of the current transaction, or transactions of their own:

    order.total = 7   in no table:            stored
                      in a table:             stored under the lock, and recorded for the end of the
                                              transaction; without one, it is a transaction itself
                      in a query's callable:  refused

Cost: a look-up for an object in no table; for one in a table, a transaction of one change.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeVar, overload

from typing_extensions import dataclass_transform

from optimizer.kinds.fields import TRACKED, attributes, is_record
from reactive.borders.objects.changes import NO_CHANGES, change_objects, changed_alone, only_table
from reactive.borders.objects.containers.container import Container
from reactive.borders.objects.records import RECORDS, ObjectRecord, current_row, known_record
from reactive.borders.objects.shapes import MISSING, Options, is_twin
from reactive.engine.collections.zset import Pair, canonical
from reactive.engine.runtime.boundary import hide
from reactive.engine.storage.row_check import row_check
from reactive.engine.storage.rows import PLAIN, VALUES, note_tracked
from reactive.errors import PlanError, TableError

C = TypeVar("C", bound=type)


@overload
@dataclass_transform(eq_default=False)
def tracked(kind: C, /) -> C: ...
@overload
@dataclass_transform(eq_default=False)
def tracked(
    *, undo: bool = True, only: Iterable[str] | None = None, exclude: Iterable[str] = ()
) -> Callable[[C], C]: ...
def tracked(
    kind: Any = None,
    /,
    *,
    undo: bool = True,
    only: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
) -> Any:
    """Track the objects of a class, so that `order.total = 7` is a commit. A decorator.

    For a dataclass, an attrs class, a pydantic model, a `msgspec.Struct`, or a class with
    annotations or `__slots__`. A class with annotations and without `__init__` becomes a dataclass.
    Subclasses are tracked too.

    Parameters
    ----------
    undo: True if a failing transaction restores the earlier values of attributes. If False, objects
        keep the assigned values, and the next commit includes them.
    only: the attributes that are tracked; rows do not have the others.
    exclude: the attributes that are not tracked.

    In a table of the class, a row is a snapshot of an object: an immutable instance of the class,
    with its methods and properties. `of(row)` returns the object.

    Raises
    ------
    PlanError: the class is frozen or declares no attribute; or it lacks an attribute of a given
        name.

    >>> from reactive import Database, Sum, tracked
    >>> @tracked
    ... class Order:
    ...     id: int
    ...     customer: str
    ...     total: float = 0.0
    >>> db = Database()
    >>> orders = db.table(Order, key="id")
    >>> sums = orders.group_by(lambda o: o.customer).aggregate(Sum(lambda o: o.total)).materialize()
    >>> order = Order(1, "ann", 20.0)
    >>> orders.add(order)
    >>> order.total = 5.0
    >>> with db.transaction():
    ...     order.customer = "bob"
    ...     order.total += 2.0
    >>> list(sums), db.version
    ([('bob', 7.0)], 3)
    """
    options = Options(
        undo, None if only is None else frozenset(only), frozenset(exclude), current_row
    )
    if kind is None:
        return lambda kind: _track_class(kind, options)
    return _track_class(kind, options)


def _track_class(kind: Any, options: Options) -> Any:
    """Set up a class for tracking, and return it. Raises `PlanError` if it cannot be tracked."""
    if not isinstance(kind, type):
        raise PlanError(
            f"tracked takes a class, not {kind!r:.100}\n"
            "  write @tracked above the class, or tracked(TheClass)"
        )
    if issubclass(kind, dict | list | set) or hasattr(kind, "__total__"):
        raise PlanError(
            f"{kind.__name__} is a class of containers, whose items are no attributes\n"
            "  have a class with annotations hold a list, dictionary or set"
        )
    if is_twin(kind):
        raise PlanError(f"{kind.__name__} is the class of snapshots\n  track the class itself")
    _check_changes(kind)
    if _is_to_be_made(kind):
        kind = dataclasses.dataclass(eq=False)(kind)
    names = attributes(kind)
    _check_attribute_names(kind, options, names)
    for name, make in (("__setattr__", setter), ("__delattr__", deleter)):
        found: Any = getattr(kind, name)
        if not hasattr(found, "untracked"):
            type.__setattr__(kind, name, make(found))
    note_tracked(kind)
    type.__setattr__(kind, TRACKED, options)
    return kind


def _check_changes(kind: Any) -> None:
    """Raise `PlanError` for a class whose objects are immutable."""
    params = getattr(kind, "__dataclass_params__", None)
    struct = getattr(kind, "__struct_config__", None)
    is_frozen = (
        (params is not None and params.frozen)
        or (struct is not None and struct.frozen)
        or getattr(kind.__setattr__, "__name__", "") == "_frozen_setattrs"
        or (hasattr(kind, "model_fields") and bool(kind.model_config.get("frozen")))
    )
    if is_frozen or issubclass(kind, VALUES):
        raise PlanError(
            f"objects of {kind.__name__} do not change: there is nothing to track\n"
            "  they can be rows as they are: db.table(" + kind.__name__ + ")"
        )


def _is_to_be_made(kind: Any) -> bool:
    """Return True for a class that only declares its attributes."""
    return (
        not is_record(kind)
        and kind.__init__ is object.__init__
        and "__slots__" not in vars(kind)
        and bool(inspect.get_annotations(kind))
    )


def _check_attribute_names(kind: Any, options: Options, names: list[str]) -> None:
    """Raise `PlanError` if both `only=` and `exclude=` are given.

    Also if they name an attribute that the class lacks, or leave none to track; an abstract class
    may get its attributes later.
    """
    if options.only is not None and options.exclude:
        raise PlanError(
            f"{kind.__name__} is tracked with only= and exclude=, of which one says it all\n"
            "  name the attributes that are followed, or those that are not"
        )
    given = {*(options.only or ()), *options.exclude}
    unknown = sorted(given.difference(names))
    if unknown and not inspect.isabstract(kind):
        raise PlanError(
            f"{kind.__name__} has no attribute {unknown[0]!r} that could be tracked\n"
            f"  it has {', '.join(names) or 'none'}"
        )
    if not options.names(names) and not inspect.isabstract(kind):
        raise PlanError(
            f"{kind.__name__} declares no attributes to track\n"
            "  annotate them in the class, as in `total: float`, or name them in __slots__"
        )


Store = Callable[[Any, str, Any], object]


def setter(base: Store) -> Store:
    """Return the `__setattr__` of a tracked class, which wraps the original one."""

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
    """Return the `__delattr__` of a tracked class, which wraps the original one."""

    def __delattr__(self: Any, name: str) -> None:
        record = known_record(self)
        if record is None:
            base(self, name)
        else:
            assign(record, name, MISSING, lambda instance, name, _: base(instance, name))

    __delattr__.untracked = base  # type: ignore[attr-defined]
    return __delattr__


def assign(record: ObjectRecord, name: str, value: Any, base: Store) -> None:
    """Store an attribute of an object that has a record.

    Raises
    ------
    TransactionError: called in a callable of a query.
    TableError: the value may change unnoticed, or is a key that is taken.

    After any exception, the object is unchanged.
    """
    try:
        if name not in record.shape.names:
            base(record.object, name, value)
            return
        table = only_table(record)
        if table is None:
            change_objects([record], _store_value, (record, name, value, base))
        else:
            write = table._objects.engine.write
            write(table, _store_value_alone, (table, record, name, value, base))
    except Exception as error:
        hide(error)
        raise


def touch(engine: Any, instance: Any) -> None:
    """Rebuild the rows of an object from all its attributes.

    Raises `TableError` if the object is in no table of the database.
    """
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
    change_objects([record], _touch_attributes, record)


def _touch_attributes(record: ObjectRecord) -> list[Pair]:
    """Mark all attributes as changed, and drop their containers' snapshots; return the undo."""
    for name in record.shape.names:
        value = record.shape.read(record.object, name)
        if isinstance(value, Container):
            value.forget()
        record.mark(name)
    return [(_undo_touch, 1)]


def _store_value(given: tuple[ObjectRecord, str, Any, Store]) -> list[Pair]:
    """Store a value; return its undo in a delta, which is empty if the value is the old one.

    If the value is refused, the old one is restored.
    """
    record, name, value, base = given
    instance, shape = record.object, record.shape
    old = shape.read(instance, name)
    undone = [(_Undo(record, name, old), 1)]
    try:
        base(instance, name, value)
        new = shape.read(instance, name)
        if new is old or (new.__class__ in PLAIN and _is_equal_plain(new, old)):
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


def _is_strict(record: ObjectRecord) -> bool:
    return bool(record.places[0].store.objects.engine.strict)


def _check_declared(record: ObjectRecord, name: str, value: Any) -> None:
    """Raise `TableError` for None in an attribute that is not optional.

    If the database is strict, also for a value that is not of the declared class.
    """
    kind, strict = record.shape.kind, _is_strict(record)
    why = row_check(kind, kind, strict=strict).refusal_of(name, value)
    if why is not None:
        raise TableError(f"cannot assign {value!r:.200} to {kind.__name__}.{name}: {why}")


def _is_equal_plain(new: Any, old: Any) -> bool:
    """Return True if two plain values are of one class and equal; datetimes as instants."""
    if new.__class__ is not old.__class__ or new != old:
        return False
    return new.__class__ is not datetime or bool(canonical(new) == canonical(old))


def _store_value_alone(given: tuple[Any, ObjectRecord, str, Any, Store]) -> list[Pair]:
    """Store a value outside of a transaction; return the update of the row."""
    return changed_alone(given[0], given[1], _store_value, given[1:], is_inside=False)


class _Undo:
    """The undo of an assignment; without `undo=True`, the next commit keeps the new value."""

    __slots__ = ("_name", "_old", "_record", "_row")

    def __init__(self, record: ObjectRecord, name: str, old: Any) -> None:
        self._record = record
        self._name = name
        self._old = old
        self._row = record.row  # keeps the objects in the old value tracked

    def __call__(self) -> None:
        record = self._record
        if record.shape.options.undo:
            record.shape.write(record.object, self._name, self._old)
        record.undone()
        record.mark(self._name)
        record.settle()


def _undo_touch() -> None: ...
