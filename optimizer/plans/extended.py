"""What the rows of an `Extend` are made of, and how one is made of that.

    Extend(R, (1,), (f,))      (r1, f(r0, r1))      as one value: what a select would give

A select is the same with one binding, so that what is done here is done to both.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    Apply,
    Expr,
    Function,
    Lifted,
    Parameter,
    all_parameters,
    one_value,
    origins,
    reads,
    row_names,
)
from optimizer.expressions.compose import compose, first, is_too_long, needs, over, surely
from optimizer.expressions.knowledge import is_value
from optimizer.plans.properties import bindings, shapes


def outputs(node: plan.Extend | plan.Select) -> tuple[Expr, ...]:
    """Each binding of the rows, in terms of those of the input."""
    count = bindings(node.input)
    if isinstance(node, plan.Select):
        return (_body(node.function, count),)
    return (*map(Parameter, node.keep), *[_body(column, count) for column in node.columns])


def row_of(node: plan.Extend) -> Lifted:
    """What makes a row, as one value, of the bindings of the input."""
    return _read(node, one_value(outputs(node)))


def composed_over(outer: Lifted, below: plan.Extend | plan.Select) -> Lifted | None:
    """A callable of the rows of a node as one of the rows below, evaluating all that the node
    does; None if something has a cost, or is too long."""
    if isinstance(below, plan.Select):
        f = below.function
        return compose(outer, f, shapes(below.input)) if isinstance(f, Lifted) else None
    made, of = outputs(below), shapes(below.input)
    if not all(is_value(expr, of) for expr in made):
        return None
    body = _after(made, below, [over(outer.body, made)])[0]
    return None if is_too_long(body) else _read(below, body, (outer,))


def fused(node: plan.Extend, below: plan.Extend | plan.Select) -> plan.Extend | None:
    """An extend of the rows of another, or of a select, as one of the rows below; None if something
    would be evaluated twice, or is too long."""
    made, of = outputs(below), shapes(below.input)
    if not all(isinstance(column, Lifted) for column in node.columns):
        return None
    costly = [place for place, expr in enumerate(made) if not is_value(expr, of)]
    if not _stay(node, costly):
        return None
    every = _after(made, below, [over(expr, made) for expr in outputs(node)])
    if any(map(is_too_long, every)):
        return None
    of_each: list[tuple[Function, ...]] = [()] * len(node.keep)
    of_each += [(column,) for column in node.columns]
    read = [_read(below, *each) for each in zip(every, of_each, strict=True)]
    return extend_of(below.input, read, node.names)


def extend_of(
    source: plan.Node, made: Sequence[Lifted], names: tuple[str | None, ...] = ()
) -> plan.Extend:
    """The node that makes some bindings of those of the source."""
    bodies = takewhile(_is_binding, [f.body for f in made])
    keep = tuple(expr.index for expr in bodies if isinstance(expr, Parameter))
    return plan.Extend(source, keep, tuple(made[len(keep) :]), names)


def _is_binding(expr: Expr) -> bool:
    return isinstance(expr, Parameter)


def _stay(node: plan.Extend, places: Sequence[int]) -> bool:
    """Whether bindings of the rows below stay, in their order, and no column reads them."""
    kept = [place for place in node.keep if place in places]
    read = [reads(column.body) for column in node.columns if isinstance(column, Lifted)]
    return kept == list(places) and not any(map(set(places).intersection, read))


def _after(made: Sequence[Expr], below: plan.Extend | plan.Select, every: list[Expr]) -> list[Expr]:
    """Expressions that are all evaluated, after what else the row below may raise."""
    of = shapes(below.input)
    asked = {part for expr in every for part in surely(expr)}
    needed = [need for expr in made for need in needs(expr, of) if need not in asked]
    place = next((n for n, expr in enumerate(every) if not _is_binding(expr)), 0)
    every[place] = first(tuple(dict.fromkeys(needed)), every[place])
    return every


def _read(node: plan.Extend | plan.Select, body: Expr, more: Sequence[Function] = ()) -> Lifted:
    """A callable of the bindings below a node."""
    count = bindings(node.input)
    own = (node.function,) if isinstance(node, plan.Select) else node.columns
    read = (f.names for f in own if isinstance(f, Lifted))
    names = next((names for names in read if len(names) == count), row_names(count))
    return Lifted(body, names, origins(*own, *more), count)


def _body(column: Function, count: int) -> Expr:
    if isinstance(column, Opaque):
        return Apply(column, all_parameters(count))
    return column.body
