"""Joins in a query that becomes one of all values.

of rows that depend on the value, with others      the same
of others, with rows that depend on the value      the same, if pairs alone count
of two that depend on it                           the values must be equal besides
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.expr import (
    NONE,
    Call,
    Conditional,
    Expr,
    Function,
    Item,
    Lifted,
    Operation,
    Parameter,
    all_parameters,
    constant,
    tuple_of,
)
from optimizer.expressions.knowledge import is_canonical
from optimizer.plans.properties import bindings, shapes
from optimizer.subqueries.keyed import (
    FIRST,
    ONE,
    ZERO,
    Keyed,
    asked_of_pairs,
    items,
    match_of,
    one,
    over_row,
    tuple_items,
    with_match,
)
from optimizer.subqueries.outers import read_by
from optimizer.traverse import with_inputs

if TYPE_CHECKING:
    from optimizer.subqueries.translation import Translation


def joined(all_: Translation, node: plan.Node) -> Keyed:
    """What stands for a product or join, one of whose sides or callables depends on the value."""
    left, right = node.inputs()
    kind = node.kind if isinstance(node, plan.OuterJoin) else None
    is_inner = isinstance(node, plan.Product | plan.Join)
    if all_.values.arguments is not None:
        node = with_match(node, asked_of_pairs(node, read_by))
    if not all_.depends(right) and kind in (None, "left"):
        return _with_others(all_, node, all_.side(left))
    if not all_.depends(left) and is_inner:
        return _of_others(all_, node, all_.packed(all_.side(right)))
    return _of_two(all_, node, all_.packed(all_.side(left)), all_.packed(all_.side(right)))


def _with_others(all_: Translation, node: plan.Node, x: Keyed) -> Keyed:
    """Rows of the value, with those of others."""
    match, count = match_of(node), bindings(x.node)
    new = plan.Match(
        None if match.left_key is None else all_.callable(match.left_key, x),
        match.right_key,
        None if match.on is None else all_.callable(match.on, x, Parameter(count)),
    )
    made = with_match(with_inputs(node, [x.node, node.inputs()[1]]), new)
    if isinstance(node, plan.SemiJoin | plan.AntiJoin):
        return replace(x, node=made, covers=False)
    covers = x.covers and isinstance(node, plan.OuterJoin)
    return Keyed(made, x.key, (*x.row, Parameter(count)), covers, x.plain)


def _of_others(all_: Translation, node: plan.Node, x: Keyed) -> Keyed:
    """Rows of others, with those of the value."""
    left, match = node.inputs()[0], match_of(node)
    count = bindings(left)
    group, row = items(Parameter(count), 2)
    mine = all_parameters(count)
    on = None if match.on is None else all_.over(match.on, group, (*mine, row), count + 1)
    new = plan.Match(match.left_key, _of_right(match.right_key), on)
    made = with_match(with_inputs(node, [left, x.node]), new)
    return Keyed(made, group, (*mine, row), plain=x.plain)


def _of_two(all_: Translation, node: plan.Node, left: Keyed, right: Keyed) -> Keyed:
    """Two parts of the value, whose keys must be equal besides."""
    match, row = match_of(node), Item(Parameter(1), ONE)
    own = None if match.left_key is None else all_.callable(match.left_key, left)
    other = _of_right(match.right_key)
    mine, theirs = _with_value(all_, (own, left), (other, right))
    on = None if match.on is None else all_.over(match.on, FIRST, (*left.row, row), 2)
    new = plan.Match(mine, theirs, on)
    made = with_match(with_inputs(node, [left.node, right.node]), new)
    plain = left.plain or right.plain
    match node:
        case plan.SemiJoin() | plan.AntiJoin():
            return replace(left, node=made, covers=False)
        case plan.OuterJoin(kind=kind):
            return all_.packed(_outer(made, kind, left, right))
        case _:
            return Keyed(made, FIRST, (*left.row, row), plain=plain)


def _with_value(
    all_: Translation, left: tuple[Lifted | None, Keyed], right: tuple[Lifted | None, Keyed]
) -> tuple[Lifted, Lifted]:
    """The keys of packed sides, with the value before each."""
    (own, mine), (other, theirs) = left, right
    value = all_.compared(FIRST, plain=mine.plain or theirs.plain)
    if own is None or other is None:
        return one(tuple_of(*value)), one(tuple_of(*value))
    mine_, theirs_ = tuple_items(own.body), tuple_items(other.body)
    if mine_ and theirs_ and len(mine_) == len(theirs_):
        return own.with_body(tuple_of(*value, *mine_)), other.with_body(tuple_of(*value, *theirs_))
    one_is_known = is_canonical(own.body, shapes(mine.node)) or is_canonical(
        other.body, shapes(theirs.node)
    )
    made = tuple_of if one_is_known else _spread
    return own.with_body(made(*value, own.body)), other.with_body(made(*value, other.body))


def _spread(*parts: Expr) -> Expr:
    return Call(constant(with_value, "with_value"), parts)


def with_value(*parts: object) -> tuple[object, ...]:
    """A key with the value before it, where a NaN in a key that is a tuple is an item still, and so
    equals nothing."""
    *value, key = parts
    return (*value, tuple, *key) if type(key) is tuple else parts


def _of_right(key: Function | None) -> Lifted | None:
    """The key of a right side that is packed."""
    return None if key is None else over_row(key, (Item(Parameter(0), ONE),), 1)


def _outer(made: plan.Node, kind: str, left: Keyed, right: Keyed) -> Keyed:
    """The rows of an outer join of two packed sides, either of which may be missing."""
    here, there = (Operation("is not", (Parameter(place), NONE)) for place in (0, 1))
    mine = tuple(Conditional(here, part, NONE) for part in left.row)
    key = Conditional(here, FIRST, Item(Parameter(1), ZERO))
    covers = {"left": left.covers, "right": right.covers}
    return Keyed(
        made,
        key,
        (*mine, Conditional(there, Item(Parameter(1), ONE), NONE)),
        covers.get(kind, left.covers or right.covers),
        left.plain or right.plain,
    )
