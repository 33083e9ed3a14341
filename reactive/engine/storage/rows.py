"""Declarations of tables: the class of the rows, and their key.

`why_changeable` decides by the class if rows can change in place.

    accepted   plain values; frozen dataclasses, attrs classes, Structs and pydantic models; tuples
               and named tuples; enumerations; classes and functions; classes without fields
    refused    every other class, unless its table was created with `identity=True`

A row that changes in place is no longer found by its hash, and no operator learns its old value: a
view over it would stay wrong without an error. The values inside a row must not change either. They
are not checked, except for `@tracked` objects (`held_object`), which are made to change.
"""

from __future__ import annotations

import datetime
import re
import types
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, cast

from optimizer.callables.opaque import Opaque
from optimizer.callables.source import place_of
from optimizer.errors import PlanError
from optimizer.expressions.knowledge import Foldable
from optimizer.expressions.simplification import tuple_width
from optimizer.kinds.fields import TRACKED, attributes, by_recent_class
from optimizer.kinds.kind import Either, any_of, class_written, kind_of
from optimizer.kinds.kind import class_of as class_of_kind
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.zset import declared_kinds, is_made_of, nan_fields
from reactive.errors import TableError

Classes = type | tuple[type, ...]
ANNOTATIONS = ("typing", "types", "typing_extensions")
"""Modules of the objects that stand for classes in annotations."""


def check_row_type(row_type: Any) -> None:
    """Raise if `row_type` is not a class, or its instances are not hashable."""
    if isinstance(row_type, str):
        raise PlanError(
            f"a table takes the class of its rows, not {row_type!r}\n"
            f"  write db.table(Row, name={row_type!r})"
        )
    kind = class_written(row_type)
    if hasattr(type(kind), "__arrow_c_stream__") or hasattr(type(kind), "__dataframe__"):
        raise PlanError(
            f"a table takes the class of its rows, not a {type(kind).__name__}\n"
            "  db.table_from(frame) makes the class of its columns, and the table"
        )
    if not isinstance(kind, type) and type(kind).__module__ not in ANNOTATIONS:
        raise PlanError(
            f"a table takes the class of its rows, not {row_type!r:.100}\n"
            f"  write db.table({type(row_type).__name__}), and add() the rows"
        )
    if isinstance(kind, type) and kind.__hash__ is None and not hasattr(kind, TRACKED):
        frozen = f"make {kind.__name__} a @dataclass(frozen=True)"
        raise PlanError(
            f"rows of {kind.__name__} have no hash, so that no table can find them\n"
            f"  {frozen if is_dataclass(kind) else 'use a frozen dataclass, or tuples'}"
        )


_SURROGATE = re.compile("[\ud800-\udfff]")


def check_name(of: str, name: Any) -> None:
    """Raise if the name of a table or view is not a text, or cannot be written to a file."""
    if name is None:
        return
    if not isinstance(name, str):
        raise PlanError(f"the name of {of} is a text, not {name!r:.100}\n  write name='...'")
    if not name.isascii() and _SURROGATE.search(name):
        raise PlanError(
            f"cannot name {of} {name!r:.100}: it has half of a character (a lone surrogate), which "
            "no file can hold\n  give a name of whole characters"
        )


def row_class_of(row_type: Any) -> Classes | None:
    """Return the classes to check rows by `isinstance`; None for any.

    An integer is accepted as a float, as by type checkers.
    """
    kind = kind_of(Any if row_type is None else row_type)
    if isinstance(kind, Either):
        parts = [row_class_of(part) for part in kind.kinds]
        return tuple(c for part in parts for c in _class_tuple(part)) if all(parts) else None
    found = class_of_kind(kind)
    return (float, int) if found is float else found


def class_and_width(row_type: Any) -> tuple[Classes | None, int | None]:
    """Return the classes of rows, and the number of items of a row; None where not declared."""
    return row_class_of(row_type), tuple_width(row_type)


def is_row_of(row: Any, kind: Classes | None, width: int | None) -> bool:
    """Return True if a row has a class and a number of items."""
    if type(row) is not kind and kind is not None and not isinstance(row, kind):
        return False
    return width is None or len(row) == width


def written_class_name(row_type: Any) -> str:
    """Return the class as it is written in code."""
    text = str(row_type)
    return text if text.endswith("]") else getattr(row_type, "__name__", text)


def wrong_class(table: str, row_type: Any, row: Any) -> str:
    """Return the message for a row of a wrong class, which may have the same name."""
    kind = type(row)
    if tuple_width(row_type) is not None and issubclass(kind, tuple):
        return (
            f"table {table!r} takes rows of {row_type}, not one of {len(row)} items: {row!r:.100}\n"
            f"  declare db.table(tuple, ...) for tuples of any length"
        )
    same = [c for c in _class_tuple(row_class_of(row_type)) if c.__name__ == kind.__name__]
    if not same:
        wanted = written_class_name(row_type)
        text = f"table {table!r} takes rows of {wanted}, not the {kind.__name__} {row!r:.100}"
        return text + _row_remedy(wanted, row_class_of(row_type), row)
    if _full_name(same[0]) != _full_name(kind):
        wanted, given = _full_name(same[0]), _full_name(kind)
        return f"table {table!r} takes rows of {wanted}, not of {given}: {row!r:.100}"
    name = kind.__name__
    return (
        f"table {table!r} takes rows of another class {name} than that of {row!r:.100}: "
        f"{name} was defined again since\n"
        f"  make the table again too: db.table({name}, name={table!r}, replace=True)"
    )


def _row_remedy(wanted: str, kind: Any, row: Any) -> str:
    """Return the remedy for a value that is no row, if it resembles one or several."""
    if isinstance(row, list | set | frozenset | tuple) and any(type(each) is kind for each in row):
        return "\n  add_all(rows) takes several"
    if not isinstance(kind, type) or not attributes(kind):
        return ""
    if isinstance(row, dict):
        return f"\n  {wanted}(**row) makes one"
    return f"\n  {wanted}(*row) makes one" if isinstance(row, list | tuple) else ""


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def key_function(
    row_type: Any, key: str | Sequence[str] | Callable[[Any], Hashable]
) -> Callable[[Any], Any]:
    """Return the key as a callable; refuses a name that is no field of the class."""
    if not isinstance(key, str | list | tuple):
        return cast(Callable[[Any], Any], key)
    names = [key] if isinstance(key, str) else list(key)
    if not names or not all(isinstance(name, str) for name in names):
        raise PlanError(
            f"key={key!r:.100} of table names no field\n"
            '  give one, as key="id"; or several, as key=["shop", "id"]'
        )
    fields = attributes(row_type) if isinstance(row_type, type) else []
    for name in names:
        if fields and name not in fields and not hasattr(row_type, name):
            raise PlanError(
                f"key {name!r} of table: {written_class_name(row_type)} has no such field\n"
                f"  it has {', '.join(fields)}"
            )
    return attrgetter(*names)


def nan_texts(row_type: Any) -> list[str] | None:
    """Return source texts of tests, one of them true if a row of a class holds a NaN; or None.

    There are tests if all fields that may hold a NaN are annotated as plain numbers.

    >>> from typing import NamedTuple
    >>> nan_texts(NamedTuple("Point", [("x", float), ("name", str)]))
    ['row.x != row.x']
    """
    if row_type is float:
        return ["row != row"]
    kinds = declared_kinds(row_type)
    names = nan_fields(row_type) if kinds else ()
    is_known = names and all(
        class_of_kind(part) in _NUMBERS for name in names for part in any_of(kinds[name])
    )
    return [f"row.{name} != row.{name}" for name in names] if is_known else None


_NUMBERS: frozenset[Any] = frozenset({float, int, str, bytes, bool, type(None)})
"""Classes whose values are unequal to themselves only if they are a NaN."""

SURE = frozenset({int, str})
"""Classes of keys that are hashable and never NaN."""


def checked_key(key: Opaque, table: str) -> Callable[[Any], Any]:
    """Return a checked key function: it refuses NaN, and notes the row on a user's exception."""
    call = key.function

    def checked(row: Any) -> Any:
        try:
            value = call(row)
            if value.__class__ in SURE:
                return value
            hash(value)
        except Exception as error:
            error.add_note(
                f"  in the key of table {table!r} ({key.place or key.name}), on row {row!r:.100}"
            )
            raise
        if value != value:
            raise TableError(
                f"the key of {row!r} is NaN\n"
                f"  table {table!r} could never find it: NaN equals no key, not even itself"
            )
        return value

    return checked


class NamedTables(dict[int, Any]):
    """The tables by their numbers in plans, and an index of the names in use.

    >>> from types import SimpleNamespace as Thing
    >>> tables = NamedTables()
    >>> tables[0] = Thing(name="int")
    >>> tables.free("int"), tables.free("str"), tables.has("int", but=tables[0])
    ('int_2', 'str', False)
    """

    def __init__(self) -> None:
        self._names = Counter[str]()
        self._tried: dict[str, int] = {}
        """The first number of names like `int_2` that may be free."""

    def __setitem__(self, number: int, table: Any) -> None:
        super().__setitem__(number, table)
        self._names[table.name] += 1

    def __delitem__(self, number: int) -> None:
        name = self[number].name
        super().__delitem__(number)
        self._names[name] -= 1
        if not self._names[name]:
            del self._names[name]
        self._tried.clear()

    def has(self, name: str, but: Any = None) -> bool:
        """Return True if a table has the name, other than `but`."""
        return self._names[name] > (but is not None and but.name == name)

    def free(self, base: str, but: Any = None) -> str:
        """Return the name, with a number if it is taken."""
        number = 1 if but is not None else self._tried.get(base, 1)
        while self.has(found := base if number == 1 else f"{base}_{number}", but):
            number += 1
        self._tried[base] = number
        return found


def name_of_table(taken: NamedTables, row_type: Any, name: str | None, but: Any = None) -> str:
    """Return the given name, refused if it is taken; without one, a free name by the row class."""
    check_name("a table", name)
    if name is not None:
        if taken.has(name, but):
            raise PlanError(
                f"there is a table {name!r} already\n"
                "  give this one another name; with replace=True it takes the place of that one"
            )
        return name
    return taken.free(usual_name(row_type), but)


def usual_name(row_type: Any) -> str:
    """Return the default name of a table."""
    return getattr(row_type, "__name__", str(row_type))


def label_of(predicate: Callable[..., object]) -> str:
    """Return the name and the place of a callable."""
    place = place_of(predicate)
    name: str = getattr(predicate, "__qualname__", type(predicate).__name__).rpartition(".")[2]
    return name if place is None else f"{name} ({place})"


def times_text(number: int) -> str:
    """Return a number of times in words."""
    return "once" if number == 1 else f"{number} times"


def check_copies(count: int) -> None:
    """Raise if `count` is not a number of copies."""
    if type(count) is not int or count < 1:
        raise TableError(f"a count of copies is an integer from 1 on, not {count!r}")


def _class_tuple(classes: Any) -> tuple[type, ...]:
    return classes if isinstance(classes, tuple) else (classes,)


VALUES: tuple[type, ...] = (
    *(int, float, complex, str, bytes, tuple, frozenset, range, type(None), type(Ellipsis)),
    *(Decimal, Fraction, re.Pattern, Enum, Bag),
    *(datetime.date, datetime.time, datetime.timedelta, datetime.timezone),
    *(type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.GenericAlias),
    *(types.UnionType, types.CodeType, types.MethodDescriptorType, partial),
)
"""Classes whose instances, and instances of whose subclasses, do not change."""
OTHERS = frozenset(
    {("pathlib", "PurePath"), ("pathlib._local", "PurePath")}
    | {
        ("reactive.engine.collections.frozen_object", "FrozenObject"),
        ("reactive.engine.collections.jsonb", "Jsonb"),
    }
    | {("uuid", "UUID"), ("zoneinfo", "ZoneInfo"), ("ipaddress", "_IPAddressBase")}
    | {("numpy", "generic"), ("pandas._libs.interval", "Interval")}
    | {("pandas._libs.tslibs.nattype", "_NaT"), ("pandas._libs.tslibs.period", "_Period")}
)
"""More such classes, by module and name, so that they need not be imported."""

PLAIN = frozenset(
    {int, float, str, bytes, bool, type(None), Decimal}
    | {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}
)
"""Classes whose instances are compared by `==` and do not change."""
LOOKED_AT = 64
"""Number of values of a bag to check for tracked objects; a bag has values of one kind."""


def why_changeable(kind: type) -> str | None:
    """Return why rows of a class may change in place; None if they cannot.

    >>> from dataclasses import dataclass
    >>> @dataclass(unsafe_hash=True)
    ... class Player:
    ...     hp: int
    >>> why_changeable(Player), why_changeable(tuple)
    ('its dataclass is not frozen', None)
    """
    if issubclass(kind, VALUES) or _is_known(kind) or _is_without_fields(kind):
        return None
    if "__reactive_twin__" in vars(kind):
        return None
    if is_dataclass(kind):
        frozen = getattr(kind, "__dataclass_params__").frozen  # noqa: B009
        return None if frozen else "its dataclass is not frozen"
    config: Any = getattr(kind, "__struct_config__", None)
    if config is not None:
        return None if config.frozen else "its Struct is not frozen"
    if hasattr(kind, "__attrs_attrs__"):
        is_frozen = getattr(kind.__setattr__, "__name__", "") == "_frozen_setattrs"
        return None if is_frozen else "its attrs class is not frozen"
    if hasattr(kind, "model_fields"):
        is_frozen = getattr(kind, "model_config", {}).get("frozen")
        return None if is_frozen else "its model is not frozen"
    return "its fields can be assigned"


def _is_known(kind: type) -> bool:
    return any((base.__module__, base.__qualname__) in OTHERS for base in kind.__mro__)


def _is_without_fields(kind: type) -> bool:
    """Return True if instances have no room for fields, such as plain `object`s."""
    if kind.__dictoffset__:
        return False
    return not any(
        isinstance(value, types.MemberDescriptorType)
        for base in kind.__mro__
        for value in vars(base).values()
    )


TRACKED_CLASSES: dict[int, weakref.ref[type]] = {}
"""The classes in this process that are tracked themselves, by `id`."""


def note_tracked(kind: type) -> None:
    """Note a class that is tracked, until it is dropped; without one, no value is searched."""
    number = id(kind)

    def forget(gone: weakref.ref[type]) -> None:
        if TRACKED_CLASSES.get(number) is gone:
            del TRACKED_CLASSES[number]

    TRACKED_CLASSES[number] = weakref.ref(kind, forget)


def held_object(value: Any, known: Collection[Any] = ()) -> Any:
    """Return a tracked object inside a value that must not change; None if there is none.

    Tuples, frozensets, bags and records are searched. `known` are parts of the value in which
    there is none; they are compared by identity.

    >>> from reactive import tracked
    >>> @tracked
    ... class Player:
    ...     hp: int
    >>> held_object((1, (Player(7),))), held_object((1, ("a",)))
    (Player(hp=7), None)

    Cost: O(values); of bags and of the snapshots of lists, `LOOKED_AT`.
    """
    kind = value.__class__
    if kind in PLAIN:
        return None
    inner: Iterable[Any]
    if issubclass(kind, tuple | frozenset):
        if PLAIN.issuperset(map(type, value)):
            return None
        inner = value
    elif issubclass(kind, Bag):
        inner = (each for each, _ in islice(value.items(), LOOKED_AT))
    elif issubclass(kind, Foldable):
        inner = islice(value.items() if hasattr(kind, "items") else value, LOOKED_AT)
    elif "__reactive_twin__" in vars(kind):
        return None
    elif hasattr(kind, TRACKED):
        return value
    else:
        inner = [getattr(value, name) for name in _holding(kind)]
    for each in inner:
        if each.__class__ in PLAIN or (known and any(each is part for part in known)):
            continue
        if (found := held_object(each)) is not None:
            return found
    return None


def checked_parts(row: Any) -> list[Any]:
    """Return the parts of a row that is in a table: no tracked object is in one of them."""
    if isinstance(row, tuple):
        return list(row)
    return [getattr(row, name, None) for name in _holding(type(row))]


def check_objects(value: Any, where: str, name: str = "", known: Collection[Any] = ()) -> None:
    """Raise if a value holds a tracked object in a place that is not tracked.

    Parameters
    ----------
    where, name: for the message: the kind of place, and its name, if any.
    known: parts of the value that were checked before.

    Cost: as `held_object`, in a process with a tracked class; else none.
    """
    found = held_object(value, known) if TRACKED_CLASSES else None
    if found is not None:
        raise TableError(
            f"{where}{name and repr(name)} cannot take {value!r:.100}: it holds {found!r:.100}, "
            "which is tracked, and no view would notice when that changes\n"
            "  hold its key in its place, or what it is now: its row, table[key]\n"
            "  or hold it in a class that is @tracked itself: as an attribute, in a tuple that is "
            "one, or in a list, dictionary or set"
        )


def may_hold_objects(kind: Any) -> bool:
    """Return True if `held_object` may find an object in a value of an immutable class."""
    return issubclass(kind, tuple | frozenset | Foldable) or bool(_holding(kind))


@by_recent_class(64)
def _holding(kind: Any) -> tuple[str, ...]:
    """Return the fields of a record that may hold an object, by their annotations."""
    return tuple(name for name, hint in declared_kinds(kind).items() if not is_made_of(hint, PLAIN))


REMEDIES = (
    "use a frozen dataclass, NamedTuple, frozen attrs class, msgspec.Struct(frozen=True) or frozen "
    "pydantic model\n"
    "  or promise that rows never change, once they are in the table: db.table({}, identity=True)"
)
