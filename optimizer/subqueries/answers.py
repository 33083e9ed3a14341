"""Results of sub-queries as bindings beside the bindings of the outer rows.

`Answers` joins rows with the results of their sub-queries.

    select (c.name, value(aggregate Sum(o.total) where o.customer == outer[0].id))
      table customers
    ->
    select (c.name, row[1] if row is not None else 0)
      left_join c.id == row[0]
        table customers
        aggregate Sum(o.total) by o.customer
          table orders

Scalars of one source that depend on the same values are one aggregate. Computations with the
aggregate are evaluated for the row, in place of the sub-query.

A query that may raise is evaluated only for values of rows where Python would evaluate it.

`translation` evaluates a correlated query once for each value that the rows around it have.

    where o.customer == outer[0]        outer[0] is c.id of customers c
      table orders
    ->
    join outer == o.customer            or, if it cannot raise,         table orders, by o.customer
      distinct
        select c.id
          table customers
      table orders

Source: [neumann2015] the domain of a dependent join.

`guards_of_subqueries` finds the condition under which Python evaluates each sub-query of an
expression.

    c.active and any(...) or sum(...) > 3       any(...)   if c.active
                                                sum(...)   if not (c.active and any(...))

Earlier parts of an expression decide if Python evaluates a later part.

`per_group` turns a query over one group into a query over all groups, with the group as key.

    g.where(p).group_by(j).aggregate(Count())        aggregate Count() by (k, j)
                                                       where p
                                                         rows of all groups, grouped by k

A group exists while it has a row. An aggregate of all rows has a result for no rows, too: for
groups whose rows the query has all filtered out.

Source: `translation.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.errors import PlanError
from optimizer.expr import (
    NONE,
    TRUE,
    And,
    Call,
    Conditional,
    Expr,
    Function,
    Item,
    Lifted,
    Operation,
    Or,
    Parameter,
    Subquery,
    all_parameters,
    conjunction,
    constant,
    has_subquery,
    one_value,
    parts,
    row_names,
    transform,
    tuple_of,
)
from optimizer.expressions.knowledge import is_canonical, total
from optimizer.expressions.simplification import holds_no_nan
from optimizer.expressions.text import project_node, same
from optimizer.plans import explain
from optimizer.plans.properties import bindings, free, of_either_sign, shapes
from optimizer.plans.strata import OfGroups, with_form
from optimizer.record import record
from optimizer.subqueries.correlations import (
    Result,
    ScalarOfAggregate,
    constant_of_no_rows,
    scalar,
    value_of_results,
)
from optimizer.subqueries.error_freedom import (
    NOTHING,
    binding_may_be_none,
    is_calm,
    kinds,
    known_of,
)
from optimizer.subqueries.keyed_rows import (
    FIRST,
    ONE,
    KeyedRows,
    as_expression,
    extend_bindings,
    items,
    names_for_bindings,
    narrow_query,
    outers,
)
from optimizer.subqueries.raising import Gate, is_quiet, is_quiet_beside, simplify_for_existence
from optimizer.subqueries.translation import RequestedValues, Requirements, Translation


@record
class _Request:
    """A query, the values that it is evaluated for, and the scalar of an aggregate that it
    computes.

    `is_quiet` is True if it may be evaluated for all rows, `by_equation` if for other values, too.
    """

    query: Subquery
    node: plan.Node
    values: tuple[Expr, ...]
    is_quiet: bool
    by_equation: bool
    scalar: ScalarOfAggregate | None


class Answers:
    """Rows, and beside them the results of sub-queries for each.

    `names` and `origins` belong to the callable with the sub-queries.
    """

    def __init__(
        self,
        rows: plan.Node,
        how: How,
        names: tuple[str, ...] = (),
        origins: tuple[Opaque, ...] = (),
    ) -> None:
        self.rows = rows
        self._how = how
        self.names = names
        self.origins = origins
        self._known: dict[Expr, Expr] = {}

    def lift_body(self, body: Expr) -> Lifted:
        """Return an expression over the rows as a callable."""
        count = bindings(self.rows)
        return Lifted(body, names_for_bindings(self.names, count), self.origins, count)

    def read(self, *exprs: Expr) -> tuple[Expr, ...]:
        """Return expressions with the results of their sub-queries; each of them is evaluated."""
        while any(map(has_subquery, exprs)):
            guards = guards_of_subqueries(*exprs)
            ready = [s for s in guards if not any(map(has_subquery, s.arguments))]
            quiet = [found for found in map(self._request, ready) if found.is_quiet]
            if quiet:
                self._answer(quiet, self.rows)
            else:
                unguarded = (s for s in ready if not has_subquery(guards[s] or TRUE))
                query = next(unguarded)
                self._ask(query, guards[query])
            exprs = tuple([self._replace_known(expr) for expr in exprs])
        return exprs

    def _ask(self, query: Subquery, guard: Expr | None) -> None:
        """Evaluate a query that may raise, for the rows that pass a guard."""
        made = replace(query, arguments=self.bound(query.arguments, guard))
        asking = self.rows if guard is None else plan.Where(self.rows, self.lift_body(guard))
        self._answer([self._request(made)], asking)
        self._known[query] = self._known[made]

    def _request(self, query: Subquery) -> _Request:
        """Decide how a sub-query is evaluated.

        The result has its plan, narrowed to what it reads, the values that the plan is evaluated
        for, and whether other rows and values are allowed.
        """
        found = scalar(query.query) if query.kind == "value" else None
        if found is not None:
            node: plan.Node = found.aggregate
        else:
            node = query.query if query.kind == "value" else simplify_for_existence(query.query)
        node, values = narrow_query(node, query.arguments, calm_of(self.rows))
        known = known_of(self.rows)
        given = tuple([kinds(value, known) for value in values])
        quiet = is_quiet(node, given) and all(map(self._may_ask, query.arguments))
        quiet = quiet or not self._how.in_order
        return _Request(query, node, values, quiet, quiet or is_quiet_beside(node, given), found)

    def _may_ask(self, expr: Expr) -> bool:
        """Return True if an expression may be evaluated for all rows."""
        return may_ask(self.rows, self._how)(expr)

    def bound(self, arguments: tuple[Expr, ...], guard: Expr | None) -> tuple[Expr, ...]:
        """Return arguments; arguments that may raise are computed first, for the rows that pass a
        guard."""
        return tuple([self._column(argument, guard) for argument in arguments])

    def _column(self, expr: Expr, guard: Expr | None) -> Expr:
        """Return the expression, or a new binding that computes it where the guard holds, if it may
        raise."""
        if self._may_ask(expr):
            return expr
        count = bindings(self.rows)
        value = expr if guard is None else Conditional(guard, expr, NONE)
        self.rows = extend_bindings(
            self.rows, tuple(range(count)), (value,), self.names, self.origins
        )
        return Parameter(count)

    def _replace_known(self, expr: Expr) -> Expr:
        return transform(transform(expr, lambda part: self._known.get(part, part)), project_node)

    # Each kind.

    def _answer(self, requests: list[_Request], asking: plan.Node) -> None:
        """Join the rows with the results of queries for the values of the rows in `asking`."""
        groups: dict[Any, list[_Request]] = {}
        for request in requests:
            if isinstance(request.node, plan.Aggregate) and request.scalar is not None:
                groups.setdefault((request.node.input, request.values), []).append(request)
            else:
                self._one(request, asking)
        for group in groups.values():
            self._group(group, asking)

    def _group(self, group: list[_Request], asking: plan.Node) -> None:
        """Evaluate scalars of one source that depend on the same values."""
        folded = tuple(dict.fromkeys(f for request in group for f in _aggregates_of(request)))
        results = dict(zip(folded, self._results(group[0], folded, asking), strict=True))
        for request in group:
            assert request.scalar is not None
            of = [results[f] for f in _aggregates_of(request)]
            self._known[request.query] = value_of_results(
                request.scalar, of, request.query.arguments
            )

    def _results(
        self, request: _Request, folded: tuple[plan.Folded, ...], asking: plan.Node
    ) -> list[Result]:
        """Return the results of some aggregates for each row."""
        place = Parameter(bindings(self.rows))
        gate = Gate()
        (source,) = self._gate_request(request, gate).inputs()
        node = plan.Aggregate(source, None, folded)
        if not request.values:
            self.rows = plan.Product(self.rows, gate.open(node, asking))
            return [Result(item) for item in items(place, len(folded))]
        asked = self._translation(request, asking)
        x = asked.of(source)
        made = plan.Aggregate(x.node, asked.by(x, None), asked.rewrite_folded(node, x))
        self._left_join(gate.open(made, asking), x, request.values)
        there = Operation("is not", (place, NONE))
        return [
            Result(
                Item(place, constant(number)),
                there,
                constant_of_no_rows(self._how.of_no_rows(of)),
                is_none=binding_may_be_none(made, number),
            )
            for number, of in enumerate(folded, 1)
        ]

    def _one(self, request: _Request, asking: plan.Node) -> None:
        """Evaluate one query by itself: if it has a row, or its only value.

        Raise `PlanError` if the value has several bindings.
        """
        is_value = request.query.kind == "value"
        if isinstance(request.node, plan.Table) and request.node.is_value:
            self._known[request.query] = Parameter(bindings(self.rows))
            self.rows = plan.Product(self.rows, request.node)
            return
        if is_value and bindings(request.node) != 1:
            raise PlanError(
                f"a sub-query gives {bindings(request.node)} values at once: "
                f"{explain.headline(request.node)}\n  select() one of them"
            )
        gate = Gate()
        node = self._gate_request(request, gate)
        row = all_parameters(bindings(node))
        asked = self._translation(request, asking)
        x = asked.of(node) if request.values else KeyedRows(node, tuple_of(), row)
        columns = tuple_of(x.key, *x.row) if is_value else tuple_of(x.key)
        made: plan.Node = plan.Select(x.node, asked.plain(columns, x))
        made = made if is_value else plan.Distinct(made)
        place = Parameter(bindings(self.rows))
        there = Operation("is not", (place, NONE))
        self._left_join(gate.open(made, asking), x, request.values)
        found = Conditional(there, Item(place, constant(1)), NONE) if is_value else there
        self._known[request.query] = found

    def _gate_request(self, request: _Request, gate: Gate) -> plan.Node:
        return request.node if request.is_quiet else gate.before(request.node)

    def _translation(self, request: _Request, asking: plan.Node) -> Translation:
        return translation(
            asking, request.values, self._how, self.names, by_equation=request.by_equation
        )

    def _left_join(self, made: plan.Node, x: KeyedRows, values: tuple[Expr, ...]) -> None:
        """Left join the rows with `made`, whose first item is the key that the values match."""
        found = replace(x, node=made, key=Item(Parameter(0), constant(0)), row=())
        match = match_back(self.rows, values, found, self._how, self.names)
        self.rows = plan.OuterJoin(self.rows, made, match, "left")


def _aggregates_of(request: _Request) -> tuple[plan.Folded, ...]:
    assert isinstance(request.node, plan.Aggregate)
    return request.node.aggregates


WITHOUT_NAN = frozenset({int, bool, str, bytes, NOTHING, date, datetime, time, timedelta})
REFUSAL = "a sub-query that reads the row around it cannot do {} for every row"


@record
class How:
    """Facts that only the engine has.

    `of_no_rows` returns the result of an aggregate over no rows, `canonical` a value whose NaN are
    all the same object. With `in_order`, the language defines the order of evaluation, so that an
    expression may raise only for rows that evaluate it.
    """

    of_no_rows: Callable[[plan.Folded], Any]
    canonical: Callable[[Any], Any]
    in_order: bool = True


def translation(
    rows: plan.Node,
    arguments: tuple[Expr, ...],
    how: How,
    names: tuple[str, ...] = (),
    *,
    by_equation: bool,
) -> Translation:
    """Return a translation of queries for all values that arguments have in some rows.

    With `by_equation` they are evaluated for other values too, if an equation finds those.
    """
    key = one_value(arguments) if arguments else tuple_of()
    groups = plan.Distinct(plan.Select(of_either_sign(rows), _callable(key, rows, names)))
    known = KeyedRows(groups, Parameter(0), (), covers=True)
    values = RequestedValues(known, groups, len(arguments), None, ("outer",))
    asked = Requirements(how.of_no_rows, REFUSAL, by_equation)
    return Translation(values, asked, lambda node: bool(outers(node)), lambda node: None)


def match_back(
    rows: plan.Node,
    arguments: tuple[Expr, ...],
    keyed: KeyedRows,
    how: How,
    names: tuple[str, ...] = (),
) -> plan.Match:
    """Match rows with the rows of a query by its key, which is read as one value."""
    count = len(arguments)
    if not arguments:
        return plan.Match()
    of = shapes(rows)
    if keyed.plain or all(_equals_itself(value, rows) for value in arguments):
        mine, theirs = one_value(arguments), one_value(items(keyed.key, count))
    else:
        value = one_value(arguments)
        known = all(is_canonical(each, of) for each in arguments)
        mine = same(value if known else Call(constant(how.canonical, "canonical"), (value,)))
        theirs = same(keyed.key)
    return plan.Match(_callable(mine, rows, names), Lifted(theirs, ("row",), (), 1))


def may_ask(rows: plan.Node, how: How) -> Callable[[Expr], bool]:
    """Return a predicate: True if an expression may be computed for every row, as it raises
    nothing."""
    known = known_of(rows)
    return lambda expr: not how.in_order or is_calm(expr, known)


def calm_of(rows: plan.Node) -> Callable[[Expr], bool]:
    """Return a predicate: True if an expression raises for no row."""
    known = known_of(rows)
    return lambda expr: is_calm(expr, known)


def _equals_itself(expr: Expr, rows: plan.Node) -> bool:
    """Return True if the value equals itself, as the rows declare or prove."""
    known = known_of(rows)
    found = kinds(expr, known)
    return holds_no_nan(expr, known.shapes) or (bool(found) and found <= WITHOUT_NAN)


def _callable(body: Expr, rows: plan.Node, names: tuple[str, ...]) -> Lifted:
    count = bindings(rows)
    return Lifted(body, names_for_bindings(names, count), (), count)


Guard = tuple[Expr, ...]
"""Tests that are all true for the rows that evaluate an expression."""


def guards_of_subqueries(*exprs: Expr) -> dict[Subquery, Expr | None]:
    """Return the sub-queries in expressions that are all evaluated, in the order of evaluation.

    Each has the test that must be true for its evaluation, or None.
    """
    found: dict[Subquery, list[Guard]] = {}
    for expr in exprs:
        for part, guard in _guarded_subqueries(expr, ()):
            found.setdefault(part, []).append(guard)
    return {part: _any_guard(guards) for part, guards in found.items()}


def _any_guard(guards: list[Guard]) -> Expr | None:
    """Return the test that one of the guards is true; None if one is empty: it needs no test.

    A guard that includes another is dropped: it may contain the sub-query itself.
    """
    if not all(guards):
        return None
    least = [g for g in guards if not any(set(other) < set(g) for other in guards)]
    tests = tuple(dict.fromkeys(map(conjunction, least)))
    return tests[0] if len(tests) == 1 else Or(tests)


def _guarded_subqueries(expr: Expr, guard: Guard) -> Iterator[tuple[Subquery, Guard]]:
    """Yield each sub-query with the tests that must hold before it is evaluated, inner ones
    first."""
    match expr:
        case And(inner):
            for part in inner:
                yield from _guarded_subqueries(part, guard)
                guard = (*guard, part)
        case Or(inner):
            for part in inner:
                yield from _guarded_subqueries(part, guard)
                guard = (*guard, negation(part))
        case Conditional(test, then, otherwise):
            yield from _guarded_subqueries(test, guard)
            yield from _guarded_subqueries(then, (*guard, test))
            yield from _guarded_subqueries(otherwise, (*guard, negation(test)))
        case _:
            for part in parts(expr):
                yield from _guarded_subqueries(part, guard)
            if isinstance(expr, Subquery):
                yield expr, guard


def negation(test: Expr) -> Expr:
    """Return the negated test."""
    match test:
        case Operation("not", (inner,)):
            return inner
        case _:
            return Operation("not", (test,))


def as_condition(test: Expr) -> Expr:
    """Return a test that is only used as true or false, with `not` moved to its sub-queries.

    A test without a sub-query is unchanged.
    """
    if not has_subquery(test):
        return test
    match test:
        case And(inner):
            return And(tuple(map(as_condition, inner)))
        case Or(inner):
            return Or(tuple(map(as_condition, inner)))
        case Operation("not", (inner,)):
            return _negate_condition(inner)
        case _:
            return test


def _negate_condition(test: Expr) -> Expr:
    """Return the negation of a test, moved inwards to its sub-queries."""
    if not has_subquery(test):
        return negation(test)
    match test:
        case And(inner):
            return Or(tuple(map(_negate_condition, inner)))
        case Or(inner):
            return And(tuple(map(_negate_condition, inner)))
        case Operation("not", (inner,)):
            return as_condition(inner)
        case _:
            return Operation("not", (test,))


GROUP_REFUSAL = "each cannot do {} for every group"


def per_group(
    query: plan.Node,
    level: object,
    source: plan.Node,
    key: Function,
    *,
    of_no_rows: Callable[[plan.Folded], Any],
    canonical: Callable[[Any], Any],
) -> plan.Node:
    """Return the plan of a query for each group of `source`; the query reads the group as
    `Recursive` of the level.

    `of_no_rows` returns the result of an aggregate over no rows, `canonical` a value whose NaN are
    all the same object. Rows are the key of the group, and the bindings of the query.

    Raises
    ------
    PlanError: part of the query cannot be evaluated for all groups together.
    """
    values = _rows_of_groups(source, as_expression(key, shapes(source)), canonical)

    def leaf(node: plan.Node) -> KeyedRows | None:
        return values.known if isinstance(node, plan.Recursive) else None

    asked = Requirements(of_no_rows, GROUP_REFUSAL)
    all_ = Translation(values, asked, lambda node: level in free(node), leaf)
    return with_form(all_.bindings_of(query), OfGroups(source, key, query, level))


def _rows_of_groups(
    source: plan.Node, key: Lifted, canonical: Callable[[Any], Any]
) -> RequestedValues:
    """Return the rows of all groups."""
    same = None if is_canonical(key.body, shapes(source)) else constant(canonical, "canonical")
    row: tuple[Expr, ...] = all_parameters(bindings(source))
    whole, names = KeyedRows(source, key.body, row, covers=True), key.names
    if not total(key.body, shapes(source)):  # evaluated once for each row
        made = key.with_body(tuple_of(key.body, one_value(row)))
        row = items(Item(Parameter(0), ONE), len(row))
        pairs = plan.Select(source, made)
        whole, names = KeyedRows(pairs, FIRST, row, covers=True, pair=len(row)), ("row",)
    count = bindings(whole.node)
    known = (*names, *row_names(count)[len(names) :])
    each = plan.Select(whole.node, Lifted(whole.key, known, key.origins, count))
    return RequestedValues(whole, plan.Distinct(each), None, same, names, key.origins)
