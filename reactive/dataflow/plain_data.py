"""Rows as plain data, as for JSON: records become dictionaries, tuples lists.

    Row(town='Bonn', orders=2)        {"town": "Bonn", "orders": 2}
    (Order(id=1), ("Ann", 3))         [{"id": 1}, ["Ann", 3]]
    Row(row=Town("Bonn"), people=...) {"name": "Bonn", "people": [...]}, as nest makes them
    Row(a=Order(1), b=Line(1), ...)   {"a": {"id": 1}, "b": {"id": 1}, ...}, as over a join

What is neither stays as it is: whoever writes JSON says what to do with a date.
"""

from __future__ import annotations

from typing import Any

from optimizer.rewriting.fields import declared
from reactive.collections import long_tuple, nested_rows
from reactive.collections.bag import Bag


def plain(value: Any) -> Any:
    """A row, or a part of one, without the classes of records.

    >>> from typing import NamedTuple
    >>> Point = NamedTuple("Point", [("x", int), ("y", int)])
    >>> plain(Point(1, 2)), plain((Point(1, 2), "a"))
    ({'x': 1, 'y': 2}, [{'x': 1, 'y': 2}, 'a'])
    """
    if nested_rows.is_nested(value):
        return _with_inside(value)
    names = declared(type(value))
    if names:
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, tuple | Bag | frozenset | long_tuple.LongTuple):
        return [plain(part) for part in value]
    return value


def _with_inside(row: Any) -> dict[str, Any]:
    """A row with others inside: its own fields, and beside them what is inside; of one of several
    bindings, each of these by its name, since they may have fields of the same name."""
    parts = dict(zip(row._fields, map(plain, row), strict=True))
    own = parts[row._fields[0]]
    if row.roots > 1 or not isinstance(own, dict):
        return parts
    del parts[row._fields[0]]
    return own | parts
