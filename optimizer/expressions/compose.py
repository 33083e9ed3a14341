"""Put one expression in the place of another's parameter, keeping what the plain plan evaluates."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from optimizer.expr import (
    FALSE,
    TRUE,
    And,
    Attempt,
    Attribute,
    Call,
    Composition,
    Conditional,
    Constant,
    Display,
    Expr,
    First,
    Guard,
    Item,
    Lifted,
    Operation,
    Or,
    Parameter,
    origins,
    parts,
    substitute,
    transform,
    tuple_of,
    walk,
)
from optimizer.expressions.evaluated import evaluated
from optimizer.expressions.knowledge import (
    Shapes,
    is_value,
    makes_record,
    record_field,
    record_item,
    shape_of,
    total,
)

LARGEST = 200
"""Nodes that an expression may have; each step of a chain can double it."""


def same(key: Expr) -> Expr:
    """A key that is equal to itself if it is NaN: of a key, only its items may be none."""
    return tuple_of(tuple_of(key))


def compose(outer: Lifted, inner: Lifted, shapes: Shapes) -> Lifted | None:
    """`outer(inner(row))` as one expression, evaluating all of `inner`; None if it has a cost,
    or is too long.

    `shapes` are those of the row. Fields of a record or tuple that `inner` makes are read from the
    expressions that it is made of, so that it need not be made.
    """
    if not is_value(inner.body, shapes):
        return None
    body = transform(substitute(outer.body, (inner.body,)), projected)
    asked = set(surely(body))  # what is evaluated anyway need not be evaluated before
    body = first(tuple(n for n in needs(inner.body, shapes) if n not in asked), body)
    if is_too_long(body):
        return None
    return Lifted(
        body,
        inner.names,
        origins(inner, outer),
        inner.parameters,
        Composition(outer, inner),
    )


def is_too_long(expr: Expr) -> bool:
    """Whether an expression has more nodes than one that rules make should have."""
    return sum(1 for _ in islice(walk(expr), LARGEST)) == LARGEST


def first(needed: tuple[Expr, ...], then: Expr) -> Expr:
    """`then`, after the needs, if there are any."""
    return First(needed, then) if needed else then


def needs(expr: Expr, shapes: Shapes) -> tuple[Expr, ...]:
    """The parts of an expression that may raise: to be evaluated where it no longer is."""
    if total(expr, shapes):
        return ()
    if isinstance(expr, Display) and expr.kind == "tuple":
        return tuple(need for item in expr.items for need in needs(item, shapes))
    if isinstance(expr, Call) and makes_record(expr):
        given = (*expr.arguments, *(value for _, value in expr.keywords))
        return tuple(need for item in given for need in needs(item, shapes))
    return (expr,)


def over(body: Expr, row: tuple[Expr, ...]) -> Expr:
    """An expression over other bindings; items of tuples that are written out are these."""
    return transform(substitute(body, row), projected)


def one_row(expr: Expr, start: int, count: int) -> Expr:
    """What reads the last binding of a join, as an expression over the right input's bindings.

    The binding is parameter `start`; the right input has `count` bindings, which are a tuple there.
    """
    whole = Parameter(0) if count == 1 else tuple_of(*(Parameter(i) for i in range(count)))
    arguments = (*(Parameter(i) for i in range(start)), whole)
    return transform(substitute(expr, arguments), projected)


def without_none_tests(expr: Expr, shapes: Shapes) -> Expr:
    """An expression in which no record and no tuple, of which that is known, is asked for None."""

    def decided(part: Expr) -> Expr:
        match part:
            case Operation("is" | "is not" as operator, (of, Constant(None))) if shape_of(
                of, shapes
            ) not in (None, type(None)) and total(of, shapes):
                return FALSE if operator == "is" else TRUE
            case _:
                return evaluated(part)

    return transform(expr, decided)


def projected(expr: Expr) -> Expr:
    """A field or item of a record or tuple that is written out, as the expression for it."""
    match expr:
        case Item(Display("tuple", items), Constant(int() as position)) if (
            -len(items) <= position < len(items)
        ):
            return items[position]
        case Attribute(of, name):
            return record_field(of, name) or expr
        case Item(Call() as of, Constant(int() as position)):
            return record_item(of, position) or expr
        case _:
            return evaluated(expr)


def surely(expr: Expr) -> Iterator[Expr]:
    """The expression and the parts of it that are evaluated whenever it is."""
    yield expr
    match expr:
        case And(inner) | Or(inner):
            yield from surely(inner[0])
        case Conditional(test):
            yield from surely(test)
        case Guard() | Attempt():
            return
        case _:
            for part in parts(expr):
                yield from surely(part)
