"""Run the rounds of a loop over columns, and compute how its rows change.

- `Evaluation` runs plan nodes over columns, once per round.
- `Groups` sums numbers by group, exactly.
- `evaluate` evaluates an expression over columns.
- `run_rounds`, `row_changes`, `tolerant_changes` run a loop and compare its rows.
- `relation_changes` does so for Arrow tables.

Nodes:

    join         pairs of positions; a side outside of the loop is arranged once
    aggregate    values by group; the groups stay as long as their keys do
    others       columns of columns

Rows are bags: a row with two copies is in the column twice, in any order.

State:  the parts that do not change between rounds, for one evaluation.
Cost:   O(rounds * (rows and pairs)), some passes over each, some nanoseconds per row.

Sums by group are rounded once, as by `math.fsum`, for many groups together:

    value  =  high * 2**unit  +  low * 2**(unit - width)         integers, of each value
    sum    =  sum of high, sum of low                            integers of 64 bits, of each group

Both sums are exact, so that adding them as floats rounds once. Values whose bits span more than
both integers hold are summed group by group.

Cost:   O(values), some ten passes over them.

Expressions use the operators of the machine, which equal Python's as long as integers stay below
2**62, and below 2**53 if they meet floats. An operation that would raise is refused.

Changes:

    sides                 rows with weights; the current rows have positive weights
    rounds                the rows of the relations after all rounds
    after - before        rows with weights; with a tolerance, only rows whose value moved that far
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import frexp, fsum
from typing import Any

import numpy as np
import pyarrow as pa

from optimizer import plan
from optimizer.expr import (
    Attribute,
    Call,
    Constant,
    Display,
    Expr,
    Item,
    Lifted,
    Operation,
    Parameter,
)
from optimizer.expressions.knowledge import constructor, makes_record
from optimizer.plans.properties import free
from optimizer.plans.side_conditions import join_match, residual, side_conditions_of
from reactive.engine.operators.accumulators import (
    CountAccumulator,
    MaxAccumulator,
    MinAccumulator,
    SumAccumulator,
)
from reactive.engine.remote.fragments import LEVEL
from spark_backend.codec.arrow import arrow_type
from spark_backend.codec.schema import Typed
from spark_backend.columnar.trees import (
    Array,
    Leaf,
    NotColumnar,
    Rows,
    Tree,
    Weighted,
    concat_rows,
    net_rows,
    take_rows,
    tree_from_arrow,
    tree_to_arrow,
    tuple_tree,
)


@dataclass(frozen=True, slots=True)
class Frame:
    """Some rows: a tree for each binding."""

    size: int
    bindings: tuple[Rows, ...]

    @property
    def row(self) -> Rows:
        """All bindings as one row."""
        return self.bindings[0] if len(self.bindings) == 1 else tuple_tree(self.bindings)


class Evaluation:
    """Evaluate the nodes of a loop.

    Parameters
    ----------
    sides: the relations that do not change between rounds, by level and position.
    level: the level of the loop, whose relations change.
    """

    def __init__(self, sides: Mapping[tuple[Any, int], Frame], level: Any) -> None:
        self._sides, self._level = sides, level
        self._stays: dict[int, Frame] = {}
        self._groups: dict[int, Callable[[Array], Groups]] = {}
        self._matched: dict[int, tuple[Array, Array, Array, Array]] = {}

    def frame(self, node: plan.Node, given: Mapping[int, Frame]) -> Frame:
        """Return the rows of a node, from the `given` rows of the relations of the loop.

        Raises
        ------
        NotColumnar: columns cannot evaluate it.
        """
        if self._level in free(node):
            return self._frame(node, given)
        if id(node) not in self._stays:
            self._stays[id(node)] = self._frame(node, given)
        return self._stays[id(node)]

    def _frame(self, node: plan.Node, given: Mapping[int, Frame]) -> Frame:
        """Return the rows of a node over the `given` rows of the loop, as columns.

        Raises `NotColumnar` for other nodes.
        """
        match node:
            case plan.Recursive(level, index):
                return given[index] if level == self._level else self._sides[level, index]
            case plan.Select(source, Lifted() as function):
                of = self.frame(source, given)
                return Frame(of.size, (evaluate(function.body, of.bindings, of.size),))
            case plan.SelectMany(source, Lifted(Display("tuple", items))):
                of = self.frame(source, given)
                made = [evaluate(item, of.bindings, of.size) for item in items]
                return Frame(of.size * len(made), (concat_rows(made),))
            case plan.UnionAll(left, right):
                one, other = self.frame(left, given), self.frame(right, given)
                return Frame(one.size + other.size, (concat_rows([one.row, other.row]),))
            case plan.Distinct(source):
                return self._distinct(self.frame(source, given))
            case plan.Join(left, right):
                return self._join(node, self.frame(left, given), self.frame(right, given))
            case plan.Aggregate(source, Lifted()):
                return self._aggregate(node, self.frame(source, given))
            case _:
                raise NotColumnar(type(node).__name__)

    def _distinct(self, of: Frame) -> Frame:
        rows, weights = net_rows(of.row, np.ones(of.size, np.int64))
        return Frame(len(weights), (rows,))

    def _join(self, node: plan.Join, left: Frame, right: Frame) -> Frame:
        """Return the matching pairs of a join by integer keys.

        Raises `NotColumnar` for other keys.
        """
        ours, theirs = _join_keys(node)
        one = _integer_keys(evaluate_column(ours.body, left.bindings, left.size))
        other = _integer_keys(evaluate_column(theirs.body, [right.row], right.size))
        at, beside = self._positions(id(node), one, other)
        pairs = [*(take_rows(rows, at) for rows in left.bindings), take_rows(right.row, beside)]
        return Frame(len(at), tuple(pairs))

    def _positions(self, node: int, one: Array, other: Array) -> tuple[Array, Array]:
        """Return the positions of the matching pairs on both sides."""
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
        """Return a row per group, by an integer key.

        Raises `NotColumnar` for other keys or named rows.
        """
        if node.row is not None or not isinstance(node.key, Lifted):
            raise NotColumnar("named rows")
        keys = _integer_keys(evaluate_column(node.key.body, of.bindings, of.size))
        groups = self._groups.setdefault(id(node), cache_groups())(keys)
        columns = [Leaf(int, lambda: groups.names)]
        columns += [_fold_column(folded, of, groups) for folded in node.aggregates]
        return Frame(len(groups.names), tuple(columns))


def _fold_column(folded: plan.Folded, of: Frame, groups: Groups) -> Leaf:
    """Return one aggregate of all groups as a column.

    Raises `NotColumnar` if numpy does not compute it exactly.
    """
    if isinstance(folded.accumulator, CountAccumulator):
        return Leaf(int, lambda: groups.counts)
    if folded.skip_none or (folded.value is not None and not isinstance(folded.value, Lifted)):
        raise NotColumnar(folded.name)
    rows = (
        of.row if folded.value is None else evaluate_column(folded.value.body, of.bindings, of.size)
    )
    if not isinstance(rows, Leaf):
        raise NotColumnar(folded.name)
    values = rows.values
    if rows.kind is float and not np.isfinite(values).all():
        raise NotColumnar("infinity or NaN")
    match folded.accumulator:
        case SumAccumulator():
            made = groups.sums(rows.kind, values)
        case MinAccumulator() if rows.kind is int:
            made = groups.fold_values(np.minimum, values)
        case MaxAccumulator() if rows.kind is int:
            made = groups.fold_values(np.maximum, values)
        case _:
            raise NotColumnar(folded.name)
    return Leaf(rows.kind, lambda: made)


def _join_keys(node: plan.Join) -> tuple[Lifted, Lifted]:
    """Return the keys of both sides of a join.

    Raises `NotColumnar` unless it has one key and no other condition.
    """
    match, conditions = join_match(node), side_conditions_of(node)
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


def _integer_keys(keys: Leaf) -> Array:
    """Return the keys as an array. Raises `NotColumnar` if they are no integers."""
    if keys.kind is not int:
        raise NotColumnar("keys that are no integers")
    return keys.values


BITS = 52
"""The bits of a sum of high parts, which has to be an exact float."""
WHOLE = 62
"""The bits of a sum of low parts."""
LARGEST, LEAST = 2.0**900, -900
"""The bounds beyond which the floats that are added up may not be exact."""


class Groups:
    """Values arranged by group.

    `_order` puts the values of a group side by side; `_starts` is the position where each group
    begins.
    """

    def __init__(self, keys: Array) -> None:
        self.keys = keys
        self._order = np.argsort(keys, kind="stable")
        ordered = keys[self._order]
        new = np.ones(len(keys), bool)
        new[1:] = ordered[1:] != ordered[:-1]
        self._starts = np.flatnonzero(new)
        self.names = ordered[self._starts]
        self.counts = np.diff(np.append(self._starts, len(keys)))
        self._most = int(self.counts.max()) if len(keys) else 1

    def sums(self, kind: type, values: Array) -> Array:
        """Return the sum of each group.

        Raises
        ------
        NotColumnar: some values are no numbers, or are too large.
        """
        ordered = values[self._order]
        if not len(ordered):
            return ordered
        if kind is int:
            if float(np.abs(ordered.astype(np.float64)).max()) * self._most >= 2.0**WHOLE:
                raise NotColumnar("large integers")
            return np.add.reduceat(ordered, self._starts)
        most = float(np.abs(ordered).max())
        if not most < LARGEST:
            raise NotColumnar("infinity, NaN or large numbers")
        found = self._exact(ordered, most)
        return self._one_by_one(ordered) if found is None else found

    def fold_values(self, fold: Any, values: Array) -> Array:
        """Fold the values of each group by a function of numpy."""
        ordered = values[self._order]
        return fold.reduceat(ordered, self._starts) if len(ordered) else ordered

    def _exact(self, ordered: Array, most: float) -> Array | None:
        """Return the sum of floats of each group, rounded once.

        Return None if the bits of the values span too widely. `ordered`: values by group; `most`:
        their largest absolute value.
        """
        spare = self._most.bit_length()
        width = min(BITS, WHOLE - spare)
        unit = frexp(most)[1] - (BITS - spare)
        if unit - width < LEAST or width < 1 or spare >= BITS:
            return None if most else np.zeros(len(self._starts))
        high = np.trunc(np.ldexp(ordered, -unit))
        rest = np.ldexp(ordered - np.ldexp(high, unit), width - unit)
        low = np.trunc(rest)
        if not np.array_equal(low, rest):
            return None
        ups = np.add.reduceat(high.astype(np.int64), self._starts)
        downs = np.add.reduceat(low.astype(np.int64), self._starts)
        ups += downs >> width
        downs &= (1 << width) - 1
        one, other = ups.astype(np.float64), downs.astype(np.float64)
        return np.ldexp(one, unit) + np.ldexp(other, unit - width)

    def _one_by_one(self, ordered: Array) -> Array:
        """Return the sum of floats of each group by `math.fsum`. `ordered`: values by group."""
        ends = np.append(self._starts[1:], len(ordered))
        listed = ordered.tolist()
        pairs = zip(self._starts.tolist(), ends.tolist(), strict=True)
        return np.array([fsum(listed[begin:end]) for begin, end in pairs])


def cache_groups() -> Callable[[Array], Groups]:
    """Return a function from keys to their groups.

    It returns the previous groups as long as the keys stay equal.
    """
    last: list[Groups] = []

    def groups(keys: Array) -> Groups:
        if not last or not np.array_equal(last[0].keys, keys):
            last[:] = [Groups(keys)]
        return last[0]

    return groups


LARGEST_WHOLE, EXACT = 2.0**62, 2.0**53
_OPERATORS: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
}


def evaluate(expr: Expr, bindings: Sequence[Rows], size: int) -> Rows:
    """Evaluate an expression over rows.

    Raises
    ------
    NotColumnar: columns cannot evaluate it.
    """
    match expr:
        case Parameter(place):
            return bindings[place]
        case Constant(number) if type(number) in (int, float):
            return _constant_leaf(number, size)
        case Attribute(of, name):
            return _as_tree(evaluate(of, bindings, size)).field_rows(name)
        case Item(of, Constant(place)):
            return _as_tree(evaluate(of, bindings, size)).at(place)
        case Display("tuple", items):
            return tuple_tree([evaluate(item, bindings, size) for item in items])
        case Call(Constant(kind), arguments, keywords) if makes_record(expr):
            names = constructor(kind) or ()
            given = dict(zip(names, arguments, strict=False)) | dict(keywords)
            parts = tuple(evaluate(given[name], bindings, size) for name in names)
            return Tree(kind, names, parts)
        case Operation(symbol, (left, right)) if symbol in _OPERATORS:
            return _operation_leaf(
                symbol, evaluate(left, bindings, size), evaluate(right, bindings, size)
            )
        case _:
            raise NotColumnar(f"{expr}")


def evaluate_column(expr: Expr, bindings: Sequence[Rows], size: int) -> Leaf:
    """Evaluate an expression with a single column as its result.

    Raises `NotColumnar` if the result is a record.
    """
    found = evaluate(expr, bindings, size)
    if not isinstance(found, Leaf):
        raise NotColumnar("a record where a number is wanted")
    return found


def _as_tree(rows: Rows) -> Tree:
    """Return the rows. Raises `NotColumnar` if they are numbers, which have no fields."""
    if isinstance(rows, Leaf):
        raise NotColumnar("a field of a number")
    return rows


def _constant_leaf(number: Any, size: int) -> Leaf:
    """Return a column of `size` equal numbers. Raises `NotColumnar` for a large integer."""
    if isinstance(number, int) and abs(number) >= LARGEST_WHOLE:
        raise NotColumnar("a large integer")
    return Leaf(type(number), lambda: np.full(size, number))


def _operation_leaf(symbol: str, left: Rows, right: Rows) -> Leaf:
    """Return an arithmetic operation of columns.

    Raises `NotColumnar` if it could raise or round differently from Python.
    """
    if not isinstance(left, Leaf) or not isinstance(right, Leaf):
        raise NotColumnar("an operator of records")
    kind: Any = int if symbol != "/" and left.kind is right.kind is int else float
    one, other = left.values, right.values
    if symbol == "/" and not other.all():
        raise NotColumnar("a division by zero")
    if kind is int:
        sizes = _largest_size(one), _largest_size(other)
        if (sizes[0] * sizes[1] if symbol == "*" else sum(sizes)) >= LARGEST_WHOLE:
            raise NotColumnar("large integers")
    elif any(leaf.kind is int and _largest_size(leaf.values) > EXACT for leaf in (left, right)):
        raise NotColumnar("large integers")
    made = _OPERATORS[symbol](one, other)
    return Leaf(kind, lambda: made)


def _largest_size(values: Array) -> float:
    return float(np.abs(values.astype(np.float64)).max()) if len(values) else 0.0


def run_rounds(
    loop: plan.Iterate, relations: Sequence[plan.Node], sides: dict[tuple[Any, int], Frame]
) -> list[Frame]:
    """Return the rows of some relations of a loop after all of its rounds.

    Raises
    ------
    NotColumnar: columns cannot run it.
    """
    if loop.times is None or loop.is_tolerant():
        raise NotColumnar("rounds until it settles")
    evaluation = Evaluation(sides, loop.level)
    now = [evaluation.frame(start, {}) for start in loop.starts]
    for _ in range(loop.times):
        given = dict(enumerate(now))
        now = [evaluation.frame(body, given) for body in loop.bodies]
    places = [of.index if isinstance(of, plan.Component) else 0 for of in relations]
    return [now[place] for place in places]


def current_frame(rows: Rows, weights: Array) -> Frame:
    """Return the rows whose weights add up to a positive number, each repeated by that number."""
    if (weights == 1).all():
        return Frame(len(weights), (rows,))
    rows, weights = net_rows(rows, weights)
    at = np.repeat(np.flatnonzero(weights > 0), weights[weights > 0])
    return Frame(len(at), (take_rows(rows, at),))


def row_changes(before: Weighted, after: Rows, size: int) -> Weighted:
    """Return how the rows change from `before`, which has weights, to `after`, `size` rows of
    weight 1."""
    weights = np.concatenate((-before[1], np.ones(size, np.int64)))
    return net_rows(concat_rows([before[0], after]), weights)


def tolerant_changes(
    before: Weighted, after: Rows, size: int, tolerance: plan.Tolerance
) -> Weighted:
    """Return how the shown rows change: the rows of keys whose value has moved far enough.

    Raises
    ------
    NotColumnar: a key has several rows, or is no integer.
    """
    was = net_rows(*before)
    if not (was[1] == 1).all():
        raise NotColumnar("rows that are there several times")
    keys, values = _read_keyed(was[0], len(was[1]), tolerance)
    new_keys, new_values = _read_keyed(after, size, tolerance)
    order = np.argsort(keys)
    if not len(keys):
        return after, np.ones(size, np.int64)
    at = order[np.minimum(np.searchsorted(keys[order], new_keys), len(keys) - 1)]
    known = keys[at] == new_keys
    is_near = known & (np.abs(new_values - values[at]) < tolerance.least)
    come, stays = np.flatnonzero(~is_near), at[is_near]
    gone = np.ones(len(keys), bool)
    gone[stays] = False
    rows = concat_rows([take_rows(was[0], np.flatnonzero(gone)), take_rows(after, come)])
    weights = np.concatenate((-np.ones(int(gone.sum()), np.int64), np.ones(len(come), np.int64)))
    return net_rows(rows, weights)


def _read_keyed(rows: Rows, size: int, tolerance: plan.Tolerance) -> tuple[Array, Array]:
    """Return the keys and the values that a tolerance compares.

    Raises `NotColumnar` if two rows have one key, or keys are no integers.
    """
    if not isinstance(tolerance.by, Lifted) or not isinstance(tolerance.value, Lifted):
        raise NotColumnar("a tolerance that is not read")
    keys = evaluate_column(tolerance.by.body, [rows], size)
    values = evaluate_column(tolerance.value.body, [rows], size)
    if keys.kind is not int or len(np.unique(keys.values)) != size:
        raise NotColumnar("keys that several rows have")
    return keys.values, values.values


def relation_changes(
    tops: Sequence[plan.Node], kinds: Sequence[Typed], given: Sequence[pa.Table]
) -> list[pa.Table]:
    """Return how the rows of each relation change.

    Parameters
    ----------
    tops: the relations of a loop over sides, which are `Recursive` of `LEVEL`; below `Tolerate` if
        small changes are hidden.
    kinds, given: the types and the rows of the relations before, and then of the sides after the
        change; rows have the columns `row` and `weight`, and need not be netted.

    Raises
    ------
    NotColumnar: columns cannot run it.
    """
    loop = loop_of(tops[0])
    if not isinstance(loop, plan.Iterate):
        raise NotColumnar("a fixpoint")
    with np.errstate(all="ignore"):
        weighted = [_read_weighted(kept, table) for kept, table in zip(kinds, given, strict=True)]
        sides = {(LEVEL, n): current_frame(*some) for n, some in enumerate(weighted[len(tops) :])}
        after = run_rounds(loop, list(map(without_tolerance, tops)), sides)
        found = [_relation_change(*each) for each in zip(tops, weighted, after, strict=False)]
        return [_write_weighted(kept, change) for kept, change in zip(kinds, found, strict=False)]


def without_tolerance(top: plan.Node) -> plan.Node:
    """Return a relation without its tolerance."""
    return top.input if isinstance(top, plan.Tolerate) else top


def loop_of(top: plan.Node) -> plan.Node:
    """Return the recursion of a relation."""
    found = without_tolerance(top)
    return found.input if isinstance(found, plan.Component) else found


def _relation_change(top: plan.Node, was: Weighted, now: Frame) -> Weighted:
    """Return how the rows of a relation change; with a tolerance, how its shown rows change."""
    if isinstance(top, plan.Tolerate):
        return tolerant_changes(was, now.row, now.size, top.tolerance)
    return row_changes(was, now.row, now.size)


def _read_weighted(kept: Typed, table: pa.Table) -> Weighted:
    """Return the rows and the weights of an Arrow table, as columns."""
    chunks = table.column("row").chunks or [pa.array([], arrow_type(kept))]
    return tree_from_arrow(kept, pa.concat_arrays(chunks)), table.column("weight").to_numpy()


def _write_weighted(kept: Typed, found: Weighted) -> pa.Table:
    return pa.table({"row": tree_to_arrow(kept, found[0]), "weight": found[1]})
