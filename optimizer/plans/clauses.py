"""Recursions as clauses, and the joins and aggregates that rewrite clauses.

A recursion in normal form: each relation as clauses, ways to derive rows of it.

    reach = edges U select(join(reach, edges))

        reach  <-  edges                               from inputs alone
        reach  <-  select(join(reach, edges))          from one or two rows of recursive relations

Derived rows form a set, so that a union is two clauses and a distinct adds nothing. A join reads
recursive relations and inputs, and no other join: any other side becomes a relation of its own, so
that its rows are counted and dated like the rows of relations that the user named.

Source: Datalog; the normal form with at most two premises is common in deductive databases.

`apart_from_sides` splits a recursion into its sides, and the recursion over these sides.

    same = edges U select (join(edges, same, edges))      sides: edges
    ranks <- select (join(ranks, shares))                 sides: links, if shares are made of links

Sides are as large as possible: whole queries that read nothing of the recursion. A side with
several bindings is split further, because a table has rows of one binding.

    pages    select_many of links         few rows for many links
    shares   links, each with a count     a row for each link, with all of its fields
    => links are sent, and both sides are computed of them where the recursion runs

A relation whose rows are all part of some side is sent as it is, and each side that can be computed
from sent relations is computed where the recursion runs: less is sent and stored. Other sides stay
queries, because they may be much smaller than the relations that they read.

Sound:  a side is the same query wherever it is evaluated.
Cost:   at most the rows of all sides are sent, and rows that a condition or a join would drop.

`with_keys` writes a semi_join as a join, because a recursion has no semi_joins.

    semi_join s.k == m.k and m.n == 3        join s.k == key
      S                                  ->    S
      M                                        select m.k
                                                 where m.n == 3
                                                   M

Sound:  where equal rows count once, as in a recursion: a row is in the pairs if it has a partner.
Needs:  nothing of M raises, keys decide the match, and M is no part of the recursion, whose keys
        would arrive a round later. Otherwise the rows themselves are joined, with many pairs each.
Pays:   a row of S has at most one partner.

`is_always_matched` proves that each left row of an outer join has a partner: its own group.

left_join o.cid == row[0]
  where o.paid
    table orders
  aggregate Max(o.total) by o.cid
    table orders

`by_left_row` finds aggregates of the rows that match each row of another relation: the groups are
rows of the left.

    aggregate Sum(b.n) by d             d        3   5
      join b.k < d                      sum      1   7
        d
        b

A new row on the left is a new group, and no other group changes: a recursion may pass through the
left of such an aggregate, and through no other aggregate.
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
from optimizer.expressions.knowledge import Shape, Shapes, constructor, hashable, total
from optimizer.expressions.simplification import holds_no_nan
from optimizer.expressions.text import one_row
from optimizer.lifting.lift import lift
from optimizer.plans import counted_rows
from optimizer.plans.properties import bindings, free, is_set, may_be_negative, nodes, once, shapes
from optimizer.plans.side_conditions import (
    AnyJoin,
    SideTerm,
    join_match,
    may_raise,
    side_conditions_of,
)
from optimizer.record import record
from optimizer.traverse import substituted, unrolled, with_inputs

Keeping = plan.Best | plan.JoinedValue | plan.GroupOf | None
"""The rows that a relation of a recursion keeps; None for all."""

ONCE = frozenset({"Max", "Min", "CountDistinct", "BoolOr", "BoolAnd"})
"""Aggregates for which equal rows count once."""


@record
class Clause:
    """The rows of `body` are rows of `head`.

    A body is closed (it reads inputs alone), or a chain of linear nodes over a recursive relation
    or over a join or anti-join, whose sides are closed, or recursive relations below wheres; or
    over an aggregate by the rows of the left of such a join. A closed side counts by the presence
    of its rows, not their weights; an aggregated side by their weights.
    """

    head: int
    body: plan.Node


@record
class Program:
    """All clauses of a fixpoint; `best` says which rows each relation keeps.

    The relations that the user named come first. Clauses of a `GroupOf` derive the rows of its
    aggregate's input, as often as these occur if `counts_copies`.
    """

    best: tuple[Keeping, ...]
    clauses: tuple[Clause, ...]


def clauses(node: plan.Fixpoint) -> Program:
    """Return the normal form of a fixpoint that is stratified and reads no relation around it."""
    normal = _Normal(node.level)
    normal.define(node)
    normal.derive()
    return Program(tuple(normal.best), tuple(normal.clauses))


def sides_of(base: plan.Node) -> AnyJoin | None:
    """Return the join of two sides in the base of a clause; None if it has none.

    The join of an aggregate is the anti-join that looks up the partners of its groups.
    """
    if isinstance(base, plan.Aggregate):
        return partners_of(base)
    return base if isinstance(base, AnyJoin) else None


def counts_copies(node: plan.Aggregate) -> bool:
    """Return True if equal rows change an aggregate of the node: `Max` reads a value once."""
    return any(folded.name not in ONCE for folded in node.aggregates)


def is_closed(node: plan.Node) -> bool:
    """Return True if a node reads no recursive relation."""
    return not free(node)


class _Normal:
    """Makes the clauses of one fixpoint, with new relations where a body is not a chain."""

    def __init__(self, level: int) -> None:
        self._level = level
        self._cuts: dict[int, tuple[plan.Node, plan.Node]] = {}
        self._inner: dict[int, list[plan.Recursive]] = {}
        self._defined: deque[tuple[plan.Recursive, plan.Node]] = deque()
        self._groups: dict[tuple[int, ...], tuple[plan.Recursive, Any]] = {}
        self._counts = False
        self.best: list[Keeping] = []
        self.clauses: list[Clause] = []

    def define(self, node: plan.Fixpoint) -> list[plan.Recursive]:
        """Add the relations of the fixpoint, or of a fixpoint in its body that reads them."""
        own = [
            self._relation(name, shapes(body), best)
            for name, body, best in zip(node.names, node.bodies, node.best, strict=True)
        ]

        for relation, body in zip(own, node.bodies, strict=True):
            found = substituted(body, node.level, lambda r: own[r.index])
            self._defined.append((relation, found))
        return own

    def derive(self) -> None:
        """Make the clauses of all relations, including relations that this defines."""
        while self._defined:
            head, body = self._defined.popleft()
            best = self.best[head.index]
            self._counts = isinstance(best, plan.GroupOf) and counts_copies(best.aggregate)
            self.clauses += [Clause(head.index, way) for way in self._ways(body)]

    def _relation(self, name: str, of: Shapes, best: Keeping = None) -> plan.Recursive:
        """Add a relation, and return it; `best` says which rows it keeps."""
        self.best.append(best)
        return plan.Recursive(self._level, len(self.best) - 1, name, True, of)

    def _ways(self, root: plan.Node) -> Iterator[plan.Node]:
        """Iterate over the bodies of the clauses that together derive the rows of a node."""
        waiting: list[tuple[plan.Node, _Chain]] = [(root, None)]
        while waiting:
            node, above = waiting.pop()
            match node:
                case _ if is_closed(node):
                    yield _put_chain_on(above, node)
                case plan.Union() | plan.Distinct() if self._counts:
                    yield _put_chain_on(above, self._cut(node))
                case plan.Aggregate() if by_left_row(node) is None:
                    yield self._group(node, above)
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
                    yield _put_chain_on(above, pairs)
                    yield _put_chain_on(above, _beside_nothing(alone))
                case plan.Iterate():
                    waiting.append((unrolled(node)[0], above))
                case plan.Component(plan.Iterate() as iterate, index):
                    waiting.append((unrolled(iterate)[index], above))
                case _:
                    yield _put_chain_on(above, self._way(node))

    def _way(self, node: plan.Node) -> plan.Node:
        """Return the body of the only clause of a node; raise `TypeError` if recursion cannot pass
        through it."""
        match node:
            case plan.Recursive():
                return node
            case _ if self._counts:
                return self._counted(node)
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

    def _counted(self, node: plan.Node) -> plan.Node:
        """Return a node whose rows are counted: over sets, with their columns computed above.

        Rules leave out fields of a side that nobody reads above, so that its rows are no set.
        """
        columns, base = counted_rows.columns_over_set(node, is_inner=False)
        if isinstance(base, plan.Join | plan.Product):
            base = self._over_sets(base)
        elif not isinstance(base, plan.Recursive):
            base = self._cut(base)
        return counted_rows.with_columns(base, columns)

    def _group(self, node: plan.Aggregate, above: _Chain) -> plan.Node:
        """Return the rows of a relation of groups, and the nodes above that it does not show."""
        shown: list[plan.Node] = []
        while above is not None and isinstance(above[0], plan.Where | plan.Select | plan.Extend):
            shown.append(above[0])
            above = above[1]
        known = (id(node), *map(id, shown))
        if known not in self._groups:
            of = shapes(shown[-1] if shown else node)
            relation = self._relation("", (None, *of), plan.GroupOf(node, tuple(shown)))
            self._groups[known] = relation, (node, shown)
            self._defined.append((relation, node.input))
        relation = self._groups[known][0]
        count = len(relation.of)
        row: plan.Node = plan.Extend(relation, tuple(range(1, count)), ())
        if count == 2:
            row = plan.Select(relation, _callable_over_rows(Parameter(1), 2))
        return _put_chain_on(above, row)

    def _by_left_row(self, node: plan.Aggregate) -> plan.Node:
        """Return an aggregate over the premise of its left rows; raise `TypeError` if these are not
        its groups."""
        join = by_left_row(node)
        if join is None:
            raise TypeError("recursion cannot go through an aggregate")
        found = side_conditions_of(partners_of(node))
        left = self._premise(join.left, () if found is None else found.left)
        return with_inputs(node, [with_inputs(join, [left, join.right])])

    def _inner_relations(self, fixpoint: plan.Fixpoint) -> list[plan.Recursive]:
        """Return the relations of a fixpoint in a body, which several nodes may read."""
        if id(fixpoint) not in self._inner:
            self._inner[id(fixpoint)] = self.define(fixpoint)
        return self._inner[id(fixpoint)]

    def _over_sets(self, node: plan.Node) -> plan.Node:
        """Return a join over inputs that it can read, given the tests of each side."""
        found = side_conditions_of(node) if isinstance(node, AnyJoin) else None
        steps = ((), ()) if found is None else (found.left, found.right)
        sides = zip(node.inputs(), steps, strict=True)
        return with_inputs(node, [self._premise(*side) for side in sides])

    def _premise(self, node: plan.Node, steps: tuple[SideTerm, ...]) -> plan.Node:
        """Return a node that a join can read: a closed relation, or a recursive one below wheres,
        which may be new."""
        if is_closed(node):
            if self._counts and not may_be_negative(node):
                return node
            counted = not may_be_negative(node) and all(step.is_key for step in steps)
            return node if counted or is_set(node) else plan.Distinct(node)
        source = node
        while isinstance(source, plan.Where):
            source = source.input
        return node if isinstance(source, plan.Recursive) else self._cut(node)

    def _cut(self, node: plan.Node) -> plan.Node:
        """Return a new relation that has the rows of a node."""
        if self._counts and not (is_set(node) or isinstance(node, plan.Union | plan.Distinct)):
            raise TypeError(f"recursion cannot count the rows of {type(node).__name__}")
        if id(node) not in self._cuts:
            relation = self._relation("", shapes(node))
            self._cuts[id(node)] = relation, node
            self._defined.append((relation, node))
        return self._cuts[id(node)][0]


_Chain = tuple[plan.Node, Any] | None
"""Linear nodes, the lowest first, each with the chain of those above it."""


def _put_chain_on(above: _Chain, node: plan.Node) -> plan.Node:
    """Return `node` with the linear nodes of the chain `above` on it; `node` itself for None."""
    while above is not None:
        linear, above = above
        node = with_inputs(linear, [node])
    return node


def _equal_rows(node: plan.Node) -> plan.Match:
    """Match equal rows, nested in two tuples, so that a row that is NaN equals itself."""
    left, _ = node.inputs()
    return plan.Match(_in_tuples(bindings(left)), _in_tuples(1))


def _in_tuples(count: int) -> Lifted:
    return _callable_over_rows(tuple_of(tuple_of(_row_of_bindings(count))), count)


def _left_of(pairs: plan.Node, count: int) -> plan.Node:
    """Return the left rows of pairs, of `count` bindings."""
    if count > 1:
        return plan.Extend(pairs, tuple(range(count)), ())
    return plan.Select(pairs, _callable_over_rows(Parameter(0), 2))


def _beside_nothing(node: plan.Node) -> plan.Node:
    """Append a binding that is None to the rows."""
    count = bindings(node)
    return plan.Extend(node, tuple(range(count)), (_callable_over_rows(NONE, count),))


def _row_of_bindings(count: int) -> Expr:
    return one_value(all_parameters(count))


def _callable_over_rows(body: Expr, parameters: int) -> Lifted:
    return Lifted(body, tuple(f"row{i}" for i in range(parameters)), (), parameters)


_MADE = (
    *(plan.Where, plan.Select, plan.Extend, plan.SelectMany, plan.Unnest, plan.Distinct),
    *(plan.Aggregate, plan.Join, plan.SemiJoin, plan.AntiJoin, plan.OuterJoin),
    *(plan.UnionAll, plan.SetOperation),
)


def apart_from_sides(
    node: plan.Fixpoint | plan.Iterate, level: Any
) -> tuple[plan.Node, tuple[plan.Node, ...]]:
    """Return the recursion over `Recursive` relations of a level, and the sides that these stand
    for."""
    whole = _sent_whole(node)
    sides: dict[plan.Node, int] = {}
    made: dict[int, plan.Node] = {}

    def is_side(part: plan.Node) -> bool:
        return _may_be_side(part, node) and (part in whole or not _is_query_over(part, whole))

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
    """Return the relations that some side contains whole, except those computed from the others."""

    def is_side(part: plan.Node) -> bool:
        return _may_be_side(part, node)

    largest = [part for part in nodes(node, until=is_side) if is_side(part)]
    found = dict.fromkeys(core for side in largest for core in _cores(side))
    for core in list(found):
        others = [other for other in found if other is not core]
        if _is_query_over(core, others):
            del found[core]
    return frozenset(found)


def _cores(part: plan.Node) -> set[plan.Node]:
    """Return the relations below a part that it contains with every row.

    Return the part itself if there is none below; nothing if its rows have several bindings.
    """
    found: set[plan.Node] = set()
    match part:
        case plan.Distinct(source):
            below = _cores(source)  # a table has few copies of a row, its projections may have many
            found = below if all(isinstance(core, plan.Table) for core in below) else set()
        case plan.UnionAll(left, right) | plan.Union(left, right):
            found = _cores(left) | _cores(right)
        case plan.Select(source, Lifted() as function) if _keeps_row(function, source):
            found = _cores(source)
        case plan.Join(left, right) if bindings(left) == 1 and _is_total_of(right, left):
            found = _cores(left)
    return found or ({part} if bindings(part) == 1 else set())


def _keeps_row(function: Lifted, source: plan.Node) -> bool:
    """Return True if the result has all fields of a row, or of the first of several bindings."""
    match function.body:
        case Call(_, parts, ()) | Display("tuple", parts):
            pass
        case body:
            parts = (body,)
    row = Parameter(0)
    ways = _field_reads(shapes(source)[0])
    return row in parts or (
        bool(ways) and all(any(way in parts for way in field) for field in ways)
    )


def _field_reads(shape: Shape) -> list[tuple[Expr, ...]]:
    """Return the expressions that read each field of a row."""
    row = Parameter(0)
    if isinstance(shape, tuple):
        return [(Item(row, constant(place)),) for place in range(len(shape))]
    names = (isinstance(shape, type) and constructor(shape)) or ()
    return [(Attribute(row, name), Item(row, constant(n))) for n, name in enumerate(names)]


def _is_total_of(part: plan.Node, rows: plan.Node) -> bool:
    """Return True if a part aggregates a relation whose rows `rows` contains, and joins them with
    it."""
    while isinstance(part, plan.Select):
        part = part.input
    if not isinstance(part, plan.Aggregate) or part.key is None:
        return False
    return not _cores(part.input).isdisjoint(_cores(rows))


def _is_query_over(part: plan.Node, given: Collection[plan.Node]) -> bool:
    """Return True if a part is a query over `given` alone, of nodes that can be evaluated from
    scratch."""
    if part in given:
        return True
    return isinstance(part, _MADE) and all(_is_query_over(each, given) for each in part.inputs())


def with_keys(node: plan.SemiJoin) -> plan.Join:
    """Join the left rows of a semi_join with the keys of their partners.

    A left row comes once per partner. The join is with the partners themselves if the match has
    hash keys already, if the right side reads outer rows, or if a part of the condition has no
    hash, reads both sides other than by an equation, or may raise. A part of the left may raise if
    the right has no tests: the left row then meets all keys, and raises if there are any partners.
    """
    pairs = plan.Join(node.left, node.right, node.match)
    found, match = side_conditions_of(pairs), node.match
    if match.left_key is not None or (found is None and match.on is not None) or free(node.right):
        return pairs
    left, right = ((), ()) if found is None else (found.left, found.right)
    is_tested = not all(step.is_key for step in right)
    if (found and found.residual) or (is_tested and may_raise(left, shapes(node.left))):
        return pairs
    keys = _select_keys(node.right, right)
    return (
        pairs
        if keys is None
        else plan.Join(node.left, keys, _match_with_key(left, bindings(node.left)))
    )


def _select_keys(right: plan.Node, steps: tuple[SideTerm, ...]) -> plan.Node | None:
    """Return the keys of the right rows that pass their tests; None if one may raise, or have no
    hash."""
    count, of = bindings(right), shapes(right)
    own = [(one_row(step.function.body, 0, count), step.is_key) for step in steps]
    keys = [expr for expr, is_key in own if is_key]
    tests = [expr for expr, is_key in own if not is_key]
    if not all(total(e, of) for e, _ in own) or not all(hashable(key, of) for key in keys):
        return None
    passing = plan.Where(right, _row_function(conjunction(tuple(tests)), count)) if tests else right
    return plan.Select(passing, _row_function(one_value(keys) if keys else TRUE, count))


def _match_with_key(steps: tuple[SideTerm, ...], count: int) -> plan.Match:
    """Return the match of a left row, of `count` bindings, with a key of `_select_keys`.

    The match consists of an equation for each part of the key, and the tests of the left.
    """
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
    """Return True if each left row has a row on the right, whatever the tables hold."""
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
    """Return the keys of both sides of a join; (None, None) if anything else is required."""
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
    """Return True if each row begins with the bindings of a row of `source`."""
    while node is not source:
        is_left = isinstance(node, plan.OuterJoin) and node.kind == "left"
        if not isinstance(node, BEGIN_WITH_LEFT) and not is_left:
            return False
        node = node.inputs()[0]
    return True


Rows = plan.Join | plan.Product | plan.OuterJoin
"""Joins that make pairs, the left bindings first."""


def is_over_recursion(node: plan.Node) -> bool:
    """Return True for an aggregate of rows of a recursion around it, which groups share."""
    return isinstance(node, plan.Aggregate) and bool(free(node)) and by_left_row(node) is None


def aggregates_itself(node: plan.Fixpoint) -> bool:
    """Return True if a recursion passes through an aggregate whose groups share its rows."""
    return any(is_over_recursion(part) for body in node.bodies for part in nodes(body))


def by_left_row(node: plan.Aggregate) -> Rows | None:
    """Return the join whose left rows, each present once, are the groups of an aggregate; None if
    none."""
    found: Rows | None = once(node, "by_left_row", _find_left_row_join)
    return found


def partners_of(node: plan.Aggregate) -> plan.AntiJoin:
    """Return the anti-join that looks up the partners of the left rows that are groups."""
    found: plan.AntiJoin = once(node, "partners_of", _make_partners)
    return found


def _find_left_row_join(node: plan.Aggregate) -> Rows | None:
    """Return the join below an aggregate that has one group for each left row; None if not so."""
    join = node.input
    if not isinstance(join, Rows) or (isinstance(join, plan.OuterJoin) and join.kind != "left"):
        return None
    if node.key is None or free(join.right) or not is_set(join.left):
        return None
    key = lift(node.key, shapes(join)) if isinstance(node.key, Opaque) else node.key
    rows = one_value(all_parameters(bindings(join.left)))
    return join if key.body == rows else None


def _make_partners(node: plan.Aggregate) -> plan.AntiJoin:
    """Return the anti-join that looks up the partners of left rows that are groups."""
    join = by_left_row(node)
    assert join is not None
    return plan.AntiJoin(join.left, join.right, join_match(join))
