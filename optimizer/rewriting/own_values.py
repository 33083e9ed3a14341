"""Find values whose class has an `__eq__` of its own, which may raise, and clashes between them.

    7, "x", (1, 2.5), None           of classes of Python: no
    Money(7, "e"), (1, Money(...))   `Money(7, "e")` may
    records and their fields         as the fields

Cost: a look at the class of a value, and at the classes of values inside it.
"""

from __future__ import annotations

import copy
import datetime
import sys
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from types import WrapperDescriptorType
from typing import Any
from uuid import UUID

from optimizer.expr import Constant
from optimizer.expressions.knowledge import Pure
from optimizer.kinds.fields import by_recent_class, compared_names, is_record
from optimizer.record import record

_PLAIN, _ITEMS, OWN = (), ("items",), ("own",)


_SURE = frozenset(
    {int, str, float, bool, type(None), bytes, datetime.date, datetime.datetime, Decimal, UUID}
)
"""Classes of most values, all of them `_PLAIN`: they pass before other checks."""


OURS = frozenset({"reactive", "optimizer"})
"""Packages whose containers compare by the declared types of their items."""


@by_recent_class(64)
def way(kind: type) -> tuple[str, ...]:
    """Return how values of a class compare.

    `_PLAIN`: without raising. `_ITEMS`, or the names of fields: by the values inside. `OWN`: it is
    not known how.
    """
    if issubclass(kind, tuple | frozenset) and kind.__eq__ in (tuple.__eq__, frozenset.__eq__):
        return _ITEMS
    equals: Any = kind.__eq__
    is_of_python = isinstance(equals, WrapperDescriptorType)
    code = getattr(equals, "__code__", None)
    if is_record(kind) and (is_of_python or (code and code.co_filename.startswith("<"))):
        return tuple(compared_names(kind))
    module = module_of(equals)
    return _PLAIN if is_of_python or module in sys.stdlib_module_names | OURS else OWN


def module_of(of: Any) -> str:
    return str(getattr(of, "__module__", "")).partition(".")[0]


def is_plain_class(kind: type) -> bool:
    """Return True if no value of a class is or contains a value whose `==` may raise."""
    return way(kind) is _PLAIN


def own_values(value: Any) -> Iterator[Any]:
    """Iterate over the values inside a value whose `==` may raise."""
    found = way(value.__class__)
    if found is _PLAIN:
        return
    if found is OWN:
        yield value
    elif found is _ITEMS:
        for item in value:
            yield from own_values(item)
    else:
        for name in found:
            yield from own_values(getattr(value, name))


@record
class HasOwn(Pure):
    """A callable of expressions: True if one of the values is, or contains, a value whose `==` may
    raise."""

    def __call__(self, *values: Any) -> bool:
        for value in values:
            kind = value.__class__
            if kind in _SURE or (kind is tuple and _SURE.issuperset(map(type, value))):
                continue
            for _ in own_values(value):
                return True
        return False

    def __repr__(self) -> str:
        return "has_own"


def compares(value: Any) -> bool:
    """Raise the exception that `==` raises for a value and a copy of it; else return True."""
    for found in own_values(value):
        try:
            other = copy.copy(found)
        except Exception:  # there are no copies
            continue
        bool(found == other) and bool(other == found)
    return True


def refuse(*row: Any) -> None:
    """Raise for a row with a value that does not compare with another value of the same hash."""
    value = next((each for value in row for each in own_values(value)), row[0])
    raise TypeError(f"{value!r:.60} does not compare by == with another value of the same hash")


def check_all(values: Sequence[Any]) -> None:
    """Raise if two of the values clash."""
    by_hash: dict[int, list[Any]] = {}
    for value in values:
        others = by_hash.setdefault(hash(value), [])
        if any(other is not value and is_equal(value, other) is None for other in others):
            refuse(value)
        others.append(value)


class Safe:
    """A value that equals others by `==` where that raises nothing, and no other one."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Safe) and (
            self.value is other.value or is_equal(self.value, other.value) is True
        )

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


def safe_values(values: Iterable[Any]) -> tuple[Safe, ...]:
    return tuple(map(Safe, values))


def hash_of(value: Any) -> int:
    """Return the hash of a value; 0 for one without a hash, which is compared with all others."""
    try:
        return hash(value)
    except Exception:
        return 0


def pure(value: Pure) -> Constant:
    """Return a constant that equals constants of equal callables."""
    return Constant(value, value)


def compares_surely(value: Any) -> bool:
    """Return True if the `==` of a value with its copy raises nothing."""
    try:
        return compares(value)
    except Exception:
        return False


def is_equal(value: Any, other: Any) -> bool | None:
    """Return the result of `==`; None if it raises, from either side."""
    try:
        return bool(value == other) and bool(other == value)
    except Exception:
        return None


_HAS_OWN = HasOwn()


def elements(found: Iterable[Any]) -> tuple[Any, ...]:
    """Return all elements of a collection; raise if they cannot be in rows."""
    made = tuple(found)
    hash(made)
    return made


def elements_apart(found: Iterable[Any]) -> tuple[Any, ...]:
    """Return all elements of a collection; raise if they cannot be in rows, or clash."""
    made = elements(found)
    if _HAS_OWN(*made):
        check_all(made)
    return made
