"""Recursions as clauses, and the joins and aggregates by which clauses are rewritten.

A recursion in normal form: each relation as clauses, ways to derive rows of it.

    reach = edges U select(join(reach, edges))

        reach  <-  edges                               from inputs alone
        reach  <-  select(join(reach, edges))          from one or two rows of recursive relations

What is derived inside is a set, so that a union is two clauses and a distinct nothing. A join reads
recursive relations and inputs, and no other join: what else stands there becomes a relation of its
own, so that its rows are counted and dated like the rows of relations that the user named.

Source: Datalog; the normal form with at most two premises is common in deductive databases.

A recursion apart from what it reads: its sides, and the recursion over these.

    same = edges U select (join(edges, same, edges))      sides: edges
    ranks <- select (join(ranks, shares))                 sides: links, if shares are made of links

Sides are as large as they can be: whole queries that read nothing of the recursion. One whose rows
are several side by side is taken apart further, as a table has one row at a time.

    pages    select_many of links         few rows for many links
    shares   links, each with a count     a row for each link, with all of it: links go anyway
    => both are made of links, where the recursion is

What goes as a whole in some form goes as it is, and all sides that can be made of that are made
where the recursion is: less is sent, and less is kept of them. Others stay queries, as they may be
much smaller than what they read.

Sound:  a side is the same query wherever it is evaluated.
Cost:   no more rows are sent than if all sides were, but what a condition or a join may leave out.

A semi_join as a join, where there are no semi_joins: within a recursion.

    semi_join s.k == m.k and m.n == 3        join s.k == key
      S                                  ->    S
      M                                        select m.k
                                                 where m.n == 3
                                                   M

Sound:  where copies of a row are one, as they are in a recursion: a row is in the pairs if it has a
        partner.
Needs:  nothing raises, keys tell all, and M is no part of the recursion, whose keys would come a
        round later. Otherwise rows are joined, of which there may be many.
Pays:   a row of S has one partner at most.

Whether each left row of an outer join has a partner: the group that it is of itself.

left_join o.cid == row[0]
  where o.paid
    table orders
  aggregate Max(o.total) by o.cid
    table orders

Aggregates of the rows that match each row of another relation: the groups are rows of the left.

    aggregate Sum(b.n) by d             d        3   5
      join b.k < d                      sum      1   7
        d
        b

More rows on the left are more groups, and none of those that are there changes: a recursion may
come through the left, as nowhere else through an aggregate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    NONE,
    TRUE,
    Attribute,
    Call,
    Display,
    Expr,
    Item,
    Lifted,
    Operation,
    Parameter,
    all_parameters,
    conjunction,
    constant,
    items_of,
    one_value,
    row_names,
    tuple_of,
)
from optimizer.expressions.evaluated import holds_no_nan
from optimizer.expressions.knowledge import Shape, Shapes, constructor, hashable, total
from optimizer.expressions.text import one_row
from optimizer.lifting.lift import lift
from optimizer.plans.properties import bindings, free, is_set, may_be_negative, nodes, once, shapes
from optimizer.plans.side_conditions import (
    AnyJoin,
    SideTerm,
    match_of,
    may_raise,
    side_conditions_of,
)
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


_MADE = (
    *(plan.Where, plan.Select, plan.Extend, plan.SelectMany, plan.Unnest, plan.Distinct),
    *(plan.Aggregate, plan.Join, plan.SemiJoin, plan.AntiJoin, plan.OuterJoin),
    *(plan.Union, plan.UnionAll),
    *(plan.Difference, plan.DifferenceAll, plan.Intersection, plan.IntersectionAll),
)


def apart_from_sides(
    node: plan.Fixpoint | plan.Iterate, level: Any
) -> tuple[plan.Node, tuple[plan.Node, ...]]:
    """The recursion over `Recursive` relations of a level, and what these stand for."""
    whole = _sent_whole(node)
    sides: dict[plan.Node, int] = {}
    made: dict[int, plan.Node] = {}

    def is_side(part: plan.Node) -> bool:
        return _may_be_side(part, node) and (part in whole or not _is_made_of(part, whole))

    for part in nodes(node, until=is_side):
        if is_side(part):
            place = sides.setdefault(part, len(sides))
            made[id(part)] = plan.Recursive(
                level, place, f"side {place + 1}", is_set(part), shapes(part)
            )
        else:
            made[id(part)] = with_inputs(part, [made[id(source)] for source in part.inputs()])
    return made[id(node)], tuple(sides)


def _may_be_side(part: plan.Node, node: plan.Node) -> bool:
    return part is not node and is_closed(part) and bindings(part) == 1


def _sent_whole(node: plan.Node) -> frozenset[plan.Node]:
    """What goes as a whole in some form, without what can be made of the rest of it."""

    def is_side(part: plan.Node) -> bool:
        return _may_be_side(part, node)

    largest = [part for part in nodes(node, until=is_side) if is_side(part)]
    found = dict.fromkeys(core for side in largest for core in _cores(side))
    for core in list(found):
        others = [other for other in found if other is not core]
        if _is_made_of(core, others):
            del found[core]
    return frozenset(found)


def _cores(part: plan.Node) -> set[plan.Node]:
    """What a part has all of, as far down as that goes; none if its rows are several side by
    side, and it has not all of something of which they are not."""
    found: set[plan.Node] = set()
    match part:
        case plan.Distinct(source):
            below = _cores(source)  # a table has few copies, what is made of it may have many
            found = below if all(isinstance(core, plan.Table) for core in below) else set()
        case plan.UnionAll(left, right) | plan.Union(left, right):
            found = _cores(left) | _cores(right)
        case plan.Select(source, Lifted() as function) if _keeps_row(function, source):
            found = _cores(source)
        case plan.Join(left, right) if bindings(left) == 1 and _is_total_of(right, left):
            found = _cores(left)
    return found or ({part} if bindings(part) == 1 else set())


def _keeps_row(function: Lifted, source: plan.Node) -> bool:
    """Whether what is made of a row, or of the first of several, has all of its fields."""
    match function.body:
        case Call(_, parts, ()) | Display("tuple", parts):
            pass
        case body:
            parts = (body,)
    row = Parameter(0)
    ways = _fields(shapes(source)[0])
    return row in parts or (
        bool(ways) and all(any(way in parts for way in field) for field in ways)
    )


def _fields(shape: Shape) -> list[tuple[Expr, ...]]:
    """How each field of a row is read."""
    row = Parameter(0)
    if isinstance(shape, tuple):
        return [(Item(row, constant(place)),) for place in range(len(shape))]
    names = (isinstance(shape, type) and constructor(shape)) or ()
    return [(Attribute(row, name), Item(row, constant(n))) for n, name in enumerate(names)]


def _is_total_of(part: plan.Node, rows: plan.Node) -> bool:
    """Whether it is made of groups of the same as some rows are, which are taken to find theirs."""
    while isinstance(part, plan.Select):
        part = part.input
    if not isinstance(part, plan.Aggregate) or part.key is None:
        return False
    return not _cores(part.input).isdisjoint(_cores(rows))


def _is_made_of(part: plan.Node, given: Collection[plan.Node]) -> bool:
    """Whether it is a query over these alone, such as an engine evaluates from scratch."""
    if part in given:
        return True
    return isinstance(part, _MADE) and all(_is_made_of(each, given) for each in part.inputs())


def with_keys(node: plan.SemiJoin) -> plan.Join:
    """The left rows of a semi_join with their partners, or with what is equal in these."""
    pairs = plan.Join(node.left, node.right, node.match)
    found, match = side_conditions_of(pairs), node.match
    if match.left_key is not None or (found is None and match.on is not None) or free(node.right):
        return pairs
    left, right = ((), ()) if found is None else (found.left, found.right)
    if (found and found.residual) or may_raise(left, shapes(node.left)):
        return pairs
    keys = _keys(node.right, right)
    return pairs if keys is None else plan.Join(node.left, keys, _match(left, bindings(node.left)))


def _keys(right: plan.Node, steps: tuple[SideTerm, ...]) -> plan.Node | None:
    """The keys of the rows that pass the tests of their side."""
    count, of = bindings(right), shapes(right)
    own = [(one_row(step.function.body, 0, count), step.is_key) for step in steps]
    keys = [expr for expr, is_key in own if is_key]
    tests = [expr for expr, is_key in own if not is_key]
    if not all(total(e, of) for e, _ in own) or not all(hashable(key, of) for key in keys):
        return None
    passing = plan.Where(right, _row_function(conjunction(tuple(tests)), count)) if tests else right
    return plan.Select(passing, _row_function(one_value(keys) if keys else TRUE, count))


def _match(steps: tuple[SideTerm, ...], count: int) -> plan.Match:
    """What is asked of a row of the left, and a key."""
    row, number = Parameter(count), sum(step.is_key for step in steps)
    parts = iter((row,) if number == 1 else items_of(row, number))
    asked: list[Expr] = [
        Operation("==", (step.function.body, next(parts))) if step.is_key else step.function.body
        for step in steps
    ]
    return (
        plan.Match(on=_row_function(conjunction(tuple(asked)), count + 1))
        if asked
        else plan.Match()
    )


def _row_function(body: Expr, parameters: int) -> Lifted:
    return Lifted(body, row_names(parameters), (), parameters)


BEGIN_WITH_LEFT = (
    *(plan.Where, plan.Distinct, plan.SemiJoin, plan.AntiJoin),
    *(plan.Join, plan.Product, plan.Shared),
)
KEY_OF_GROUP = Item(Parameter(0), constant(0))


def is_always_matched(joined: plan.OuterJoin) -> bool:
    """Whether the right side has a row for each of the left, whatever the tables hold."""
    groups = joined.right
    if not isinstance(groups, plan.Aggregate) or not isinstance(groups.key, Lifted):
        return False
    if groups.row is not None or free(joined) or may_be_negative(joined):
        return False
    left, right = _match_keys(joined)
    if left is None or left != groups.key.body or right != KEY_OF_GROUP:
        return False
    return holds_no_nan(left, shapes(joined.left)) and _begins_with(joined.left, groups.input)


def _match_keys(joined: plan.OuterJoin) -> tuple[Expr | None, Expr | None]:
    """What of a left row is equal to what of a right one, if nothing else is asked."""
    match joined.match:
        case plan.Match(Lifted() as left, Lifted() as right, None):
            return left.body, right.body
        case plan.Match(None, None, Lifted()):
            found = side_conditions_of(joined)
            if found is None or found.residual is not None:
                return None, None
            if len(found.left) == len(found.right) == 1 and found.left[0].is_key:
                return found.left[0].function.body, found.right[0].function.body
    return None, None


def _begins_with(node: plan.Node, source: plan.Node) -> bool:
    """Whether each row begins with the bindings of one of a source."""
    while node is not source:
        is_left = isinstance(node, plan.OuterJoin) and node.kind == "left"
        if not isinstance(node, BEGIN_WITH_LEFT) and not is_left:
            return False
        node = node.inputs()[0]
    return True


Rows = plan.Join | plan.Product | plan.OuterJoin
"""Joins that make pairs, the left ones first."""


def by_left_row(node: plan.Aggregate) -> Rows | None:
    """The join whose left rows, each of which is there once, are the groups of an aggregate."""
    found: Rows | None = once(node, "by_left_row", _found)
    return found


def partners_of(node: plan.Aggregate) -> plan.AntiJoin:
    """What asks for the partners of the rows that are the groups."""
    found: plan.AntiJoin = once(node, "partners_of", _partners)
    return found


def _found(node: plan.Aggregate) -> Rows | None:
    join = node.input
    if not isinstance(join, Rows) or (isinstance(join, plan.OuterJoin) and join.kind != "left"):
        return None
    if node.key is None or free(join.right) or not is_set(join.left):
        return None
    key = lift(node.key, shapes(join)) if isinstance(node.key, Opaque) else node.key
    rows = one_value(all_parameters(bindings(join.left)))
    return join if key.body == rows else None


def _partners(node: plan.Aggregate) -> plan.AntiJoin:
    join = by_left_row(node)
    assert join is not None
    return plan.AntiJoin(join.left, join.right, match_of(join))
