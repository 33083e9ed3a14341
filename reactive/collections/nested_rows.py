"""Rows with others inside them: generated named tuples that read as the row that they begin with.

Row(row=Customer(7, "Ann"), orders=Bag(...))

row.orders                  the rows inside
row.name                    no binding: that of the customer
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable
from functools import cache
from typing import Any


@cache
def nested_class(roots: int, columns: tuple[str, ...]) -> Any:
    """The class of rows with these columns, the first of which are what names are looked up in.

    >>> import pickle
    >>> Row = nested_class(1, ("row", "parts"))
    >>> row = Row(3 + 4j, ())
    >>> row, row.imag, row == (3 + 4j, ()), pickle.loads(pickle.dumps(row)) == row
    (Row(row=(3+4j), parts=()), 4.0, True, True)
    """
    make: Any = namedtuple
    base = make("Row", columns, module=__name__)

    def __getattr__(row: Any, name: str) -> Any:
        for root in row[:roots] if not name.startswith("__") else ():
            try:
                return getattr(root, name)
            except AttributeError:
                continue
        raise AttributeError(
            f"a row of {', '.join(columns)} has no {name!r}, nor has what it begins with",
            name=name,
            obj=row,
        )

    body = {"__slots__": (), "__getattr__": __getattr__, "__reduce__": _reduced, "roots": roots}
    made: Any = type("Row", (base,), body)
    made.__module__ = __name__
    made.__doc__ = f"A row of {', '.join(columns)}; other names are those of its beginning."
    return made


def nested_row(roots: int, columns: tuple[str, ...], values: Iterable[Any]) -> Any:
    """A row with these columns."""
    return nested_class(roots, columns)(*values)


def is_nested(value: Any) -> bool:
    """Whether a value is a row with others inside."""
    return getattr(type(value), "__reduce__", None) is _reduced


def _reduced(row: Any) -> Any:
    return nested_row, (row.roots, row._fields, tuple(row))
