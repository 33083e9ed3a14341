"""Which rows cannot change in place, by their class.

    accepted   plain values; frozen dataclasses, attrs classes, Structs and pydantic models; tuples
               and named tuples; enumerations; classes and functions; what has no fields at all
    refused    every other class, unless its table was made with `identity=True`

A row that changes in place is not where its hash says, and no operator is told what it was: a view
over it would be wrong for ever, without an error. What a row holds is not looked at; it must not
change either.
"""

from __future__ import annotations

import datetime
import re
import types
from dataclasses import is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from typing import Any

from reactive.collections.bag import Bag

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
    | {("uuid", "UUID"), ("zoneinfo", "ZoneInfo"), ("ipaddress", "_IPAddressBase")}
    | {("numpy", "generic"), ("pandas._libs.interval", "Interval")}
    | {("pandas._libs.tslibs.nattype", "_NaT"), ("pandas._libs.tslibs.period", "_Period")}
)
"""The same, by module and name: they are not imported for this."""


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


REMEDIES = (
    "use a frozen dataclass, NamedTuple, frozen attrs class, msgspec.Struct(frozen=True) or frozen "
    "pydantic model\n"
    "  or promise that rows never change, once they are in the table: db.table({}, identity=True)"
)
