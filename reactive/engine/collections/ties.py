"""Ties: the order of two rows with equal keys, from the first difference.

    (3, "a", ...)  (3, "b", ...)     by the second item; the others are not read
    dataclass, attrs                 by fields, if the class has an order
    no order                         by arrival

The result is that of the rows' tie keys (`order.py`), which read all fields of both rows.

Cost: O(fields up to the first difference).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence, Set
from decimal import Decimal
from typing import Any

from optimizer.kinds.fields import by_recent_class
from reactive.engine.collections.order import EXACT_ORDER, NO_ORDER, has_order, tie_key
from reactive.engine.collections.zset import Row


def precedes(row: Row, other: Row) -> bool:
    """Return True if a row sorts before another with an equal key, whatever their order of arrival.

    Equals `tie_key(row) < tie_key(other)`, but stops at the first difference.
    """
    kind: Any = row.__class__
    if row is other or (kind is other.__class__ and kind.__lt__ is NO_ORDER):
        return False
    return _compare_values(row, other) < 0


def _compare_values(value: Any, other: Any) -> int:
    """Return a number below 0, 0 or above 0 if the first is less, equal or greater."""
    if value is other:
        return 0
    kind: Any = value.__class__
    if kind is other.__class__:
        if kind in EXACT_ORDER:
            return -1 if value < other else int(other < value)
        if kind.__lt__ is NO_ORDER:
            return 0
        if isinstance(value, tuple):
            for part, its in zip(value, other, strict=False):
                if part is its:
                    continue
                if part.__class__ is its.__class__ and part.__class__ in EXACT_ORDER:
                    if part != its:  # as below, without a call
                        return -1 if part < its else 1
                elif found := _compare_values(part, its):
                    return found
            return len(value) - len(other)
        if hasattr(kind, "__dataclass_fields__"):
            for field in dataclasses.fields(kind):
                if field.compare:
                    found = _compare_values(getattr(value, field.name), getattr(other, field.name))
                    if found:
                        return found
            return 0
        if not has_order(kind):
            return 0
        if _compares_itself(kind):
            known = _compare_fields(value, other, _fields_in_order(kind))
            if known is None:
                known = _compare_themselves(kind, value, other)
            if known is not None:
                return known
    left, right = tie_key(value), tie_key(other)
    return -1 if left < right else int(right < left)


def _compare_fields(value: Any, other: Any, names: Sequence[str]) -> int | None:
    """Compare two values by the first of these fields that differs; None if that is not sure."""
    for name in names:
        part, its = getattr(value, name), getattr(other, name)
        if part is its:
            continue
        if part.__class__ is not its.__class__ or part.__class__ not in EXACT_ORDER:
            return None
        if part != its:
            return -1 if part < its else 1
    return 0 if names else None


def _compare_themselves(kind: Any, value: Any, other: Any) -> int | None:
    """Compare two values of a class by its own methods; None if their tie keys may do otherwise.

    The tie keys of such values end with the values themselves. They are not made here, because that
    compares each value with itself.
    """
    if getattr(value, "tzinfo", None) is not getattr(other, "tzinfo", None):
        return None
    if value == other:
        return 0
    is_less = kind.__lt__(value, other)
    if is_less is NotImplemented:
        return None
    return -1 if is_less else int(other < value)


_BY_PARTS = (int, float, complex, str, bytes, tuple, Decimal, Set)
"""Classes whose values, and those of subclasses, have tie keys of other values."""


@by_recent_class(64)
def _compares_itself(kind: Any) -> bool:
    """Return True if the tie keys of values of a class with an order end with the values."""
    return not issubclass(kind, _BY_PARTS) and not hasattr(kind, "__dataclass_fields__")


@by_recent_class(64)
def _fields_in_order(kind: Any) -> tuple[str, ...]:
    """Return the fields by which attrs compares values of a class; () if it may be otherwise."""
    fields = getattr(kind, "__attrs_attrs__", ())
    if not fields or not _has_generated_methods(kind):
        return ()
    if any(each.eq != each.order or each.eq_key or each.order_key for each in fields):
        return ()
    names = tuple([each.name for each in fields if each.order])
    return () if "tzinfo" in names else names


def _has_generated_methods(kind: Any) -> bool:
    """Return True if attrs has written the comparisons of a class."""
    less, equal = getattr(kind.__lt__, "__globals__", {}), getattr(kind.__eq__, "__code__", None)
    is_generated = equal is not None and equal.co_filename.startswith("<attrs generated")
    return is_generated and less.get("__name__") == "attr._make"
