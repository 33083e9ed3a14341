"""Which rows cannot change in place, by their class.

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
from dataclasses import is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Any

from optimizer.expressions.knowledge import Foldable
from optimizer.kinds.class_facts import by_recent_class
from optimizer.kinds.fields import TRACKED
from reactive.engine.collections.annotations import declared, is_made_of
from reactive.engine.collections.bag import Bag
from reactive.errors import TableError

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
