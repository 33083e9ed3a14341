"""Plan nodes over columns, as often as a loop goes round.

    join         pairs of positions; a side that stays is arranged once
    aggregate    values by group; the groups stay as long as their keys do
    the rest     columns of columns

Rows are bags: a row that is there twice is in it twice, in any order.

State:  what stays from round to round, for one evaluation.
Cost:   O(rows and pairs), some passes over each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optimizer import plan
from optimizer.expr import Display, Lifted
from optimizer.plans.properties import free
from optimizer.plans.side_conditions import match_of, residual, side_conditions_of
from reactive.engine.operators.accumulators import (
    CountAccumulator,
    MaxAccumulator,
    MinAccumulator,
    SumAccumulator,
)
from spark_backend.columnar.expressions import column, value
from spark_backend.columnar.sums import Groups, kept_groups
from spark_backend.columnar.trees import Array, Leaf, NotColumnar, Rows, chained, net, taken, tuples


@dataclass(frozen=True, slots=True)
class Frame:
    """Some rows: a tree for each binding."""

    size: int
    bindings: tuple[Rows, ...]

    @property
    def row(self) -> Rows:
        """All bindings as one."""
        return self.bindings[0] if len(self.bindings) == 1 else tuples(self.bindings)


class Evaluation:
    """The nodes of a loop.

    Parameters
    ----------
    sides: what stays from round to round, by level and place.
    level: of the loop, whose relations change.
    """

    def __init__(self, sides: Mapping[tuple[Any, int], Frame], level: Any) -> None:
        self._sides, self._level = sides, level
        self._stays: dict[int, Frame] = {}
        self._groups: dict[int, Callable[[Array], Groups]] = {}
        self._matched: dict[int, tuple[Array, Array, Array, Array]] = {}

    def frame(self, node: plan.Node, given: Mapping[int, Frame]) -> Frame:
        """The rows of a node, by those of the loop's relations.

        Raises
        ------
        NotColumnar: it is not done over columns.
        """
        if self._level in free(node):
            return self._frame(node, given)
        if id(node) not in self._stays:
            self._stays[id(node)] = self._frame(node, given)
        return self._stays[id(node)]

    def _frame(self, node: plan.Node, given: Mapping[int, Frame]) -> Frame:
        match node:
            case plan.Recursive(level, index):
                return given[index] if level == self._level else self._sides[level, index]
            case plan.Select(source, Lifted() as function):
                of = self.frame(source, given)
                return Frame(of.size, (value(function.body, of.bindings, of.size),))
            case plan.SelectMany(source, Lifted(Display("tuple", items))):
                of = self.frame(source, given)
                made = [value(item, of.bindings, of.size) for item in items]
                return Frame(of.size * len(made), (chained(made),))
            case plan.UnionAll(left, right):
                one, other = self.frame(left, given), self.frame(right, given)
                return Frame(one.size + other.size, (chained([one.row, other.row]),))
            case plan.Distinct(source):
                return self._distinct(self.frame(source, given))
            case plan.Join(left, right):
                return self._join(node, self.frame(left, given), self.frame(right, given))
            case plan.Aggregate(source, Lifted()):
                return self._aggregate(node, self.frame(source, given))
            case _:
                raise NotColumnar(type(node).__name__)

    def _distinct(self, of: Frame) -> Frame:
        rows, weights = net(of.row, np.ones(of.size, np.int64))
        return Frame(len(weights), (rows,))

    def _join(self, node: plan.Join, left: Frame, right: Frame) -> Frame:
        ours, theirs = _keys(node)
        one = _integers(column(ours.body, left.bindings, left.size))
        other = _integers(column(theirs.body, [right.row], right.size))
        at, beside = self._positions(id(node), one, other)
        pairs = [*(taken(rows, at) for rows in left.bindings), taken(right.row, beside)]
        return Frame(len(at), tuple(pairs))

    def _positions(self, node: int, one: Array, other: Array) -> tuple[Array, Array]:
        """Which rows meet: their positions on both sides."""
        known = self._matched.get(node)
        if known is not None and np.array_equal(known[0], one) and np.array_equal(known[1], other):
            return known[2], known[3]
        order = np.argsort(other, kind="stable")
        ordered = other[order]
        begin = np.searchsorted(ordered, one, "left")
        counts = np.searchsorted(ordered, one, "right") - begin
        at = np.repeat(np.arange(len(one)), counts)
        within = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
        beside = order[np.repeat(begin, counts) + within]
        self._matched[node] = one, other, at, beside
        return at, beside

    def _aggregate(self, node: plan.Aggregate, of: Frame) -> Frame:
        if node.row is not None or not isinstance(node.key, Lifted):
            raise NotColumnar("named rows")
        keys = _integers(column(node.key.body, of.bindings, of.size))
        groups = self._groups.setdefault(id(node), kept_groups())(keys)
        columns = [Leaf(int, lambda: groups.names)]
        columns += [_folded(folded, of, groups) for folded in node.aggregates]
        return Frame(len(groups.names), tuple(columns))


def _folded(folded: plan.Folded, of: Frame, groups: Groups) -> Leaf:
    if isinstance(folded.accumulator, CountAccumulator):
        return Leaf(int, lambda: groups.counts)
    if folded.skip_none or (folded.value is not None and not isinstance(folded.value, Lifted)):
        raise NotColumnar(folded.name)
    rows = of.row if folded.value is None else column(folded.value.body, of.bindings, of.size)
    if not isinstance(rows, Leaf):
        raise NotColumnar(folded.name)
    values = rows.values
    if rows.kind is float and not np.isfinite(values).all():
        raise NotColumnar("infinity or NaN")
    match folded.accumulator:
        case SumAccumulator():
            made = groups.sums(rows.kind, values)
        case MinAccumulator() if rows.kind is int:
            made = groups.folded(np.minimum, values)
        case MaxAccumulator() if rows.kind is int:
            made = groups.folded(np.maximum, values)
        case _:
            raise NotColumnar(folded.name)
    return Leaf(rows.kind, lambda: made)


def _keys(node: plan.Join) -> tuple[Lifted, Lifted]:
    """The keys of both sides, if there is one and nothing else is asked."""
    match, conditions = match_of(node), side_conditions_of(node)
    pairs: list[tuple[Any, Any]] = []
    if match.left_key is not None:
        pairs.append((match.left_key, match.right_key))
    if conditions is not None:
        if not all(term.is_key for term in (*conditions.left, *conditions.right)):
            raise NotColumnar("a test of one side")
        both = zip(conditions.left, conditions.right, strict=True)
        pairs += [(one.function, other.function) for one, other in both]
    if len(pairs) != 1 or residual(node) is not None:
        raise NotColumnar("a condition, or several keys")
    one, other = pairs[0]
    if not isinstance(one, Lifted) or not isinstance(other, Lifted):
        raise NotColumnar("a key that is not read")
    return one, other


def _integers(keys: Leaf) -> Array:
    if keys.kind is not int:
        raise NotColumnar("keys that are no integers")
    return keys.values
