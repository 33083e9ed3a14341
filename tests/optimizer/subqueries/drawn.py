"""Correlated plans drawn at random, and rows for their tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from optimizer import plan
from optimizer.expr import (
    NONE,
    And,
    Attribute,
    Call,
    Conditional,
    Expr,
    Item,
    Lifted,
    Operation,
    Or,
    Outer,
    Parameter,
    Subquery,
    conjunction,
    constant,
    row_names,
    tuple_of,
)
from reactive import Collect, Count, Database, Max, Min, Sum, Table

Env = Sequence[tuple[Expr, str]]
"""Readable expressions with their kinds: a class of rows, or `number`."""


@dataclass(frozen=True, slots=True)
class Sure:
    """A row whose fields have their declared types."""

    k: int
    v: float
    g: int


@dataclass(frozen=True, slots=True)
class Loose:
    """A row of anything."""

    k: Any
    v: Any
    g: Any


FIELDS = "kvg"
KINDS: tuple[Any, ...] = ("left", "right", "full")
SETS: tuple[Any, ...] = (
    *(plan.Union, plan.UnionAll, plan.Difference, plan.DifferenceAll),
    *(plan.Intersection, plan.IntersectionAll),
)


class Drawing:
    """Draw plans over three tables. With `calm` nothing in them raises."""

    def __init__(self, random: Random, db: Database, *, calm: bool) -> None:
        self.random = random
        self.db = db
        self.calm = calm
        self.tables: dict[str, Table[Any]] = {
            "Sure": db.table(Sure, name="sure"),
            "Loose": db.table(Loose, name="loose"),
            "pair": db.table(tuple, name="pairs"),
        }

    def row(self, kind: str) -> Any:
        """A row of a table."""
        some = self.random.choice
        number = some((0, 1, 2, 3))
        if kind == "Sure":
            return Sure(number, some((0.0, 1.0, 2.5, math.nan)), some((0, 1)))
        odd = (0, 1, 2) if self.calm else (0, 1, 2, None)
        values = (some((*odd, None, math.nan)), some((*odd, math.nan)), some((0, 1)))
        if kind == "Loose":
            return Loose(*values)
        return values if self.calm or self.random.random() < 0.8 else values[:2]

    # Queries.

    def query(self, depth: int, outer: Env = ()) -> tuple[plan.Node, list[str]]:
        """A plan that may read the row around it, and the kinds of its bindings."""
        node, kinds = self._source()
        for _ in range(self.random.randrange(1, 4)):
            node, kinds = self._step(node, kinds, depth, outer)
        return node, kinds

    def _source(self) -> tuple[plan.Node, list[str]]:
        kind = self.random.choice([*self.tables])
        return self.tables[kind].plan, [kind]

    def _step(
        self, node: plan.Node, kinds: list[str], depth: int, outer: Env
    ) -> tuple[plan.Node, list[str]]:
        env = [*self.env(kinds), *outer]
        at = self.random.random()
        if at > 0.85 and self.random.random() < 0.5:
            return self._wider(node, kinds, depth, outer)
        if at < 0.6:
            return plan.Where(node, self.function(self.test(env, depth), len(kinds))), kinds
        if at < 0.75:
            body = self.number(env, depth)
            return plan.Select(node, self.function(body, len(kinds))), ["number"]
        if at < 0.8:
            return plan.Distinct(node), kinds
        if len(kinds) < 3 and depth >= 0:
            return self._joined(node, kinds, depth, outer)
        return node, kinds

    def _wider(
        self, node: plan.Node, kinds: list[str], depth: int, outer: Env
    ) -> tuple[plan.Node, list[str]]:
        """Sets, groups, orders and collections."""
        env, count = [*self.env(kinds), *outer], len(kinds)
        match self.random.randrange(8):
            case 0:
                other = plan.Where(node, self.function(self.test(env, depth), count))
                of_two = self.random.choice(SETS)
                pair = (node, other) if self.random.random() < 0.5 else (other, node)
                return of_two(*pair), kinds
            case 1:
                template = self.tables["Sure"].group_by("k").aggregate(Count()).plan
                assert isinstance(template, plan.Aggregate)
                key = self.function(self.number(env, depth), count)
                return plan.Aggregate(node, key, template.aggregates), ["number", "number"]
            case 2:
                key_of = self.number(env, depth) if self.random.random() < 0.5 else self.leaf(env)
                keys = [Call(constant(_sortable, "sortable"), (key_of,))]
                if count == 1 and kinds[0] != "number":
                    keys = [
                        *keys,
                        *(
                            Call(
                                constant(_sortable, "sortable"), (Item(Parameter(0), constant(i)),)
                            )
                            if kinds[0] == "pair"
                            else Call(
                                constant(_sortable, "sortable"), (Attribute(Parameter(0), f),)
                            )
                            for i, f in enumerate(FIELDS)
                        ),
                    ]
                by = tuple(plan.SortKey(self.function(key, count)) for key in keys)
                if len(keys) == 1:
                    return node, kinds
                if self.random.random() < 0.4:
                    group = self.function(self.number(env, depth), count)
                    return plan.Top(node, group, by, 1), kinds
                return plan.OrderBy(node, by, self.random.choice((1, 2)), 0), kinds
            case 3:
                of = tuple_of(self.number(env, depth), self.leaf(env))
                return plan.SelectMany(node, self.function(of, count)), ["number"]
            case 4 if count < 3:
                of = tuple_of(self.number(env, depth), self.leaf(env))
                return plan.Unnest(node, self.function(of, count)), [*kinds, "number"]
            case 5 | 6:
                columns = [self.function(self.number(env, depth), count) for _ in range(2)]
                keep = tuple(self.random.sample(range(count), self.random.randrange(count + 1)))
                more = ["number"] * 2
                return plan.Extend(node, keep, tuple(columns)), [*[kinds[i] for i in keep], *more]
            case _:
                return self.aggregate(max(depth - 1, 0), outer), ["number"]

    def _joined(
        self, node: plan.Node, kinds: list[str], depth: int, outer: Env
    ) -> tuple[plan.Node, list[str]]:
        other, theirs = self.query(depth - 1, outer) if depth > 0 else self._source()
        if len(theirs) > 1:
            return node, kinds
        env = [*self.env([*kinds, *theirs]), *outer]
        both = [*kinds, *theirs]
        if self.random.random() < 0.2:
            return plan.Product(node, other), both
        tests = [self.equation(env[len(kinds) :][:1], env[: len(kinds)])]
        if self.random.random() < 0.3:
            tests.append(self.test(env, self.random.choice((-1, depth - 1))))
        match = plan.Match(on=self.function(conjunction(tuple(tests)), len(both)))
        at = self.random.random()
        if at < 0.5:
            return plan.Join(node, other, match), both
        if at < 0.65:
            return plan.SemiJoin(node, other, match), kinds
        if at < 0.8:
            return plan.AntiJoin(node, other, match), kinds
        if at < 0.87:
            return plan.OuterJoin(node, other, match, self.random.choice(KINDS)), [
                "number" for _ in both
            ]
        return plan.Select(
            plan.OuterJoin(node, other, match, "left"),
            self.function(
                Conditional(
                    Operation("is", (Parameter(len(kinds)), NONE)),
                    constant(7),
                    self.number(env[: len(kinds) + 1], -1),
                ),
                len(both),
            ),
        ), ["number"]

    def aggregate(self, depth: int, outer: Env) -> plan.Node:
        """A plan of one row and one binding."""
        node, kinds = self.query(depth, outer)
        env = [*self.env(kinds), *outer]
        sure = [(e, kind) for e, kind in env if kind == "Sure"]
        value = self.number(sure or env, -1)
        if not sure and not self.calm:  # raise also for a single value that cannot be added
            value = Operation("+", (value, constant(0)))
        folds: list[Any] = [Count(), Collect(len)]
        folds += [Sum(_any), Max(_any), Min(_any)] if sure or not self.calm else []
        chosen = self.random.sample(folds, self.random.choice((1, 1, 2)))
        template = self.tables["Sure"].aggregate(*chosen).plan
        assert isinstance(template, plan.Aggregate)
        folded = tuple(
            f if f.name == "Count" else replace(f, value=self.function(value, len(kinds)))
            for f in template.aggregates
        )
        made: plan.Node = plan.Aggregate(node, None, folded)
        if len(folded) > 1 or self.random.random() < 0.3:
            results = tuple(map(Parameter, range(len(folded))))
            more = [e for e, kind in outer if kind == "number"][:1]
            made = plan.Select(made, self.function(tuple_of(*results, *more), len(folded)))
        return made

    # Expressions.

    @staticmethod
    def env(kinds: Sequence[str]) -> list[tuple[Expr, str]]:
        return [(Parameter(place), kind) for place, kind in enumerate(kinds)]

    @staticmethod
    def function(body: Expr, count: int) -> Lifted:
        return Lifted(body, row_names(count), (), count)

    def leaf(self, env: Env) -> Expr:
        expr, kind = self.random.choice(env)
        if kind == "number":
            return expr
        place = self.random.randrange(3)
        if kind == "pair":
            return Item(expr, constant(place))
        return Attribute(expr, FIELDS[place])

    def number(self, env: Env, depth: int) -> Expr:
        at = self.random.random()
        if depth > 0 and at < 0.3:
            return self.value(env, depth - 1)
        if at < 0.4:
            return constant(self.random.choice((0, 1, 2)))
        if not self.calm and at < 0.5:
            operator = self.random.choice(("+", "//", "*"))
            return Operation(operator, (self.leaf(env), self.leaf(env)))
        if depth > 0 and at < 0.6:
            test = self.test(env, depth)
            return Conditional(test, self.number(env, depth - 1), self.number(env, depth - 1))
        return self.leaf(env)

    def equation(self, mine: Env, others: Env) -> Expr:
        pair = (self.leaf(mine), self.leaf(others or mine))
        return Operation("==", pair if self.random.random() < 0.5 else pair[::-1])

    def test(self, env: Env, depth: int) -> Expr:
        at = self.random.random()
        if depth > 0 and at < 0.45:
            return self.exists(env, depth - 1)
        if depth > 0 and at < 0.55:
            operator = "==" if self.calm else self.random.choice(("==", "<", ">"))
            return Operation(operator, (self.leaf(env), self.value(env, depth - 1)))
        if depth > -1 and at < 0.75:
            tests = tuple(self.test(env, depth - 1) for _ in range(2))
            return And(tests) if self.random.random() < 0.6 else Or(tests)
        if depth > -1 and at < 0.82:
            return Operation("not", (self.test(env, depth - 1),))
        if not self.calm and at < 0.9:
            return Operation("<", (self.leaf(env), self.leaf(env)))
        return self.equation(env[:1], env[1:])

    def arguments(self, env: Env) -> tuple[tuple[Expr, ...], Env]:
        """Draw the values that a sub-query may read of its row, and expressions that read them."""
        chosen = self.random.sample(list(env), min(len(env), self.random.choice((0, 1, 1, 1, 2))))
        values = [
            (e, k) if self.random.random() < 0.7 else (self.leaf([(e, k)]), "number")
            for e, k in chosen
        ]
        outer = [(Outer(place), kind) for place, (_, kind) in enumerate(values)]
        return tuple([e for e, _ in values]), outer

    def exists(self, env: Env, depth: int) -> Expr:
        arguments, outer = self.arguments(env)
        found = Subquery("exists", self.query(depth, outer)[0], arguments)
        return Operation("not", (found,)) if self.random.random() < 0.4 else found

    def value(self, env: Env, depth: int) -> Expr:
        arguments, outer = self.arguments(env)
        return Subquery("value", self.aggregate(depth, outer), arguments)


def _any(row: Any) -> Any:
    return row


def _sortable(value: Any) -> tuple[str, Any]:
    """Something that can be compared with any other of it."""
    return (type(value).__name__, value if isinstance(value, int | float) else str(value))
