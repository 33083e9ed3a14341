"""Values that a dictionary tells apart as `==` does.

Pairs of rows whose keys differ need not be compared if nothing but False could come of it. That is
known of values whose class, and the classes of what they hold, take `==` and `hash` from Python,
from a library written in C, or from what makes the class (`dataclass`, attrs). Who writes `__eq__`
may raise in it, or find equal what has another hash.

Cost: one look-up per value of a class that was seen before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from decimal import Decimal
from types import FunctionType
from typing import Any

from optimizer.kinds.class_facts import by_recent_class
from optimizer.kinds.fields import compared

SIMPLE: frozenset[type] = frozenset({int, str, bool, float, bytes, type(None)})


def is_plain(value: Any) -> bool:
    """Whether equality with values of which the same is true never raises, and agrees with hashes.

    >>> is_plain((1, "a", None)), is_plain([1]), is_plain(Decimal("sNaN"))
    (True, False, False)
    """
    kind: Any = type(value)
    if kind in SIMPLE:
        return True
    if not _keeps_to_rules(kind):
        return False
    if kind is Decimal:
        return not value.is_snan()
    return all(map(is_plain, _held(value)))


def _held(value: Any) -> Iterable[Any]:
    """The values by which one is compared."""
    if isinstance(value, tuple | frozenset):
        return value
    return [getattr(value, name) for name in compared(type(value))]


@by_recent_class(64)
def _keeps_to_rules(kind: Any) -> bool:
    equal, hashed = getattr(kind, "__eq__"), kind.__hash__  # noqa: B009
    return hashed is not None and _is_given(kind, equal) and _is_given(kind, hashed)


def _is_given(kind: type, method: Any) -> bool:
    """Whether a method is not written by hand."""
    if not isinstance(method, FunctionType):
        return True
    module = str(method.__module__).partition(".")[0]
    return module in sys.stdlib_module_names or _is_generated(kind, method)


def _is_generated(kind: type, method: FunctionType) -> bool:
    """Whether what makes the class wrote it, from the fields of the class."""
    code = method.__code__
    by_dataclass = code.co_qualname.startswith("__create_fn__.")
    return (by_dataclass or code.co_filename.startswith("<attrs ")) and bool(compared(kind))
