"""What sub-queries give, as bindings beside those of the rows that ask.

    select (c.name, value(aggregate Sum(o.total) where o.customer == outer[0].id))
      table customers
    ->
    select (c.name, row[1] if row is not None else 0)
      left_join c.id == row[0]
        table customers
        aggregate Sum(o.total) by o.customer
          table orders

Scalars of one source that depend on the same values are one aggregate. What is computed of an
aggregate is computed of the row, where the sub-query stands.

A query in which something may raise is asked of the rows alone of which Python would ask it, so
that what these rows have in common with others is found by their values (`domain.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.errors import PlanError
from optimizer.expr import (
    NONE,
    TRUE,
    Conditional,
    Expr,
    Item,
    Lifted,
    Operation,
    Parameter,
    Subquery,
    all_parameters,
    constant,
    has_subquery,
    transform,
    tuple_of,
)
from optimizer.expressions.compose import projected
from optimizer.plans import explain
from optimizer.plans.properties import bindings
from optimizer.record import record
from optimizer.subqueries.asked import guarded
from optimizer.subqueries.calm import kinds
from optimizer.subqueries.columns import extended
from optimizer.subqueries.domain import How, calm_of, match_back, may_ask, translation
from optimizer.subqueries.forms import known_of, may_be_none
from optimizer.subqueries.keyed import Keyed, items, names_of
from optimizer.subqueries.outers import narrowed
from optimizer.subqueries.raising import Gate, is_quiet, is_quiet_beside
from optimizer.subqueries.scalars import Result, Scalar, constant_of_no_rows, scalar, shown
from optimizer.subqueries.stripped import stripped
from optimizer.subqueries.translation import Translation


@record
class _Request:
    """A query that is asked: what is to be found for each of some values, and, if it is computed of
    an aggregate, how. `by_equation` says that it may be asked of other values, too."""

    query: Subquery
    node: plan.Node
    values: tuple[Expr, ...]
    is_quiet: bool
    by_equation: bool
    scalar: Scalar | None


class Answers:
    """Rows, and beside them what sub-queries give for each.

    `names` and `origins` are those of the callable that asks.
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

    def lifted(self, body: Expr) -> Lifted:
        """An expression of the rows, as a callable."""
        count = bindings(self.rows)
        return Lifted(body, names_of(self.names, count), self.origins, count)

    def read(self, *exprs: Expr) -> tuple[Expr, ...]:
        """Expressions of which each is evaluated, with what the sub-queries in them give."""
        while any(map(has_subquery, exprs)):
            guards = guarded(*exprs)
            ready = [s for s in guards if not any(map(has_subquery, s.arguments))]
            quiet = [found for found in map(self._request, ready) if found.is_quiet]
            if quiet:
                self._answer(quiet, self.rows)
            else:
                unguarded = (s for s in ready if not has_subquery(guards[s] or TRUE))
                query = next(unguarded)
                self._ask(query, guards[query])
            exprs = tuple([self._replaced(expr) for expr in exprs])
        return exprs

    def _ask(self, query: Subquery, guard: Expr | None) -> None:
        """Ask a query that may raise, of the rows that a guard lets through."""
        made = replace(query, arguments=self.bound(query.arguments, guard))
        asking = self.rows if guard is None else plan.Where(self.rows, self.lifted(guard))
        self._answer([self._request(made)], asking)
        self._known[query] = self._known[made]

    def _request(self, query: Subquery) -> _Request:
        found = scalar(query.query) if query.kind == "value" else None
        if found is not None:
            node: plan.Node = found.aggregate
        else:
            node = query.query if query.kind == "value" else stripped(query.query)
        node, values = narrowed(node, query.arguments, calm_of(self.rows))
        known = known_of(self.rows)
        given = tuple([kinds(value, known) for value in values])
        quiet = is_quiet(node, given) and all(map(self._may_ask, query.arguments))
        quiet = quiet or not self._how.in_order
        return _Request(query, node, values, quiet, quiet or is_quiet_beside(node, given), found)

    def _may_ask(self, expr: Expr) -> bool:
        """Whether something may be computed of all rows."""
        return may_ask(self.rows, self._how)(expr)

    def bound(self, arguments: tuple[Expr, ...], guard: Expr | None) -> tuple[Expr, ...]:
        """Arguments, of which those that may raise are computed before, of the rows that a guard
        lets through."""
        return tuple([self._column(argument, guard) for argument in arguments])

    def _column(self, expr: Expr, guard: Expr | None) -> Expr:
        if self._may_ask(expr):
            return expr
        count = bindings(self.rows)
        value = expr if guard is None else Conditional(guard, expr, NONE)
        self.rows = extended(self.rows, tuple(range(count)), (value,), self.names, self.origins)
        return Parameter(count)

    def _replaced(self, expr: Expr) -> Expr:
        return transform(transform(expr, lambda part: self._known.get(part, part)), projected)

    # Each kind.

    def _answer(self, requests: list[_Request], asking: plan.Node) -> None:
        """Find what queries give for the values of the rows that ask."""
        groups: dict[Any, list[_Request]] = {}
        for request in requests:
            if isinstance(request.node, plan.Aggregate) and request.scalar is not None:
                groups.setdefault((request.node.input, request.values), []).append(request)
            else:
                self._one(request, asking)
        for group in groups.values():
            self._group(group, asking)

    def _group(self, group: list[_Request], asking: plan.Node) -> None:
        """Scalars of one source that depend on the same values."""
        folded = tuple(dict.fromkeys(f for request in group for f in _folded(request)))
        results = dict(zip(folded, self._results(group[0], folded, asking), strict=True))
        for request in group:
            assert request.scalar is not None
            of = [results[f] for f in _folded(request)]
            self._known[request.query] = shown(request.scalar, of, request.query.arguments)

    def _results(
        self, request: _Request, folded: tuple[plan.Folded, ...], asking: plan.Node
    ) -> list[Result]:
        """What some aggregates show, for each row."""
        place = Parameter(bindings(self.rows))
        gate = Gate()
        (source,) = self._gated(request, gate).inputs()
        node = plan.Aggregate(source, None, folded)
        if not request.values:
            self.rows = plan.Product(self.rows, gate.open(node, asking))
            return [Result(item) for item in items(place, len(folded))]
        asked = self._translation(request, asking)
        x = asked.of(source)
        made = plan.Aggregate(x.node, asked.by(x, None), asked.folded(node, x))
        self._left_join(gate.open(made, asking), x, request.values)
        there = Operation("is not", (place, NONE))
        return [
            Result(
                Item(place, constant(number)),
                there,
                constant_of_no_rows(self._how.of_no_rows(of)),
                is_none=may_be_none(made, number),
            )
            for number, of in enumerate(folded, 1)
        ]

    def _one(self, request: _Request, asking: plan.Node) -> None:
        """What one query gives, by itself: whether it has a row, or its only one."""
        is_value = request.query.kind == "value"
        if is_value and bindings(request.node) != 1:
            raise PlanError(
                f"a sub-query gives {bindings(request.node)} values at once: "
                f"{explain.headline(request.node)}\n  select() one of them"
            )
        gate = Gate()
        node = self._gated(request, gate)
        row = all_parameters(bindings(node))
        asked = self._translation(request, asking)
        x = asked.of(node) if request.values else Keyed(node, tuple_of(), row)
        shown = tuple_of(x.key, *x.row) if is_value else tuple_of(x.key)
        made: plan.Node = plan.Select(x.node, asked.plain(shown, x))
        made = made if is_value else plan.Distinct(made)
        place = Parameter(bindings(self.rows))
        there = Operation("is not", (place, NONE))
        self._left_join(gate.open(made, asking), x, request.values)
        found = Conditional(there, Item(place, constant(1)), NONE) if is_value else there
        self._known[request.query] = found

    def _gated(self, request: _Request, gate: Gate) -> plan.Node:
        return request.node if request.is_quiet else gate.before(request.node)

    def _translation(self, request: _Request, asking: plan.Node) -> Translation:
        return translation(
            asking, request.values, self._how, self.names, by_equation=request.by_equation
        )

    def _left_join(self, made: plan.Node, x: Keyed, values: tuple[Expr, ...]) -> None:
        """Have rows beside them whose first item is the key of what is found for their values."""
        found = replace(x, node=made, key=Item(Parameter(0), constant(0)), row=())
        match = match_back(self.rows, values, found, self._how, self.names)
        self.rows = plan.OuterJoin(self.rows, made, match, "left")


def _folded(request: _Request) -> tuple[plan.Folded, ...]:
    assert isinstance(request.node, plan.Aggregate)
    return request.node.aggregates
