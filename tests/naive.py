"""A plan evaluated naively: one plain comprehension per node, all pairs, recursion round by round.

It is the oracle of `reference/evaluate.py`: it uses no index, and keeps nothing from one round to
the next. It is written to be read, and may take cubic time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import count
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import Function
from optimizer.expressions.attempts import Fault
from optimizer.plans.properties import bindings, free, nodes
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.bag import Multiset
from reactive.engine.collections.exact import nearest_float
from reactive.engine.collections.index import NO_MATCH, match_key
from reactive.engine.collections.order import LAST, sort_key, tie_key
from reactive.engine.collections.row_fields import with_field
from reactive.engine.collections.sorted_copies import value_key
from reactive.engine.collections.sorting import make_sort_key, ranker
from reactive.engine.collections.zset import NAN, Pair, Row, canonical, is_nan, repeat_by_weight
from reactive.engine.operators import accumulators
from reactive.engine.operators.tolerant import Tolerant
from reactive.errors import FixpointError

Bag = Counter[Row]
Variables = Mapping[tuple[Any, int], Bag]
Run = Callable[[plan.Node, Variables], Bag]
Tables = Callable[[plan.Table], Iterable[Pair]]
PLAIN = tuple(
    kind
    for kind in plan.Node.__subclasses__()
    if kind not in (plan.Fixpoint, plan.Component, plan.Iterate)
)
"""Nodes whose inputs are evaluated once."""


def evaluate(node: plan.Node, tables: Tables) -> Bag:
    """Return the rows of a query with their weights; `tables` returns the rows of a table."""
    return _Evaluation(tables).rows(node, {})


class _Evaluation:
    """Evaluate a part that does not depend on its surrounding recursion only once."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._closed: dict[int, Bag] = {}

    def rows(self, root: plan.Node, variables: Variables) -> Bag:
        """The rows of a plan inside recursive definitions, whose relations have these so far."""
        known: dict[int, Bag] = {}

        def of(source: plan.Node) -> Bag:
            return known[id(source)]

        for part in nodes(root, until=lambda part: not isinstance(part, PLAIN)):
            found = self._closed.get(id(part))
            if found is None:
                found = self._of(part, of, variables)
                if not free(part):
                    self._closed[id(part)] = found
            known[id(part)] = found
        return known[id(root)]

    def _of(self, node: plan.Node, of: Callable[[plan.Node], Bag], variables: Variables) -> Bag:
        def run(body: plan.Node, more: Variables) -> Bag:
            return self.rows(body, {**variables, **more})

        match node:
            case plan.Table():
                return Counter(dict(self._tables(node)))
            case plan.Recursive(level, index):
                return variables[level, index]
            case plan.Iterate():
                return iterated(node, run)[0]
            case plan.Component(plan.Iterate() as iterate, index):
                return iterated(iterate, run)[index]
            case plan.Fixpoint():
                return smallest(node, run)[0]
            case plan.Component(plan.Fixpoint() as fixpoint, index):
                return smallest(fixpoint, run)[index]
            case _:
                return _rows(node, of)


def _rows(node: plan.Node, of: Callable[[plan.Node], Bag]) -> Bag:
    """Return the rows of one node, given the rows of its inputs."""
    match node:
        case plan.Empty():
            return Counter()
        case plan.Values(rows):
            return Counter(rows)
        case plan.Where(source, p):
            test = _caller(p, source)
            return _sum((row, n) for row, n in of(source).items() if test(row))
        case plan.Select(source, f):
            call = _caller(f, source)
            return _sum((call(row), n) for row, n in of(source).items())
        case plan.Extend(source, keep, columns):
            calls = [_caller(column, source) for column in columns]

            def made(row: Row) -> Row:
                old = (row,) if bindings(source) == 1 else row
                new = (*[old[place] for place in keep], *[call(row) for call in calls])
                return new if len(new) > 1 else new[0]

            return _sum((made(row), n) for row, n in of(source).items())
        case plan.SelectMany(source, f):
            call = _caller(f, source)
            return _sum((e, n) for row, n in of(source).items() for e in call(row))
        case plan.Unnest(source, f):
            call = _caller(f, source)
            pairs = of(source).items()
            return _sum((_pair(source, row, e), n) for row, n in pairs for e in call(row))
        case plan.Distinct(source):
            return _sum((row, 1) for row in of(source))
        case plan.Union(left, right):
            return _sum((row, 1) for row in of(left) | of(right))
        case plan.UnionAll(left, right):
            return of(left) + of(right)
        case plan.Difference(left, right):
            hidden = of(right)
            return _sum((row, 1) for row in of(left) if row not in hidden)
        case plan.DifferenceAll(left, right):
            return of(left) - of(right)
        case plan.Intersection(left, right):
            return _sum((row, 1) for row in of(left) & of(right))
        case plan.IntersectionAll(left, right):
            return of(left) & of(right)
        case plan.View():
            return of(*node.inputs())
        case plan.Aggregate():
            return _aggregate(node, of(node.input))
        case plan.Top():
            groups = _groups(node.key, node.input, of(node.input)).values()
            return _sum(
                (row, 1) for group in groups for row in _in_order(node.order, Counter(group))
            )
        case plan.Reduce():
            return _reduced(node, of(node.input))
        case plan.OrderBy():
            return Counter(_in_order(node, of(node.input)))
        case plan.AsofJoin():
            return _asof(node, of(node.left), of(node.right))
        case _:
            return _join(node, of)


def _asof(node: plan.AsofJoin, left: Bag, right: Bag) -> Bag:
    found: Bag = Counter()
    for (row, key, at), times in left.items():
        partners = []
        for other, other_key, of in right:
            if None in (at, of) or match_key(key) is NO_MATCH or other_key != key:
                continue
            wrong = "forward" if of < at else "backward" if of > at else None
            is_far = node.tolerance is not None and abs(of - at) > node.tolerance
            if wrong != node.direction and not is_far and not (of == at and node.is_strict):
                far = abs(of - at) if node.direction == "nearest" else 0
                last = (at - of) if node.direction != "nearest" else of > at
                partners.append((far, abs(last), value_key(other), other))
        if partners or node.is_left:
            best = min(partners, key=lambda each: each[:3])[3] if partners else None
            found[(row, best) if node.count == 1 else (*row, best)] += times
    return found


def _order_key(node: plan.OrderBy) -> Callable[[Row], Any]:
    return make_sort_key(node.keys, [_caller(key.function, node.input) for key in node.keys])


def _in_order(node: plan.OrderBy, bag: Bag) -> list[Row]:
    rows = sorted(repeat_by_weight(bag.items()), key=tie_key)
    key = _order_key(node)
    keys = {id(row): sort_key(key(row)) for row in rows}
    rows.sort(key=lambda row: _Key(keys[id(row)]), reverse=node.descending)
    assert not isinstance(node.limit, plan.Table), "a parameter has rows of its own"
    last = len(rows) if node.limit is None else node.offset + node.limit
    return rows[node.offset : last]


class _Key:
    """A sort key that may be, or contain, `LAST`."""

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: _Key) -> bool:
        if other.key is LAST:
            return self.key is not LAST
        return self.key is not LAST and bool(self.key < other.key)


def _caller(function: Function, source: plan.Node) -> Callable[[Row], Any]:
    """A callable of the rows of a node; making one takes longer than calling it."""
    call = callable_of(function)
    if bindings(source) == 1:
        return lambda row: canonical(call(row))
    return lambda row: canonical(call(*row))


def _sum(pairs: Iterable[Pair]) -> Bag:
    bag: Bag = Counter()
    for row, weight in pairs:
        bag[canonical(row)] += weight
    return bag


def _pair(left: plan.Node, row: Row, other: Any) -> Row:
    return (row, other) if bindings(left) == 1 else (*row, other)


def _join(node: plan.Node, of: Callable[[plan.Node], Bag]) -> Bag:
    match node:
        case plan.Product(left, right):
            return _sum(
                (_pair(left, a, b), n * m)
                for a, n in of(left).items()
                for b, m in of(right).items()
            )
        case plan.Join(left, right, match):
            return _sum((_pair(left, a, b), n * m) for a, n, b, m in _matches(node, of, match))
        case plan.SemiJoin(left, right, match):
            return _sum({a: n for a, n, _, _ in _matches(node, of, match)}.items())
        case plan.AntiJoin(left, right, match):
            partnered = {a for a, _, _, _ in _matches(node, of, match)}
            return _sum((a, n) for a, n in of(left).items() if a not in partnered)
        case plan.OuterJoin(left, right, match, kind):
            matches = list(_matches(node, of, match))
            lefts = {a for a, _, _, _ in matches}
            rights = {b for _, _, b, _ in matches}
            nothing = None if bindings(left) == 1 else (None,) * bindings(left)
            out = _sum((_pair(left, a, b), n * m) for a, n, b, m in matches)
            if kind != "right":
                alone = ((a, n) for a, n in of(left).items() if a not in lefts)
                out += _sum((_pair(left, a, None), n) for a, n in alone)
            if kind != "left":
                alone = ((b, m) for b, m in of(right).items() if b not in rights)
                out += _sum((_pair(left, nothing, b), m) for b, m in alone)
            return out
        case _:
            raise TypeError(f"cannot evaluate plan node {type(node).__name__}")


def _matches(
    node: Any, of: Callable[[plan.Node], Bag], match: plan.Match
) -> Iterator[tuple[Row, int, Row, int]]:
    """Yield the pairs of rows that match, with their weights; keys are computed for all rows."""
    on = None if match.on is None else callable_of(match.on)
    left_key, right_key = _key(match.left_key, node.left), _key(match.right_key, None)
    rights = [(right_key(row), row, times) for row, times in of(node.right).items()]
    lefts = [(left_key(row), row, weight) for row, weight in of(node.left).items()]
    for key, row, weight in lefts:
        for other_key, other, times in rights:
            is_equal = key is not NO_MATCH and key == other_key
            if is_equal and (on is None or on(*_pair(node.left, row, other))):
                yield row, weight, other, times


def _key(key: Function | None, source: plan.Node | None) -> Callable[[Row], Any]:
    """The key of the rows of a node; of the right side of a join, which has one binding."""
    if key is None:
        return lambda row: ()
    call = callable_of(key) if source is None else _caller(key, source)
    return lambda row: match_key(call(row))


def _aggregate(node: plan.Aggregate, rows: Bag) -> Bag:
    whole = {(): list(repeat_by_weight(rows.items()))}
    groups = whole if node.key is None else _groups(node.key, node.input, rows)
    values = [None if a.value is None else _caller(a.value, node.input) for a in node.aggregates]
    out: Bag = Counter()
    for key, members in groups.items():
        results = tuple(
            _fold(a.accumulator, members if value is None else list(map(value, members)))
            for a, value in zip(node.aggregates, values, strict=True)
        )
        shown = (key, *results) if node.key is not None else results
        out[shown if len(shown) > 1 else shown[0]] += 1
    return out


def _groups(key: Function, source: plan.Node, rows: Bag) -> dict[Any, list[Row]]:
    key_of = _caller(key, source)
    groups: dict[Any, list[Row]] = {}
    for row in repeat_by_weight(rows.items()):
        groups.setdefault(key_of(row), []).append(row)
    return groups


def _reduced(node: plan.Reduce, rows: Bag) -> Bag:
    make = callable_of(node.function)
    groups = _groups(node.key, node.input, rows)
    made = [(key, row) for key, group in groups.items() for row in make(key, Multiset(group))]
    return _sum((row, 1) for row in made)


def _nan_of(values: list[Any]) -> Any:
    """The NaN among some values, that of floats before that of decimals; or None."""
    odd = [v for v in values if is_nan(v)]
    return NAN if NAN in odd else next(iter(odd), None)


def _fold(fold: Any, values: list[Any]) -> Any:
    """An aggregate of some values, as one would write it for a list."""
    if fold.skip_none:
        values = [value for value in values if value is not None]
    match fold:
        case accumulators.CountAccumulator():
            return len(values)
        case accumulators.SumAccumulator():
            return _total(values)
        case accumulators.AvgAccumulator():
            return canonical(_total(values) / len(values)) if values else None
        case accumulators.MinAccumulator():
            least = dict.fromkeys(v for v in values if not is_nan(v))
            return min(least) if least else _nan_of(values)
        case accumulators.MaxAccumulator():
            odd = _nan_of(values)
            return odd if odd is not None else max(dict.fromkeys(values), default=None)
        case accumulators.CountDistinctAccumulator():
            return len(set(values))
        case accumulators.CollectAccumulator():
            return Multiset(Counter(values))
        case accumulators.UserAccumulator():
            return _finished(fold.plus, fold.initial, values, fold.finish)
        case accumulators.MonoidAccumulator():
            return _finished(fold.combine, fold.initial, values, fold.finish)
        case Tolerant(inner):
            try:
                found = _fold(inner, values)
                hash(found)
            except Exception as error:
                return Fault(type(error).__name__, str(error))
            return found
        case _:
            raise TypeError(f"cannot evaluate aggregate {fold!r}")


def _finished(step: Opaque, state: Any, values: list[Any], finish: Opaque | None) -> Any:
    for value in values:
        state = step.function(state, value)
    return canonical(state if finish is None else finish.function(state))


def _total(values: list[Any]) -> Any:
    """Return the exact sum, rounded once if there are floats."""
    if any(isinstance(v, Decimal) for v in values):
        with localcontext(Context(prec=5_000)):
            return _plain_sum(values)
    if any(isinstance(v, float) for v in values):
        odd = {repr(v) for v in values if isinstance(v, float) and not math.isfinite(v)}
        if odd:
            return canonical(float(odd.pop())) if len(odd) == 1 else NAN
        return nearest_float(sum(map(Fraction, values), Fraction()))
    return _plain_sum(values) if values else 0


def _plain_sum(values: list[Any]) -> Any:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return canonical(total)


def iterated(node: plan.Iterate, run: Run) -> list[Bag]:
    """The bodies `times` times, or until they change nothing."""
    rows = [run(start, {}) for start in node.starts]
    for _ in range(node.max_rounds if node.times is None else node.times):
        given = {(node.level, index): bag for index, bag in enumerate(rows)}
        before, rows = rows, [run(body, given) for body in node.bodies]
        if node.times is None and rows == before:
            break
    return rows


def smallest(node: plan.Fixpoint, run: Run) -> list[Bag]:
    """All relations of a fixpoint, from none on."""
    relations: list[Bag] = [Counter() for _ in node.bodies]
    most = node.max_rounds
    for _ in count() if most is None else range(most + 2):
        variables = {(node.level, index): rows for index, rows in enumerate(relations)}
        found = [run(body, variables) for body in node.bodies]
        new = [
            _joined(best, rows, old)
            if isinstance(best, plan.JoinedValue)
            else _kept(best, rows if best is None else rows | old)  # beaten by its followers?
            for best, rows, old in zip(node.best, found, relations, strict=True)
        ]
        if new == relations:
            return relations
        relations = new
    raise FixpointError(f"fixpoint {', '.join(node.names)} does not come to an end")


def _kept(best: plan.Best | None, rows: Bag) -> Bag:
    """Return each row once; or the best one of each key."""
    if best is None:
        return Counter(dict.fromkeys(rows, 1))
    rank = ranker(_called(best.value), largest=best.largest)
    by: dict[Any, list[Row]] = {}
    for row in rows:
        by.setdefault(canonical(_called(best.by)(row)), []).append(row)
    return Counter({min(group, key=rank): 1 for group in by.values()})


def _joined(best: plan.JoinedValue, rows: Bag, old: Bag) -> Bag:
    """Return a row per key with the join of all values, and of that of the last round."""
    lattice, of = best.lattice, _called(best.value)
    by: dict[Any, Row] = {}
    for row in [*old, *rows]:
        if lattice.bottom is not None and of(row) == lattice.bottom:
            continue
        key = canonical(_called(best.by)(row))
        value = lattice.join(of(by[key]), of(row)) if key in by else of(row)
        if lattice.widen is not None and (lattice.widen_at is None or lattice.widen_at(row)):
            value = lattice.widen(value)
        by[key] = with_field(row, best.name, value)
    return Counter(dict.fromkeys(by.values(), 1))


def _called(function: Function) -> Callable[[Row], Any]:
    return callable_of(function)
