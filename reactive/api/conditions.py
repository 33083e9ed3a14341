"""What a `where` asks of a row, and a join of two, as the plan holds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import Function
from optimizer.plans.properties import bindings
from optimizer.rewriting import columns
from optimizer.rewriting.fields import (
    Known,
    equal_fields,
    equal_to,
    field_of_row,
    have,
    known_shapes,
)
from reactive.api.callables import Live, check_values
from reactive.api.columns import Column, col

if TYPE_CHECKING:
    from reactive.api.relation import AnyRelation

Key = Callable[..., Any] | str
On = Callable[..., Any] | str | tuple[str, ...] | list[str]


def where_of(
    relation: AnyRelation, predicate: Callable[..., Any] | None, fields: Mapping[str, Any]
) -> plan.Node:
    """The rows for which a predicate is true, and fields equal values."""
    if predicate is None and not fields:
        raise PlanError(
            "where takes a predicate, or values of fields\n"
            '  where(lambda row: ...), where(town="Bonn")'
        )
    node = relation.plan
    if predicate is not None:
        node = plan.Where(node, relation._take(predicate, "where"))
    if fields:
        check_values(fields)
        given = {name: value for name, value in fields.items() if not isinstance(value, Live)}
        if given:
            node = plan.Where(node, equal_to(given, known_shapes(node), "where"))
        for name in (name for name in fields if name not in given):
            test = col(name) == fields[name]
            of_rows = columns.of_rows(known_shapes(node))
            node = plan.Where(node, columns.resolved(test.expr, of_rows, "where", test.place))
    return node


def side_of(role: str, left: AnyRelation, right: AnyRelation) -> plan.Node:
    """The right side of a set operation, which has as many bindings as the left."""
    left._check_other(role, right)
    mine, theirs = bindings(left.plan), bindings(right.plan)
    if mine != theirs:
        raise PlanError(
            f"{role} of relations with {mine} and {theirs} bindings\n"
            "  select() what both have in common first"
        )
    return right.plan


def match_of(
    role: str,
    left: AnyRelation,
    right: AnyRelation,
    on: On | None,
    left_key: Key | None,
    right_key: Key | None,
) -> plan.Match:
    """When rows of two relations match; always, if nothing is given."""
    left._check_other(role, right)
    if (left_key is None) != (right_key is None):
        given, missing = ("left_key", "right_key")[:: 1 if right_key is None else -1]
        raise PlanError(
            f"{role} has a {given} but no {missing}\n  rows match if the two keys are equal"
        )
    of_left = of_right = predicate = None
    if left_key is not None and right_key is not None:
        of_left = left._take(left_key, f"the left key of {role}")
        of_right = _of_right(right, right_key, f"the right key of {role}")
    if on is not None:
        predicate = _predicate(role, left, right, on)
    return plan.Match(of_left, of_right, predicate)


def _of_right(right: AnyRelation, key: Key, role: str) -> Function:
    if isinstance(key, str):
        return field_of_row(key, known_shapes(right.plan), role)
    if isinstance(key, Column):
        of = columns.of_right(known_shapes(right.plan))
        return columns.resolved(key.expr, of, role, key.place)
    return right._taken_of_row(key, role)


def _predicate(role: str, left: AnyRelation, right: AnyRelation, on: On) -> Function:
    if isinstance(on, Column):
        of = columns.of_pair(known_shapes(left.plan), known_shapes(right.plan))
        return columns.resolved(on.expr, of, role, on.place)
    if not isinstance(on, str | tuple | list):
        return left._take(on, role, more=1)
    of_left, of_right = known_shapes(left.plan), known_shapes(right.plan)
    return equal_fields(_pairs(role, on, of_left, of_right), of_left, of_right, role)


def _pairs(
    role: str, on: str | tuple[str, ...] | list[str], left: Known, right: Known
) -> list[tuple[str, str]]:
    """The fields of the left and of the right that are to be equal."""
    names = (on,) if isinstance(on, str) else tuple(on)
    if not names or not all(isinstance(name, str) for name in names):
        raise PlanError(
            f"{role}: on={on!r:.60} are no names of fields\n"
            '  on="c" of both sides, on=("a", "b") of the left and of the right'
        )
    if not isinstance(on, tuple) or len(names) != 2:
        return [(name, name) for name in names]
    a, b = names
    if a != b and all(have(name, side) for name in names for side in (left, right)):
        raise PlanError(
            f"{role}: on={on!r} may mean two things, since both sides have both fields\n"
            f"  left_key={a!r}, right_key={b!r}: {a!r} of the left equals {b!r} of the right\n"
            f"  on=[{a!r}, {b!r}]: each equals itself on the other side"
        )
    return [(a, b)]
