"""The tracked attributes of a class, and the class of its snapshots, the twin.

    class Order: id, total            Order(7, 20.0), mutable
    its twin, a subclass of Order     Order(7, 20.0), immutable: a row

A twin has the methods, properties and the `repr` of the class, and `isinstance` is true for its
instances. A snapshot equals only itself. Snapshots are made without `__init__`.

Snapshots of pydantic models need their own versions of some methods:

    row.model_dump(), row.model_dump_json()     the dump of a model with the same values
    row.model_copy(update=...)                  such a model, which is in no table

because a snapshot holds a `FrozenList`, which pydantic does not know, where the model has a list,
and pydantic's copies write into `__dict__`, bypassing the refusal of assignments.

State:  the shape of each class that had an instance in a table, stored in the class.
Cost:   a snapshot with some changed fields is made as a copy; methods of models O(values) per call.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MemberDescriptorType
from typing import Any

from optimizer.kinds.fields import MODEL, TRACKED, attributes
from reactive.engine.collections.frozen_dict import FrozenDict, FrozenSet
from reactive.engine.collections.long_tuple import FrozenList
from reactive.errors import PlanError, TableError

SHAPE = "__reactive_shape__"
RECORD = "_record_"
MISSING: Any = inspect.Parameter.empty
"""The marker for an attribute that an object does not have."""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """The options of `tracked`.

    undo: True if a failing transaction restores the objects.
    only: the attributes that are tracked; None for all.
    exclude: the attributes that are not tracked.
    row_of: returns the snapshot of an object.
    """

    undo: bool
    only: frozenset[str] | None
    exclude: frozenset[str]
    row_of: Callable[[Any], Any]

    def row_class(self, kind: Any) -> Any:
        """Return the class of the snapshots of a class."""
        return shape_of(kind).twin

    def names(self, found: Mapping[str, Any] | list[str]) -> tuple[str, ...]:
        """Return the tracked ones among the attributes."""
        return tuple(
            name
            for name in found
            if name not in self.exclude and (self.only is None or name in self.only)
        )


class ClassShape:
    """The access to the attributes of instances of one class, and the maker of their snapshots.

    >>> from reactive import tracked
    >>> @tracked
    ... class Order:
    ...     id: int
    ...     total: float
    >>> shape = shape_of(Order)
    >>> shape.names
    ('id', 'total')
    >>> row = shape.new(None, {"id": 7, "total": 20.0})
    >>> row, row == shape.new(None, {"id": 7, "total": 20.0}), isinstance(row, Order)
    (Order(id=7, total=20.0), False, True)
    """

    __slots__ = (
        *("_described", "_new", "_slots", "copied", "kind", "names", "options", "read", "twin"),
    )

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.options: Options = getattr(kind, TRACKED)
        every = attributes(kind)
        self.names = self.options.names(every)
        """The tracked attributes."""
        found = {name: inspect.getattr_static(kind, name, None) for name in self.names}
        self._slots = {n: d for n, d in found.items() if isinstance(d, MemberDescriptorType)}
        """The descriptors of attributes in slots."""
        self._described = {
            n: d for n, d in found.items() if n not in self._slots and hasattr(type(d), "__set__")
        }
        """The descriptors with a setter of their own, such as properties."""
        self.twin = _twin(kind, [*self._described], [n for n in every if n not in self.names])
        self._new = _snapshot_maker(self.twin)
        is_by_dictionary = not self._slots and not self._described
        self.copied: Callable[[Any, Mapping[str, Any]], Any] = (
            self._copied_dictionary if is_by_dictionary else self._copy_row
        )
        """Copy a snapshot with other values of some attributes; MISSING deletes one."""
        self.read: Callable[[Any, str], Any] = (
            _read_dictionary if is_by_dictionary else self._read_attribute
        )
        """Read the stored value of an attribute; MISSING if there is none."""

    def _read_attribute(self, instance: Any, name: str) -> Any:
        """Return the value of an attribute of an instance; MISSING if there is none."""
        try:
            if name in self._slots:
                return self._slots[name].__get__(instance)
            if name in self._described:
                return getattr(instance, name)
            return vars(instance)[name]
        except (AttributeError, KeyError):
            return MISSING

    def unlike(self, instance: Any, row: Any) -> Sequence[str]:
        """Return the attributes whose value is not the object that a row holds."""
        if not self._slots and not self._described:
            own, held = vars(instance), vars(row)
            return [n for n in self.names if own.get(n, MISSING) is not held.get(n, MISSING)]
        read = self.read
        return [name for name in self.names if read(instance, name) is not read(row, name)]

    def write(self, instance: Any, name: str, value: Any) -> None:
        """Store a value, bypassing the `__setattr__` of the class; MISSING deletes it."""
        if name in self._slots or name in self._described:
            found = self._slots.get(name) or self._described[name]
            if value is not MISSING:
                found.__set__(instance, value)
            elif self.read(instance, name) is not MISSING:
                found.__delete__(instance)
        elif value is not MISSING:
            vars(instance)[name] = value
        else:
            vars(instance).pop(name, None)

    def new(self, record: Any, values: Mapping[str, Any]) -> Any:
        """Make a snapshot with the given values, for the object of a record."""
        row = self._new(record)
        for name, value in values.items():
            if value is MISSING:
                continue
            if name in self._slots:
                self._slots[name].__set__(row, value)
            elif name in self._described:
                vars(self.twin)[name].__set__(row, value)
            else:
                vars(row)[name] = value
        return row

    def values(self, row: Any) -> dict[str, Any]:
        """Return the stored attributes of a snapshot or object."""
        found = {name: self.read(row, name) for name in self.names}
        return {name: value for name, value in found.items() if value is not MISSING}

    def _copy_row(self, row: Any, changes: Mapping[str, Any]) -> Any:
        return self.new(row._record_, {**self.values(row), **changes})

    def _copied_dictionary(self, row: Any, changes: Mapping[str, Any]) -> Any:
        """Copy a snapshot with some values changed; MISSING deletes one.

        Cached values are left out.
        """
        made = self._new(row._record_)
        own = vars(made)
        own.update(vars(row))
        own.update(changes)
        for name, value in changes.items():
            if value is MISSING:
                del own[name]
        if len(own) > len(self.names):  # cached values computed by the snapshot
            for name in own.keys() - self.names:
                del own[name]
        return made


def _read_dictionary(instance: Any, name: str) -> Any:
    return vars(instance).get(name, MISSING)


def shape_of(kind: Any) -> ClassShape:
    """Return the shape of a tracked class; create it if needed."""
    found: ClassShape | None = vars(kind).get(SHAPE)
    if found is None:
        found = ClassShape(kind)
        type.__setattr__(kind, SHAPE, found)
    return found


def is_tracked(kind: Any) -> bool:
    """Return True if objects of a class are tracked."""
    return isinstance(kind, type) and hasattr(kind, TRACKED) and not is_twin(kind)


def is_twin(kind: Any) -> bool:
    """Return True for a class of snapshots."""
    return "__reactive_twin__" in vars(kind)


def _twin(kind: Any, described: list[str], untold: list[str]) -> Any:
    """Make the class of the snapshots of a class. Raises `PlanError` if it cannot be derived."""
    own: dict[str, Any] = {
        "__reactive_twin__": kind,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "__setattr__": _refuse_set,
        "__delattr__": _refuse_delete,
        "__eq__": object.__eq__,
        "__ne__": object.__ne__,
        "__hash__": object.__hash__,
        "__copy__": _return_itself,
        "__deepcopy__": _return_itself,
        "__reduce_ex__": _reduce_snapshot,
    }
    if untold:
        own["__repr__"] = _repr
        own |= {name: _untold(name, kind) for name in untold}
    if hasattr(kind, "__del__"):
        own["__del__"] = _ignore_row
    named: dict[str, Any] = {}
    if hasattr(kind, "__struct_fields__"):
        own["__post_init__"] = _ignore_row
        named = {"dict": True, "eq": False, "gc": True}
        for name in untold:
            del own[name]
    else:
        own["__slots__"] = (RECORD, *described)
        own["__new__"] = _new_object
    if hasattr(kind, MODEL):
        own |= methods()
    try:
        return type(kind)(kind.__name__, (kind,), own, **named)
    except TypeError as error:
        raise PlanError(
            f"objects of {kind.__name__} have no snapshots: {error}\n"
            "  a snapshot is of a subclass; have __init_subclass__ need nothing"
        ) from error


def _snapshot_maker(twin: Any) -> Callable[[Any], Any]:
    """Return a function that makes an instance with only its record."""
    if hasattr(twin, "__struct_fields__"):
        blank = dict.fromkeys(twin.__struct_fields__)

        def new_struct(record: Any) -> Any:
            made = twin(**blank)
            made.__dict__[RECORD] = record
            return made

        return new_struct
    make, put = object.__new__, vars(twin)[RECORD].__set__

    def new(record: Any) -> Any:
        made = make(twin)
        put(made, record)
        return made

    if not hasattr(twin, MODEL):
        return new

    def new_model(record: Any) -> Any:
        made = new(record)
        give_storage(made)
        return made

    return new_model


def _refuse_set(row: Any, name: str, value: Any) -> None:
    """Raise `TableError`: a snapshot is not changed by assignment."""
    raise TableError(
        f"a row is what {_object_text(row)} was at a commit: {name} = {value!r:.60} would change "
        "it\n"
        "  assign to the object: reactive.of(row)"
    )


def _refuse_delete(row: Any, name: str) -> None:
    """Raise `TableError`: attributes of a snapshot are not deleted."""
    raise TableError(
        f"a row is what {_object_text(row)} was at a commit: del {name} would change it\n"
        "  delete it of the object: reactive.of(row)"
    )


def _object_text(row: Any) -> str:
    return f"an object of {type(row).__name__}"


def _untold(name: str, kind: Any) -> property:
    """Return a property that raises `AttributeError`, for an attribute that is not tracked."""

    def refuse_read(row: Any) -> Any:
        raise AttributeError(
            f"rows of {kind.__name__} have no {name!r}: tracked(only=..., exclude=...) says so"
        )

    return property(refuse_read)


def _repr(row: Any) -> str:
    """Return the text of a snapshot: its class, and its stored attributes."""
    shape = shape_of(vars(type(row))["__reactive_twin__"])
    shown = [f"{name}={value!r}" for name, value in shape.values(row).items()]
    return f"{type(row).__name__}({', '.join(shown)})"


def _new_object(twin: Any, *given: Any, **named: Any) -> Any:
    """Make an object when the class of a row is called, as `dataclasses.replace` does."""
    return vars(twin)["__reactive_twin__"](*given, **named)


def _ignore_row(row: Any) -> None: ...


def _return_itself(row: Any, memory: Any = None) -> Any:
    return row


def _reduce_snapshot(row: Any, protocol: Any) -> Any:
    """Return how to unpickle a snapshot, which then has no object."""
    kind = vars(type(row))["__reactive_twin__"]
    return snapshot_of, (kind, shape_of(kind).values(row))


def snapshot_of(kind: Any, values: Mapping[str, Any]) -> Any:
    """Make a snapshot without an object in this process."""
    return shape_of(kind).new(None, values)


def methods() -> dict[str, Any]:
    """Return the methods of snapshots that replace methods of the model."""
    return {"model_copy": _copy_model, "model_dump": _dump, "model_dump_json": _dump_json}


def give_storage(row: Any) -> None:
    """Give a new instance the attributes that pydantic expects."""
    object.__setattr__(row, "__pydantic_fields_set__", set(type(row).model_fields))
    object.__setattr__(row, "__pydantic_extra__", None)
    object.__setattr__(row, "__pydantic_private__", {})


def _copy_model(row: Any, **given: Any) -> Any:
    """Return a mutable model with the given values, which is in no table."""
    return _model(row).model_copy(**given)


def _dump(row: Any, **given: Any) -> Any:
    return _model(row).model_dump(**given)


def _dump_json(row: Any, **given: Any) -> Any:
    return _model(row).model_dump_json(**given)


def _model(row: Any) -> Any:
    """Return a mutable model of pydantic with the fields of a snapshot."""
    kind = vars(type(row))["__reactive_twin__"]
    made = object.__new__(kind)
    give_storage(made)
    fields = kind.model_fields
    vars(made).update({n: _model_value(value) for n, value in vars(row).items() if n in fields})
    return made


def _model_value(value: Any) -> Any:
    """Return a value in the form that the model has."""
    if isinstance(value, FrozenList):
        return [_model_value(each) for each in value]
    if isinstance(value, FrozenDict):
        return {key: _model_value(each) for key, each in value.items()}
    if isinstance(value, FrozenSet):
        return {_model_value(each) for each in value}
    is_row = "__reactive_twin__" in vars(type(value)) and hasattr(value, "__pydantic_fields_set__")
    return _model(value) if is_row else value
