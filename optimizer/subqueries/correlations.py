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
from optimizer.expressions.knowledge import Foldable, is_value, total
from optimizer.expressions.simplification import fold_node
from optimizer.expressions.text import is_too_long, needs, over, surely
from optimizer.plans.join_lists import outputs
from optimizer.plans.properties import bindings, shapes
from optimizer.record import record
from optimizer.subqueries.keyed_rows import as_expression, items, outers, read_by, replace_arguments
from optimizer.subqueries.unnested_bags import RowSubstitution, pair_rows
from optimizer.traverse import called, with_called


@record
class DecorrelatedQuery:
    """The rows of a query: the rows of `source`, which reads no arguments, that pass the
    conditions.

    Conditions are evaluated in order. `row` has the query's bindings, as expressions over the
    source's bindings.
    """

    source: plan.Node
    row: tuple[Expr, ...]
    conditions: tuple[Expr, ...]
    origins: tuple[Opaque, ...]


def decorrelate(node: plan.Node) -> DecorrelatedQuery | None:
    """Return a query as a source and conditions; None if it has another form."""
    if not outers(node):
        return DecorrelatedQuery(node, all_parameters(bindings(node)), (), ())
    match node:
        case plan.Where(source, p):
            below = decorrelate(source)
            return None if below is None else _add_conditions(below, as_expression(p))
        case plan.Select(source, f):
            below = decorrelate(source)
            if below is None:
                return None
            return _select(below, as_expression(f, shapes(source)), below.row, source)
        case plan.Extend(source):
            below = decorrelate(source)
            return None if below is None else _extend(below, node)
        case plan.Product() | plan.Join():
            return _decorrelate_pairs(node)
        case plan.OrderBy(source, _, None, 0, shown):
            below = decorrelate(source)
            return None if below is None else replace(below, row=below.row[:shown])
        case _:
            return None


def _decorrelate_pairs(node: plan.Product | plan.Join) -> DecorrelatedQuery | None:
    """Return pairs of the rows of two sources, with the conditions of both; None if one may raise.

    Conditions are tested on pairs, and the match on rows that fail them.
    """
    left, right = decorrelate(node.left), decorrelate(node.right)
    node = cast("plan.Product | plan.Join", with_called(node, as_expression))
    if left is None or right is None or not _are_quiet(node, left, right):
        return None
    made = pair_rows(
        node, RowSubstitution(left.source, left.row), RowSubstitution(right.source, right.row)
    )
    if made is None:
        return None
    other = items(Parameter(bindings(left.source)), bindings(right.source))
    conditions = (*left.conditions, *[over(test, other) for test in right.conditions])
    return DecorrelatedQuery(
        made.node, made.row, conditions, origins(*left.origins, *right.origins)
    )


def _are_quiet(node: plan.Product | plan.Join, *sides: DecorrelatedQuery) -> bool:
    """Return True if no condition raises, nor the match of the pairs, which reads no arguments."""
    tests = all(total(test, shapes(side.source)) for side in sides for test in side.conditions)
    found = called(node, [shapes(source) for source in node.inputs()])
    match = all(
        isinstance(f, Lifted) and not read_by(f.body) and total(f.body, of) for f, of in found
    )
    return tests and match


def _add_conditions(below: DecorrelatedQuery, p: Lifted) -> DecorrelatedQuery | None:
    """Return the query with the tests of a `where` added; None if they become too long."""
    test = over(p.body, below.row)
    if is_too_long(test):
        return None
    before = below.conditions
    asked = test.operands[0] if isinstance(test, Operation) and test.operator == "not" else test
    if before and before[-1] in (First((test,), TRUE), First((asked,), TRUE)):
        before = before[:-1]  # the test evaluates the same
    return replace(
        below,
        conditions=(*before, *conjuncts(test)),
        origins=origins(*below.origins, p),
    )


def _extend(below: DecorrelatedQuery, node: plan.Extend) -> DecorrelatedQuery | None:
    """Return the query with the bindings of an extend; None if a column cannot be expressed."""
    found: DecorrelatedQuery | None = below
    row = [below.row[place] for place in node.keep]
    for column in node.columns:
        found = found and _select(
            found, as_expression(column, shapes(node.input)), below.row, node.input
        )
        row.append(found.row[0] if found is not None else NONE)
    return None if found is None else replace(found, row=tuple(row))


def _select(
    below: DecorrelatedQuery, f: Lifted, row: tuple[Expr, ...], source: plan.Node
) -> DecorrelatedQuery | None:
    """Return the query with the result of a callable as its row; None if the result is no value, or
    too long."""
    if not is_value(f.body, shapes(source)):
        return None
    made = over(f.body, row)
    if is_too_long(made):
        return None
    needed = _without_evaluated(needs(made, shapes(below.source)), below.conditions)
    asked = (First(needed, TRUE),) if needed else ()
    return replace(
        below,
        row=(made,),
        conditions=(*below.conditions, *asked),
        origins=origins(*below.origins, f),
    )


def _without_evaluated(needed: tuple[Expr, ...], conditions: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return the expressions that earlier conditions have not evaluated."""
    known = {part for test in conditions for part in surely(test)}
    return tuple([each for each in needed if not known.issuperset(conjuncts(each))])


def of_values(query: DecorrelatedQuery, values: tuple[Expr, ...]) -> DecorrelatedQuery:
    """Replace the arguments of a query by expressions."""
    return replace(
        query,
        row=tuple([replace_arguments(part, values) for part in query.row]),
        conditions=tuple([replace_arguments(test, values) for test in query.conditions]),
    )


def filter_source(query: DecorrelatedQuery) -> plan.Node:
    """Return the rows of the source that pass the conditions, which read no arguments."""
    if not query.conditions:
        return query.source
    names = row_names(bindings(query.source))
    test = Lifted(conjunction(query.conditions), names, query.origins, len(names))
    return plan.Where(query.source, test)


def equation(test: Expr) -> tuple[int, Expr] | None:
    """Return the argument in an equation, and the expression over rows that it equals; None for
    other tests."""
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


def value_of_results(
    found: ScalarOfAggregate, results: Sequence[Result], arguments: tuple[Expr, ...]
) -> Expr:
    """Return the value computed of the results of one aggregate.

    Where it has no rows, the value is computed of the results for no rows; of constant results it
    is computed in advance.
    """
    some, none = [r.value for r in results], [r.of_none for r in results]
    there = results[0].there if results else TRUE
    if there == TRUE:
        return _value_from_results(found, some, arguments)
    if read_by(found.value):
        each = [Conditional(r.there, r.value, r.of_none) for r in results]
        return _value_from_results(found, each, arguments)
    is_there = frozenset(r.value for r in results if not r.is_none)
    of_some = _replace_none_tests(_value_from_results(found, some, arguments), is_there)
    return Conditional(
        there, of_some, _replace_none_tests(_value_from_results(found, none, arguments))
    )


def _value_from_results(
    found: ScalarOfAggregate, results: Sequence[Expr], arguments: tuple[Expr, ...]
) -> Expr:
    """Return the value of a scalar, given the results of its aggregates and its arguments."""
    return replace_arguments(over(found.value, tuple(results)), arguments)


def _replace_none_tests(expr: Expr, present: frozenset[Expr] = frozenset()) -> Expr:
    """Replace tests for None of expressions that are not None."""

    def decide_test(part: Expr) -> Expr:
        match part:
            case Operation("is" | "is not" as operator, (of, Constant(None))) if of in present:
                return TRUE if operator == "is not" else FALSE
            case _:
                return fold_node(part)

    return transform(expr, decide_test)


def constant_of_no_rows(value: Any) -> Constant:
    """Return an aggregate's result for no rows as an expression; empty collections are equal."""
    if isinstance(value, Foldable) and isinstance(value, Sized) and not len(value):
        return Constant(value, ("empty", type(value)))
    return constant(value)
