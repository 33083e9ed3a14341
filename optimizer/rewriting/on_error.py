"""Rows that raise: rewrite a query so that a callable that raises drops a row, or returns None.

    where p              where attempt(p)
    select f             select f                  of  where succeeds(f)
    join on p            join on attempt(p)
    join by k            join by k                 of  where succeeds(k)    on its side
    groups by k of v     groups by k of v          of  where succeeds(k, v)
    order by k           order by k                of  where comparable(k)
    table                table of rows whose values compare by ==      (`clashing.py`)
    reduce f by k        reduce attempt(f) by k    of  where succeeds(k)
    min, max of f by k   min, max of f by k        of  where comparable(f)

That is `drop`: a row is absent from an operator if the operator's callable raises for it. With
`null` the callable returns None, if the operator accepts None: a select, an extend, an aggregated
value. For keys and orders both policies drop the row. `comparable.py` says which values compare.

Each condition of an `and` has its own guard, and each side of an equation, so that the rules find
conditions and keys as they do without guards. An expression that cannot raise has no guard.

Sound:  a guard has no effect if nothing raises. All guards are expressions over single rows, or
        single pairs, so that rules move them like other expressions.
Needs:  nothing. The errors inside an iteration are one more of its relations: a set, to which each
        round adds its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

from optimizer import plan
from optimizer.expr import (
    FALSE,
    NONE,
    TRUE,
    Attempt,
    Call,
    Conditional,
    Display,
    Expr,
    First,
    Function,
    Guard,
    Lifted,
    Parameter,
    conjunction,
    conjuncts,
    constant,
    origins,
    row_names,
    tuple_of,
)
from optimizer.expressions import attempts
from optimizer.expressions.attempted_disjunctions import attempted_conditions
from optimizer.expressions.knowledge import Shapes
from optimizer.expressions.order_kinds import Ranked, sum_checks
from optimizer.expressions.text import naming_of, needs, one_row
from optimizer.plans.declared_kinds import declared_sum_kind
from optimizer.plans.explain import headline
from optimizer.plans.nodes.groups import keeper, replaced
from optimizer.plans.properties import bindings, find_groups, free, row_shape, shapes
from optimizer.plans.side_conditions import equation_of
from optimizer.plans.strata import ByPolicy, with_form
from optimizer.record import record
from optimizer.rewriting import comparable, lookups
from optimizer.rewriting.clash_checks import (
    ClashChecks,
    in_group,
    join_product,
    of_right_row,
    with_fields,
)
from optimizer.rewriting.clashing import Asks, Parts, inputs_to_ask, parts_of_input, split_inputs
from optimizer.rewriting.lookups import LookUp, asks
from optimizer.rewriting.report import close_recursions, rebuild_to_views, with_own_levels
from optimizer.rules.factor_disjunction import factor_disjunction
from optimizer.rules.read_bitwise_tests import read_bitwise_tests
from optimizer.rules.read_callables import read_callables
from optimizer.rules.shape_recursion import shape_recursion
from optimizer.rules.split_disjunction import alternatives_of
from optimizer.traverse import Rule

Policy = Literal["null", "drop"]
READING = (read_callables, read_bitwise_tests, factor_disjunction)
WITH_SHAPES = (*READING, shape_recursion)
Joins: TypeAlias = plan.Join | plan.OuterJoin | plan.SemiJoin | plan.AntiJoin


NO_ROWS = constant(())
LOOKING_UP = ("CountDistinct", "Collect", "Monoid")
"""Aggregates that look their values up; `comparable.py` handles aggregates that compare."""


@record
class Failure:
    """The `rows` that make the callable of a node raise, and the call that raises."""

    node: plan.Node
    rows: plan.Node
    call: Lifted

    @property
    def operator(self) -> str:
        """The headline of the node as it is read, even in a query whose callables are not read."""
        return headline(_apply_rules(READING, self.node, self.node))


@record
class GuardedQuery:
    """A query whose callables do not raise, and the failures that it prevents.

    `definitions` are its recursions, by their levels.
    """

    query: plan.Node
    failures: tuple[Failure, ...]
    definitions: Mapping[Any, plan.Node]

    def closed(self, errors: plan.Node) -> plan.Node:
        """Return a query over `rows` of a failure that reads no relation inside a recursion."""
        return close_recursions(errors, self.definitions)


def guard_query(
    root: plan.Node, policy: Policy, *, read: bool, checks: bool = False
) -> GuardedQuery:
    """Return a query whose rows follow a policy if a callable raises; itself if none may.

    Views that it reads stay as they are. If callables are not to be `read`, each is called within a
    guard. With `checks`, values that clash when an operator compares them are left out.
    """
    found = add_guards(root, policy, read=read, checks=checks)
    if found.query is root:
        return found
    return replace(found, query=with_form(found.query, ByPolicy(root, policy, read, checks)))


def add_guards(
    root: plan.Node, policy: Policy, *, read: bool, checks: bool = False
) -> GuardedQuery:
    """Return the result of `guard_query`, without the form of the query."""
    rules = WITH_SHAPES if policy == "drop" else READING  # None is of another shape than its body
    rules = (*rules, join_product) if checks else rules
    apart = with_own_levels(root)
    start = rebuild_to_views(apart, partial(_apply_rules, rules), {}) if read else apart
    guards = _Guards(policy, free(start), comparable.timed_sides(start), checks=checks)
    made = rebuild_to_views(start, guards.node, guards.inputs(start))
    return GuardedQuery(root if made is start else made, tuple(guards.failures), guards.definitions)


def _apply_rules(rules: Sequence[Rule], node: plan.Node, _: plan.Node) -> plan.Node:
    for rule in rules:
        node = rule(node)
    return node


class _Guards:
    """Adds guards to the nodes of a plan, and collects their failures."""

    def __init__(
        self, policy: Policy, given: frozenset[Any], timed: frozenset[int], *, checks: bool
    ) -> None:
        self._null = policy == "null"
        self._timed = timed
        """The ids of the inputs of as-of joins, whose rows are beside their keys and times."""
        self._node: plan.Node = plan.Empty(1)
        """The node whose guards are made."""
        self._apart = ClashChecks(policy, given, self._add_failure, checks=checks)
        self.failures: list[Failure] = []
        self.definitions: dict[Any, plan.Node] = {}

    def inputs(self, root: plan.Node) -> Mapping[int, plan.Node]:
        """Return the inputs with values whose `==` may raise, by `id`, each without the rows that
        raise."""
        parts: list[Parts] = []
        found: dict[int, plan.Node] = {}
        for each in map(parts_of_input, inputs_to_ask(root)):
            self._node = each.written
            called = Lifted(TRUE, row_names(bindings(each.own)), (), bindings(each.own))
            parts.append(replace(each, own=self._drop_raising(each.own, called, each.needed)))
        for each, (rows, refused, call) in zip(parts, split_inputs(parts), strict=True):
            found[id(each.written)] = rows
            self.failures.append(Failure(each.written, refused, call))
        return found

    def node(self, node: plan.Node, written: plan.Node) -> plan.Node:
        """Return a node over inputs that have guards, with its own guards.

        Raise `TypeError` for a kind of node without guards.
        """
        self._node = written
        self._apart.begin(written)
        match node:
            case plan.Where(source, p):
                asked = partial(asks, rows=source)
                p = self._conditions(
                    attempts.as_lifted(p), shapes(source), partial(plan.Where, source), asked
                )
                return with_fields(node, predicate=p)
            case plan.Select(source, f) if self._null and id(written) in self._timed:
                rows, values = self._values(source, comparable.keyed_and_timed(f))
                timed = comparable.beside_row(*values)
                return plan.Select(self._apart.rows(LookUp(rows, timed))[0], timed)
            case plan.Select(source, f):
                return self._select(node, source, attempts.as_lifted(f))
            case plan.Extend(source, _, columns):
                rows, found = self._values(source, [*map(self._column, columns)])
                return self._apart.check_extend(with_fields(node, input=rows, columns=tuple(found)))
            case plan.SelectMany(source, f) | plan.Unnest(source, f):
                made = with_fields(node, function=self._several(source, attempts.as_lifted(f)))
                return made if isinstance(made, plan.Unnest) else self._apart.made(made)
            case plan.UnionAll() | plan.SetOperation():
                return self._apart.of_both(node)
            case plan.Join() | plan.OuterJoin() | plan.SemiJoin() | plan.AntiJoin():
                return self._join(node)
            case plan.Aggregate():
                return self._aggregate(node)
            case plan.Reduce(source, key, f):
                rows, (by,) = self._values(source, [self._key(key)])
                return self._reduce(self._apart.rows(LookUp(rows, by))[0], by, f)
            case plan.Top(source, key, keys):
                ordered = [self._sorting(source, each) for each in keys]
                rows, (by, *of) = self._values(
                    source, [self._key(key), *map(comparable.asked_of, ordered)]
                )
                rows = self._comparable(self._apart.rows(LookUp(rows, by))[0], by, ordered)
                return with_fields(node, input=rows, key=by, keys=comparable.sort_keys(keys, of))
            case plan.OrderBy(source, keys):
                ordered = [self._sorting(source, each) for each in keys]
                rows, of = self._values(source, [*map(comparable.asked_of, ordered)])
                rows = self._comparable(rows, None, ordered)
                return with_fields(node, input=rows, keys=comparable.sort_keys(keys, of))
            case plan.Fixpoint():
                kept = [*map(self._guard_best, node.bodies, node.best)]
                bodies, best = (tuple(each) for each in zip(*kept, strict=True))
                new = with_fields(node, bodies=bodies, best=best)
                return self.definitions.setdefault(node.level, new)
            case plan.Iterate():
                return self.definitions.setdefault(node.level, self._iterate(node))
            case _ if not node.facts.calls:
                return node
        raise TypeError(f"no guards for plan node {type(node).__name__}")

    # Nodes over single rows.

    def _conditions(
        self,
        p: Lifted,
        of: Shapes,
        passing: Callable[[Lifted], plan.Node],
        kind: Callable[[Expr], Asks],
        count: int | None = None,
    ) -> Lifted:
        """Return a predicate with guards.

        `passing` returns the rows that pass another predicate, `kind` the check that values
        need. Equations of the sides of a join, whose left has `count` bindings, stay equations.
        """
        asked: list[Expr] = []
        for test in conjuncts(p.body):
            passed: list[Expr] = []
            is_sure = not self._apart.compares(test, kind)
            is_key = count is not None and equation_of(test, count) is not None
            needed = attempts.raising_parts(test, of)
            if not (is_sure or is_key or test in needed):
                needed.append(test)
            for part in needed:
                failing = p.with_body(conjunction((*asked, *passed, attempts.fails((part,)))))
                self._add_failure(passing(failing), p.with_body(part))
                passed.append(attempts.succeeds((part,)))
            if is_sure:
                asked += attempted_conditions(test, of, alternatives_of)
                continue
            tried = attempts.attempt_condition(test, of)
            asked += [Guard(tried)] * is_key
            asked.append(Attempt(tried, FALSE))
        return p.with_body(attempts.all_of(p.body, asked))

    def _select(self, node: plan.Select, source: plan.Node, f: Lifted) -> plan.Node:
        """Return the select without rows for which it raises; with "null", parts that raise become
        None."""
        needed = self._apart.raising_parts(
            attempts.hash_needs(f.body, shapes(source)), f.body, source
        )
        if needed and self._null and naming_of(f) is None:  # without its record, a row has no group
            self._failing(source, f, needed)
            f = attempts.items_or_none(f, needed, shapes(source))
        elif needed:
            source = self._drop_raising(source, f, needed)
        (rows,) = (source,) if find_groups(node) else self._apart.rows(LookUp(source, f))
        return node if rows is node.input and not needed else plan.Select(rows, f)

    def _several(self, source: plan.Node, f: Lifted) -> Lifted:
        """Return a callable that returns several values, or none if it raises."""
        is_written_out = isinstance(f.body, Display) and f.body.kind == "tuple"
        if is_written_out and not attempts.hash_needs(f.body, shapes(source)):
            return f
        body = self._apart.elements(f.body)
        self._failing(source, f, (body,))
        return f.with_body(Attempt(body, NO_ROWS))

    def _values(
        self, source: plan.Node, asked: Sequence[comparable.GuardedKey]
    ) -> tuple[plan.Node, list[Lifted]]:
        """Return the rows whose values can all be computed, and the callables of the values."""
        of = shapes(source)
        found = [each.function for each in asked]
        needed = [
            self._apart.raising_parts(
                each.needs(each.function.body, of), each.function.body, source
            )
            for each in asked
        ]
        if not any(needed):
            return source, found
        together = Lifted(TRUE, found[0].names, origins(*found), found[0].parameters)
        kept = [some for each, some in zip(asked, needed, strict=True) if each.instead is None]
        rows = (
            self._drop_raising(source, together, attempts.flatten_needs(kept))
            if any(kept)
            else source
        )
        others = [some for each, some in zip(asked, needed, strict=True) if each.instead]
        if any(others):
            self._failing(rows, together, attempts.flatten_needs(others))
        return rows, [
            each.instead(each.function, some, of) if some and each.instead else f
            for each, some, f in zip(asked, needed, found, strict=True)
        ]

    def _drop_raising(self, source: plan.Node, f: Lifted, needed: tuple[Expr, ...]) -> plan.Node:
        """Return the rows that make none of `needed` raise."""
        self._failing(source, f, needed)
        return plan.Where(source, f.with_body(attempts.succeeds(needed)))

    def _failing(self, source: plan.Node, f: Lifted, needed: tuple[Expr, ...]) -> None:
        """Record the rows that make one of `needed` raise as failures."""
        rows = plan.Where(source, f.with_body(attempts.fails(needed)))
        self._add_failure(rows, f.with_body(First(needed, NONE)))

    def _add_failure(self, rows: plan.Node, call: Lifted) -> None:
        self.failures.append(Failure(self._node, rows, call))

    # Joins.

    def _join(self, node: Joins) -> plan.Node:
        """Return the join with guarded keys and conditions; rows whose keys clash are left out."""
        left, right, match = node.left, node.right, node.match
        if match.left_key is not None and match.right_key is not None:
            left, (left_key,) = self._values(left, [self._key(match.left_key)])
            right, right_key = self._right_key(right, attempts.as_lifted(match.right_key))
            match = replace(match, left_key=left_key, right_key=right_key)
            left, right = self._apart.rows(LookUp(left, left_key), of_right_row(right, right_key))
        if match.on is not None:
            on = attempts.as_lifted(match.on)
            left, right = self._apart.check_equations(left, right, on)
            by = partial(_join_on, left, right, match)
            of = (*shapes(left), row_shape(right))
            kind = partial(lookups.asks_of_pair, left=left, right=right)
            on = self._conditions(on, of, by, kind, bindings(left))
            match = replace(match, on=on)
        return with_fields(node, left=left, right=right, match=match)

    def _right_key(self, right: plan.Node, key: Lifted) -> tuple[plan.Node, Lifted]:
        """Return the rows and the key as `_values`, for a callable that takes the row as one
        value."""
        needed = attempts.hash_needs(key.body, (row_shape(right),))
        if not needed:
            return right, key
        count = bindings(right)
        spread = tuple([one_row(need, 0, count) for need in needed])
        names = key.names if count == 1 else row_names(count)
        called = Lifted(TRUE, names, key.origins, count)
        return self._drop_raising(right, called, spread), key

    # Groups, orders and recursions.

    def _column(self, column: Function) -> comparable.GuardedKey:
        return comparable.GuardedKey(
            attempts.as_lifted(column),
            attempts.hash_needs,
            attempts.items_or_none if self._null else None,
        )

    def _key(self, key: Function) -> comparable.GuardedKey:
        return comparable.GuardedKey(attempts.as_lifted(key), attempts.hash_needs)

    def _sorting(self, source: plan.Node, key: plan.SortKey) -> comparable.OrderedValue:
        return comparable.ordered_by(
            attempts.as_lifted(key.function), source, nulls=key.nulls is not None
        )

    def _comparable(
        self,
        rows: plan.Node,
        key: Lifted | None,
        values: Sequence[comparable.OrderedValue | comparable.SummedValue],
    ) -> plan.Node:
        """Return the rows whose values compare with most others of their group, or add to them.

        Values of a declared kind are not checked.
        """
        unknown = [
            each for each in values if isinstance(each, comparable.SummedValue) or each.kind is None
        ]
        if not unknown:
            return rows
        shown, refused, call = comparable.by_most_kinds(rows, key, unknown)
        self._add_failure(refused, call)
        return shown

    def _aggregate(self, node: plan.Aggregate) -> plan.Node:
        """Return the aggregate over rows whose key and values do not raise and can be compared.

        Groups whose tolerant aggregates fail are left out, and reported.
        """
        asked = [] if node.key is None else [self._key(node.key)]
        values = [each for each in node.aggregates if each.value is not None]
        asked += [self._guard_aggregate(each, node.input) for each in values]
        rows, found = self._values(node.input, asked)
        given = iter(found)
        key = None if node.key is None else next(given)
        aggregates = tuple(
            comparable.folded_as(each, None if each.value is None else next(given), null=self._null)
            for each in node.aggregates
        )
        ordered = [
            comparable.extreme(each, node.input, null=self._null)
            for each in values
            if each.name in comparable.EXTREMES
        ]
        ordered += [
            comparable.place(each, node.input) for each in values if each.name in comparable.PLACED
        ]
        unknown = [each for each in ordered if each.kind is None]
        if key is not None:
            (rows,) = self._apart.rows(LookUp(rows, key))
        for each in aggregates:
            if each.value is not None and each.name in LOOKING_UP:
                (rows,) = self._apart.rows(in_group(rows, key, attempts.as_lifted(each.value)))
        rows = self._comparable(
            rows, key, [*unknown, *comparable.undeclared_sums(values, node.input, null=self._null)]
        )
        made: plan.Node = with_fields(node, input=rows, key=key, aggregates=aggregates)
        tolerant = [n for n, each in enumerate(node.aggregates) if each.tolerant]
        if not tolerant:
            return made
        first = int(key is not None)
        shown, failed, call = comparable.without_faults(
            made, first, [first + n for n in tolerant], null=self._null
        )
        self._add_failure(failed, call)
        return shown

    def _guard_aggregate(self, folded: plan.Folded, source: plan.Node) -> comparable.GuardedKey:
        """Return the value of an aggregate; a user's own aggregate does not leave None out."""
        assert folded.value is not None
        value = attempts.as_lifted(folded.value)
        instead = attempts.or_none if self._null and not folded.functions else None
        if folded.name in comparable.EXTREMES:
            return comparable.asked_of(comparable.extreme(folded, source, null=self._null), instead)
        if folded.name in comparable.SUMS:
            kind = declared_sum_kind(value.body, source)
            mean = folded.name == "Avg"
            check = sum_checks(kind, nulls=folded.skip_none, mean=mean)
            return comparable.GuardedKey(value, partial(attempts.taken_by, check), instead)
        return comparable.GuardedKey(
            value, partial(attempts.taken_by, folded.accumulator.check), instead
        )

    def _reduce(self, rows: plan.Node, by: Lifted, function: Function) -> plan.Node:
        """Return the results of a callable for each group; none for a group that makes it raise."""
        f, kept = attempts.as_lifted(function), keeper(function)
        made = self._apart.elements(f.body)
        group = Conditional(attempts.succeeds((made,)), NO_ROWS, tuple_of(Parameter(1)))
        self._add_failure(plan.Reduce(rows, by, f.with_body(group)), f.with_body(made))
        if kept is not None:
            return plan.Reduce(rows, by, replaced(function, kept.dropping()))
        return self._apart.made(plan.Reduce(rows, by, f.with_body(Attempt(made, NO_ROWS))))

    def _guard_best(
        self, body: plan.Node, best: plan.Best | plan.JoinedValue | None
    ) -> tuple[plan.Node, plan.Best | plan.JoinedValue | None]:
        """Return the rows that may be the best of their key, and how the best is chosen.

        Without a declared kind, it is one of the kind that is first by name, because a recursion
        does not count rows.
        """
        if best is None:
            return body, None
        by = comparable.GuardedKey(attempts.as_lifted(best.by), attempts.hash_needs)
        if isinstance(best, plan.JoinedValue):
            joined = comparable.GuardedKey(attempts.as_lifted(best.value), attempts.hash_needs)
            return self._values(body, [by, joined])[0], best
        value = comparable.ordered_by(attempts.as_lifted(best.value), body, nulls=False)
        if value.kind is not None:
            return self._values(body, [by, comparable.asked_of(value)])[0], best
        rows = self._values(body, [by, comparable.asked_of(value)])[0]
        _, refused, call = comparable.by_most_kinds(rows, by.function, [value], first=True)
        self._add_failure(refused, call)
        ranked = Ranked(best.largest)
        by_kinds = value.function.with_body(Call(constant(ranked), (value.function.body,)))
        return rows, replace(best, value=by_kinds)

    def _iterate(self, node: plan.Iterate) -> plan.Node:
        """Return a tolerant iteration over rows with comparable values; other iterations
        unchanged."""
        if not node.is_tolerant():
            return node
        starts = tuple(map(self._guard_tolerance, node.starts, node.tolerances))
        bodies = tuple(map(self._guard_tolerance, node.bodies, node.tolerances))
        return with_fields(node, starts=starts, bodies=bodies)

    def _guard_tolerance(self, rows: plan.Node, tolerance: plan.Tolerance | None) -> plan.Node:
        """Return the rows whose values are compared from round to round."""
        if tolerance is None:
            return rows
        by, value = (
            comparable.GuardedKey(attempts.as_lifted(tolerance.by), attempts.hash_needs),
            comparable.GuardedKey(attempts.as_lifted(tolerance.value), needs),
        )
        return self._values(rows, [by, value])[0]


def _join_on(left: plan.Node, right: plan.Node, match: plan.Match, on: Lifted) -> plan.Node:
    return plan.Join(left, right, replace(match, on=on))
