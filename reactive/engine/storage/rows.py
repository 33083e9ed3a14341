"""What a table's declaration says of its rows: their class, and their key.

Which rows cannot change in place, by their class.

    accepted   plain values; frozen dataclasses, attrs classes, Structs and pydantic models; tuples
               and named tuples; enumerations; classes and functions; what has no fields at all
    refused    every other class, unless its table was made with `identity=True`

A row that changes in place is not where its hash says, and no operator is told what it was: a view
over it would be wrong for ever, without an error. What a row holds must not change either. It is
not looked at, but for objects that are `@tracked` (`held_object`): these are made to change.
"""

from __future__ import annotations

import datetime
import re
import sys
import types
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
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
from optimizer.expressions.evaluated import tuple_width
from optimizer.expressions.knowledge import Foldable
from optimizer.kinds.fields import TRACKED, attributes, by_recent_class
from optimizer.kinds.kind import Either, any_of, class_written, kind_of
from optimizer.kinds.kind import class_of as class_of_kind
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.zset import declared, is_made_of, nan_fields
from reactive.errors import TableError

Classes = type | tuple[type, ...]
ANNOTATIONS = ("typing", "types", "typing_extensions")
"""The modules of what stands for classes in annotations."""


def check_row_type(row_type: Any) -> None:
    """Refuse what is no class, and classes whose instances have no hash."""
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
    """Refuse names of tables and views that are no text, or none that can be written down."""
    if name is None:
        return
    if not isinstance(name, str):
        raise PlanError(f"the name of {of} is a text, not {name!r:.100}\n  write name='...'")
    if not name.isascii() and _SURROGATE.search(name):
        raise PlanError(
            f"cannot name {of} {name!r:.100}: it has half of a character (a lone surrogate), which "
            "no file can hold\n  give a name of whole characters"
        )


def class_of(row_type: Any) -> Classes | None:
    """What rows are checked against by `isinstance`; None for any.

    An integer is a good float, as it is for type checkers.
    """
    kind = kind_of(Any if row_type is None else row_type)
    if isinstance(kind, Either):
        parts = [class_of(part) for part in kind.kinds]
        return tuple(c for part in parts for c in _each(part)) if all(parts) else None
    found = class_of_kind(kind)
    return (float, int) if found is float else found


def class_and_width(row_type: Any) -> tuple[Classes | None, int | None]:
    """The same, and how many items rows have, if that is said."""
    return class_of(row_type), tuple_width(row_type)


def fits(row: Any, kind: Classes | None, width: int | None) -> bool:
    """Whether a row is of a class, and as wide as is said."""
    if type(row) is not kind and kind is not None and not isinstance(row, kind):
        return False
    return width is None or len(row) == width


def class_name(row_type: Any) -> str:
    """The class as a reader would write it."""
    text = str(row_type)
    return text if text.endswith("]") else getattr(row_type, "__name__", text)


def wrong_class(table: str, row_type: Any, row: Any) -> str:
    """What to say of a row that is not of its table's class, which may have the same name."""
    kind = type(row)
    if tuple_width(row_type) is not None and issubclass(kind, tuple):
        return (
            f"table {table!r} takes rows of {row_type}, not one of {len(row)} items: {row!r:.100}\n"
            f"  declare db.table(tuple, ...) for tuples of any length"
        )
    same = [c for c in _each(class_of(row_type)) if c.__name__ == kind.__name__]
    if not same:
        wanted = class_name(row_type)
        text = f"table {table!r} takes rows of {wanted}, not the {kind.__name__} {row!r:.100}"
        return text + _remedy(wanted, class_of(row_type), row)
    if _full_name(same[0]) != _full_name(kind):
        wanted, given = _full_name(same[0]), _full_name(kind)
        return f"table {table!r} takes rows of {wanted}, not of {given}: {row!r:.100}"
    name = kind.__name__
    return (
        f"table {table!r} takes rows of another class {name} than that of {row!r:.100}: "
        f"{name} was defined again since\n"
        f"  make the table again too: db.table({name}, name={table!r}, replace=True)"
    )


def _remedy(wanted: str, kind: Any, row: Any) -> str:
    """Return what to do with a value that is no row, if it looks like one or like several."""
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
    """The key as a callable; a name must be a field of the class, as each of several."""
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
                f"key {name!r} of table: {class_name(row_type)} has no such field\n"
                f"  it has {', '.join(fields)}"
            )
    return attrgetter(*names)


def nan_texts(row_type: Any) -> list[str] | None:
    """Return tests, as text, of which one is true if a row of a class holds a NaN; None if there
    are none.

    There are some if the fields that may hold a NaN are annotated as plain numbers.

    >>> from typing import NamedTuple
    >>> nan_texts(NamedTuple("Point", [("x", float), ("name", str)]))
    ['row.x != row.x']
    """
    if row_type is float:
        return ["row != row"]
    kinds = declared(row_type)
    names = nan_fields(row_type) if kinds else ()
    is_known = names and all(
        class_of_kind(part) in _NUMBERS for name in names for part in any_of(kinds[name])
    )
    return [f"row.{name} != row.{name}" for name in names] if is_known else None


_NUMBERS: frozenset[Any] = frozenset({float, int, str, bytes, bool, type(None)})
"""Classes whose values are unequal to themselves only if they are a NaN."""

SURE = frozenset({int, str})
"""Classes of keys that have a hash, and no NaN."""


def checked_key(key: Opaque, table: str) -> Callable[[Any], Any]:
    """The key of a row; refuses NaN, and tells a user's exception where it was raised."""
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
    """Tables by their numbers in plans; it knows which names are taken without a look at each.

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
    """Return the name of a table: as it is called, or after the class of its rows."""
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
    """The name of a table that is not given one."""
    return getattr(row_type, "__name__", str(row_type))


def label_of(predicate: Callable[..., object]) -> str:
    """A callable by its name and place."""
    place = place_of(predicate)
    name: str = getattr(predicate, "__qualname__", type(predicate).__name__).rpartition(".")[2]
    return name if place is None else f"{name} ({place})"


def times(number: int) -> str:
    """How often, in words."""
    return "once" if number == 1 else f"{number} times"


def check_count(count: int) -> None:
    """Refuse what is no number of copies."""
    if type(count) is not int or count < 1:
        raise TableError(f"a count of copies is an integer from 1 on, not {count!r}")


def _each(classes: Any) -> tuple[type, ...]:
    return classes if isinstance(classes, tuple) else (classes,)


VALUES: tuple[type, ...] = (
    *(int, float, complex, str, bytes, tuple, frozenset, range, type(None), type(Ellipsis)),
    *(Decimal, Fraction, re.Pattern, Enum, Bag),
    *(datetime.date, datetime.time, datetime.timedelta, datetime.timezone),
    *(type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.GenericAlias),
    *(types.UnionType, types.CodeType, types.MethodDescriptorType, partial),
)
"""Classes whose instances, and those of classes made of them, stay what they are."""
OTHERS = frozenset(
    {("pathlib", "PurePath"), ("pathlib._local", "PurePath")}
    | {("reactive.engine.collections.frozen_object", "FrozenObject")}
    | {("uuid", "UUID"), ("zoneinfo", "ZoneInfo"), ("ipaddress", "_IPAddressBase")}
    | {("numpy", "generic"), ("pandas._libs.interval", "Interval")}
    | {("pandas._libs.tslibs.nattype", "_NaT"), ("pandas._libs.tslibs.period", "_Period")}
)
"""The same, by module and name: they are not imported for this."""

PLAIN = frozenset(
    {int, float, str, bytes, bool, type(None), Decimal}
    | {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}
)
"""Classes whose instances are compared by `==` and do not change."""
LOOKED_AT = 64
"""Values of a bag in a row that are looked at for objects that are tracked: all are of one kind."""


def why_changeable(kind: type) -> str | None:
    """Why rows of a class may change in place; None if they cannot.

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
    """Whether instances have no place for a field, as those of `object`."""
    if kind.__dictoffset__:
        return False
    return not any(
        isinstance(value, types.MemberDescriptorType)
        for base in kind.__mro__
        for value in vars(base).values()
    )


def held_object(value: Any) -> Any:
    """An object that is tracked, and so may change, in a value that may not; None if there is none.

    It looks into tuples, frozensets, bags and records.

    >>> from reactive import tracked
    >>> @tracked
    ... class Player:
    ...     hp: int
    >>> held_object((1, (Player(7),))), held_object((1, ("a",)))
    (Player(hp=7), None)

    Cost: O(values), but of bags and what rows show of lists, `LOOKED_AT`.
    """
    kind = value.__class__
    if kind in PLAIN:
        return None
    if issubclass(kind, tuple | frozenset):
        inner: Any = value
    elif issubclass(kind, Foldable):
        inner = islice(value.items() if hasattr(kind, "items") else value, LOOKED_AT)
    elif "__reactive_twin__" in vars(kind):
        return None
    elif hasattr(kind, TRACKED):
        return value
    else:
        inner = [getattr(value, name) for name in _holding(kind)]
    return next((found for each in inner if (found := held_object(each)) is not None), None)


def check_objects(value: Any, where: str, name: str = "") -> None:
    """Refuse a value that holds an object that is tracked, where nobody follows it.

    Parameters
    ----------
    where, name: for the message: what it is, and the name of that, if it has one.

    Cost: as `held_object`, in a process in which a class is tracked; else none.
    """
    found = held_object(value) if "reactive.borders.objects.shapes" in sys.modules else None
    if found is not None:
        raise TableError(
            f"{where}{name and repr(name)} cannot take {value!r:.100}: it holds {found!r:.100}, "
            "which is tracked, and no view would notice when that changes\n"
            "  hold its key in its place, or what it is now: its row, table[key]\n"
            "  or hold it in a class that is @tracked itself: as an attribute, in a tuple that is "
            "one, or in a list, dictionary or set"
        )


def may_hold_objects(kind: Any) -> bool:
    """Whether `held_object` may find one in a value of a class that does not change."""
    return issubclass(kind, tuple | frozenset | Foldable) or bool(_holding(kind))


@by_recent_class(64)
def _holding(kind: Any) -> tuple[str, ...]:
    """The fields of a record that may hold an object, by their annotations."""
    return tuple(name for name, hint in declared(kind).items() if not is_made_of(hint, PLAIN))


REMEDIES = (
    "use a frozen dataclass, NamedTuple, frozen attrs class, msgspec.Struct(frozen=True) or frozen "
    "pydantic model\n"
    "  or promise that rows never change, once they are in the table: db.table({}, identity=True)"
)
