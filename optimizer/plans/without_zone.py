"""Find comparisons of a field of instants with a constant that has no time zone.

    calls.where(lambda c: c.begins > datetime(2024, 1, 1))

with `begins: Annotated[datetime, timezone.utc]`: `>` would raise for every row, `==` be False.

Sound:  a field is one of instants if it is declared so; of others nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from optimizer.expr import Attribute, Constant, Expr, Operation
from optimizer.expressions.declared import zoned_fields
from optimizer.expressions.knowledge import Shape
from optimizer.expressions.text import text

COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
ROWS = ("row", "other", "third")
"""The names of rows in a message."""


def without_zone(expr: Operation, shape: Callable[[Expr], Shape]) -> str | None:
    """Return the message about an operation that compares an instant with a naive constant.

    Return None for any other operation. `shape` gives the class of an expression.
    """
    if expr.operator not in COMPARISONS or len(expr.operands) != 2:
        return None
    pair = {_has_zone(each, shape): each for each in expr.operands}
    if pair.keys() != {True, False}:
        return None
    instant, naive = text(pair[True], ROWS), text(pair[False], ROWS)
    return f"{instant} is an instant, and {naive} has no time zone"


def _has_zone(expr: Expr, shape: Callable[[Expr], Shape]) -> bool | None:
    """True of a field of instants, or False of a constant without a zone; None if not known."""
    match expr:
        case Constant(datetime() as value):
            return value.tzinfo is not None
        case Attribute(inner, name):
            kind = shape(inner)
            return True if isinstance(kind, type) and name in zoned_fields(kind) else None
        case _:
            return None
