"""Sub-queries by definition: each is evaluated for the values of the row around it.

    where any(o.customer == c.id ...)     for each c: the rows of orders `where o.customer == c.id`
    each(query), rows(query)              for each group: the query over the rows of that group

A translation stores the original form beside its result (`strata.py` of the optimizer).
`WrittenPlan` evaluates that form in place of the joins, so that it shares nothing with the
translation. IN, ANY and ALL of SQL are comparisons with each row (`quantified.py`).

An equation between the sub-query and a value of the row around finds the candidate rows by a hash.
All conditions are then tested on each candidate, unchanged.

Inside a recursion a sub-query may read relations that change from round to round. Its results are
stored per place of the plan, a `Room`, and dropped when these relations change (`groups.py`).

Cost: per value, the rows that agree in the equations; without one, all rows of the sub-query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import opaque
from optimizer.expr import (
    Attempt,
    Call,
    Expr,
    Function,
    Item,
    Lifted,
    Outer,
    Parameter,
    Quantified,
    Subquery,
    constant,
    row_names,
    transform,
)
from optimizer.plans.join_lists import extend_of
from optimizer.plans.properties import bindings, free
from optimizer.plans.strata import BesideRows, ByPolicy, Form, InRows, OfGroups, levels_in, old_form
from optimizer.rewriting.on_error import guard_query
from optimizer.rewriting.report import with_own_levels
from optimizer.traverse import Interned, with_functions, with_inputs
from reactive.engine.codegen.functions import compiled_of
from reactive.engine.reference.asking import (
    NO_VALUE,
    Around,
    DefaultedAnswer,
    Exists,
    OfGroup,
    QueryAnswers,
    RepeatedQuery,
    SingleAnswer,
)
from reactive.engine.reference.bags import Bag
from reactive.engine.reference.groups import Rooms
from reactive.engine.reference.quantified import Quantifier
from reactive.engine.reference.recursion import least_fixpoint

Of = Callable[[plan.Node], Bag]


class WrittenPlan:
    """The plan with its original sub-queries, which evaluate themselves."""

    def __init__(self, closed: Of) -> None:
        self._rooms = Rooms(closed)
        self._made: dict[tuple[int, int], plan.Node] = {}
        self._kept: list[plan.Node] = []
        self._levelled: dict[int, plan.Node] = {}
        self._interned = Interned()
        """Equal parts of several sub-queries, which are evaluated once."""
        self._policy: ByPolicy | None = None
        """The policy for rows that raise, of the query and of its sub-queries."""

    def write(self, root: plan.Node, values: Around | None = None) -> plan.Node:
        """Return the plan whose callables ask its sub-queries for `values` of the row around."""
        waiting = [root]
        while waiting:
            node = waiting[-1]
            if self._key(node, values) in self._made:
                waiting.pop()
                continue
            below = self._below(node)
            missing = [each for each in below if self._key(each, values) not in self._made]
            if missing:
                waiting.extend(missing)
                continue
            waiting.pop()
            self._kept.append(node)
            self._made[self._key(node, values)] = self._written(node, values)
        return self._made[self._key(root, values)]

    def _query(self, root: plan.Node, values: Around) -> RepeatedQuery:
        """Return a sub-query; rows that raise follow the policy of the query around."""
        made = self.write(root, values)
        if self._policy is not None:
            made = _by_policy(made, self._policy)
        return RepeatedQuery(self._interned.all(made), self._rooms, least_fixpoint)

    def _make_answers(self, root: plan.Node) -> QueryAnswers:
        around = Around()
        return QueryAnswers(self._query(root, around), around)

    def close(self) -> None:
        """Drop the plans that refer to this object, so that no cycle keeps the tables alive."""
        self._made.clear()
        self._kept.clear()
        self._levelled.clear()
        self._interned = Interned()

    def _key(self, node: plan.Node, values: Around | None) -> tuple[int, int]:
        return id(node), id(values)

    def _form(self, node: plan.Node) -> Form | None:
        """Return the original form of a node; None if it reads other relations, or has none.

        With checks of equality, a query is evaluated as translated: there, values clash
        where the joins of former sub-queries look them up.
        """
        form = old_form(node)
        if isinstance(form, ByPolicy) and form.checks:
            return None
        if form is None or levels_in(form) <= free(node) | self._rooms.levels:
            return form
        return None

    def _give_own_levels(self, by: ByPolicy) -> plan.Node:
        """Return the query under a policy, where each recursion already has a level of its own."""
        found = self._levelled.get(id(by.query))
        if found is None:
            found = self._levelled[id(by.query)] = with_own_levels(by.query)
        return found

    def _below(self, node: plan.Node) -> tuple[plan.Node, ...]:
        """Return the nodes that are read in place of the inputs."""
        match self._form(node):
            case InRows(written):
                return written.inputs()
            case ByPolicy() as found:
                self._policy = found
                return (self._give_own_levels(found),)
            case BesideRows(left, query) as found:
                return (left, query) if _is_product(found) else (left,)
            case OfGroups(source):
                return (source,)
            case _:
                return node.inputs()

    def _written(self, node: plan.Node, values: Around | None) -> plan.Node:
        """Return a node in its original form, with its inputs in theirs, for the values around."""

        def made(source: plan.Node) -> plan.Node:
            return self._made[self._key(source, values)]

        match self._form(node):
            case InRows(written):
                node = with_inputs(written, map(made, written.inputs()))
            case ByPolicy() as found:
                return _by_policy(made(self._give_own_levels(found)), found)
            case BesideRows(left, query) as found if _is_product(found):
                node = plan.Product(made(left), made(query))
            case BesideRows(left, query, arguments, is_left):
                node = self._pair_with_rows(made(left), query, arguments, is_left, values)
            case OfGroups(source, key, query, level):
                node = self._of_groups(made(source), key, query, level, values)
            case _:
                node = with_inputs(node, map(made, node.inputs()))
        return with_functions(node, lambda f: self._asking(f, values))

    def _asking(self, f: Function, values: Around | None) -> Function:
        """Return a callable that asks its sub-queries, and reads the values around.

        Return `f` itself if it was not lifted, or has neither.
        """
        if not isinstance(f, Lifted):
            return f

        def asks(expr: Expr) -> Expr:
            asked: Exists | SingleAnswer | Quantifier
            match expr:
                case Outer(index) if values is not None:
                    return Call(constant(values.at(index), "outer"), ())
                case Subquery(kind, query, arguments):
                    asked = (Exists if kind == "exists" else SingleAnswer)(
                        self._make_answers(query)
                    )
                case Quantified(comparison, query, arguments):
                    asked = Quantifier(comparison, self._make_answers(query), NO_VALUE.value)
                case _:
                    return expr
            given = tuple(Attempt(each, NO_VALUE) for each in arguments)
            return Call(constant(asked, "asked"), given)

        body = transform(transform(f.body, _by_itself), asks)
        if body is f.body and (values is None or f.made is not None):
            return f
        made = replace(f, body=body, made=None)
        return replace(made, made=opaque(compiled_of(made), made.parameters, "a sub-query"))

    def _pair_with_rows(
        self,
        left: plan.Node,
        query: plan.Node,
        arguments: tuple[Expr, ...],
        is_left: bool,
        values: Around | None,
    ) -> plan.Node:
        """Return the node that pairs each row with the rows of a query for it."""
        width, count = bindings(query), bindings(left)
        nothing = [None if width == 1 else (None,) * width] if is_left else []
        found = DefaultedAnswer(self._make_answers(query), nothing)
        body = Call(constant(found, "asked"), tuple(Attempt(a, NO_VALUE) for a in arguments))
        asking = self._asking(Lifted(body, row_names(count), (), count), values)
        made = plan.Unnest(left, asking)
        return made if width == 1 else _spread(made, count, width)

    def _of_groups(
        self,
        source: plan.Node,
        key: Function,
        query: plan.Node,
        level: Any,
        values: Around | None,
    ) -> plan.Node:
        """Return the node that evaluates a query for each group."""
        self._rooms.levels.add(level)
        width = bindings(query)
        found = OfGroup(self._query(query, values or Around()), level)
        made = plan.Reduce(
            source, self._asking(key, values), opaque(found, 2, "a query of each group")
        )
        return made if width == 1 else _spread(made, 1, width)


def _is_product(form: BesideRows) -> bool:
    """Return True if all rows are paired with the same rows of the query.

    Then filters above become join conditions, and pairs that fail them are not built.
    """
    return not form.arguments and not form.is_left


def _by_policy(node: plan.Node, by: ByPolicy) -> plan.Node:
    return guard_query(node, by.policy, read=by.read).query


def _spread(node: plan.Node, count: int, width: int) -> plan.Node:
    """Return the node with the items of its last binding as bindings."""
    last = Parameter(count)
    row = (*map(Parameter, range(count)), *[Item(last, constant(each)) for each in range(width)])
    names = row_names(count + 1)
    return extend_of(node, [Lifted(each, names, (), count + 1) for each in row])


def _by_itself(expr: Expr) -> Expr:
    """Return a comparison with a query without its translation."""
    return replace(expr, translated=NO_VALUE) if isinstance(expr, Quantified) else expr
