"""Joins inside a recursion evaluated from scratch: the changes of pairs and of partners.

    JoinChange   pairs of the change of either side and all rows of the other
    ByPairs      rows with a partner, or without one, given the pairs: an outer join
    HalfJoin     left rows with a partner, or without one: a row needs only one partner

Deletions are applied first: no pair with a deleted row is tested.

State: the rows of both sides by their keys; of an outer join the weight of the pairs of each row,
       of a half join one partner of each left row.
Cost:  the pairs of a changed row, each tested once. A half join searches a partner for a left row
       again only if its partner is deleted.
Source: [dbsp] section 4, semi-naive evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter

from optimizer import plan
from optimizer.expr import Function
from optimizer.plans.properties import bindings
from reactive.engine.collections.index import itself
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.reference.bags import (
    Bag,
    EqualityMatching,
    PairedInputs,
    apply_changes,
    bag_delta,
    join_rows,
    make_bag,
    net,
    pair_maker,
)
from reactive.engine.reference.parts import NodeChange


class JoinChange:
    """The change of pairs. Of the predicates only `tests` are tested, if given."""

    def __init__(
        self,
        found: PairedInputs,
        left: NodeChange,
        right: NodeChange,
        *,
        tests: Sequence[Function] | None = None,
    ) -> None:
        self.change = Bag()
        self._inputs = left, right
        self._matching = EqualityMatching(found, tests=tests)
        self._pair = pair_maker(found.left)

    def step(self) -> None:
        """Set `change` to the pairs of either side's change; deletions are applied first."""
        left, right = self._inputs
        self.change = Bag()
        for is_coming in (False, True):
            for row, weight in _moving(left.change, is_coming):
                self._add(((row, b), weight * m) for b, m in self._matching.partners(row))
                self._matching.left.move(row, weight)
            for row, weight in _moving(right.change, is_coming):
                self._add(((a, row), n * weight) for a, n in self._matching.left_partners(row))
                self._matching.right.move(row, weight)
        self.change = net(self.change)

    def _add(self, pairs: Iterable[tuple[tuple[Row, Row], int]]) -> None:
        """Add the joined rows of the pairs to `change`."""
        change, pair = self.change, self._pair
        for (a, b), weight in pairs:
            row = pair(a, b)
            change[row] = change.get(row, 0) + weight


class ByPairs:
    """The change of an outer join, a semi-join or an anti-join, by the pairs that match."""

    def __init__(
        self,
        node: plan.OuterJoin | plan.SemiJoin | plan.AntiJoin,
        inputs: Sequence[NodeChange],
        pairs: NodeChange,
    ) -> None:
        self.change = Bag()
        left, right = inputs
        count, pair = bindings(node.left), pair_maker(node.left)
        left_of = itemgetter(0 if count == 1 else slice(-1))
        nothing = None if count == 1 else (None,) * count
        kind = node.kind if isinstance(node, plan.OuterJoin) else "none"
        self._pairs = None if kind == "none" else pairs
        self._sides: list[_Partners] = []
        if kind == "none":
            keeps = isinstance(node, plan.SemiJoin)
            self._sides.append(_Partners(left, pairs, left_of, itself, keeps=keeps))
        if kind in ("left", "full"):
            alone = _Partners(left, pairs, left_of, lambda a: pair(a, None), keeps=False)
            self._sides.append(alone)
        if kind in ("right", "full"):
            show: Callable[[Row], Row] = lambda b: pair(nothing, b)  # noqa: E731
            self._sides.append(_Partners(right, pairs, itemgetter(-1), show, keeps=False))

    def step(self) -> None:
        self.change = Bag() if self._pairs is None else make_bag(self._pairs.change)
        for side in self._sides:
            apply_changes(self.change, side.take())


class _Partners:
    """The rows of one side with a partner, or without one, as they are shown.

    A row of weight n whose partners have the total weight m is in pairs of total weight n * m.
    """

    def __init__(
        self,
        source: NodeChange,
        pairs: NodeChange,
        row_of: Callable[[Row], Row],
        show: Callable[[Row], Row],
        *,
        keeps: bool,
    ) -> None:
        self._source, self._pairs = source, pairs
        self._row_of, self._show, self._keeps = row_of, show, keeps
        self._held, self._in_pairs, self._shown = Bag(), Bag(), Bag()

    def take(self) -> Bag:
        """Apply the changes of the rows and pairs; return the change of the shown rows."""
        touched = dict.fromkeys(self._source.change)
        apply_changes(self._held, self._source.change)
        for pair, weight in self._pairs.change.items():
            row = self._row_of(pair)
            touched[row] = None
            self._in_pairs[row] = self._in_pairs.get(row, 0) + weight
        change, moves = Bag(), Bag()
        for row in touched:
            held, in_pairs = self._held.get(row, 0), self._in_pairs.get(row, 0)
            if not in_pairs:
                self._in_pairs.pop(row, None)
            is_shown = (held * in_pairs > 0) is self._keeps
            moved = (held if is_shown else 0) - self._shown.get(row, 0)
            if moved:
                moves[row] = moved
                shown = self._show(row)
                change[shown] = change.get(shown, 0) + moved
        apply_changes(self._shown, moves)
        return net(change)


class HalfJoin:
    """The change of the left rows with a partner, or of the left rows without one.

    Each left row with partners chooses one of them. The other left rows are waiting. Right rows of
    negative weight may cancel others: once there was one, all rows are recomputed.
    """

    def __init__(
        self,
        node: plan.SemiJoin | plan.AntiJoin,
        found: PairedInputs,
        left: NodeChange,
        right: NodeChange,
    ) -> None:
        self.change = Bag()
        self._node, self._found, self._inputs = node, found, (left, right)
        self._matching = EqualityMatching(found)
        """The rows by key; its left side has the waiting rows."""
        self._keeps = isinstance(node, plan.SemiJoin)
        self._lefts, self._rights, self._shown = Bag(), Bag(), Bag()
        self._is_signed = False
        self._partner: dict[Row, Row] = {}
        self._chosen_by: dict[Row, dict[Row, None]] = {}

    def step(self) -> None:
        """Set `change` to the left rows that were changed, or won or lost their partners."""
        left, right = (part.change for part in self._inputs)
        new_left = [row for row in left if row not in self._lefts]
        new_right = [row for row in right if row not in self._rights]
        apply_changes(self._lefts, left)
        apply_changes(self._rights, right)
        self._is_signed = self._is_signed or any(self._rights.get(row, 0) < 0 for row in right)
        if self._is_signed:
            self.change = bag_delta(self._all(), self._shown)
        else:
            for row in left:
                if row not in self._lefts:
                    self._release(row)
            touched = dict.fromkeys([*left, *self._move_right(right, new_right, new_left)])
            self.change = self._change_of(touched)
        apply_changes(self._shown, self.change)

    def _all(self) -> Bag:
        """Return the shown rows, recomputed."""
        found = self._found
        sides = {id(found.right): self._rights, id(found.left): self._lefts}
        return join_rows(self._node, found, lambda source: sides[id(source)])

    def _move_right(self, change: Bag, come: list[Row], new_left: list[Row]) -> Iterator[Row]:
        """Apply a change of the right side, and new left rows.

        Yield the left rows that may have another partner.
        """
        matching = self._matching
        for row, weight in change.items():
            matching.right.move(row, weight)
        seeking = list(new_left)
        for row in change:
            if row not in self._rights:
                seeking += self._chosen_by.pop(row, ())
        for other in come:
            for row, _ in matching.left_partners(other):
                matching.left.move(row, -1)
                self._choose(row, other)
                yield row
        for row in seeking:
            self._partner.pop(row, None)
            self._seek(row)
            yield row

    def _seek(self, row: Row) -> None:
        """Find a partner for a left row without one; if there is none, keep the row to wait."""
        matching = self._matching
        for other, _ in matching.right.agreeing(matching.left.place(row)):
            if matching.fits(row, other):
                self._choose(row, other)
                return
        matching.left.move(row, 1)

    def _choose(self, row: Row, other: Row) -> None:
        """Record the partner that a left row has chosen."""
        self._partner[row] = other
        self._chosen_by.setdefault(other, {})[row] = None

    def _release(self, row: Row) -> None:
        """Remove a left row, from its partner or from the rows that wait for one."""
        if row not in self._partner:
            self._matching.left.move(row, -1)
            return
        other = self._partner.pop(row)
        del self._chosen_by[other][row]
        if not self._chosen_by[other]:
            del self._chosen_by[other]

    def _change_of(self, touched: Iterable[Row]) -> Bag:
        """Return the difference between the current and the shown weights of rows."""
        change = Bag()
        for row in touched:
            is_shown = (row in self._partner) is self._keeps
            moved = (self._lefts.get(row, 0) if is_shown else 0) - self._shown.get(row, 0)
            if moved:
                change[row] = moved
        return change


def _moving(change: Bag, is_coming: bool) -> list[Pair]:
    """Return the inserted rows, or the deleted rows."""
    return [(row, weight) for row, weight in change.items() if (weight > 0) is is_coming]
