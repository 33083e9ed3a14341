"""IN, ANY and ALL by the definition of SQL: compare a row with each row of a query.

    x op ANY (q)    TRUE where `x op y` is TRUE for a row y of q
                    FALSE where it is FALSE for every row, NULL otherwise
    x op ALL (q)    FALSE where `x op y` is FALSE for a row y of q
                    TRUE where it is TRUE for every row, NULL otherwise
    x IN (q)        x = ANY (q)

A comparison with NULL is NULL. Rows of several values are equal where all their values are, and
ordered by the first values that differ.

Cost: of an equation, a look-up; of another comparison, the distinct rows up to the first that
decides, or one comparison where all values are of one class that has a total order. Inside a
recursion, a row is compared again only where the rows that decide its comparison have changed.
"""

from __future__ import annotations

import operator
from bisect import insort
from collections.abc import Callable, Hashable, Iterable
from datetime import date, datetime
from typing import Any, Protocol, TypeAlias

from optimizer.plans.strata import QuantifiedComparison
from reactive.engine.reference.bags import Bag

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


class ComparedRows(Protocol):
    """The rows of a query for some values, indexed for a comparison."""

    query: Any

    def rank_rows(self, symbol: str, *values: Any) -> RankedRows | RecursiveRows: ...


class Quantifier:
    """A comparison with the rows that a query has for some values of the row around.

    `x op ALL` is evaluated as NOT of `x opposite ANY`. `missing` stands for a value that raised.
    """

    def __init__(
        self, comparison: QuantifiedComparison, rows: ComparedRows, missing: object
    ) -> None:
        symbol = OPPOSITE[comparison.symbol] if comparison.is_all else comparison.symbol
        self._wanted = comparison.wanted is not comparison.is_all
        self._symbol, self._count = symbol, comparison.count
        self.query, self._rows, self._missing = rows.query, rows, missing

    def __call__(self, *values: Any) -> bool:
        place = len(values) - self._count
        row = values[place:]
        if any(value is self._missing for value in row):
            raise LookupError("a value that is compared raised when it was computed")
        rows = self._rows.rank_rows(self._symbol, *values[:place])
        return self._any(row, rows) is self._wanted

    def _any(self, row: tuple[Any, ...], rows: RankedRows | RecursiveRows) -> Truth:
        """Return True if a row compares as TRUE; else None if one is NULL, else False."""
        found: Truth = False
        for other in rows.candidates(row):
            truth = _compare_by_symbol(self._symbol, row, other)
            if truth:
                return True
            found = None if truth is None else found
        return found


def _compare_by_symbol(symbol: str, row: tuple[Any, ...], other: tuple[Any, ...]) -> Truth:
    """Compare two rows: `!=` is NOT of `==`, which is AND of the values.

    `<` and its kind are decided by the first values that differ, and are NULL if one before is.
    """
    if symbol == "!=":
        equal = _compare_by_symbol("==", row, other)
        return None if equal is None else not equal
    if symbol != "==":
        return _compare_in_order(symbol, row, other)
    found: Truth = True
    for mine, theirs in zip(row, other, strict=True):
        if mine is None or theirs is None:
            found = None
        elif not OPERATORS[symbol](mine, theirs):
            return False
    return found


def _compare_in_order(symbol: str, row: tuple[Any, ...], other: tuple[Any, ...]) -> Truth:
    """Compare two rows by `<` or its kind."""
    for mine, theirs in zip(row, other, strict=True):
        if mine is None or theirs is None:
            return None
        if mine != theirs:
            return bool(OPERATORS[symbol](mine, theirs))
    return symbol in ("<=", ">=")


class RankedRows:
    """The distinct rows of a query, indexed for a comparison."""

    def __init__(self, bag: Bag, symbol: str) -> None:
        self._all = [row for row, weight in bag.items() if weight > 0]
        self._symbol = symbol
        self._nulls = [row for row in self._all if _has_null(row)]
        self._there = [row for row in self._all if not _has_null(row)]
        self._by = self._index_rows() if symbol == "==" else None
        self._extreme = self._ends() if symbol not in ("==", "!=") else None

    def candidates(self, row: tuple[Any, ...]) -> Iterable[tuple[Any, ...]]:
        """Return rows that decide the comparison of `row` with all rows; all rows if unknown."""
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

    def _index_rows(self) -> dict[Hashable, list[tuple[Any, ...]]] | None:
        """Return the rows by their values; None if one is not hashable."""
        found: dict[Hashable, list[tuple[Any, ...]]] = {}
        try:
            for row in self._there:
                found.setdefault(row, []).append(row)
        except TypeError:
            return None
        return found

    def _ends(self) -> tuple[Any, ...] | None:
        """Return the only row that decides `<` or `>`, if all values have one class; else None."""
        classes = {type(value) for row in self._there for value in row}
        if len(classes) != 1 or not classes <= ORDERED:
            return None
        end: tuple[Any, ...] = (max if self._symbol in ("<", "<=") else min)(self._there)
        return end


class RecursiveRows:
    """The rows of a relation that a recursion changes, indexed for a comparison.

    `rows` are the current rows. Reads for a row are noted by `noting`, so that after a change only
    the rows are compared again whose comparison may have changed:

        x == y              the row y, and the rows with NULL
        x != y              two rows, and those with NULL: one of two different rows is not x
        x < y, x > y        the largest or smallest row, and those with NULL; a value
                            waits while that row does not decide its comparison

    Cost: per change, its rows; O(rows) where the largest or smallest row is deleted.
    """

    def __init__(
        self, source: object, rows: Bag, symbol: str, noting: Callable[[], set[Any] | None]
    ) -> None:
        self._source, self._rows, self._symbol, self._noting = source, rows, symbol, noting
        self._nulls = {row for row in rows if _has_null(row)}
        self._deciding = self._find()
        self._waiting: list[tuple[Any, ...]] = []
        """Rows that no row decides, in order."""

    def candidates(self, row: tuple[Any, ...]) -> Iterable[tuple[Any, ...]]:
        """Return rows that decide the comparison with all rows, and note that they were read."""
        notes = self._noting()
        notes = set() if notes is None else notes
        if _has_null(row):
            notes.add(id(self._source))
            return self._there()
        notes.add((id(self), _DECIDING))
        if self._symbol == "==":
            try:
                is_there = self._rows.get(row, 0) > 0
            except TypeError:
                notes.add(id(self._source))
                return self._there()
            notes.add((id(self), row))
            return (*((row,) if is_there else ()), *self._nulls)
        if self._deciding is None or type(row[0]) is not type(self._deciding[0][0]):
            notes.add(id(self._source))
            return self._there()
        if self._symbol != "!=" and len(row) == 1 and not self._is_decided(row):
            notes.add((id(self), row))
            insort(self._waiting, row)
        return (*self._deciding, *self._nulls)

    def follow(self, change: Bag) -> list[Any]:
        """Apply a change of the rows; return the notes of the comparisons that it may change."""
        before, nulls = self._deciding, set(self._nulls) if self._nulls else None
        for row in change:
            if _has_null(row):
                (self._nulls.add if self._rows.get(row, 0) > 0 else self._nulls.discard)(row)
        if self._symbol == "==":
            found: list[Any] = [(id(self), row) for row in change]
        else:
            self._deciding = self._after(change)
            found = self._take_decided() if self._goes_on(before) else self._all_again()
        if (self._nulls or None) != nulls:
            found.append((id(self), _DECIDING))
        return found

    def _all_again(self) -> list[Any]:
        """Return the note that all comparisons have read; no row waits any longer."""
        self._waiting.clear()
        return [(id(self), _DECIDING)]

    def _goes_on(self, before: Deciding) -> bool:
        """Return True if all comparisons decided before remain decided."""
        if self._deciding == before:
            return True
        if self._symbol == "!=" or not before or not self._deciding or len(before[0]) > 1:
            return False
        mine, known = self._deciding[0][0], before[0][0]
        is_of_class = type(mine) is type(known)
        return bool(is_of_class and (mine > known) is (self._symbol in ("<", "<=")))

    def _take_decided(self) -> list[Any]:
        """Remove the waiting rows that are decided now, and return their notes."""
        found: list[Any] = []
        place = 0 if self._symbol in ("<", "<=") else -1
        while self._waiting and self._is_decided(self._waiting[place]):
            found.append((id(self), self._waiting[place]))
            del self._waiting[place]
        return found

    def _is_decided(self, row: tuple[Any, ...]) -> bool:
        return bool(self._deciding and _compare_by_symbol(self._symbol, row, self._deciding[0]))

    def _after(self, change: Bag) -> Deciding:
        """Return the rows that decide after a change; insertions need only these rows."""
        known = self._deciding
        if known is None or any(weight < 0 for weight in change.values()):
            return self._find()
        return self._choose_deciding((*known, *(row for row in change if not _has_null(row))))

    def _find(self) -> Deciding:
        if self._symbol == "==":
            return ()
        return self._choose_deciding(row for row in self._there() if not _has_null(row))

    def _choose_deciding(self, rows: Iterable[tuple[Any, ...]]) -> Deciding:
        """Return the rows that decide among some; None if their classes have no common order."""
        several = list(dict.fromkeys(rows))
        classes = {type(value) for row in several for value in row}
        if len(classes) != 1 or not classes <= ORDERED:
            return None
        if self._symbol == "!=":
            return tuple(several[:2])
        return ((max if self._symbol in ("<", "<=") else min)(several),)

    def _there(self) -> list[tuple[Any, ...]]:
        return [row for row, weight in self._rows.items() if weight > 0]


Deciding: TypeAlias = "tuple[tuple[Any, ...], ...] | None"
_DECIDING = object()
"""Stands for the rows that decide comparisons with all rows."""


def _has_null(row: tuple[Any, ...]) -> bool:
    return any(value is None for value in row)
