"""Aggregates in a body: `n = sum x : { ... }`.

If the bodies bind all variables that they share with the outer rule, they are grouped by these, and
joined:

    a(x), n = count : { b(x, _) }           left_join on a.x == key
                                              a
                                              aggregate Count by b.x

If the rows around are those of the body, and nothing else of them is read, the groups are enough:

    a(x, _), n = count : { a(x, _) }        aggregate Count by a.x

Otherwise the bodies are evaluated for the values of the outer rule:

    a(x), n = count : { b(y), y < x }       join on a.x == key
                                              a
                                              aggregate Sum by asked
                                                left_join on b.y < asked.x
                                                  distinct select a.x          asked
                                                  b

Source: Neumann, Kemper, *Unnesting Arbitrary Queries*, BTW 2015.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from optimizer import plan
from optimizer.expr import (
    NONE,
    Conditional,
    Expr,
    Operation,
    Parameter,
    conjunction,
    constant,
    one_value,
    substitute,
    tuple_of,
)
from optimizer.plans.clauses import by_left_row
from optimizer.plans.properties import free
from reactive.api.aggregates import Avg, Count, Max, Min, Sum, make_fold
from reactive.languages.datalog import rules
from reactive.languages.datalog.bodies import BodyQuery, join_nodes, match_keys, stuck
from reactive.languages.datalog.expressions import item, lift_body
from reactive.languages.datalog.tokens import wrong

FOLDS: dict[str, Callable[[Any], Any]] = {
    "sum": Sum,
    "mean": Avg,
    "min": Min,
    "max": Max,
}
WITH_ZERO = frozenset({"count", "sum"})
"""Aggregates that are zero without rows; the others have no value then."""
ROW = Parameter(0)


def add_total(body: BodyQuery, total: rules.TotalTerm, needed: frozenset[str]) -> None:
    """Give the result of an aggregate its value in each row of a body.

    `needed` are the variables that are read beside the aggregate.
    """
    _Totals(body, total, needed).add()


class _Totals:
    """Adds one aggregate of a body to the query of the body around it."""

    def __init__(self, around: BodyQuery, total: rules.TotalTerm, needed: frozenset[str]) -> None:
        self._around = around
        self._beside = needed
        self._total = total
        self._shared = [name for name in rules.names_within(total) if name in around.values]
        self._needed = {*self._shared}
        if total.target is not None:
            self._needed |= {*rules.variables(total.target)}

    def add(self) -> None:
        """Add the aggregate: grouped and joined if possible, else evaluated per outer values."""
        inner, left = self._inside()
        if not left and all(name in inner.values for name in self._shared):
            self._attach_grouped(inner)
        else:
            self._attach(*self._total_by_outer(inner, left))

    def _inside(self) -> tuple[BodyQuery, list[rules.Goal]]:
        """Return the query of the bodies without outer values, and the goals left over."""
        inner = self._around.inner()
        if len(self._total.bodies) == 1:
            return inner, inner.hold(self._total.bodies[0], self._needed)
        return self._alternatives(), []

    def _alternatives(self) -> BodyQuery:
        """Return a query of the variables of several bodies, each combination of values once.

        Raises if the bodies have different variables, or read one from outside.
        """
        bodies = [self._around.inner() for _ in self._total.bodies]
        for body, goals in zip(bodies, self._total.bodies, strict=True):
            left = body.hold(goals, self._needed)
            if left:
                remedy = "write a relation for the alternatives"
                raise wrong(left[0].at, "this reads a variable from outside the aggregate", remedy)
        names = sorted(name for name in bodies[0].values if not name.startswith(" "))
        made: plan.Node | None = None
        for body in bodies:
            if sorted(name for name in body.values if not name.startswith(" ")) != names:
                remedy = "write a relation for the alternatives"
                raise wrong(self._total.at, "the alternatives have different variables", remedy)
            values = tuple_of(*(body.values[name] for name in names))
            rows = plan.Select(body.node, lift_body(values, body.names))
            made = rows if made is None else plan.UnionAll(made, rows)
        assert made is not None
        found = self._around.inner()
        found.begin(plan.Distinct(made), "found")
        found.values = {name: item(ROW, place) for place, name in enumerate(names)}
        return found

    def _total_all(self, inner: BodyQuery) -> plan.Node:
        """Return the aggregate of all rows of a body."""
        made = self._group_rows(inner, None)
        if self._total.name in WITH_ZERO:
            return made
        return plan.Where(made, lift_body(Operation("is not", (ROW, NONE)), ("total",)))

    def _group_rows(self, inner: BodyQuery, key: Expr | None) -> plan.Aggregate:
        """Return the aggregate of the rows of a body by `key`; of all rows if it is None."""
        node = inner.node
        by = None if key is None else lift_body(key, inner.names)
        if self._total.target is None:
            fold = make_fold(Count(), lambda of, _: of)
        else:
            fold = self._fold(inner.expressions.of(self._total.target, inner.values), inner.names)
        return plan.Aggregate(node, by, (fold,))

    def _fold(self, value: Expr, names: Sequence[str]) -> plan.Folded:
        function = lift_body(value, names)
        name = "sum" if self._total.name == "count" else self._total.name
        return make_fold(FOLDS[name](function), lambda of, _: of)

    # Asked for the values that there are.

    def _total_by_outer(
        self, inner: BodyQuery, left: list[rules.Goal]
    ) -> tuple[plan.Node, Expr, bool]:
        """Return the aggregate by outer values, these values, and True if each has a row."""
        around = self._around.node
        values = tuple_of(*(self._around.values[name] for name in self._shared))
        asked = plan.Distinct(plan.Select(around, lift_body(values, self._around.names)))
        known = {name: item(ROW, place) for place, name in enumerate(self._shared)}
        found = self._around.inner()
        found.begin(asked, "asked")
        found.values = {**known}
        refused, left = self._refused_rows(found, left)
        if inner.is_empty:
            found.values = {**inner.values, **known}
            self._hold(found, left)
            return self._check_recursion(self._group_rows(found, ROW)), values, False
        tests = [g for g in left if isinstance(g, rules.Comparison) and self._is_test(g, inner)]
        rest = [goal for goal in left if goal not in tests]
        made, is_complete = self._join_inner(found, inner, known, tests, rest)
        whole: plan.Node = self._check_recursion(made)
        for rows in refused if is_complete else ():
            zero = lift_body(self._zero(), ("asked",))
            whole = plan.UnionAll(whole, plan.Extend(rows, (0,), (zero,)))
        return whole, values, is_complete

    def _refused_rows(
        self, found: BodyQuery, left: list[rules.Goal]
    ) -> tuple[list[plan.Node], list[rules.Goal]]:
        """Return the outer rows that negations on them alone refuse, and the other goals."""
        shared = {*self._shared}
        alone = [
            g
            for g in left
            if isinstance(g, rules.Negation) and shared.issuperset(rules.variables(g))
        ]
        return [found.split_negated(g) for g in alone], [goal for goal in left if goal not in alone]

    def _check_recursion(self, made: plan.Aggregate) -> plan.Aggregate:
        """Return `made`; raises if it reads a recursion that cannot be computed through it."""
        if free(made) and by_left_row(made) is None:
            raise wrong(
                self._total.at,
                "in a recursion this aggregate has to compare its rows with those around by tests",
                "aggregate a relation that has what is compared, and the rows around join",
            )
        return made

    def _join_inner(
        self,
        found: BodyQuery,
        inner: BodyQuery,
        known: dict[str, Expr],
        tests: Sequence[rules.Comparison],
        rest: list[rules.Goal],
    ) -> tuple[plan.Aggregate, bool]:
        """Return an aggregate over the values asked for, joined with the inner rows.

        The second item is True if values without inner rows have a result, too.
        """
        asked, count = found.node, len(inner.names)
        alone = {name: _in_row(e, ROW, count) for name, e in inner.values.items()}
        beside = {name: _in_row(e, Parameter(1), count) for name, e in inner.values.items()}
        keys = [(known[name], alone[name]) for name in self._shared if name in alone]
        found.values = {**beside, **known}
        expressions = found.expressions
        asks = tuple(expressions.comparison(test, found.values) for test in tests)
        match = match_keys(keys, ["asked"], "row", conjunction(asks) if asks else None)
        is_complete = not rest and self._total.name in WITH_ZERO
        if not is_complete:
            found.joined(join_nodes(asked, inner.node, match), "row")
            self._hold(found, rest)
            return self._group_rows(found, ROW), False
        found.joined(plan.OuterJoin(asked, inner.node, match, "left"), "row")
        return plan.Aggregate(
            found.node,
            lift_body(ROW, found.names),
            (self._fold(self._or_zero(found), found.names),),
        ), True

    def _or_zero(self, found: BodyQuery) -> Expr:
        """Return the summand of a row that may be missing."""
        target = self._total.target
        value = constant(1) if target is None else found.expressions.of(target, found.values)
        is_missing = Operation("is", (Parameter(1), NONE))
        return Conditional(is_missing, self._zero(), value)

    def _hold(self, found: BodyQuery, goals: list[rules.Goal]) -> None:
        """Add goals to a query; raises if a variable of them gets no value."""
        left = found.hold(goals, self._needed)
        if left:
            raise stuck(left)

    def _is_test(self, goal: rules.Comparison, inner: BodyQuery) -> bool:
        """Return True if the goal compares values of the bodies and of the outer rows."""
        return {*inner.values, *self._shared}.issuperset(rules.variables(goal))

    # Back to the rows around.

    def _attach_grouped(self, inner: BodyQuery) -> None:
        """Join the aggregates of all groups of the body; without shared variables, the only one."""
        if not self._shared:
            self._attach_whole(self._total_all(inner))
            return
        theirs, ours = ([of.values[n] for n in self._shared] for of in (inner, self._around))
        made = self._group_rows(inner, one_value(theirs))
        if self._is_of_own_rows():
            self._begin_with_groups(made)
        else:
            self._attach(made, one_value(ours), is_complete=False)

    def _is_of_own_rows(self) -> bool:
        """Return True if the groups are those of the rows around, of which nothing else is read.

        g(x, n) :- a(x, _), n = count : { a(x, _) }.
        """
        around, shared = self._around, frozenset(self._shared)
        body, *alternatives = self._total.bodies
        is_read = not self._beside & around.values.keys() <= shared
        if around.counts or is_read or alternatives:
            return False
        ours, theirs = (_without_own_names(goals, shared) for goals in (around.held, body))
        return ours is not None and ours == theirs

    def _begin_with_groups(self, made: plan.Aggregate) -> None:
        """Take the groups, of a key and a value each, in place of the rows around."""
        around, count = self._around, len(self._shared)
        around.begin(made, "key")
        keys = [ROW] if count == 1 else [item(ROW, place) for place in range(count)]
        around.values = dict(zip(self._shared, keys, strict=True))
        self._define(around.joined(made, self._total.name))

    def _attach_whole(self, node: plan.Node) -> None:
        """Pair each row with the aggregate of all inner rows, which is one value."""
        around, name = self._around, self._total.name
        if around.is_empty:
            around.begin(node, name)
            self._define(ROW)
        else:
            self._define(around.joined(plan.Product(around.node, node), name))

    def _attach(self, node: plan.Node, known: Expr, is_complete: bool) -> None:
        """Join the aggregates to the outer rows, found by `known`; define the result variable.

        Unless `is_complete`, a row without an aggregate gets zero, if the aggregate has
        one.
        """
        around, name = self._around, self._total.name
        left = around.node
        match = match_keys([(known, item(ROW, 0))], around.names, name)
        if is_complete or name not in WITH_ZERO:
            row = around.joined(plan.Join(left, node, match), name)
            self._define(item(row, 1))
            return
        row = around.joined(plan.OuterJoin(left, node, match, "left"), name)
        is_missing = Operation("is", (row, NONE))
        self._define(Conditional(is_missing, self._zero(), item(row, 1)))

    def _define(self, value: Expr) -> None:
        """Bind the result variable to the value of the aggregate; a sum is wrapped to its bits."""
        expressions, result = self._around.expressions, self._total.result
        if self._total.name == "sum":
            value = expressions.wrap_sum(value, expressions.kinds.of(result))
        self._around.define(result, value)

    def _zero(self) -> Expr:
        """Return the value of the aggregate without rows: 0, as a float if the result is one."""
        is_float = self._around.expressions.kinds.of(self._total.result).family == "float"
        return constant(0.0 if is_float else 0)


def _without_own_names(
    goals: Sequence[rules.Goal], shared: frozenset[str]
) -> tuple[rules.Goal, ...] | None:
    """Return atoms and comparisons with their own variables numbered; None if there are others.

    A variable that is read once is `_`.
    """
    if not all(isinstance(goal, rules.Atom | rules.Comparison) for goal in goals):
        return None
    ordered: list[Any] = sorted(goals, key=lambda goal: goal.at.start)
    parts = (part for goal in ordered for part in rules.walk(goal))
    uses = Counter(part.name for part in parts if isinstance(part, rules.Variable))
    several = [name for name, count in uses.items() if count > 1 and name not in shared]
    own = {name: f" {place}" for place, name in enumerate(several)}

    def rename(part: Any) -> Any:
        if not isinstance(part, rules.Variable) or part.name in shared:
            return part
        return (
            rules.Variable(own[part.name], part.at) if part.name in own else rules.Unnamed(part.at)
        )

    return tuple(rules.transform_part(goal, rename) for goal in ordered)


def _in_row(value: Expr, row: Expr, count: int) -> Expr:
    """Return an expression of `count` bindings, of a row of them as one value."""
    bindings = (row,) if count == 1 else tuple(item(row, place) for place in range(count))
    return substitute(value, bindings)
