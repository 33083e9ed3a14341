"""Comparison of two lists of rows: values, their types, number of copies, and order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from tests.languages.sql.oracles import Row

RELATIVE, ABSOLUTE = 1e-9, 1e-12


def difference(
    shown: Sequence[Row], expected: Sequence[Row], *, ordered: bool, typed: bool
) -> str | None:
    """Return the difference between the shown and the expected rows, or None.

    If `typed`, 1, 1.0, True and Decimal(1) are four values. Floats may differ in the digits
    that depend on the order of their addition.
    """
    mine = [_key(row, typed) for row in shown]
    theirs = [_key(row, typed) for row in expected]
    if mine == theirs:
        return None
    if ordered and len(mine) == len(theirs) and all(map(_close, mine, theirs)):
        return None
    missing, extra = _unmatched(Counter(theirs) - Counter(mine), Counter(mine) - Counter(theirs))
    if missing or extra:
        return f"missing {_few(missing)}, too much {_few(extra)}{_places(missing, extra)}"
    return f"in another order: {_few(shown)} for {_few(expected)}" if ordered else None


def _unmatched(missing: Counter[Any], extra: Counter[Any]) -> tuple[list[Any], list[Any]]:
    """The rows of both that have none close to them on the other side."""
    left, alone = list(extra.elements()), list[Any]()
    for row in missing.elements():
        place = next((n for n, other in enumerate(left) if _close(row, other)), None)
        if place is None:
            alone.append(row)
        else:
            left.pop(place)
    return alone, left


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return bool(one == other)


def _places(missing: list[Any], extra: list[Any]) -> str:
    """Return the columns that differ, if one row differs from one other."""
    if len(missing) != 1 or len(extra) != 1:
        return ""
    pairs = enumerate(zip(*missing, *extra, strict=True))
    return f"; column {', '.join(f'{n}: {b} for {a}' for n, (a, b) in pairs if a != b)}"


def _few(rows: Sequence[Any]) -> str:
    more = f" and {len(rows) - 4} more" if len(rows) > 4 else ""
    return f"{[*rows[:4]]}{more}"


def _key(value: Any, typed: bool) -> Any:
    match value:
        case tuple() | list():
            return tuple([_key(item, typed) for item in value])
        case float():
            return ("float", _number(value)) if typed else _number(value)
        case int() if not typed:
            return _number(float(value)) if abs(value) < 2**53 else value
        case Decimal():
            return ("Decimal", value.normalize()) if typed else _number(float(value))
        case timedelta():
            return ("timedelta", value / timedelta(microseconds=1))
        case None:
            return None
        case _:
            return (type(value).__name__, value) if typed else value


def _number(value: float) -> Any:
    if not math.isfinite(value):
        return str(value)
    return value + 0.0
