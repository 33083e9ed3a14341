"""Paths from a row to a value inside it, by names of fields and positions in tuples.

    row.kind            ("kind",)
    row[1]              (1,), or ("kind",) if the row is a named tuple with that field
    row[0].address      (0, "address")

Reading a path may raise, if the class of the row does not declare its fields or length.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import attrgetter, itemgetter
from typing import Any

from optimizer.expr import Attribute, Constant, Expr, Item, Parameter, constant
from optimizer.expressions.knowledge import Shape, Shapes, constructor, readable_fields, shape_of

Path = tuple[str | int, ...]


def path_of(expr: Expr, shapes: Shapes) -> Path | None:
    """Return the path that an expression reads of the first binding; None for other expressions.

    The first binding itself is no path.
    """
    match expr:
        case Attribute(of, name):
            last: str | int = name
        case Item(of, Constant(int() as position)):
            last = _canonical(position, shape_of(of, shapes))
        case _:
            return None
    if isinstance(of, Parameter):
        return (last,) if of.index == 0 else None
    path = path_of(of, shapes)
    return None if path is None else (*path, last)


def _canonical(position: int, shape: Shape) -> str | int:
    """Return one name for the ways to read an item of a tuple, if its length is known."""
    if isinstance(shape, tuple):
        return position % len(shape) if -len(shape) <= position < len(shape) else position
    if not isinstance(shape, type) or getattr(shape, "__getitem__", None) != tuple.__getitem__:
        return position
    names = constructor(shape) or ()
    is_field = -len(names) <= position < len(names) and names[position] in readable_fields(shape)
    return names[position] if is_field else position


def path_reader(path: Path) -> Callable[[Any], Any]:
    """Return the function that reads a path of a row.

    >>> path_reader((1, "real"))(("a", 7))
    7
    """
    first, *others = [attrgetter(s) if isinstance(s, str) else itemgetter(s) for s in path]
    if not others:
        return first
    return lambda row: reduce(lambda value, read: read(value), others, first(row))


def path_expression(path: Path) -> Expr:
    """Return the expression that reads a path of the first binding."""
    found: Expr = Parameter(0)
    for step in path:
        found = Attribute(found, step) if isinstance(step, str) else Item(found, constant(step))
    return found


def path_text(path: Path) -> str:
    """Return a path as it is written after a row.

    >>> path_text(("kind",)), path_text((0, "address")), path_text((1,))
    ('kind', '[0].address', '[1]')
    """
    return "".join(f".{s}" if isinstance(s, str) else f"[{s}]" for s in path).removeprefix(".")
