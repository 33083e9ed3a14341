"""Candidate rows for the values of a row around, found by a hash on the equations in a query.

    where o.customer == outer[0].id and o.paid       rows of o by `o.customer`

All conditions are then tested on each candidate, as they stand.

Cost: O(rows) to hash them once; of some values, the rows that agree in the equations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optimizer import plan
from optimizer.expr import (
    Attempt,
    Call,
    Constant,
    Expr,
    Lifted,
    Operation,
    Parameter,
    one_value,
    row_names,
    walk,
)
from optimizer.plans.properties import bindings
from reactive.engine.codegen.functions import compiled_of
from reactive.engine.collections.zset import Row
from reactive.engine.reference.bags import Bag, asked, bag_of

NOTHING = Bag()
ANY = object()
"""In the place of the value of a row whose value raises or has no hash."""


def asks_around(expr: Expr) -> bool:
    """Return True if an expression reads the row around, or asks a sub-query."""
    return any(map(_is_asking, walk(expr)))


def _is_asking(expr: Expr) -> bool:
    match expr:
        case Call(function):
            return getattr(function, "name", None) in ("outer", "asked")
        case _:
            return False


def equation(test: Expr) -> tuple[Expr, Expr] | None:
    """Return a value of the row, and the value around that it must equal."""
    match test:
        case Attempt(
            Operation("==") as equal, Constant(False)
        ):  # a row that raises is none that agrees
            return equation(equal)
        case Operation("==", (one, other)):
            for mine, theirs in ((one, other), (other, one)):
                is_own = _reads_row(mine) and not asks_around(mine)
                if is_own and asks_around(theirs) and not _reads_row(theirs):
                    return mine, theirs
    return None


def _reads_row(expr: Expr) -> bool:
    return any(isinstance(part, Parameter) for part in walk(expr))


class Candidates:
    """Rows by the values that equations compare. A row whose value raises or has no hash is a
    candidate for every value."""

    def __init__(
        self,
        source: plan.Node,
        rows: Bag,
        tests: list[plan.Where],
        pairs: list[tuple[Expr, Expr]],
    ) -> None:
        count = bindings(source)
        names = row_names(count)
        mine = Lifted(one_value([each for each, _ in pairs]), names, (), count)
        theirs = Lifted(one_value([each for _, each in pairs]), (), (), 0)
        self._source, self._all, self._value = source, rows, compiled_of(theirs)
        self._tests = [asked(test.predicate, source) for test in reversed(tests)]
        self._by: dict[Any, Bag] = {}
        self._odd = Bag()
        self._key = compiled_of(mine)
        self._is_one = count == 1
        for row, weight in rows.items():
            self._add(row, weight)

    def _add(self, row: Row, weight: int) -> Any:
        """Add a row, or take it away; the value that finds it, or `ANY`."""
        value: Any
        try:
            value = self._key(row) if self._is_one else self._key(*row)
            found = self._by.get(value)
            if found is None:
                found = self._by[value] = bag_of({})
        except Exception:
            value, found = ANY, self._odd
        total = found.get(row, 0) + weight
        if total:
            found[row] = total
        else:
            found.pop(row, None)
        return value

    def follow(self, change: Bag) -> list[Any]:
        """Take in a change of the rows; what may have been read of them."""
        values = {self._add(row, weight) for row, weight in change.items()}
        return [(id(self), each) for each in ({ANY} if ANY in values else values)]

    def rows(self, notes: set[Any] | None = None) -> Bag:
        """Return the candidates for which all conditions are true; note what is read."""
        bag = self._candidates(notes)
        for test in self._tests:
            bag = bag_of({row: n for row, n in bag.items() if test(row)})
        return bag

    def first(self, notes: set[Any] | None = None) -> Bag:
        """Return one of these rows that is there, if any is."""
        return first_passing(self._candidates(notes), self._tests)

    def _candidates(self, notes: set[Any] | None) -> Bag:
        if notes is not None:
            notes.add((id(self), ANY))
        try:
            value = self._value()
            found = self._by.get(value, NOTHING)
            if notes is not None:
                notes.add((id(self), value))
        except Exception:  # no hash, or no value; conditions before the equation decide
            if notes is not None:
                notes.add(id(self._source))
            return self._all
        return bag_of({**found, **self._odd}) if self._odd else found


def first_passing(bag: Bag, tests: Sequence[Callable[[Row], object]]) -> Bag:
    """Return a row that is there and for which all tests are true; no rows if there is none."""
    first, *rest = tests
    for row, weight in bag.items():
        if weight > 0 and first(row) and (not rest or all(test(row) for test in rest)):
            return bag_of({row: weight})
    return NOTHING
