"""Rows as plain data, as for JSON: records become dictionaries, tuples lists.

    Row(town='Bonn', orders=2)        {"town": "Bonn", "orders": 2}
    (Order(id=1), ("Ann", 3))         [{"id": 1}, ["Ann", 3]]
    FrozenList, FrozenDict, FrozenSet list, dictionary, list
    Row(row=Town("Bonn"), people=...) {"name": "Bonn", "people": [...]}, as nest makes them
    Row(a=Order(1), b=Line(1), ...)   {"a": {"id": 1}, "b": {"id": 1}, ...}, as over a join

What is neither stays as it is: whoever writes JSON says what to do with a date.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optimizer.expressions.knowledge import Foldable
from optimizer.kinds import texts
from optimizer.rewriting.fields import declared
from reactive.engine.collections import nested_rows

JSON: tuple[type, ...] = (bool, int, float, str, list, dict, type(None))
"""What JSON has words for."""
NONE = object()


def to_python(value: Any) -> Any:
    """A row, or a part of one, as plain data: what `view.to_python()` gives of each.

    Also what encoders call for values that they do not know, as what a row shows of a list:
    `json.dumps(row, default=to_python)`, `orjson.dumps(row, default=to_python)`,
    `msgspec.json.encode(row, enc_hook=to_python)`, and of pydantic
    `TypeAdapter(...).dump_json(row, fallback=to_python)`.

    Raises
    ------
    TypeError: it is nothing that JSON has a word for, nor a date, a time, a duration, a Decimal, a
        UUID, bytes or a member of an Enum, which are written as files of JSON are read.

    Cost: O(values).

    >>> import json
    >>> from reactive import Database, to_python, tracked
    >>> @tracked
    ... class Order:
    ...     id: int
    ...     lines: list[str]
    ...     tags: dict[str, int]
    >>> orders = Database().table(Order, key="id")
    >>> orders.add(Order(1, ["tea"], {"a": 1}))
    >>> json.dumps(orders[1].lines, default=to_python)
    '["tea"]'
    >>> json.dumps([orders[1]], default=to_python)
    '[{"id": 1, "lines": ["tea"], "tags": {"a": 1}}]'
    """
    found = plain(value)
    if found is value and not isinstance(value, JSON):
        found = texts.json_of(value)
        if found is not value:
            return found
        raise TypeError(
            f"JSON has no word for the {type(value).__name__} {value!r:.100}\n"
            "  say what to write: json.dumps(view.to_python(), default=str)"
        )
    return found


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
        parts = {name: getattr(value, name, NONE) for name in names}
        return {name: plain(part) for name, part in parts.items() if part is not NONE}
    if isinstance(value, Mapping) and isinstance(value, Foldable):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, tuple | frozenset | Foldable):
        parts_of: Any = value
        return [plain(part) for part in parts_of]
    return value


def named(row: Any, names: Sequence[str] | None) -> Any:
    """A row as plain data, by the names of its columns if these have some.

    >>> named((1, "a"), ["id", "name"]), named((1, "a"), None), named(1, ["id"])
    ({'id': 1, 'name': 'a'}, [1, 'a'], {'id': 1})
    """
    if names is None or nested_rows.is_nested(row):
        return plain(row)
    values = row if isinstance(row, tuple) and len(row) == len(names) else (row,)
    return {name: plain(value) for name, value in zip(names, values, strict=True)}


def _with_inside(row: Any) -> dict[str, Any]:
    """A row with others inside: its own fields, and beside them what is inside; of one of several
    bindings, each of these by its name, since they may have fields of the same name."""
    parts = dict(zip(row._fields, map(plain, row), strict=True))
    own = parts[row._fields[0]]
    if row.roots > 1 or not isinstance(own, dict):
        return parts
    del parts[row._fields[0]]
    return own | parts
