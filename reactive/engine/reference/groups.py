"""Groups and aggregates evaluated from scratch: each as written for a list of values.

A value has a weight, which is negative if only rows of negative weight have the value, as below
`negate`. Sums and counts add the weights; other aggregates read the values of positive weight. Sums
are exact in any order of the values, and rounded once: floats like `math.fsum`, decimals not at
all.

Cost: one call per row and aggregate, whatever the weight; the user's own aggregates one per copy.

`RowCandidates` finds the rows for values of the row around by a hash on the equations in a query.

    where o.customer == outer[0].id and o.paid       rows of o by `o.customer`

All conditions are then tested on each candidate, unchanged.

Cost: O(rows) to hash them once; of some values, the rows that agree in the equations.

`Rooms` are the places of sub-queries: one outside recursions, one per node inside.

Inside a recursion a sub-query may read relations that change from round to round. A `Room` holds
them and all results derived from them. It notes which of these were read for a row, so that after a
change only the rows that read a changed part are evaluated again:

    where any(p.b == e.a for p in reach)    for each e: the rows of reach whose b is e.a
    reach grows by (1, 4)                   each e whose a is 4 is evaluated again

State: per row, the parts that were read for it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from typing import Any, TypeVar

from optimizer import plan
from optimizer.expr import (
    Attempt,
    Call,
    Constant,
    Expr,
    Lifted,
    Operation,
    Parameter,
    one_value,
    row_names,
    walk,
)
from optimizer.expressions.attempts import Fault
from optimizer.plans.facts import Cost
from optimizer.plans.properties import bindings
from reactive.engine.codegen.functions import compiled_of
from reactive.engine.collections import bag as bags
from reactive.engine.collections.order import to_sortable
from reactive.engine.collections.zset import (
    DECIMAL_NAN,
    NAN,
    Pair,
    Row,
    canonical,
    is_nan,
    repeat_by_weight,
)
from reactive.engine.operators import accumulators, tolerant
from reactive.engine.reference import statistics
from reactive.engine.reference.bags import (
    Bag,
    Of,
    apply_changes,
    caller,
    group_by_key,
    make_bag,
    make_row_test,
    once,
    sum_pairs,
    there,
)
from reactive.engine.reference.quantified import RecursiveRows
from reactive.engine.runtime.interrupts import reraise_asynchronous

EXACTLY = Context(prec=4_000_000, Emax=1_050_000, Emin=-1_050_000, traps=[Inexact])
"""Context of decimal sums; a sum that needs more digits raises."""
Values = list[tuple[Any, int]]


def aggregate_groups(node: plan.Aggregate, rows: Bag) -> Bag:
    """Return one row per group: its key, then each aggregate."""
    return grouping(node)(rows)


def grouping(node: plan.Aggregate) -> Callable[[Bag], Bag]:
    """Return a function that groups rows. Creating it takes longer than calling it."""
    key = None if node.key is None else caller(node.key, node.input)
    make = group_row_maker(node)

    def of(rows: Bag) -> Bag:
        groups = {(): list(rows.items())} if key is None else group_by_key(key, rows.items())
        made = [make(name, group) for name, group in groups.items()]
        return once(row for row, is_there in made if is_there)

    return of


def group_row_maker(node: plan.Aggregate) -> Callable[[Any, list[Pair]], tuple[Row, bool]]:
    """Return a function that computes the row of a group from its key and rows.

    Its second result is True if the group is present.
    """
    values = [None if a.value is None else caller(a.value, node.input) for a in node.aggregates]
    folds = [(each.accumulator, of) for each, of in zip(node.aggregates, values, strict=True)]
    has_key = node.key is not None

    def row_of(key: Any, group: list[Pair]) -> tuple[Row, bool]:
        if has_key and _sum_counts(group) <= 0:
            return None, False
        results = [
            _accumulator(accumulator, group if of is None else [(of(r), n) for r, n in group])
            for accumulator, of in folds
        ]
        row = (key, *results) if has_key else tuple(results)
        return row if len(row) > 1 else row[0], True

    return row_of


def _accumulator(accumulator: Any, values: Values) -> Any:
    """Return an aggregate of some values."""
    if accumulator.skip_none:
        values = [pair for pair in values if pair[0] is not None]
    if accumulator.cost is not Cost.ONE:
        values = _there(values)
    match accumulator:
        case accumulators.CountAccumulator():
            return _sum_counts(values)
        case accumulators.RingAccumulator():
            return _fold_ring(accumulator.ring, values)
        case accumulators.SumAccumulator():
            return add_up_values(values)
        case accumulators.AvgAccumulator():
            return (
                canonical(add_up_values(values) / _sum_counts(values))
                if _sum_counts(values) > 0
                else None
            )
        case accumulators.MinAccumulator():
            return _find_minimum(dict(values))
        case accumulators.MaxAccumulator():
            return _find_maximum(dict(values))
        case accumulators.CountDistinctAccumulator():
            return len(dict(values))
        case accumulators.CollectAccumulator():
            return _collect_bag(values)
        case accumulators.UserAccumulator():
            return _fold_user(accumulator, values)
        case accumulators.MonoidAccumulator():
            return _fold_monoid(accumulator, values)
        case tolerant.Tolerant(inner):
            return _fold_tolerantly(inner, values)
        case _:
            found: Counter[Any] = Counter()
            for value, times in values:
                found[value] += times
            return statistics.evaluate_statistic(accumulator, found)


def _sum_counts(values: Values) -> int:
    return sum(times for _, times in values)


def _find_minimum(values: Iterable[Any]) -> Any:
    """Return the minimum; NaN is greater than all numbers."""
    found = [value for value in values if not is_nan(value)]
    return min(found, key=to_sortable) if found else _nan_of(values)


def _find_maximum(values: Iterable[Any]) -> Any:
    """Return the greatest value, a NaN if there is one; None without values."""
    odd = _nan_of(values)
    return odd if odd is not None else max(values, default=None, key=to_sortable)


def _nan_of(values: Iterable[Any]) -> Any:
    """Return the NaN among some values, a float before a decimal; None without a NaN."""
    odd = [value for value in values if is_nan(value)]
    return NAN if NAN in odd else next(iter(odd), None)


def _collect_bag(values: Values) -> bags.Bag[Any]:
    """Return the bag of the values, each with the sum of its weights as its count."""
    found: Counter[Any] = Counter()
    for value, times in values:
        found[value] += times
    return bags.Bag(found)


def _there(values: Values) -> Values:
    """Return the values of positive weight, after equal values are added up if any is negative."""
    if all(times > 0 for _, times in values):
        return values
    return list(there(sum_pairs(values)).items())


def _fold_user(of: accumulators.UserAccumulator, values: Values) -> Any:
    """Return a user's aggregate: add the values, then subtract values of negative weight."""
    state = of.initial
    for value in repeat_by_weight(values):
        state = of.plus.function(state, value)
    for value in repeat_by_weight((value, -times) for value, times in values):
        state = of.minus.function(state, value)
    return canonical(state if of.finish is None else of.finish.function(state))


def _fold_monoid(of: accumulators.MonoidAccumulator, values: Values) -> Any:
    """Return the fold of the values, each repeated by its weight; the initial state if none."""
    state = of.initial
    for value in repeat_by_weight(values):
        state = of.combine.function(state, value)
    return canonical(state if of.finish is None else of.finish.function(state))


def _fold_tolerantly(inner: Any, values: Values) -> Any:
    """Return a user's aggregate, or the fault that its functions raise."""
    try:
        found = _accumulator(inner, values)
        hash(found)
    except Exception as error:
        reraise_asynchronous(error)
        return Fault.of(error)
    return found


def _fold_ring(ring: Any, values: Values) -> Any:
    """Return what a ring shows of the sum of values."""
    total = ring.zero
    for value, times in values:
        total = ring.add(total, ring.times(value.value, times))
    return canonical(ring.shown(total))


def add_up_values(values: Values) -> Any:
    """Return the sum of values, kind by kind; 0 for no values.

    >>> add_up_values([(Decimal("0.1"), 1), (Decimal("1e30"), 1), (Decimal("-1e30"), 1), (2, 0)])
    Decimal('0.1')
    """
    kinds: dict[Any, Values] = {}
    for value, times in values:
        kinds.setdefault(_sum_class(value), []).append((value, times))
    numbers = kinds.keys() <= {int, float, Fraction}
    if numbers and float in kinds:
        return _float_sum(kinds)
    integers = _integer_sum(kinds.pop(int, []))
    if integers and Decimal in kinds:  # exactly, too
        kinds[Decimal], integers = [*kinds[Decimal], (Decimal(integers), 1)], 0
    parts = [canonical(SUMS.get(kind, _plain_sum)(some)) for kind, some in kinds.items()]
    special = {str(part): part for part in parts if isinstance(part, Decimal) and _is_odd(part)}
    if special:
        return next(iter(special.values()))
    return _add_parts([*parts, *([integers] if integers or not parts else [])])


def _sum_class(value: Any) -> type:
    """Return the class that decides how a value is summed; subclasses of numbers count as these."""
    for kind in (int, float, Decimal, Fraction):
        if isinstance(value, kind):
            return kind
    return type(value)


def _integer_sum(values: Values) -> int:
    return sum(int(value) * times for value, times in values)


def _float_sum(kinds: dict[Any, Values]) -> float:
    """Return the sum of numbers, some of them floats, rounded once."""
    floats = kinds[float]
    odd = {str(float(value)) for value, _ in floats if not math.isfinite(value)}
    if odd:
        return NAN if len(odd) > 1 or "nan" in odd else float(odd.pop())
    if kinds.keys() == {float} and all(times == 1 for _, times in floats):
        try:
            return math.fsum(value for value, _ in floats)
        except OverflowError:
            pass  # during the sum, or at its end
    exact = sum((Fraction(v) * n for some in kinds.values() for v, n in some), Fraction())
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _decimal_sum(values: Values) -> Decimal:
    """Return the exact sum of decimals by weight; infinities and NaN as Python adds them."""
    odd = {str(value): value for value, _ in values if _is_odd(value)}
    if odd:
        return next(iter(odd.values())) if len(odd) == 1 else DECIMAL_NAN
    result = Decimal()
    for value, times in values:
        result = EXACTLY.add(result, EXACTLY.multiply(value, Decimal(times)))
    return result


def _is_odd(value: Decimal) -> bool:
    return not value.is_finite()


def _plain_sum(values: Values) -> Any:
    return _add_parts(value if times == 1 else value * times for value, times in values)


def _add_parts(parts: Iterable[Any]) -> Any:
    """Return the sum of the parts, from left to right; raises if there is none."""
    result, *others = parts
    for part in others:
        result = result + part
    return canonical(result)


SUMS: dict[type, Callable[[Values], Any]] = {
    float: lambda values: _float_sum({float: values}),
    Decimal: _decimal_sum,
}


NOTHING = Bag()
ANY = object()
"""Stands for the value of a row whose value raises or is not hashable."""


def asks_around(expr: Expr) -> bool:
    """Return True if an expression reads the row around, or asks a sub-query."""
    return any(map(_is_asking, walk(expr)))


def _is_asking(expr: Expr) -> bool:
    """Return True if an expression is a call that reads the row around, or asks a query."""
    match expr:
        case Call(function):
            return getattr(function, "name", None) in ("outer", "asked")
        case _:
            return False


def equation(test: Expr) -> tuple[Expr, Expr] | None:
    """Return a value of the row, and the value around that it must equal.

    Return None if the test is no such equation.
    """
    match test:
        case Attempt(Operation("==") as equal, Constant(False)):  # a row that raises does not agree
            return equation(equal)
        case Operation("==", (one, other)):
            for mine, theirs in ((one, other), (other, one)):
                is_own = _reads_row(mine) and not asks_around(mine)
                if is_own and asks_around(theirs) and not _reads_row(theirs):
                    return mine, theirs
    return None


def _reads_row(expr: Expr) -> bool:
    return any(isinstance(part, Parameter) for part in walk(expr))


class RowCandidates:
    """Rows by the values that equations compare.

    A row whose value raises or is not hashable is a candidate for every value.
    """

    def __init__(
        self,
        source: plan.Node,
        rows: Bag,
        tests: list[plan.Where],
        pairs: list[tuple[Expr, Expr]],
    ) -> None:
        count = bindings(source)
        names = row_names(count)
        mine = Lifted(one_value([each for each, _ in pairs]), names, (), count)
        theirs = Lifted(one_value([each for _, each in pairs]), (), (), 0)
        self._source, self._all, self._value = source, rows, compiled_of(theirs)
        self._tests = [make_row_test(test.predicate, source) for test in reversed(tests)]
        self._by: dict[Any, Bag] = {}
        self._odd = Bag()
        self._key = compiled_of(mine)
        self._is_one = count == 1
        for row, weight in rows.items():
            self._add(row, weight)

    def _add(self, row: Row, weight: int) -> Any:
        """Add a row, or remove it; return the value that finds it, or `ANY`."""
        value: Any
        try:
            value = self._key(row) if self._is_one else self._key(*row)
            found = self._by.get(value)
            if found is None:
                found = self._by[value] = make_bag({})
        except Exception:
            value, found = ANY, self._odd
        total = found.get(row, 0) + weight
        if total:
            found[row] = total
        else:
            found.pop(row, None)
        return value

    def follow(self, change: Bag) -> list[Any]:
        """Apply a change of the rows; return the notes of the parts that changed."""
        values = {self._add(row, weight) for row, weight in change.items()}
        return [(id(self), each) for each in ({ANY} if ANY in values else values)]

    def rows(self, notes: set[Any] | None = None) -> Bag:
        """Return the candidates that satisfy all conditions; note the parts read."""
        bag = self._candidates(notes)
        for test in self._tests:
            bag = make_bag({row: n for row, n in bag.items() if test(row)})
        return bag

    def first(self, notes: set[Any] | None = None) -> Bag:
        """Return one of the given rows that is present, if any."""
        return first_passing(self._candidates(notes), self._tests)

    def _candidates(self, notes: set[Any] | None) -> Bag:
        """Return the rows that may equal the value, and add the keys of this read to `notes`.

        Returns all rows if the value cannot be computed or hashed.
        """
        if notes is not None:
            notes.add((id(self), ANY))
        try:
            value = self._value()
            found = self._by.get(value, NOTHING)
            if notes is not None:
                notes.add((id(self), value))
        except Exception:  # not hashable, or no value; conditions before the equation decide
            if notes is not None:
                notes.add(id(self._source))
            return self._all
        return make_bag({**found, **self._odd}) if self._odd else found


def first_passing(bag: Bag, tests: Sequence[Callable[[Row], object]]) -> Bag:
    """Return a present row that satisfies all tests; no rows if there is none."""
    first, *rest = tests
    for row, weight in bag.items():
        if weight > 0 and first(row) and (not rest or all(test(row) for test in rest)):
            return make_bag({row: weight})
    return NOTHING


T = TypeVar("T")


class Room:
    """The reads and results of sub-queries in one place of a plan.

    `held` are the rows of relations that a recursion changes. If rows are evaluated one by one,
    `notes` collects the parts read for each, so that after a change the rows that read a changed
    part are evaluated again (`apply_change`).
    """

    def __init__(self) -> None:
        self.held: dict[int, Bag] = {}
        self.notes: set[Any] | None = None
        """Relations, and values of equations, read for the current row so far."""
        self._stored: dict[Any, Any] = {}
        self._readers: dict[Any, list[Callable[[], object]]] = {}
        self._followers: dict[int, list[RowCandidates | RecursiveRows]] = {}

    def store_once(self, key: object, make: Callable[[], T]) -> T:
        """Return the result stored by a key; compute it on the first call."""
        try:
            found: T = self._stored[key]
        except KeyError:
            found = self._stored[key] = make()
        return found

    def note_reads(self, make: Callable[[], T], forget: Callable[[], object]) -> tuple[T, set[Any]]:
        """Return the result of `make` and what it read; `forget` is called when that changes."""
        before, self.notes = self.notes, set()
        notes, readers = self.notes, self._readers
        try:
            return make(), notes
        finally:
            for each in notes:
                readers.setdefault(each, []).append(forget)
            if before is not None:
                before |= notes
            self.notes = before

    def candidates(self, source: plan.Node, make: Callable[[], RowCandidates]) -> RowCandidates:
        """Create candidates from the rows of a relation, which follow its changes."""
        made = make()
        if id(source) in self.held:
            self._followers.setdefault(id(source), []).append(made)
        return made

    def follow_ranked(self, source: plan.Node, symbol: str) -> RecursiveRows:
        """Return the rows of a relation, indexed for a comparison; they follow its changes."""

        def make() -> RecursiveRows:
            made = RecursiveRows(source, self.held[id(source)], symbol, lambda: self.notes)
            self._followers.setdefault(id(source), []).append(made)
            return made

        return self.store_once(("followed", id(source), symbol), make)

    def apply_change(self, number: int, change: Bag) -> None:
        """Apply the change of a relation, and drop the results that read a changed part of it."""
        apply_changes(self.held[number], change)
        found: list[Any] = [number]
        for each in self._followers.get(number, ()):
            found += each.follow(change)
        for each in found:
            for forget in self._readers.pop(each, ()):
                forget()

    def forget(self) -> None:
        """Drop all results derived from relations that have changed."""
        self._stored.clear()
        self._followers.clear()


class Rooms:
    """The current room of sub-queries, and the groups of rows for them."""

    def __init__(self, closed: Of) -> None:
        self.now = self._outside = Room()
        self.groups: dict[Any, Bag] = {}
        """The rows of the current group, by the level of its query."""
        self.levels: set[Any] = set()
        self._closed = closed

    def rows_outside(self, node: plan.Node) -> Bag:
        """Return the rows of a plan that reads nothing of a row around."""
        found = self.now.held.get(id(node))
        if found is not None:
            return found
        with self.enter_room(self._outside):
            return self._closed(node)

    @contextmanager
    def enter_room(self, room: Room) -> Iterator[None]:
        """Evaluate sub-queries in a room."""
        before, self.now = self.now, room
        try:
            yield
        finally:
            self.now = before
