"""A node whose callables have sub-queries in them becomes a plan that has none.

    where any(o.customer == c.id for o in orders)         semi_join on o.customer == c.id
    where not any(...)                                    anti_join
    where sum(o.total for ...) > 3, select, ...           a left join with an aggregate

Sound:  for all weights. Python's order is kept where it can be noticed: what a row is asked for
        before a sub-query is asked before, and what may raise is asked of no other rows.
Needs:  the inputs, and the queries in sub-queries, have none in them any more.
Cost:   of the node, that of one operator for each sub-query more.
Source: [neumann2015], [fegaras2000].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.errors import PlanError
from optimizer.expr import (
    Expr,
    Function,
    Item,
    Lifted,
    Operation,
    Parameter,
    Quantified,
    Subquery,
    conjunction,
    conjuncts,
    has_subquery,
    transform,
    tuple_of,
)
from optimizer.plans import explain
from optimizer.plans.asked_form import InRows, with_form
from optimizer.plans.properties import bindings
from optimizer.subqueries.answers import Answers
from optimizer.subqueries.asked import as_condition
from optimizer.subqueries.columns import extended, first_of, row_of
from optimizer.subqueries.domain import How
from optimizer.subqueries.existing import existing
from optimizer.subqueries.keyed import FIRST, ONE, of_group, one, read
from optimizer.subqueries.pairing import joined, pairs_of
from optimizer.traverse import functions, has_subqueries, with_called, with_functions


def freed(
    node: plan.Node,
    *,
    of_no_rows: Callable[[plan.Folded], Any],
    canonical: Callable[[Any], Any],
    in_order: bool = True,
) -> plan.Node:
    """The plan of a node without the sub-queries in its callables; itself if it has none.

    `of_no_rows` gives what an aggregate shows of no rows, `canonical` a value in which every NaN is
    the same. With `in_order=False`, what raises in a sub-query may also do so for values that no
    row has, as in languages that do not say when something is evaluated; that costs less.

    Raises
    ------
    PlanError: a sub-query stands where it cannot be asked, or cannot be asked of all rows together.
    """
    if not has_subqueries(node):
        return node
    if not isinstance(node, plan.Reduce):
        node = with_called(node, read)
    made = _freed(with_functions(node, _translated), How(of_no_rows, canonical, in_order))
    return with_form(made, InRows(node))


def _translated(f: Function) -> Function:
    """The callable with the sub-queries that comparisons with queries were translated to."""
    if not isinstance(f, Lifted):
        return f
    body = transform(f.body, lambda e: e.translated if isinstance(e, Quantified) else e)
    return f if body is f.body else replace(f, body=body)


def _freed(node: plan.Node, how: How) -> plan.Node:
    match node:
        case plan.Where(source, Lifted() as p):
            return _where(source, p, how)
        case plan.Select(source, Lifted() as f):
            answers = Answers(source, how, f.names, f.origins)
            (body,) = answers.read(f.body)
            return plan.Select(answers.rows, _lifted(answers, f, body))
        case plan.Extend(source):
            return _wider(node, source, how)
        case plan.SelectMany(source) | plan.Unnest(source) | plan.Aggregate(source):
            return _wider(node, source, how)
        case plan.Top(source):
            return first_of(_wider(node, source, how), bindings(source))
        case plan.OrderBy(source):
            ordered: Any = _wider(node, source, how)
            return replace(ordered, shown=bindings(node))  # type: ignore[no-any-return]
        case plan.Reduce(source, Lifted() as key):
            return _reduced(node, source, key, how)
        case plan.Join() | plan.OuterJoin() | plan.SemiJoin() | plan.AntiJoin():
            pairs = pairs_of(node)
            assert isinstance(pairs, plan.Where) and isinstance(pairs.predicate, Lifted)
            return joined(node, _where(pairs.input, pairs.predicate, how))
        case _:
            raise PlanError(
                f"a sub-query cannot be asked in {explain.headline(node)}\n"
                "  select() what it gives first, and use that"
            )


def _where(source: plan.Node, p: Lifted, how: How) -> plan.Node:
    answers = Answers(source, how, p.names, p.origins)
    width = bindings(source)
    waiting: list[Expr] = []

    def ask() -> None:
        if waiting:
            (test,) = answers.read(conjunction(tuple(waiting)))
            answers.rows = plan.Where(answers.rows, answers.lifted(test))
            waiting.clear()

    tests = conjuncts(as_condition(p.body))
    for test in tests if how.in_order else sorted(tests, key=has_subquery):
        found = _existence(test)
        if found is None:
            if has_subquery(test):
                ask()
            waiting.append(test)
            if has_subquery(test):
                ask()
            continue
        ask()
        query, is_there = found
        arguments = answers.bound(answers.read(*query.arguments), None)
        made = Subquery("exists", query.query, arguments)
        answers.rows = existing(answers.rows, made, is_there, how, p.names[:width], p.origins)
    ask()
    return first_of(answers.rows, width)


def _existence(test: Expr) -> tuple[Subquery, bool] | None:
    """A query that must have a row, or none."""
    match test:
        case Subquery("exists"):
            return test, True
        case Operation("not", (Subquery("exists") as query,)):
            return query, False
        case _:
            return None


def _wider(node: plan.Node, source: plan.Node, how: How) -> plan.Node:
    """A node over rows with more bindings, which its callables read."""
    count = bindings(source)
    every = [f for f in functions(node) if isinstance(f, Lifted)]
    names = next((f.names for f in every if f.origins), ())
    origins = tuple({id(o): o for f in every for o in f.origins}.values())
    answers = Answers(source, how, names, origins)
    bodies = dict(zip(every, answers.read(*(f.body for f in every)), strict=True))

    def changed(f: Function) -> Function:
        return _lifted(answers, f, bodies[f]) if isinstance(f, Lifted) else f

    made: Any = with_functions(node, changed)
    if isinstance(node, plan.Aggregate):
        made = replace(made, aggregates=tuple(_of_rows(a, answers, count) for a in made.aggregates))
    made = replace(made, input=answers.rows)
    if isinstance(node, plan.Unnest):
        return extended(made, (*range(count), bindings(answers.rows)), ())
    return made  # type: ignore[no-any-return]


def _of_rows(folded: plan.Folded, answers: Answers, count: int) -> plan.Folded:
    """An aggregate of rows reads those that it had."""
    if folded.value is not None or folded.name == "Count":
        return folded
    return replace(folded, value=answers.lifted(row_of(count)))


def _reduced(node: plan.Reduce, source: plan.Node, key: Lifted, how: How) -> plan.Node:
    """Groups whose key is a part of the rows."""
    answers = Answers(source, how, key.names, key.origins)
    (body,) = answers.read(key.body)
    made = _lifted(answers, key, tuple_of(body, row_of(bindings(source))))
    assert isinstance(node.function, Opaque)
    whole = plan.Select(answers.rows, made)
    reduced = plan.Reduce(whole, one(tuple_of(FIRST, FIRST)), of_group(node.function))
    return extended(reduced, (), (Item(Parameter(0), ONE), Parameter(1)))


def _lifted(answers: Answers, f: Lifted, body: Expr) -> Lifted:
    made = answers.lifted(body)
    return replace(made, origins=f.origins, names=(*f.names, *made.names[len(f.names) :]))
