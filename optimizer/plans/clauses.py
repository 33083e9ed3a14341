"""A recursion in normal form: each relation as clauses, ways to derive rows of it.

    reach = edges U select(join(reach, edges))

        reach  <-  edges                               from inputs alone
        reach  <-  select(join(reach, edges))          from one or two rows of recursive relations

What is derived inside is a set, so that a union is two clauses and a distinct nothing. A join reads
recursive relations and inputs, and no other join: what else stands there becomes a relation of its
own, so that its rows are counted and dated like the rows of relations that the user named.

Source: Datalog; the normal form with at most two premises is common in deductive databases.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from optimizer import plan
from optimizer.expr import NONE, Expr, Lifted, Parameter, all_parameters, one_value, tuple_of
from optimizer.expressions.knowledge import Shapes
from optimizer.plans.by_left_row import by_left_row, partners_of
from optimizer.plans.partners import with_keys
from optimizer.plans.properties import bindings, free, is_set, may_be_negative, shapes
from optimizer.plans.side_conditions import AnyJoin, SideTerm, side_conditions_of
from optimizer.record import record
from optimizer.traverse import substituted, unrolled, with_inputs


@record
class Clause:
    """Rows of `head` are those of `body`.

    A body is closed (it reads inputs alone), or a chain of linear nodes over a recursive relation
    or over a join or anti-join, whose sides are closed, or recursive relations below wheres; or
    over an aggregate by the rows of the left of such a join. Of closed sides it counts whether a
    row is present, not its weight; of those that are aggregated the weight.
    """

    head: int
    body: plan.Node


@record
class Program:
    """All clauses of a fixpoint; `best` is what is kept of each relation.

    The relations that the user named come first.
    """

    best: tuple[plan.Best | None, ...]
    clauses: tuple[Clause, ...]


def clauses(node: plan.Fixpoint) -> Program:
    """The normal form of a fixpoint that is stratified and reads no relation around it."""
    normal = _Normal(node.level)
    normal.define(node)
    normal.derive()
    return Program(tuple(normal.best), tuple(normal.clauses))


def sides_of(base: plan.Node) -> AnyJoin | None:
    """The join of two sides that the base of a clause is, or is made of; as what asks for partners,
    if these are aggregated."""
    if isinstance(base, plan.Aggregate):
        return partners_of(base)
    return base if isinstance(base, AnyJoin) else None


def is_closed(node: plan.Node) -> bool:
    """Whether it reads no recursive relation."""
    return not free(node)


class _Normal:
    def __init__(self, level: int) -> None:
        self._level = level
        self._cuts: dict[int, tuple[plan.Node, plan.Node]] = {}
        self._inner: dict[int, list[plan.Recursive]] = {}
        self._defined: deque[tuple[plan.Recursive, plan.Node]] = deque()
        self.best: list[plan.Best | None] = []
        self.clauses: list[Clause] = []

    def define(self, node: plan.Fixpoint) -> list[plan.Recursive]:
        """Take in a fixpoint: the one itself, or one in its body that reads its relations."""
        own = [
            self._relation(name, shapes(body), best)
            for name, body, best in zip(node.names, node.bodies, node.best, strict=True)
        ]

        for relation, body in zip(own, node.bodies, strict=True):
            found = substituted(body, node.level, lambda r: own[r.index])
            self._defined.append((relation, found))
        return own

    def derive(self) -> None:
        """Make the clauses of all relations; also of relations that this defines."""
        while self._defined:
            head, body = self._defined.popleft()
            self.clauses += [Clause(head.index, way) for way in self._ways(body)]

    def _relation(self, name: str, of: Shapes, best: plan.Best | None = None) -> plan.Recursive:
        self.best.append(best)
        return plan.Recursive(self._level, len(self.best) - 1, name, True, of)

    def _ways(self, root: plan.Node) -> Iterator[plan.Node]:
        """The bodies of the clauses that together derive the rows of a node."""
        waiting: list[tuple[plan.Node, _Chain]] = [(root, None)]
        while waiting:
            node, above = waiting.pop()
            match node:
                case _ if is_closed(node):
                    yield _below(above, node)
                case plan.Union(left, right) | plan.UnionAll(left, right):
                    waiting += [(right, above), (left, above)]
                case plan.Distinct(source):
                    waiting.append((source, above))
                case plan.Where() | plan.Select() | plan.Extend():
                    waiting.append((node.input, (node, above)))
                case plan.SelectMany() | plan.Unnest():
                    waiting.append((node.input, (node, above)))
                case plan.OuterJoin(left, right, match):
                    pairs = self._way(plan.Join(left, right, match))
                    alone = self._way(plan.AntiJoin(left, right, match))
                    yield _below(above, pairs)
                    yield _below(above, _beside_nothing(alone))
                case plan.Iterate():
                    waiting.append((unrolled(node)[0], above))
                case plan.Component(plan.Iterate() as iterate, index):
                    waiting.append((unrolled(iterate)[index], above))
                case _:
                    yield _below(above, self._way(node))

    def _way(self, node: plan.Node) -> plan.Node:
        """The body of the only clause of a node."""
        match node:
            case plan.Recursive():
                return node
            case plan.Join() | plan.Product() | plan.AntiJoin():
                return self._over_sets(node)
            case plan.SemiJoin(left):
                pairs = self._over_sets(with_keys(node))
                return _left_of(pairs, bindings(left))
            case plan.Intersection() | plan.IntersectionAll():
                pairs = self._over_sets(plan.Join(node.left, node.right, _equal_rows(node)))
                return _left_of(pairs, bindings(node.left))
            case plan.Difference(left, right):
                return self._over_sets(plan.AntiJoin(left, right, _equal_rows(node)))
            case plan.Aggregate():
                return self._by_left_row(node)
            case plan.Fixpoint():
                return self._inner_relations(node)[0]
            case plan.Component(plan.Fixpoint() as fixpoint, index):
                return self._inner_relations(fixpoint)[index]
            case _:
                raise TypeError(f"recursion cannot go through {type(node).__name__}")

    def _by_left_row(self, node: plan.Aggregate) -> plan.Node:
        """An aggregate of the rows that match each row of a recursive relation."""
        join = by_left_row(node)
        if join is None:
            raise TypeError("recursion cannot go through an aggregate")
        found = side_conditions_of(partners_of(node))
        left = self._premise(join.left, () if found is None else found.left)
        return with_inputs(node, [with_inputs(join, [left, join.right])])

    def _inner_relations(self, fixpoint: plan.Fixpoint) -> list[plan.Recursive]:
        """The relations of a fixpoint in a body, which several nodes may read."""
        if id(fixpoint) not in self._inner:
            self._inner[id(fixpoint)] = self.define(fixpoint)
        return self._inner[id(fixpoint)]

    def _over_sets(self, node: plan.Node) -> plan.Node:
        found = side_conditions_of(node) if isinstance(node, AnyJoin) else None
        steps = ((), ()) if found is None else (found.left, found.right)
        sides = zip(node.inputs(), steps, strict=True)
        return with_inputs(node, [self._premise(*side) for side in sides])

    def _premise(self, node: plan.Node, steps: tuple[SideTerm, ...]) -> plan.Node:
        """What a join can read: a closed relation, or a recursive one below wheres."""
        if is_closed(node):
            counted = not may_be_negative(node) and all(step.is_key for step in steps)
            return node if counted or is_set(node) else plan.Distinct(node)
        source = node
        while isinstance(source, plan.Where):
            source = source.input
        return node if isinstance(source, plan.Recursive) else self._cut(node)

    def _cut(self, node: plan.Node) -> plan.Node:
        """A relation that has the rows of a node."""
        if id(node) not in self._cuts:
            relation = self._relation("", shapes(node))
            self._cuts[id(node)] = relation, node
            self._defined.append((relation, node))
        return self._cuts[id(node)][0]


_Chain = tuple[plan.Node, Any] | None
"""Linear nodes, the lowest first, each with the chain of those above it."""


def _below(above: _Chain, node: plan.Node) -> plan.Node:
    """A node with a chain above it."""
    while above is not None:
        linear, above = above
        node = with_inputs(linear, [node])
    return node


def _equal_rows(node: plan.Node) -> plan.Match:
    """Pairs of equal rows, a NaN among them too: a row is no NaN inside two tuples."""
    left, _ = node.inputs()
    return plan.Match(_in_tuples(bindings(left)), _in_tuples(1))


def _in_tuples(count: int) -> Lifted:
    return _function(tuple_of(tuple_of(_row(count))), count)


def _left_of(pairs: plan.Node, count: int) -> plan.Node:
    """The rows of the left side of pairs, of `count` bindings."""
    if count > 1:
        return plan.Extend(pairs, tuple(range(count)), ())
    return plan.Select(pairs, _function(Parameter(0), 2))


def _beside_nothing(node: plan.Node) -> plan.Node:
    """The rows with one binding more, which is None."""
    count = bindings(node)
    return plan.Extend(node, tuple(range(count)), (_function(NONE, count),))


def _row(count: int) -> Expr:
    return one_value(all_parameters(count))


def _function(body: Expr, parameters: int) -> Lifted:
    return Lifted(body, tuple(f"row{i}" for i in range(parameters)), (), parameters)
