"""Remove the sub-queries in the callables of a node.

    where any(o.customer == c.id for o in orders)         semi_join on o.customer == c.id
    where not any(...)                                    anti_join
    where sum(o.total for ...) > 3, select, ...           a left join with an aggregate

Sound:  for all weights. Python's order of evaluation is kept where it can be observed: tests before
        a sub-query stay before it, and no expression that may raise is evaluated for more rows.
Needs:  the inputs, and the queries in sub-queries, have no sub-queries left.
Cost:   one operator more for each sub-query.
Source: [neumann2015], [fegaras2000].

`lateral` joins rows with the rows of a query for each of them.

    customers c, and of each
      select o.total                                 join on o.customer == c.id
        where o.customer == outer[0].id       ->       table customers
          table orders                                 table orders

The conditions of a query that only filters become the conditions of a join. Other queries are
evaluated for all values that the rows have (`answers.py`).

Sound: for all weights; they multiply.
Needs: the callables of the query have no sub-queries left.
Source: [neumann2015].

`pairs_of` and `rows_from_pairs` rewrite joins whose conditions have sub-queries.

    join on p(l, r) and any(...)          where any(...)                 (rewritten as above)
                                            join on p(l, r)
    semi_join, anti_join on ...           semi_join, anti_join, by the row, with the pairs
    left_join on ...                      the pairs, and the rows without a pair

`existing` returns the rows whose query has a row, or has none: a semi or anti join.

    exists (where o.customer == outer[0].id and o.paid)      semi_join on o.customer == c.id
      table customers                                  ->                 and o.paid
                                                               table customers
                                                               table orders

The conditions of a query that only filters become conditions of the join, which finds keys in them,
and tests only pairs with equal keys. Other queries are evaluated for all values that the rows have,
to find the values with a row (`answers.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.errors import PlanError
from optimizer.expr import (
    NONE,
    Conditional,
    Expr,
    Function,
    Item,
    Lifted,
    Operation,
    Parameter,
    Quantified,
    Subquery,
    all_parameters,
    conjunction,
    conjuncts,
    constant,
    has_subquery,
    items_of,
    one_value,
    row_names,
    transform,
    tuple_of,
)
from optimizer.expressions.text import over, same
from optimizer.plans import explain
from optimizer.plans.properties import bindings
from optimizer.plans.strata import BesideRows, InRows, with_form
from optimizer.subqueries.answers import (
    Answers,
    How,
    as_condition,
    calm_of,
    match_back,
    translation,
)
from optimizer.subqueries.correlations import DecorrelatedQuery, decorrelate
from optimizer.subqueries.error_freedom import kinds, known_of
from optimizer.subqueries.keyed_rows import (
    FIRST,
    ONE,
    KeyedRows,
    as_expression,
    asked_of_pairs,
    extend_bindings,
    first_of,
    items,
    names_for_bindings,
    narrow_query,
    of_group,
    one,
    replace_arguments,
    row_as_value,
    with_match,
)
from optimizer.subqueries.raising import Gate, is_quiet_beside, simplify_for_existence
from optimizer.traverse import functions, has_subqueries, with_called, with_functions


def remove_subqueries(
    node: plan.Node,
    *,
    of_no_rows: Callable[[plan.Folded], Any],
    canonical: Callable[[Any], Any],
    in_order: bool = True,
) -> plan.Node:
    """Return the plan of a node without the sub-queries in its callables; the node if it has none.

    `of_no_rows` returns the result of an aggregate over no rows, `canonical` a value whose NaN are
    all the same object. With `in_order=False`, a sub-query may also raise for values that no
    row has, as in languages without a defined order of evaluation; that costs less.

    Raises
    ------
    PlanError: a sub-query cannot be evaluated in this node, or not for all rows together.
    """
    if not has_subqueries(node):
        return node
    if not isinstance(node, plan.Reduce):
        node = with_called(node, as_expression)
    made = _remove_from_node(
        with_functions(node, _replace_quantified), How(of_no_rows, canonical, in_order)
    )
    return with_form(made, InRows(node))


def _replace_quantified(f: Function) -> Function:
    """Replace comparisons with queries by their translations into sub-queries.

    A callable that was not lifted, or has no such comparison, is unchanged.
    """
    if not isinstance(f, Lifted):
        return f
    body = transform(f.body, lambda e: e.translated if isinstance(e, Quantified) else e)
    return f if body is f.body else replace(f, body=body)


def _remove_from_node(node: plan.Node, how: How) -> plan.Node:
    """Return the node with its sub-queries as joins; raise `PlanError` where none can be
    evaluated."""
    match node:
        case plan.Where(source, Lifted() as p):
            return _filter_with_subqueries(source, p, how)
        case plan.Select(source, Lifted() as f):
            answers = Answers(source, how, f.names, f.origins)
            (body,) = answers.read(f.body)
            return plan.Select(answers.rows, _lift_answers(answers, f, body))
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
            return _reduce_with_subqueries(node, source, key, how)
        case plan.Join() | plan.OuterJoin() | plan.SemiJoin() | plan.AntiJoin():
            pairs = pairs_of(node)
            assert isinstance(pairs, plan.Where) and isinstance(pairs.predicate, Lifted)
            return rows_from_pairs(node, _filter_with_subqueries(pairs.input, pairs.predicate, how))
        case _:
            raise _not_asked(node)


def _not_asked(node: plan.Node) -> PlanError:
    return PlanError(
        f"a sub-query cannot be asked in {explain.headline(node)}\n"
        "  select() what it gives first, and use that"
    )


def _filter_with_subqueries(source: plan.Node, p: Lifted, how: How) -> plan.Node:
    """Return the rows that pass a condition, its tests in order; existence tests become
    semi-joins."""
    answers = Answers(source, how, p.names, p.origins)
    width = bindings(source)
    waiting: list[Expr] = []

    def ask() -> None:
        if waiting:
            (test,) = answers.read(conjunction(tuple(waiting)))
            answers.rows = plan.Where(answers.rows, answers.lift_body(test))
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
    """Return the query of an existence test, and True if it must have a row; None for other
    tests."""
    match test:
        case Subquery("exists"):
            return test, True
        case Operation("not", (Subquery("exists") as query,)):
            return query, False
        case _:
            return None


def _wider(node: plan.Node, source: plan.Node, how: How) -> plan.Node:
    """Return a node over rows with more bindings, which its callables read."""
    count = bindings(source)
    every = [f for f in functions(node) if isinstance(f, Lifted)]
    names = next((f.names for f in every if f.origins), ())
    origins = tuple({id(o): o for f in every for o in f.origins}.values())
    answers = Answers(source, how, names, origins)
    bodies = dict(zip(every, answers.read(*(f.body for f in every)), strict=True))

    def lift_callable(f: Function) -> Function:
        return _lift_answers(answers, f, bodies[f]) if isinstance(f, Lifted) else f

    made: Any = with_functions(node, lift_callable)
    if isinstance(node, plan.Aggregate):
        made = replace(
            made, aggregates=tuple(_keep_row_value(a, answers, count) for a in made.aggregates)
        )
    made = replace(made, input=answers.rows)
    if isinstance(node, plan.Unnest):
        return extend_bindings(made, (*range(count), bindings(answers.rows)), ())
    return made  # type: ignore[no-any-return]


def _keep_row_value(folded: plan.Folded, answers: Answers, count: int) -> plan.Folded:
    """Restrict an aggregate of whole rows to the first `count` bindings.

    Unchanged is a `Count`, or an aggregate of a value.
    """
    if folded.value is not None or folded.name == "Count":
        return folded
    return replace(folded, value=answers.lift_body(row_as_value(count)))


def _reduce_with_subqueries(
    node: plan.Reduce, source: plan.Node, key: Lifted, how: How
) -> plan.Node:
    """Return groups whose key is a part of the rows."""
    answers = Answers(source, how, key.names, key.origins)
    (body,) = answers.read(key.body)
    made = _lift_answers(answers, key, tuple_of(body, row_as_value(bindings(source))))
    f = node.function
    if isinstance(f, Lifted):
        if has_subquery(f.body):
            raise _not_asked(node)
        f = f.origins[0]
    whole = plan.Select(answers.rows, made)
    reduced = plan.Reduce(whole, one(tuple_of(FIRST, FIRST)), of_group(f))
    return extend_bindings(reduced, (), (Item(Parameter(0), ONE), Parameter(1)))


def _lift_answers(answers: Answers, f: Lifted, body: Expr) -> Lifted:
    """Return an expression over the answers as a callable, with names and origins of `f`."""
    made = answers.lift_body(body)
    return replace(made, origins=f.origins, names=(*f.names, *made.names[len(f.names) :]))


Kind = Literal["inner", "left"]


def lateral(
    left: plan.Node,
    query: plan.Node,
    arguments: tuple[Expr, ...],
    kind: Kind = "inner",
    *,
    of_no_rows: Callable[[plan.Folded], Any],
    canonical: Callable[[Any], Any],
    in_order: bool = True,
    names: tuple[str, ...] = (),
    origins: tuple[Opaque, ...] = (),
) -> plan.Node:
    """Join the rows of the left with the rows of a query that reads `Outer(i)`, `arguments[i]`.

    With `"left"`, a row whose query is empty has None in their place. `names` and `origins` belong
    to the left's bindings, for messages; the others are as for `remove_subqueries`.

    Raises
    ------
    PlanError: the query cannot be evaluated for all rows together.
    """
    how = How(of_no_rows, canonical, in_order)
    answers = Answers(left, how, names, origins)
    form = BesideRows(left, query, arguments, kind == "left")
    arguments = answers.bound(answers.read(*arguments), None)
    found = decorrelate(query)
    if found is not None and (kind == "inner" or _has_rows_of_source(found)):
        node, row = _join_source(answers, found, arguments, how, kind)
    else:
        node, row = _join_query_of_values(answers, query, arguments, how, kind)
    width = bindings(left)
    if row != (Parameter(width),):  # the query's only binding has another place
        node = extend_bindings(node, tuple(range(width)), row, names, origins)
    return with_form(node, form)


def _has_rows_of_source(query: DecorrelatedQuery) -> bool:
    """Return True if a query has the one-binding rows of its source; a missing row is None."""
    return bindings(query.source) == 1 and query.row == all_parameters(1)


def _join_source(
    answers: Answers, query: DecorrelatedQuery, arguments: tuple[Expr, ...], how: How, kind: Kind
) -> tuple[plan.Node, tuple[Expr, ...]]:
    """Join rows with the rows of the source; return the query's row in it."""
    rows = answers.rows
    gate = Gate()
    source = gate.open(gate.before(query.source), rows) if how.in_order else query.source
    match = plan.Match(on=on_pairs(rows, query, arguments, answers.names, answers.origins))
    other = items(Parameter(bindings(rows)), bindings(source))
    row = tuple([replace_arguments(over(part, other), arguments) for part in query.row])
    if kind == "left":
        return plan.OuterJoin(rows, source, match, "left"), row
    if match == plan.Match():
        return plan.Product(rows, source), row
    return plan.Join(rows, source, match), row


def _join_query_of_values(
    answers: Answers, query: plan.Node, arguments: tuple[Expr, ...], how: How, kind: Kind
) -> tuple[plan.Node, tuple[Expr, ...]]:
    """Join rows with the rows of the query for all their values; return its row in that."""
    rows, width = answers.rows, bindings(query)
    gate = Gate()
    node, values = narrow_query(query, arguments, calm_of(rows))
    known = known_of(rows)
    given = tuple([kinds(value, known) for value in values])
    by_equation = not how.in_order or is_quiet_beside(node, given)
    node = gate.before(node) if how.in_order else node
    asked = translation(rows, values, how, answers.names, by_equation=by_equation)
    x = asked.of(node) if values else KeyedRows(node, tuple_of(), all_parameters(width))
    packed = plan.Select(x.node, asked.plain(tuple_of(x.key, *x.row), x))
    made = gate.open(packed, rows)
    match = match_back(rows, values, replace(x, node=made, key=FIRST, row=()), how, answers.names)
    place = Parameter(bindings(rows))
    row: tuple[Expr, ...] = tuple([Item(place, constant(1 + i)) for i in range(width)])
    if kind == "left":
        there = Operation("is not", (place, NONE))
        row = tuple([Conditional(there, part, NONE) for part in row])
        return plan.OuterJoin(rows, made, match, "left"), row
    if match == plan.Match():
        return plan.Product(rows, made), row
    return plan.Join(rows, made, match), row


def pairs_of(node: Any) -> plan.Node:
    """Return the pairs of a join as a `where`, over pairs with the conditions without
    sub-queries."""
    asked = asked_of_pairs(node, has_subquery)
    on = asked.on
    assert on is not None
    tests = conjuncts(as_condition(as_expression(on).body))
    first = next(place for place, test in enumerate(tests) if has_subquery(test))
    before = _with_body(on, conjunction(tests[:first])) if first else None
    match = plan.Match(asked.left_key, asked.right_key, before)
    pairs = with_match(plan.Product(node.left, node.right), match)
    return plan.Where(pairs, _with_body(on, conjunction(tests[first:])))


def rows_from_pairs(node: Any, pairs: plan.Node) -> plan.Node:
    """Return the rows of a join of any kind, given its pairs."""
    match node:
        case plan.SemiJoin():
            return plan.SemiJoin(node.left, pairs, _match_left_row(node.left))
        case plan.AntiJoin():
            return plan.AntiJoin(node.left, pairs, _match_left_row(node.left))
        case plan.OuterJoin(left, right, _, kind):
            made = pairs
            if kind != "right":
                made = plan.UnionAll(made, _alone_on_the_left(left, pairs))
            if kind != "left":
                made = plan.UnionAll(made, _alone_on_the_right(left, right, pairs))
            return made
        case _:
            return pairs


def _with_body(on: Any, body: Expr) -> Lifted:
    return as_expression(on).with_body(body)


def _match_left_row(left: plan.Node) -> plan.Match:
    """Match the rows of the left with pairs by the left row."""
    count = bindings(left)
    return _same_row(count, items_of(Parameter(0), count))


def _same_row(count: int, items: tuple[Expr, ...]) -> plan.Match:
    """Match the `count` bindings of a row with the items of a pair; a NaN equals itself."""
    mine, theirs = same(row_as_value(count)), same(one_value(items))
    return plan.Match(Lifted(mine, row_names(count), (), count), Lifted(theirs, ("row",), (), 1))


def _alone_on_the_left(left: plan.Node, pairs: plan.Node) -> plan.Node:
    """Return the left rows that are in no pair, with None for the right row."""
    count = bindings(left)
    alone = plan.AntiJoin(left, pairs, _match_left_row(left))
    return extend_bindings(alone, tuple(range(count)), (NONE,))


def _alone_on_the_right(left: plan.Node, right: plan.Node, pairs: plan.Node) -> plan.Node:
    """Return the right rows that are in no pair, with None for each left binding."""
    count, width = bindings(left), bindings(right)
    whole = extend_bindings(right, (), (row_as_value(width),)) if width > 1 else right
    alone = plan.AntiJoin(whole, pairs, _same_row(1, (Item(Parameter(0), constant(count)),)))
    return extend_bindings(alone, (), (*(NONE,) * count, Parameter(0)))


def existing(
    rows: plan.Node,
    query: Subquery,
    is_there: bool,
    how: How,
    names: tuple[str, ...] = (),
    origins: tuple[Opaque, ...] = (),
) -> plan.Node:
    """Return the rows whose query has a row, or has none. Its arguments raise nothing."""
    join = plan.SemiJoin if is_there else plan.AntiJoin
    node = simplify_for_existence(query.query)
    found = decorrelate(node)
    gate = Gate()
    if found is not None:
        source = gate.open(gate.before(found.source), rows) if how.in_order else found.source
        on = on_pairs(rows, found, query.arguments, names, origins)
        return join(rows, source, plan.Match(on=on))
    node, values = narrow_query(node, query.arguments, calm_of(rows))
    known = known_of(rows)
    by_equation = not how.in_order or is_quiet_beside(
        node, tuple([kinds(value, known) for value in values])
    )
    asked = translation(rows, values, how, names, by_equation=by_equation)
    x = asked.of(gate.before(node) if how.in_order else node)
    made = plan.Select(x.node, asked.plain(tuple_of(x.key), x))
    keyed = KeyedRows(made, Item(Parameter(0), constant(0)), (), plain=x.plain)
    return join(rows, gate.open(made, rows), match_back(rows, values, keyed, how, names))


def on_pairs(
    rows: plan.Node,
    query: DecorrelatedQuery,
    arguments: tuple[Expr, ...],
    names: tuple[str, ...],
    origins: tuple[Opaque, ...],
) -> Lifted | None:
    """Return the conditions of a query as a callable of a row and a row of its source; None without
    conditions."""
    if not query.conditions:
        return None
    count = bindings(rows)
    row = items(Parameter(count), bindings(query.source))
    tests = [replace_arguments(over(test, row), arguments) for test in query.conditions]
    known = names_for_bindings(names[:count], count + 1)
    every = tuple({id(o): o for o in (*origins, *query.origins)}.values())
    return Lifted(conjunction(tuple(tests)), known, every, count + 1)
