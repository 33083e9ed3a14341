"""A correlated query as an uncorrelated source, and conditions on its rows.

    select o.total                                     table orders
      where o.customer == outer[0] and o.paid    ->      conditions o.customer == outer[0], o.paid
        table orders                                     row (o.total,)

`scalar` splits a query into an aggregate of all rows, and a computation with its results.

    select row / row1 if row1 else None            aggregate Sum(o.total), Count()
      aggregate Sum(o.total), Count()       and    lambda row, row1: row / row1 if row1 else None
        ...
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import replace
from typing import Any, cast

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    FALSE,
    NONE,
    TRUE,
    Conditional,
    Constant,
    Expr,
    First,
    Lifted,
    Operation,
    Outer,
    Parameter,
    all_parameters,
    conjunction,
    conjuncts,
    constant,
    origins,
    row_names,
    transform,
)
from optimizer.expressions.evaluated import evaluated
from optimizer.expressions.knowledge import Foldable, is_value, total
from optimizer.expressions.text import is_too_long, needs, over, surely
from optimizer.plans.join_lists import outputs
from optimizer.plans.properties import bindings, shapes
from optimizer.record import record
from optimizer.subqueries.flattened import Read, pairs
from optimizer.subqueries.keyed import items, outers, read, read_by, with_values
from optimizer.traverse import called, with_called


@record
class Peeled:
    """The rows of a query: the rows of `source`, which reads no arguments, that pass the
    conditions.

    Conditions are evaluated in order. `row` has the query's bindings, as expressions over the
    source's bindings.
    """

    source: plan.Node
    row: tuple[Expr, ...]
    conditions: tuple[Expr, ...]
    origins: tuple[Opaque, ...]


def peeled(node: plan.Node) -> Peeled | None:
    """Return a query as a source and conditions; None if it has another form."""
    if not outers(node):
        return Peeled(node, all_parameters(bindings(node)), (), ())
    match node:
        case plan.Where(source, p):
            below = peeled(source)
            return None if below is None else _where(below, read(p))
        case plan.Select(source, f):
            below = peeled(source)
            if below is None:
                return None
            return _select(below, read(f, shapes(source)), below.row, source)
        case plan.Extend(source):
            below = peeled(source)
            return None if below is None else _extend(below, node)
        case plan.Product() | plan.Join():
            return _pairs(node)
        case plan.OrderBy(source, _, None, 0, shown):
            below = peeled(source)
            return None if below is None else replace(below, row=below.row[:shown])
        case _:
            return None


def _pairs(node: plan.Product | plan.Join) -> Peeled | None:
    """Return pairs of the rows of two sources, with the conditions of both, if these cannot raise.

    Conditions are tested on pairs, and the match on rows for which they are false.
    """
    left, right = peeled(node.left), peeled(node.right)
    node = cast("plan.Product | plan.Join", with_called(node, read))
    if left is None or right is None or not _are_quiet(node, left, right):
        return None
    made = pairs(node, Read(left.source, left.row), Read(right.source, right.row))
    if made is None:
        return None
    other = items(Parameter(bindings(left.source)), bindings(right.source))
    conditions = (*left.conditions, *[over(test, other) for test in right.conditions])
    return Peeled(made.node, made.row, conditions, origins(*left.origins, *right.origins))


def _are_quiet(node: plan.Product | plan.Join, *sides: Peeled) -> bool:
    """Return True if no condition raises, nor the match of the pairs, which reads no arguments."""
    tests = all(total(test, shapes(side.source)) for side in sides for test in side.conditions)
    found = called(node, [shapes(source) for source in node.inputs()])
    match = all(
        isinstance(f, Lifted) and not read_by(f.body) and total(f.body, of) for f, of in found
    )
    return tests and match


def _where(below: Peeled, p: Lifted) -> Peeled | None:
    test = over(p.body, below.row)
    if is_too_long(test):
        return None
    return replace(
        below,
        conditions=(*below.conditions, *conjuncts(test)),
        origins=origins(*below.origins, p),
    )


def _extend(below: Peeled, node: plan.Extend) -> Peeled | None:
    found: Peeled | None = below
    row = [below.row[place] for place in node.keep]
    for column in node.columns:
        found = found and _select(found, read(column, shapes(node.input)), below.row, node.input)
        row.append(found.row[0] if found is not None else NONE)
    return None if found is None else replace(found, row=tuple(row))


def _select(below: Peeled, f: Lifted, row: tuple[Expr, ...], source: plan.Node) -> Peeled | None:
    """Return the rows that a callable makes of some bindings."""
    if not is_value(f.body, shapes(source)):
        return None
    made = over(f.body, row)
    if is_too_long(made):
        return None
    needed = _unasked(needs(made, shapes(below.source)), below.conditions)
    asked = (First(needed, TRUE),) if needed else ()
    return replace(
        below,
        row=(made,),
        conditions=(*below.conditions, *asked),
        origins=origins(*below.origins, f),
    )


def _unasked(needed: tuple[Expr, ...], conditions: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return the expressions that earlier conditions have not evaluated."""
    known = {part for test in conditions for part in surely(test)}
    return tuple([each for each in needed if not known.issuperset(conjuncts(each))])


def of_values(query: Peeled, values: tuple[Expr, ...]) -> Peeled:
    """Replace the arguments of a query by expressions."""
    return replace(
        query,
        row=tuple([with_values(part, values) for part in query.row]),
        conditions=tuple([with_values(test, values) for test in query.conditions]),
    )


def filtered(query: Peeled) -> plan.Node:
    """Return the rows of the source that pass the conditions; these read no arguments."""
    if not query.conditions:
        return query.source
    names = row_names(bindings(query.source))
    test = Lifted(conjunction(query.conditions), names, query.origins, len(names))
    return plan.Where(query.source, test)


def equation(test: Expr) -> tuple[int, Expr] | None:
    """Return the argument in an equation, and the expression over the rows that it equals."""
    if not isinstance(test, Operation) or test.operator != "==":
        return None
    for mine, theirs in (test.operands, test.operands[::-1]):
        if isinstance(mine, Outer) and not read_by(theirs):
            return mine.index, theirs
    return None


@record
class ScalarOfAggregate:
    """One value, which is computed of the results of an aggregate."""

    aggregate: plan.Aggregate
    value: Expr


def scalar(query: plan.Node) -> ScalarOfAggregate | None:
    """Return a query as a computation with an aggregate of all rows; None for other queries."""
    above: list[plan.Select | plan.Extend] = []
    node = query
    while isinstance(node, plan.Select | plan.Extend):
        above.append(node)
        node = node.input
    if not isinstance(node, plan.Aggregate) or node.key is not None:
        return None
    row: tuple[Expr, ...] = all_parameters(bindings(node))
    for each in reversed(above):
        made, of = outputs(each), shapes(each.input)
        if not all(is_value(expr, of) for expr in made):
            return None
        row = tuple([over(expr, row) for expr in made])
    return None if len(row) > 1 or is_too_long(row[0]) else ScalarOfAggregate(node, row[0])


@record
class Result:
    """The result of an aggregate for a row: `value`, if its rows are `there`, and else `of_none`.

    `is_none` is True if the value may be None.
    """

    value: Expr
    there: Expr = TRUE
    of_none: Expr = NONE
    is_none: bool = True


def shown(found: ScalarOfAggregate, results: Sequence[Result], arguments: tuple[Expr, ...]) -> Expr:
    """Return the value computed of the results of one aggregate.

    Where it has no rows, the value is computed of the results for no rows, at once if they are
    constant.
    """
    some, none = [r.value for r in results], [r.of_none for r in results]
    there = results[0].there if results else TRUE
    if there == TRUE:
        return _of(found, some, arguments)
    if read_by(found.value):
        each = [Conditional(r.there, r.value, r.of_none) for r in results]
        return _of(found, each, arguments)
    is_there = frozenset(r.value for r in results if not r.is_none)
    of_some = _decided(_of(found, some, arguments), is_there)
    return Conditional(there, of_some, _decided(_of(found, none, arguments)))


def _of(found: ScalarOfAggregate, results: Sequence[Expr], arguments: tuple[Expr, ...]) -> Expr:
    return with_values(over(found.value, tuple(results)), arguments)


def _decided(expr: Expr, present: frozenset[Expr] = frozenset()) -> Expr:
    """Replace tests for None of expressions that are not None."""

    def decided(part: Expr) -> Expr:
        match part:
            case Operation("is" | "is not" as operator, (of, Constant(None))) if of in present:
                return TRUE if operator == "is not" else FALSE
            case _:
                return evaluated(part)

    return transform(expr, decided)


def constant_of_no_rows(value: Any) -> Constant:
    """Return an aggregate's result for no rows as an expression; empty collections are equal."""
    if isinstance(value, Foldable) and isinstance(value, Sized) and not len(value):
        return Constant(value, ("empty", type(value)))
    return constant(value)
