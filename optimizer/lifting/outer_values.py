"""Stand-ins for a row around a query while it is built: `c` in `nest(orders=lambda c: ...)`.

A callable that captures one reads the row around its query: for the reader, the name is an `Outer`.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from types import FunctionType

from optimizer.expr import Expr
from optimizer.lifting.readings import Queries


class OuterValue:
    """Base of stand-ins for a value of the row around a query."""

    __slots__ = ("_expr",)

    def __init__(self, expr: Expr) -> None:
        self._expr = expr


def captured_outer_values(function: FunctionType) -> dict[str, Expr]:
    """Return the variables of a function that stand for values of the rows around its query."""
    found: dict[str, Expr] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:
            continue  # not assigned yet
        if isinstance(value, OuterValue):
            found[name] = value._expr
    return found


def bind_outer_values(
    function: FunctionType, bound: MutableMapping[str, Expr], queries: Queries | None
) -> None:
    """Add the variables of a function that stand for rows around its query to `bound`; bound names
    stay."""
    for name, expr in captured_outer_values(function).items():
        if name not in bound:
            bound[name] = expr if queries is None else queries.outer(expr)
