"""Rows of a query that is ordered by what it does not select.

    select name from people order by age        Row(name='Ann'), which knows its age

Two rows of such a query that look alike may stand at different places. A row equals the tuple of
its columns, and another row if both stand at the same place besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from optimizer.expr import Attribute, Call, Expr, Item, Parameter, constant, tuple_of
from reactive.api.named_rows import row_class


@cache
def placed_class(columns: tuple[str, ...]) -> Any:
    """The class of such rows.

    >>> from reactive.sql.runtime.ordered_rows import placed, placed_class
    >>> ann, ben = placed(("name",), (7,), ("Ann",)), placed(("name",), (8,), ("Ann",))
    >>> ann, ann == ben, ann == ("Ann",)
    (Row(name='Ann'), False, True)
    """
    return type("Row", (row_class(columns),), {**_METHODS, "__module__": __name__})


def placed(columns: tuple[str, ...], place: tuple[Any, ...], values: Sequence[Any]) -> Any:
    """A row that stands at a place."""
    kind = placed_class(columns)
    made = tuple.__new__(kind, values)
    made._place = place
    return made


def _equal(row: Any, other: Any) -> Any:
    if type(other) is type(row) and row._place != other._place:
        return False
    return tuple.__eq__(row, other)


def _unequal(row: Any, other: Any) -> Any:
    found = _equal(row, other)
    return found if found is NotImplemented else not found


_METHODS = {
    "__eq__": _equal,
    "__ne__": _unequal,
    "__hash__": tuple.__hash__,
    "__reduce__": lambda row: (placed, (row._fields, row._place, tuple(row))),
    "__doc__": "A row that stands where columns say that it does not have.",
}


def placed_row(columns: tuple[str, ...], place: Sequence[Expr], values: Sequence[Expr]) -> Expr:
    """The expression of such a row."""
    parts = (constant(columns), tuple_of(*place), tuple_of(*values))
    return Call(constant(placed), parts)


def place_of(number: int) -> Expr:
    """A part of the place where a row stands."""
    return Item(Attribute(Parameter(0), "_place"), constant(number))
