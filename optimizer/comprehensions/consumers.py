"""Parts of what is sorted, and what is sorted as a value.

sorted(rows, key=f)[:3]             the first three, as rows
sorted(rows, key=f)[-3:]            the last three, in the order of f
sorted(rows, key=f)[::2]            a part of the tuple that all rows make
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from optimizer.comprehensions.computed import InOrder, part
from optimizer.comprehensions.refusals import refused
from optimizer.comprehensions.rows import Rows, taken
from optimizer.expr import NONE, TRUE, Call, Constant, Expr, Item, constant, tuple_of
from optimizer.subqueries.calm import kinds
from optimizer.subqueries.forms import known_of


def window(rows: Rows, key: ast.expr, node: ast.expr, reader: Any, reading: Any) -> Expr:
    """`sorted(...)[a:b]` and `sorted(...)[i]`

    Windows with constant ends stay rows, counted from the end of the order too. Others are parts of
    a tuple.
    """
    if isinstance(key, ast.Slice):
        ends = [NONE if e is None else reader.expr(e) for e in (key.lower, key.upper, key.step)]
        known = all(map(_is_integer, ends))
        made = _between(rows, [_integer(e) for e in ends], reading) if known else None
        if made is not None:
            return made
        return Call(constant(part), (in_order(rows, node, reader, reading), *ends))
    place = reader.expr(key)
    if _is_integer(place) and (count := _integer(place)) is not None and count >= 0:
        rows = cut(rows, 0, count + 1, reading)
    return Item(in_order(rows, node, reader, reading), place)


def _is_integer(expr: Expr) -> bool:
    """Return True of an integer that is known, and of None."""
    return isinstance(expr, Constant) and type(expr.value) in (int, type(None))


def _integer(expr: Expr) -> int | None:
    return expr.value if isinstance(expr, Constant) else None


def _between(rows: Rows, ends: list[int | None], reading: Any) -> Rows | None:
    """The rows of a slice; None of one that depends on how many rows there are, or has a step."""
    start, stop, step = ends
    if step == -1 and start is None and stop is None:
        return _reversed(rows, reading)
    if step not in (None, 1):
        return None
    start = start or 0
    if stop is not None and stop < 0:
        limit = max(0, stop - start) if start < 0 else None
        rows = _reversed(cut(_reversed(rows, reading), -stop, limit, reading), reading)
        return rows if start <= 0 else cut(rows, start, None, reading)
    if start >= 0:
        return cut(rows, start, None if stop is None else max(0, stop - start), reading)
    if stop is not None:
        return None
    return _reversed(cut(_reversed(rows, reading), 0, -start, reading), reading)


def _whole(rows: Rows, reading: Any) -> Rows:
    """The rows that a window has taken, all of them in its order."""
    assert rows.order is not None
    if not rows.order.is_window:
        return rows
    order = replace(rows.order, offset=0, limit=None)
    return replace(rows, node=taken(rows, reading.origins), order=order)


def _reversed(rows: Rows, reading: Any) -> Rows:
    """The rows in the other direction."""
    rows = _whole(rows, reading)
    assert rows.order is not None
    order = rows.order
    more = tuple((e, not descending, nulls) for e, descending, nulls in order.more)
    return replace(rows, order=replace(order, descending=not order.descending, more=more))


def cut(rows: Rows, offset: int, limit: int | None, reading: Any) -> Rows:
    rows = _whole(rows, reading)
    assert rows.order is not None
    return replace(rows, order=replace(rows.order, offset=offset, limit=limit))


PLAINLY_ORDERED = (frozenset({int}), frozenset({str}), frozenset({bytes}))
"""Classes of values that `sorted` has in the order of `order_by`."""


def in_order(rows: Rows, node: ast.expr, reader: Any, reading: Any) -> Expr:
    """Return sorted rows as a tuple."""
    order = rows.order
    assert order is not None
    if any(how != [order.descending, None] for _, *how in order.keys):
        raise refused(
            node,
            reader,
            "is sorted in two directions, as a value",
            "sort it once, by one key: sorted(rows, key=lambda row: (row.a, -row.b))",
        )
    key = tuple_of(*order.exprs) if order.more else order.key
    is_own = key == rows.value
    collected = rows.value if is_own else tuple_of(key, rows.value)
    found = reading.folded(rows, "Collect", collected)
    if is_own and kinds(rows.value, known_of(rows.node)) in PLAINLY_ORDERED:
        direction = (("reverse", TRUE),) if order.descending else ()
        return Call(constant(tuple), (Call(constant(sorted), (found,), direction),))
    engine = reading.engine
    made = InOrder(engine.by_themselves if is_own else engine.in_order, order.descending)
    return Call(constant(made, "sorted"), (found,))
