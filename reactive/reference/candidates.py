"""Candidate rows for the values of a row around, found by a hash on the equations in a query.

    where o.customer == outer[0].id and o.paid       rows of o by `o.customer`

All conditions are then tested on each candidate, as they stand.

Cost: O(rows) to hash them once; of some values, the rows that agree in the equations.
"""

from __future__ import annotations

from collections import Counter
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
from reactive.codegen.functions import compiled_of
from reactive.reference.bags import Bag
from reactive.reference.nodes import linear


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
        self._all, self._value = rows, compiled_of(theirs)
        self._tests = [linear(test) for test in reversed(tests)]
        self._by: dict[Any, dict[Any, int]] = {}
        self._odd: dict[Any, int] = {}
        key = compiled_of(mine)
        for row, weight in rows.items():
            try:
                found = self._by.setdefault(key(row) if count == 1 else key(*row), {})
            except Exception:
                found = self._odd
            found[row] = weight

    def rows(self) -> Bag:
        """Return the candidates for which all conditions are true."""
        try:
            bag: Bag = Counter(self._by.get(self._value(), {}))
            bag.update(self._odd)
        except Exception:  # no hash, or no value; conditions before the equation decide
            bag = self._all
        for test in self._tests:
            assert test is not None
            bag = test(bag)
        return bag
