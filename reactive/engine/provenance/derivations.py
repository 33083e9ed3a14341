"""The derivations of a row of a node, by the node's kind; rows of inputs are found by `pull`.

    select f                 each input row of which f makes the row
    join                     the left and the right row
    semi_join                the left row with each partner
    anti_join                the left row, and that there is no partner
    union, distinct          the row in each input
    aggregate, reduce        the first rows of the group, and their number; of Min and Max a witness
    top, order_by            the row, and its place
    fixpoint                 the row of the body, over the relations as they are in the end
    iterate                  the row of the body, over the relations of the round before

Whether an input row makes the row is asked of the reference, which evaluates the node over that row
alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import Expr, Lifted, row_names
from optimizer.expressions.text import text
from optimizer.plans.explain import headline
from optimizer.plans.join_lists import outputs
from optimizer.plans.properties import below_wheres, bindings, fact, free, nodes
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.provenance.goals import (
    Absence,
    Derivation,
    Goal,
    Members,
    Note,
    PlaceInOrder,
    Rounds,
    goal,
)
from reactive.engine.provenance.pull import Pull, SidesOfJoin
from reactive.engine.provenance.wanted import UNKNOWN, Wanted, through, wanted, wanted_row
from reactive.engine.reference.asking import evaluate_node
from reactive.engine.reference.bags import Bag, PairedInputs, caller, ordered_rows, pairing

SHOWN = 10
"""Number of rows of a group that are shown."""
MOST = 1_000
"""Number of derivations that are looked at where all have the same height."""
LINEAR = (plan.Select, plan.Extend, plan.SelectMany, plan.Unnest)
EXTREMES = frozenset({"Min", "Max"})


class RowDerivations:
    """Finds the derivations of goals of one query.

    Parameters
    ----------
    asked: an object with `pull(rounds)`, which finds rows; `relation(node)`, the recursion and
        index of a relation; `last_round` and `first_round` of a recursion.
    by_rounds: True to show each row of a fixpoint from rows of earlier rounds. Evaluates all rounds
        from scratch, and finds a proof also where a row depends on a row of a smaller value.
    """

    def __init__(self, asked: Any, *, by_rounds: bool = False) -> None:
        self._asked, self._by_rounds = asked, by_rounds
        self._relations: dict[tuple[Any, int], plan.Node] = {}

    def relation_goal(self, node: plan.Node, row: Row, rounds: Rounds) -> Goal:
        """Return the goal of a row of a recursive relation, the same for all who read it."""
        recursion, index = self._asked.relation(node)
        level = recursion.level
        known = self._relations.get((level, index))
        if known is None:
            known = self._relations[level, index] = plan.Component(recursion, index)
        read = free(recursion)
        around = tuple(each for each in rounds if each[0] in read)
        if not self._by_rounds and not isinstance(recursion, plan.Iterate):
            return goal(known, row, around)
        at = dict(rounds).get(level) if isinstance(node, plan.Recursive) else None
        last = self._asked.last_round(recursion, around) if at is None else at
        if isinstance(recursion, plan.Fixpoint):
            last = self._asked.first_round(recursion, index, row, around, last)
        return goal(known, row, (*around, (level, last)))

    def goal(self, node: plan.Node, row: Row, rounds: Rounds) -> Goal:
        """Return the goal of a row of a node."""
        if isinstance(node, plan.Recursive | plan.Component | plan.Fixpoint | plan.Iterate):
            return self.relation_goal(node, row, rounds)
        read = free(node)
        return goal(node, row, tuple(each for each in rounds if each[0] in read))

    def of(self, asked: Goal) -> list[Derivation]:
        """Return the derivations of a goal."""
        most = None if _has_recursion(asked.node) else MOST
        return list(islice(self._of(asked), most))

    def _of(self, asked: Goal) -> Iterator[Derivation]:
        node, row, rounds = asked.node, asked.row, asked.rounds
        pull: Pull = self._asked.pull(rounds)
        match node:
            case plan.Table():
                if pull.has(node, row):
                    yield Derivation(leaf="fact")
            case plan.Values() | plan.Given():
                if pull.weight(node, row) > 0:
                    yield Derivation(leaf="value")
            case plan.Previous():
                if pull.weight(node, row) > 0:
                    yield Derivation((), (Note("held before the last commit"),), leaf="past")
            case plan.Component(plan.Iterate() as iterate, index):
                yield from self._of_round(iterate, index, asked)
            case plan.Component(plan.Fixpoint() as fixpoint, index):
                yield from self._of_relation(fixpoint, index, asked, pull)
            case plan.View(source):
                yield Derivation((self.goal(source, row, rounds),))
            case plan.Aggregate() | plan.Reduce():
                yield from self._of_group(node, asked, pull)
            case plan.Top() | plan.OrderBy():
                yield from self._of_place(node, asked, pull)
            case plan.AsofJoin():
                yield from self._of_nearest(node, asked, pull)
            case plan.Difference(left, right) | plan.DifferenceAll(left, right):
                has, is_bag = pull.weight(right, row), isinstance(node, plan.DifferenceAll)
                if has <= 0 or (is_bag and pull.weight(left, row) > has):
                    absence = Absence(right, (), row, max(has, 0))
                    yield Derivation((self.goal(left, row, rounds),), (absence,))
            case plan.Intersection(left, right) | plan.IntersectionAll(left, right):
                yield Derivation((self.goal(left, row, rounds), self.goal(right, row, rounds)))
            case plan.Distinct() | plan.Union() | plan.UnionAll():
                for source in node.inputs():
                    if pull.has(source, row):
                        yield Derivation((self.goal(source, row, rounds),))
            case _:
                found = pairing(node)
                if found is not None:
                    yield from self._of_pair(node, found, asked, pull)
                elif isinstance(node, plan.Where):
                    if _made_of(node, row):
                        yield Derivation((self.goal(node.input, row, rounds),))
                elif isinstance(node, LINEAR):
                    yield from self._of_row(node, asked, pull)
                elif not isinstance(node, plan.Negate | plan.Empty):
                    raise PlanError(f"why cannot explain a row of {headline(node)}")

    def _of_row(self, node: plan.Node, asked: Goal, pull: Pull) -> Iterator[Derivation]:
        """Yield a derivation for each input row of which a linear node makes the row."""
        (source,) = node.inputs()
        for below in pull.rows(source, pull.below(node, _exact(asked))):
            if _made_of(node, below).get(asked.row, 0) > 0:
                yield Derivation((self.goal(source, below, asked.rounds),))

    # Joins.

    def _of_pair(
        self, node: plan.Node, found: PairedInputs, asked: Goal, pull: Pull
    ) -> Iterator[Derivation]:
        join = below_wheres(node) if isinstance(node, plan.Where) else node
        row, rounds = asked.row, asked.rounds
        count = bindings(found.left)
        if isinstance(join, plan.SemiJoin):
            left = self.goal(found.left, row, rounds)
            for other in pull.paired(node, found, _exact(asked))[1]:
                if _makes(node, row, other, row):
                    yield Derivation((left, self.goal(found.right, other, rounds)))
            return
        if isinstance(join, plan.AntiJoin):
            if not _has_partner(node, found, row, pull):
                left = self.goal(found.left, row, rounds)
                yield Derivation((left,), (_absence(node, found, row, pull),))
            return
        one = row[0] if count == 1 else row[:count]
        other = row[count]
        kind = join.kind if isinstance(join, plan.OuterJoin) else None
        if kind is None:
            if _makes(node, one, other, row):
                pair = self.goal(found.left, one, rounds), self.goal(found.right, other, rounds)
                yield Derivation(pair)
            return
        has_left = pull.weight(found.left, one) > 0
        has_right = pull.weight(found.right, other) > 0
        if has_left and has_right and _makes(node, one, other, row):
            pair = self.goal(found.left, one, rounds), self.goal(found.right, other, rounds)
            yield Derivation(pair)
        elif has_left and other is None and not _has_partner(node, found, one, pull):
            absence = _absence(node, found, one, pull)
            yield Derivation((self.goal(found.left, one, rounds),), (absence,))
        elif has_right and pull.weight(node, row) > 0:
            absence = Absence(found.left, (), None)
            yield Derivation((self.goal(found.right, other, rounds),), (absence,))

    def _of_nearest(self, node: plan.AsofJoin, asked: Goal, pull: Pull) -> Iterator[Derivation]:
        """Yield the derivations of a pair of rows that are nearest in time."""
        row = asked.row
        one = row[0] if node.count == 1 else row[: node.count]
        lefts = [each for each in pull.rows(node.left) if _is_same(each[0], one)]
        rights = [each for each in pull.rows(node.right) if each[0] == row[node.count]]
        for left in lefts:
            mine = self.goal(node.left, left, asked.rounds)
            for right in rights:
                if _is_same(left[1], right[1]) and _makes(node, left, right, row):
                    theirs = self.goal(node.right, right, asked.rounds)
                    yield Derivation((mine, theirs), (Note("the nearest in time"),))
                    break
            else:
                if row[node.count] is None:
                    yield Derivation((mine,), (Absence(node.right, (("key", left[1]),)),))

    # Groups and orders.

    def _of_group(
        self, node: plan.Aggregate | plan.Reduce, asked: Goal, pull: Pull
    ) -> Iterator[Derivation]:
        """Yield the derivation of the row of a group: its first members, or a witness."""
        members = self._members(node, asked, pull)
        if evaluate_node(node, lambda _: members).get(asked.row, 0) <= 0:
            return
        key = None if node.key is None else _key_of(node, asked.row)
        first = tuple(islice(members, SHOWN))
        beside = Members(node.input, key, first, sum(members.values()))
        witnesses = _witnesses(node, asked.row, members)
        shown = first if witnesses is None else tuple(witnesses)
        premises = tuple(self.goal(node.input, each, asked.rounds) for each in shown)
        yield Derivation(premises, (beside,))

    def _members(self, node: plan.Aggregate | plan.Reduce, asked: Goal, pull: Pull) -> Bag:
        """Return the rows of a group that are there."""
        rows = pull.rows(node.input, pull.below(node, _exact(asked)))
        if node.key is None:
            return Counter({row: n for row, n in rows.items() if n > 0})
        key, mine = caller(node.key, node.input), _key_of(node, asked.row)
        return Counter({row: n for row, n in rows.items() if n > 0 and _is_same(key(row), mine)})

    def _of_place(
        self, node: plan.Top | plan.OrderBy, asked: Goal, pull: Pull
    ) -> Iterator[Derivation]:
        """Yield the derivation of a row by its place in an order."""
        if pull.weight(node, asked.row) <= 0:
            return
        order = node.order if isinstance(node, plan.Top) else node
        rows = pull.rows(node.input, pull.below(node, _exact(asked)))
        if isinstance(node, plan.Top):
            key = caller(node.key, node)
            mine = key(asked.row)
            rows = Counter({row: n for row, n in rows.items() if _is_same(key(row), mine)})
        whole = plan.OrderBy(order.input, order.keys, None, 0, getattr(order, "shown", None))
        rows_in_order = ordered_rows(whole, rows)
        place = rows_in_order.index(asked.row) + 1
        below = asked.row
        if order.shown is not None and order.shown < bindings(node.input):
            show = order.show
            assert show is not None
            below = next(row for row in rows if show(row) == asked.row)
        premise = self.goal(node.input, below, asked.rounds)
        yield Derivation((premise,), (PlaceInOrder(place, len(rows_in_order)),))

    # Recursion.

    def _of_relation(
        self, fixpoint: plan.Fixpoint, index: int, asked: Goal, pull: Pull
    ) -> Iterator[Derivation]:
        """Yield the derivations of a row by its body, over the relations as they are."""
        body, best = fixpoint.bodies[index], fixpoint.best[index]
        rounds = asked.rounds
        if self._by_rounds:
            at = dict(rounds)[fixpoint.level] - 1
            around = tuple(each for each in rounds if each[0] != fixpoint.level)
            if at < 0:
                return
            rounds = (*around, (fixpoint.level, at))
            pull = self._asked.pull(rounds)
        if not isinstance(best, plan.JoinedValue):
            yield Derivation((self.goal(body, asked.row, rounds),))
            return
        value, key = caller(best.value, body), caller(best.by, body)
        parts = self._joined(best, body, asked, pull)
        joined = None
        premises = []
        if self._by_rounds:
            read = plan.Recursive(fixpoint.level, index, fixpoint.names[index], is_set=True)
            for row in pull.rows(read):
                if _is_same(key(row), key(asked.row)):
                    premises.append(self.goal(read, row, rounds))
                    joined = value(row)
        for part in parts:
            new = value(part) if joined is None else best.lattice.join(joined, value(part))
            if joined is None or new != joined:
                premises.append(self.goal(body, part, rounds))
            joined = new
        notes: tuple[Note, ...] = ()
        if joined is None or canonical(joined) != value(asked.row):
            notes = (Note("widened"),)
        yield Derivation(tuple(premises), notes)

    def _joined(
        self, best: plan.JoinedValue, body: plan.Node, asked: Goal, pull: Pull
    ) -> list[Row]:
        """Return the rows of a body whose values are joined to a row of a relation."""
        key = caller(best.by, body)
        mine = key(asked.row)
        asked_key = wanted((best.by.body,), [(mine,)]) if isinstance(best.by, Lifted) else None
        rows = pull.rows(body, () if asked_key is None else (asked_key,))
        return [row for row, n in rows.items() if n > 0 and _is_same(key(row), mine)]

    def _of_round(self, iterate: plan.Iterate, index: int, asked: Goal) -> Iterator[Derivation]:
        """Yield the derivations of a row of an iteration, at a round."""
        at = dict(asked.rounds)[iterate.level]
        outer = tuple(each for each in asked.rounds if each[0] != iterate.level)
        if at == 0:
            yield Derivation((self.goal(iterate.starts[index], asked.row, outer),))
        else:
            before = (*outer, (iterate.level, at - 1))
            yield Derivation((self.goal(iterate.bodies[index], asked.row, before),))


def _is_same(one: Any, other: Any) -> bool:
    """Return True for equal values; NaN is one object."""
    return one is other or bool(one == other)


def _exact(asked: Goal) -> Sequence[Wanted]:
    found = wanted_row(asked.row, bindings(asked.node))
    return () if found is None else (found,)


def _made_of(node: plan.Node, row: Row) -> Bag:
    """Return the rows that a node with one input makes of one row."""
    return evaluate_node(node, lambda _: Counter([row]))


def _makes(node: plan.Node, left: Row, right: Row, row: Row) -> bool:
    """Return True if a join makes a row of one row of each side."""
    sides = iter((Counter([left]), Counter([right])))
    return evaluate_node(node, lambda _: next(sides)).get(row, 0) > 0


def _has_partner(node: plan.Node, found: PairedInputs, left: Row, pull: Pull) -> bool:
    """Return True if a left row of a join has a partner."""
    keys = SidesOfJoin(node, found, ()).right_keys(Counter([left]), pull.evaluate)
    assert isinstance(node, plan.AntiJoin | plan.OuterJoin)
    semi = plan.SemiJoin(found.left, found.right, node.match)
    sides = iter((Counter([left]), pull.rows(found.right, keys)))
    return bool(evaluate_node(semi, lambda _: next(sides)))


def _absence(node: plan.Node, found: PairedInputs, left: Row, pull: Pull) -> Absence:
    """Return what the right input of a join lacks for a left row."""
    count = bindings(found.left)
    sides = SidesOfJoin(node, found, ())
    values = []
    for equation in sides.equations:
        of = pull.evaluate.of((equation.one,), count)(left)
        if of is not UNKNOWN:
            values.append((equation.other, of[0]))
    return _absence_of(found.right, values, left)


def _absence_of(node: plan.Node, values: list[tuple[Expr, Any]], left: Row) -> Absence:
    """Return the absence of rows with some values, in terms of the tables below a select."""
    exprs, wished = tuple(expr for expr, _ in values), tuple(value for _, value in values)
    names: Sequence[str] = row_names(bindings(node))
    while isinstance(node, plan.Distinct | plan.Select | plan.Where):
        if isinstance(node, plan.Select):
            found = None if not exprs else wanted(exprs, [wished])
            below = None if found is None else through(found, outputs(node))
            if below is None or len(below.values) != 1 or not isinstance(node.function, Lifted):
                break
            exprs, (wished,) = below.exprs, below.values
            names = node.function.names
        node = node.input
    texts = [_without_name(text(expr, names)) for expr in exprs]
    return Absence(node, tuple(zip(texts, wished, strict=True)), left)


def _without_name(written: str) -> str:
    """Return an expression over a row in words: `name` for `row.name`."""
    first, _, rest = written.partition(".")
    is_field = first.isidentifier() and rest.isidentifier()
    return rest if is_field else written.replace("row.", "")


def _key_of(node: plan.Aggregate | plan.Reduce, row: Row) -> Any:
    """Return the key of the group of a row that a node makes."""
    return row if isinstance(node, plan.Aggregate) and not node.aggregates else row[0]


def _witnesses(node: plan.Node, row: Row, members: Bag) -> list[Row] | None:
    """Return the members that alone have the extremes of a group; None for other aggregates."""
    if not isinstance(node, plan.Aggregate) or not node.aggregates:
        return None
    found: dict[Row, None] = {}
    first = 0 if node.key is None else 1
    for place, folded in enumerate(node.aggregates):
        if folded.name not in EXTREMES:
            return None
        several = len(node.aggregates) + first > 1
        result = row[first + place] if several else row
        value = None if folded.value is None else caller(folded.value, node.input)
        witness = next(
            (m for m in members if _is_same(m if value is None else value(m), result)), None
        )
        if witness is None:
            return None
        found.setdefault(witness)
    return list(found)


def _has_recursion(node: plan.Node) -> bool:
    """Return True if proofs of the rows of a node may differ in height."""
    found: bool = fact(node, "has recursion", _find_recursion)
    return found


def _find_recursion(node: plan.Node) -> bool:
    kinds = plan.Recursive | plan.Component | plan.Fixpoint | plan.Iterate | plan.Aggregate
    return any(isinstance(each, kinds) for each in nodes(node))
