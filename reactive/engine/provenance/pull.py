"""Rows of a query that have wanted values: the values are pushed down to tables, set by set.

    rows of      select (o.id, c.name)              with o.id in {7}
      rows of    join on o.customer == c.id         with o.id in {7}
        rows of  orders o                           with o.id in {7}: one, of customer 3
        rows of  customers c                        with c.id in {3}

Each node is then evaluated by the reference over the rows that its inputs have, so that every
operator means here what it means there. What is wanted of an input is what a wanted row of the node
needs; a node that needs all rows of an input (an order, a window) reads them all.

A recursion is not evaluated: its rows are those of a view of it, which is made at the first
question and kept, and which shares the operators of views that are there.

State:  the sources of rows (`row_sources.py`), and rows of nodes that were read as a whole.
Cost:   of the rows found on the way; joins begin at the input of which the fewest rows are wanted.
Source: [dbsp] for the operators; the pushing is that of magic sets (Bancilhon et al., PODS 1986).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from optimizer import plan
from optimizer.expr import Constant, Expr, Lifted, all_parameters, one_value, reads
from optimizer.plans.join_lists import outputs
from optimizer.plans.properties import bindings, shapes
from reactive.engine.collections.zset import Row
from reactive.engine.provenance.row_sources import RowSource, source_of_bag
from reactive.engine.provenance.wanted import (
    UNKNOWN,
    EqualParts,
    Evaluator,
    Wanted,
    as_bindings,
    constants_in,
    equations_in,
    moved,
    through,
    wanted,
    wanted_row,
)
from reactive.engine.reference.asking import evaluate_node
from reactive.engine.reference.bags import Bag, PairedInputs, pairing
from reactive.engine.runtime.interrupts import reraise_asynchronous

Place = tuple[Any, int]
"""A relation of a recursion: the level of its definition, and its index there."""
SAME_ROWS = (
    *(plan.Where, plan.Distinct, plan.Negate, plan.View, plan.SetOperation),
    plan.UnionAll,
)
"""Nodes whose rows are rows of each input: what is wanted of them is wanted of the inputs."""


class Pull:
    """Finds the rows of the nodes of a query, as of one version.

    Parameters
    ----------
    source: returns the source of the rows of a table, view or recursion; None for nodes that are
        evaluated.
    """

    def __init__(self, source: Callable[[plan.Node], RowSource | None]) -> None:
        self._source = source
        self._whole: dict[int, tuple[plan.Node, RowSource]] = {}
        self.evaluate = Evaluator()

    def rows(self, node: plan.Node, asked: Sequence[Wanted] = ()) -> Bag:
        """Return the rows of a node that have all the wanted values, with their weights."""
        if any(not each.values for each in asked):
            return Counter()
        asked = [each for each in asked if each.exprs]
        count = bindings(node)
        source = self._source(node)
        if source is None and not self._is_pushed(node, asked):
            source = self._read_whole(node)
        if source is not None:
            shape = shapes(node)[0] if count == 1 else None
            width = len(shape) if isinstance(shape, tuple) else None
            return source.rows(asked, count, self.evaluate, width)
        return self._with_wanted_values(self._made(node, asked), asked, count)

    def _is_pushed(self, node: plan.Node, asked: Sequence[Wanted]) -> bool:
        """Return True if fewer rows of an input are read because of what is wanted of a node.

        Otherwise it is evaluated once, and its rows are kept.
        """
        if not asked or isinstance(node, plan.OrderBy) or id(node) in self._whole:
            return False
        found = pairing(node)
        if found is not None:
            sides = SidesOfJoin(node, found, asked)
            return bool(sides.of_left or sides.of_right)
        return not node.inputs() or bool(self.below(node, asked))

    def has(self, node: plan.Node, row: Row) -> bool:
        """Return False for a row that a table, view or relation does not have; else True."""
        return self._source(node) is None or self.weight(node, row) > 0

    def weight(self, node: plan.Node, row: Row) -> int:
        """Return the weight of a row in a node."""
        return self.rows_like(node, row).get(row, 0)

    def rows_like(self, node: plan.Node, row: Row) -> Bag:
        """Return a row of a node as a bag, which is empty if the node does not have it."""
        asked = wanted_row(row, bindings(node))
        return self.rows(node, () if asked is None else (asked,))

    def _made(self, node: plan.Node, asked: Sequence[Wanted]) -> Bag:
        """Return rows of a node, evaluated over the rows of its inputs that are needed."""
        found = pairing(node)
        if found is not None:
            pair = iter(self.paired(node, found, asked))
            return evaluate_node(node, lambda source: next(pair))
        if isinstance(node, plan.Difference | plan.DifferenceAll):
            left = self.rows(node.left, asked)
            hidden = wanted(all_parameters(bindings(node)), _row_values(left, bindings(node)))
            right = self.rows(node.right, () if hidden is None else (hidden,))
            rows = iter((left, right) if isinstance(node, plan.DifferenceAll) else (right, left))
            return evaluate_node(node, lambda source: next(rows))
        pushed = self.below(node, asked)
        known = {id(source): self.rows(source, pushed) for source in node.inputs()}
        return evaluate_node(node, lambda source: known[id(source)])

    def _with_wanted_values(self, rows: Bag, asked: Sequence[Wanted], count: int) -> Bag:
        tests = [(self.evaluate.of(each.exprs, count), each.values) for each in asked]
        return Counter(
            {
                row: weight
                for row, weight in rows.items()
                if all(of(row) in values for of, values in tests)
            }
        )

    def _read_whole(self, node: plan.Node) -> RowSource:
        """Return all rows of a node as a source, which is kept for this version."""
        found = self._whole.get(id(node))
        if found is None:
            found = self._whole[id(node)] = (node, source_of_bag(self._made(node, ())))
        return found[1]

    def below(self, node: plan.Node, asked: Sequence[Wanted]) -> list[Wanted]:
        """Return what is wanted of each input of a node that pairs no inputs."""
        found = [each for each in (self._below(node, one) for one in asked) if each is not None]
        if isinstance(node, plan.Where):
            found += _constants_in(node)
        return found

    def _below(self, node: plan.Node, asked: Wanted) -> Wanted | None:
        if isinstance(node, SAME_ROWS):
            return asked
        if isinstance(node, plan.Top):
            return self._of_groups(node, asked)
        made = _outputs(node)
        return None if made is None else through(asked, made)

    def _of_groups(self, node: plan.Top, asked: Wanted) -> Wanted | None:
        """Return what is wanted of the input of a `top`: all rows of the wanted rows' groups."""
        count = bindings(node)
        if not isinstance(node.key, Lifted) or asked.exprs != all_parameters(count):
            return None
        of = self.evaluate.of((node.key.body,), count)
        keys = {of(value[0] if count == 1 else value) for value in asked.values}
        return None if UNKNOWN in keys else wanted((node.key.body,), keys)

    # Joins.

    def paired(
        self, node: plan.Node, found: PairedInputs, asked: Sequence[Wanted]
    ) -> tuple[Bag, Bag]:
        """Return the rows of both inputs of a join that its wanted rows are made of."""
        sides = SidesOfJoin(node, found, asked)
        if sides.keeps_left and sides.keeps_right:
            return self.rows(found.left), self.rows(found.right)
        if sides.keeps_left or (
            not sides.keeps_right
            and self.estimate(found.left, sides.of_left)
            <= self.estimate(found.right, sides.of_right)
        ):
            left = self._filtered(found.left, sides.of_left, sides.left_tests)
            keys = sides.right_keys(left, self.evaluate)
            return left, self.rows(found.right, [*sides.of_right, *keys])
        right = self.rows(found.right, sides.of_right)
        keys = sides.left_keys(right, self.evaluate)
        return self._filtered(found.left, [*sides.of_left, *keys], sides.left_tests), right

    def _filtered(self, node: plan.Node, asked: Sequence[Wanted], tests: Sequence[Lifted]) -> Bag:
        """Return rows of the left input of a join; of a product, only those that pass its tests.

        If a test raises, all rows are returned: it may be that the query never tests that row.
        """
        if tests and isinstance(node, plan.Product | plan.Join):
            tested: plan.Node = node
            for test in tests:
                tested = plan.Where(tested, test)
            try:
                return self.rows(tested, asked)
            except Exception as error:
                reraise_asynchronous(error)
        return self.rows(node, asked)

    def estimate(self, node: plan.Node, asked: Sequence[Wanted]) -> int:
        """Return about how many rows will be looked at for the rows of a node."""
        asked = [each for each in asked if each.exprs]
        source = self._source(node)
        if source is not None:
            return source.estimate(asked, bindings(node))
        whole = self._whole.get(id(node))
        if whole is not None:
            return whole[1].estimate(asked, bindings(node))
        found = pairing(node)
        if found is not None:
            sides = SidesOfJoin(node, found, asked)
            return min(
                self.estimate(found.left, sides.of_left),
                self.estimate(found.right, sides.of_right),
            )
        pushed = self.below(node, asked)
        return sum([self.estimate(source, pushed) for source in node.inputs()])


def _row_values(rows: Iterable[Row], count: int) -> Iterable[tuple[Any, ...]]:
    return [(row,) for row in rows] if count == 1 else list(rows)


def _outputs(node: plan.Node) -> Sequence[Expr | None] | None:
    """Return the bindings of a node as expressions over its input, None for those not known."""
    match node:
        case plan.Select() | plan.Extend():
            return outputs(node)
        case plan.Unnest(source):
            return [*all_parameters(bindings(source)), None]
        case plan.Aggregate(_, Lifted(body), aggregates):
            return [body, *_no(aggregates)]
        case plan.Reduce(_, Lifted(body)):
            return [body, None]
        case plan.OrderBy(source, _, None, 0) if node.shown is None:
            return all_parameters(bindings(source))
        case _:
            return None


def _no(things: Sequence[Any]) -> list[None]:
    return [None] * len(things)


def _constants_in(node: plan.Where) -> list[Wanted]:
    """Return what a filter wants by its equations with constants."""
    found = []
    for one, other in constants_in([node.predicate]):
        made = wanted((one,), [(other.value,)])
        if made is not None:
            found.append(made)
    return found


class SidesOfJoin:
    """Wanted values of the two inputs of a join.

    `keeps_left` and `keeps_right` tell if rows of the left or right input are kept that have no
    partner; then only what is wanted of the row itself may be pushed to that input, and nothing to
    the other one but the keys of the rows found.
    """

    def __init__(self, node: plan.Node, found: PairedInputs, asked: Sequence[Wanted]) -> None:
        self._count = bindings(found.left)
        self._right_count = bindings(found.right)
        self._shows_right = not isinstance(node, plan.SemiJoin | plan.AntiJoin)
        kind = node.kind if isinstance(node, plan.OuterJoin) else None
        self.keeps_left = kind in ("left", "full") or isinstance(node, plan.AntiJoin)
        self.keeps_right = kind in ("right", "full")
        self.of_left = [] if kind in ("right", "full") else self._of_left(asked)
        self.of_right = [] if self.keeps_left else self._of_right(asked)
        self.left_tests: list[Lifted] = []
        if not (self.keeps_left or self.keeps_right):
            self._divide(found)
        self.equations = self._equations_of(found)

    def _of_left(self, asked: Sequence[Wanted]) -> list[Wanted]:
        own = [*all_parameters(self._count), None]
        return [each for each in (through(one, own) for one in asked) if each is not None]

    def _of_right(self, asked: Sequence[Wanted]) -> list[Wanted]:
        if not self._shows_right:
            return []
        right = one_value(all_parameters(self._right_count))
        own = [*[None] * self._count, right]
        return [each for each in (through(one, own) for one in asked) if each is not None]

    def _divide(self, found: PairedInputs) -> None:
        """Find the tests that read one input only, and what they want of it."""
        for test in found.predicates:
            if not isinstance(test, Lifted):
                continue
            read = reads(test.body)
            if read and max(read) < self._count:
                self.left_tests.append(
                    Lifted(test.body, test.names[: self._count], test.origins, self._count)
                )
        for one, other in constants_in(found.predicates):
            self._want_constant(one, other)

    def _want_constant(self, one: Expr, other: Constant) -> None:
        read = reads(one)
        if max(read) < self._count:
            made = wanted((one,), [(other.value,)])
            self.of_left += [] if made is None else [made]
        elif min(read) == self._count:
            made = wanted((self._as_right(one),), [(other.value,)])
            self.of_right += [] if made is None else [made]

    def _equations_of(self, found: PairedInputs) -> list[EqualParts]:
        """Return the equations of the left input with the right one, each over its own bindings."""
        made = []
        if found.keys is not None and all(isinstance(key, Lifted) for key in found.keys):
            left, right = found.keys
            assert isinstance(left, Lifted)
            assert isinstance(right, Lifted)
            made.append(EqualParts(left.body, as_bindings(right.body, 0, self._right_count)))
        for equation in equations_in(found.predicates):
            one, other = equation.one, equation.other
            if reads(one) and min(reads(one)) >= self._count:
                one, other = other, one
            if not reads(one) or not reads(other):
                continue
            if max(reads(one)) < self._count <= min(reads(other)):
                made.append(EqualParts(one, self._as_right(other)))
        return made

    def _as_right(self, expr: Expr) -> Expr:
        """Return an expression over the pair as one over the bindings of the right input."""
        return as_bindings(moved(expr, {self._count: 0}), 0, self._right_count)

    def right_keys(self, left: Bag, evaluate: Evaluator) -> list[Wanted]:
        """Return what the left rows want of the right input."""
        mine = tuple(equation.one for equation in self.equations)
        theirs = tuple(equation.other for equation in self.equations)
        return _keys(left, mine, theirs, self._count, evaluate)

    def left_keys(self, right: Bag, evaluate: Evaluator) -> list[Wanted]:
        """Return what the right rows want of the left input."""
        mine = tuple(equation.other for equation in self.equations)
        theirs = tuple(equation.one for equation in self.equations)
        return _keys(right, mine, theirs, self._right_count, evaluate)


def _keys(
    rows: Bag,
    mine: tuple[Expr, ...],
    theirs: tuple[Expr, ...],
    count: int,
    evaluate: Evaluator,
) -> list[Wanted]:
    """Return the values that rows want of the other input; nothing if one cannot be computed."""
    if not mine:
        return []
    of = evaluate.of(mine, count)
    values = {of(row) for row in rows}
    if UNKNOWN in values:
        return []
    made = wanted(theirs, values)
    return [] if made is None else [made]
