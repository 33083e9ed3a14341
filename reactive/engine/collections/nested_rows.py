"""Rows with others inside them: generated named tuples that read as the row that they begin with.

Row(row=Customer(7, "Ann"), orders=Bag(...))

row.orders                  the rows inside
row.name                    no binding: that of the customer

Each class is an attribute of this module, by a name that says its columns, so that other processes
find it there: `Row(1, row, orders)`.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable
from typing import Any

from optimizer.kinds.class_facts import class_maker

_PREFIX = "Row("


@class_maker
def nested_class(roots: int, columns: tuple[str, ...]) -> Any:
    """The class of rows with these columns, the first of which are what names are looked up in.

    >>> import pickle
    >>> Row = nested_class(1, ("row", "parts"))
    >>> row = Row(3 + 4j, ())
    >>> row, row.imag, row == (3 + 4j, ()), pickle.loads(pickle.dumps(row)) == row
    (Row(row=(3+4j), parts=()), 4.0, True, True)
    >>> pickle.loads(pickle.dumps(Row)) is Row
    True
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
    made.__qualname__ = f"{_PREFIX}{', '.join((str(roots), *columns))})"
    made.__doc__ = f"A row of {', '.join(columns)}; other names are those of its beginning."
    return made


def nested_row(roots: int, columns: tuple[str, ...], values: Iterable[Any]) -> Any:
    """A row with these columns."""
    return nested_class(roots, columns)(*values)


def is_nested(value: Any) -> bool:
    """Whether a value is a row with others inside."""
    return is_nested_class(type(value))


def is_nested_class(kind: Any) -> bool:
    """Whether a class is one of rows with others inside."""
    return getattr(kind, "__reduce__", None) is _reduced


def __getattr__(name: str) -> Any:
    if not name.startswith(_PREFIX):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    roots, *columns = name[len(_PREFIX) : -1].split(", ")
    return nested_class(int(roots), tuple(columns))


def _reduced(row: Any) -> Any:
    return nested_row, (row.roots, row._fields, tuple(row))
