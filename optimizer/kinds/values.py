"""The values that a kind admits: None, classes of plain values, or any value that is asked about.

    int              int, bool                no None
    float            float, int, bool         as for type checkers
    date             date, no datetime        the two do not compare
    int | None       int, bool, None
    Any, object, a TypeVar, no annotation     everything

Cost: of a class, a few microseconds, once; of a value O(values inside of it).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence, Set
from types import NoneType
from typing import Any

from optimizer.kinds.kind import (
    NONE,
    SCALARS,
    Anything,
    Choice,
    Either,
    Instance,
    Items,
    Kind,
    Members,
    Places,
    Scalar,
    Struct,
    Table,
    name_of,
)

WIDER: Mapping[type, frozenset[type]] = {
    int: frozenset({int, bool}),
    float: frozenset({float, int, bool}),
}
"""The classes whose instances are good values of a plain class, besides the class itself."""


def admits_none(kind: Kind) -> bool:
    """Return True if None is a value of the kind, or nothing is declared that it could break.

    >>> from optimizer.kinds.kind import kind_of
    >>> [admits_none(kind_of(each)) for each in (int | None, Any, object, int, list[None])]
    [True, True, True, False, False]
    """
    match kind:
        case Anything():
            return True
        case Either(kinds):
            return any(map(admits_none, kinds))
        case Choice(values):
            return None in values
        case Instance(python):
            return _is_instance(None, python)
        case _:
            return kind == NONE


def classes_of(kind: Kind) -> frozenset[type] | None:
    """Return the classes of which all exact instances are values of a kind of plain values; None of
    a kind that has other values, or not all of a class.

    >>> from optimizer.kinds.kind import kind_of
    >>> sorted(each.__name__ for each in classes_of(kind_of(float | None)))
    ['NoneType', 'bool', 'float', 'int']
    """
    match kind:
        case Scalar(python) if python in SCALARS:
            return WIDER.get(python, frozenset({python}))
        case Either(kinds):
            found = [classes_of(each) for each in kinds]
            some = [each for each in found if each is not None]
            return frozenset().union(*some) if len(some) == len(found) else None
        case _:
            return None


def admits(kind: Kind, value: Any) -> bool:
    """Return True if a value, with all that is inside of it, is of a kind.

    >>> from optimizer.kinds.kind import kind_of
    >>> admits(kind_of(tuple[int, str | None]), (1, None)), admits(kind_of(list[int]), ["a"])
    (True, False)
    """
    match kind:
        case Anything():
            return True
        case Scalar(python):
            return _is_scalar(value, python)
        case Choice(values):
            return any(type(value) is type(each) and value == each for each in values)
        case Either(kinds):
            return any(admits(each, value) for each in kinds)
        case Places(items):
            is_wide = isinstance(value, tuple) and len(value) == len(items)
            return is_wide and all(map(admits, items, value))
        case Items(python, item):
            return _is_collection(value, python) and all(admits(item, each) for each in value)
        case Table(_, key, of):
            is_mapping = isinstance(value, Mapping)
            return is_mapping and all(
                admits(key, name) and admits(of, each) for name, each in value.items()
            )
        case Struct(python):
            return isinstance(value, python) and all(
                not hasattr(value, name) or admits(each, getattr(value, name))
                for name, each in kind.fields.items()
            )
        case Members(python) | Instance(python):
            return _is_instance(value, python)


def with_none(kind: Kind) -> str:
    """Return the annotation of the kind with None admitted.

    >>> from optimizer.kinds.kind import kind_of
    >>> with_none(kind_of(int))
    'int | None'
    """
    return f"{name_of(kind)} | None"


def _is_scalar(value: Any, python: type) -> bool:
    if python is NoneType:
        return value is None
    if python is dt.date and isinstance(value, dt.datetime):
        return False
    return isinstance(value, (float, int) if python is float else python)


def _is_collection(value: Any, python: type) -> bool:
    """Return True if a value is a collection of the declared class, which may be abstract."""
    if python in (tuple, list):
        return isinstance(value, Sequence) and not isinstance(value, str | bytes)
    if python in (set, frozenset):
        return isinstance(value, Set)
    return isinstance(value, python) and isinstance(value, Collection)


def _is_instance(value: Any, python: Any) -> bool:
    try:
        return isinstance(value, python)
    except TypeError:  # a protocol that nobody can ask
        return True
