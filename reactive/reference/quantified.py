"""IN, ANY and ALL by the definition of SQL: compare a row with each row of a query.

    x op ANY (q)    TRUE where `x op y` is TRUE for a row y of q
                    FALSE where it is FALSE for every row, NULL otherwise
    x op ALL (q)    FALSE where `x op y` is FALSE for a row y of q
                    TRUE where it is TRUE for every row, NULL otherwise
    x IN (q)        x = ANY (q)

A comparison with NULL is NULL. Rows of several values are equal where all their values are.

Cost: of an equation, a look-up; of another comparison, the distinct rows up to the first that
decides, or one comparison where all values are of one class that has a total order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable
from datetime import date, datetime
from typing import Any, Protocol

from optimizer.plans.asked_form import Comparison
from reactive.reference.bags import Bag

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
ORDERED = frozenset({int, bool, str, bytes, date, datetime})
"""Classes whose values all compare, so that the largest or the smallest one decides."""
Truth = bool | None
"""A truth value of SQL; None is NULL."""


class Asked(Protocol):
    """The rows of a query for some values, by what decides a comparison with them."""

    query: Any

    def ranked(self, symbol: str, *values: Any) -> Ranked: ...


class Quantifier:
    """A comparison with the rows that a query has for some values of the row around.

    `x op ALL` is evaluated as NOT of `x opposite ANY`. `missing` is the value that stands for one
    that raised.
    """

    def __init__(self, comparison: Comparison, rows: Asked, missing: object) -> None:
        symbol = OPPOSITE[comparison.symbol] if comparison.is_all else comparison.symbol
        self._wanted = comparison.wanted is not comparison.is_all
        self._symbol, self._count = symbol, comparison.count
        self.query, self._rows, self._missing = rows.query, rows, missing

    def __call__(self, *values: Any) -> bool:
        place = len(values) - self._count
        row = values[place:]
        if any(value is self._missing for value in row):
            raise LookupError("a value that is compared raised when it was computed")
        rows = self._rows.ranked(self._symbol, *values[:place])
        return self._any(row, rows) is self._wanted

    def _any(self, row: tuple[Any, ...], rows: Ranked) -> Truth:
        found: Truth = False
        for other in rows.candidates(row):
            truth = _compared(self._symbol, row, other)
            if truth:
                return True
            found = None if truth is None else found
        return found


def _compared(symbol: str, row: tuple[Any, ...], other: tuple[Any, ...]) -> Truth:
    """Compare two rows: `!=` is NOT of `==`, which is AND of the values."""
    if symbol == "!=":
        equal = _compared("==", row, other)
        return None if equal is None else not equal
    found: Truth = True
    for mine, theirs in zip(row, other, strict=True):
        if mine is None or theirs is None:
            found = None
        elif not OPERATORS[symbol](mine, theirs):
            return False
    return found


class Ranked:
    """The distinct rows of a query, by what decides a comparison with them."""

    def __init__(self, bag: Bag, symbol: str) -> None:
        self._all = [row for row, weight in bag.items() if weight > 0]
        self._symbol = symbol
        self._nulls = [row for row in self._all if _has_null(row)]
        self._there = [row for row in self._all if not _has_null(row)]
        self._by = self._hashed() if symbol == "==" else None
        self._extreme = self._ends() if symbol not in ("==", "!=") else None

    def candidates(self, row: tuple[Any, ...]) -> Iterable[tuple[Any, ...]]:
        """Return rows that decide the comparison with all rows."""
        if _has_null(row):
            return self._all
        if self._by is not None:
            try:
                return (*self._by.get(row, ()), *self._nulls)
            except TypeError:
                return self._all
        if self._extreme is not None and type(row[0]) is type(self._extreme[0]):
            return (self._extreme, *self._nulls)
        return self._all

    def _hashed(self) -> dict[Hashable, list[tuple[Any, ...]]] | None:
        found: dict[Hashable, list[tuple[Any, ...]]] = {}
        try:
            for row in self._there:
                found.setdefault(row, []).append(row)
        except TypeError:
            return None
        return found

    def _ends(self) -> tuple[Any, ...] | None:
        """The only row that decides `<` or `>`, of values of one class."""
        classes = {type(value) for row in self._there for value in row}
        if len(classes) != 1 or not classes <= ORDERED:
            return None
        end: tuple[Any, ...] = (max if self._symbol in ("<", "<=") else min)(self._there)
        return end


def _has_null(row: tuple[Any, ...]) -> bool:
    return any(value is None for value in row)
