"""Sums and groups of large loads: values by group, sums by key, and accumulators of lists.

First load: aggregate a large load into an empty state, by listing the values of each group.

    for row in delta:                                {"Bonn": [3, 5], "Kiel": [4]}
        groups[row.town].append(row.amount)          counts [2, 1]    sums [8, 4]    rows of both

No group is looked up, no row has a weight, and each accumulator computes the states of all groups
in one call.

State:  while it runs the values of all rows; the groups of the plain operator.
Cost:   O(rows), a third of the time of the loop.

Sum sinks: sum rows, or joined pairs, by join key. A join stores these sums instead of rows.

    for row, weight in delta:
        ...                                     the chain below, tests, the key
        changed[key] = (weight, value * weight)     or added to the entry of the key

For a single row, the stored sums are changed directly.

State:  the sums of `operators/join.py`.
Cost:   O(|d|).

Group columns: states of accumulators for lists of values; for values of one class by a call in C.

    [1.5, 2.0] [0.5]        sums of floats by `fsum`, repeated with its rounding error until none
    [3, 5] [4]              sums of integers by `sum`; the least of values that are sorted together

The states equal those of adding the values one by one. One pass over the classes of all values
decides which method fits; other values are added one by one by the accumulator.

State:  none.
Cost:   O(values), some 0.15 us for a float and less for an integer.
Source: Shewchuk, Adaptive precision floating-point arithmetic (1997), which `fsum` follows.

Gathering: collect values by group, or rows by key, of rows without weights.

State:  none.
Cost:   O(rows).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from itertools import chain
from math import fsum, isnan, ldexp
from operator import itemgetter
from typing import Any

from optimizer.expr import Constant, Display, Expr, Lifted, Local, parts, reads, walk
from reactive.engine.codegen.emitter import Emitter, RowPipeline
from reactive.engine.codegen.loop_expressions import (
    KEYS,
    key_or_no_match,
    matching_key,
    raise_unordered,
)
from reactive.engine.codegen.nest import RUNNING_SUMS, text_plus, text_times, write_plus
from reactive.engine.collections.exact import BITS, UNIT, RunningSum, scaled_sum
from reactive.engine.collections.index import FewRows
from reactive.engine.collections.values import ORDERED, OrderedValues
from reactive.engine.collections.zset import EXACT, Pair, Row, UniformDelta
from reactive.engine.operators.accumulators import (
    AvgAccumulator,
    CountAccumulator,
    CountDistinctAccumulator,
    MaxAccumulator,
    MinAccumulator,
    SumAccumulator,
)
from reactive.engine.operators.aggregate import WEIGHT, GroupAggregates
from reactive.engine.operators.loops.columns import Changed, column_sums
from reactive.engine.operators.loops.factored_aggregate import Term
from reactive.engine.operators.loops.grouped import Grouping
from reactive.engine.operators.loops.nests import delta_loop

Loop = Callable[[dict[Any, list[Any]], Sequence[Any]], Any]


class FirstLoad:
    """Build the groups of a first load, as the loop of the aggregate would."""

    def __init__(
        self,
        plain: GroupAggregates,
        pipeline: RowPipeline,
        grouping: Callable[[RowPipeline], Grouping],
        called: Sequence[Lifted],
    ) -> None:
        sink = grouping(pipeline)
        values = _distinct_values(sink)
        self._plain = plain
        self._places = [None if v is None else values.index(v) for _, v in sink.accumulators]
        self._homes, self._row, self._is_keyed = sink.shared, sink.row, sink.is_keyed
        self._width = len(values)
        gathering = Gathering(sink.key, values)
        self._loop: Loop = delta_loop("groups, delta", pipeline, called, gathering, batch=True)[0]

    def step(
        self, delta: UniformDelta, groups: dict[Any, Any], before: dict[Any, Any]
    ) -> Sequence[Pair] | None:
        """Load rows of weight 1 into empty groups; else return None, changing nothing."""
        plain = self._plain
        has_rows = bool(groups) and (self._is_keyed or groups[()][WEIGHT] != 0)
        if delta.weight != 1 or has_rows or plain.keeps_negative:
            return None
        found: dict[Any, list[Any]] = defaultdict(list)
        self._loop(found, delta.rows)
        lists = list(found.values())
        states = self._states(lists)
        rows = self._rows(list(found), states)
        made = map(list, zip(map(len, lists), *states, rows, strict=True))
        new = dict(zip(found, made, strict=True))
        before.update({key: group.copy() for key, group in groups.items()} or dict.fromkeys(new))
        groups.update(new)
        return UniformDelta(rows, 1) if self._is_keyed else plain.differences(before)

    def _states(self, lists: list[list[Any]]) -> list[Sequence[Any]]:
        """Return the states of all groups, accumulator by accumulator."""
        columns = (
            [GroupColumn(lists)]
            if self._width < 2
            else [
                GroupColumn([list(map(itemgetter(place), values)) for values in lists])
                for place in range(self._width)
            ]
        )
        found: list[Sequence[Any]] = []
        for number, accumulator in enumerate(self._plain.accumulators):
            if self._homes[number] != number + 1:
                found.append([None] * len(lists))  # another accumulator has the state
            else:
                found.append(columns[self._places[number] or 0].states(accumulator))
        return found

    def _rows(self, keys: Sequence[Any], states: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the shown rows; None for a group without a key, whose row is computed later."""
        if not self._is_keyed:
            return [None] * len(keys)
        accumulators = zip(self._homes, self._plain.accumulators, strict=True)
        columns = [
            accumulator_results(accumulator, states[home - 1]) for home, accumulator in accumulators
        ]
        rows = zip(keys, *columns, strict=True)
        return list(rows if self._row is None else map(partial(tuple.__new__, self._row), rows))


def _distinct_values(sink: Grouping) -> list[Expr]:
    """Return the distinct values that are read."""
    return list(dict.fromkeys(value for _, value in sink.accumulators if value is not None))


class SumColumns:
    """Loop sink that sums rows or pairs by key, and by a part of the group."""

    result = "changed"
    is_of_batch = False

    def __init__(
        self,
        key: Sequence[Expr],
        groups: Sequence[Expr],
        values: Sequence[Term],
        pipeline: RowPipeline,
        *,
        is_written: bool,
        is_kept: bool = False,
    ) -> None:
        self._key = list(key)
        self._groups = list(groups)
        self._values = list(values)
        self._pipeline = pipeline
        self._is_written = is_written
        self._is_kept = is_kept
        self.bound: dict[str, Any] = {**KEYS, **RUNNING_SUMS}

    def exprs(self) -> list[Expr]:
        return [*self._key, *self._groups, *(f for term in self._values for f in term.factors)]

    def prologue(self) -> list[str]:
        return ["    changed = {}", "    get = changed.get"]

    def epilogue(self) -> list[str]:
        return []

    def over_columns(self) -> Callable[[UniformDelta], Changed | None] | None:
        """Return the function that computes the sums over columns; None if it is not possible."""
        if len(self._key) != 1 or self._groups:
            return None
        values = [factor for term in self._values for factor in term.factors]
        if len(values) > len(self._values):
            return None
        sums = column_sums(self._pipeline, self._key, values)
        return None if sums is None else sums.sum_delta

    def write(self, emitter: Emitter, weight: str) -> None:
        """Write the lines that add a row or pair to the sums of its key."""
        self._write_sums(emitter, weight)

    def _write_sums(self, emitter: Emitter, weight: str) -> str:
        """Write the lines that add a row or pair to the sums of its key; return the key."""
        key = self._write_key(emitter)
        terms = [term.write(emitter, weight) for term in self._values]
        if self._groups:
            key = emitter.variable("key", self._with_part(emitter, key))
        emitter.line(f"state = get({key})")
        emitter.line("if state is None:")
        new = [text_times(*term) for term in terms]
        emitter.line(f"    changed[{key}] = ({', '.join([weight, *new])},)")
        emitter.line("else:")
        more = [text_plus(f"state[{place}]", *term) for place, term in enumerate(terms, 1)]
        emitter.line(f"    changed[{key}] = ({', '.join([f'state[0] + {weight}', *more])},)")
        return key

    def _with_part(self, emitter: Emitter, key: str) -> str:
        """Return the text of a key and the part of the group."""
        parts = [emitter.canonical(part) for part in self._groups]
        return f"({key}, {parts[0] if len(parts) == 1 else _tuple(parts)})"

    def _write_key(self, emitter: Emitter) -> str:
        """Write the lines that compute the key, and return its text.

        They skip rows whose key equals nothing, unless those are kept.
        """
        shapes, is_written = self._pipeline.shapes, self._is_written
        if not self._is_kept:
            return matching_key(emitter, self._key, shapes, is_written=is_written)
        text = key_or_no_match(emitter, self._key, shapes, is_written=is_written)
        return text if text.isidentifier() else emitter.variable("key", text)


class SumsAndValues(SumColumns):
    """Loop sink that also lists the values of which a key stores the least or the greatest.

    A value is listed with its key, the place of its expression, and how often it counts.
    """

    result = "changed, valued"

    def __init__(self, *given: Any, ends: Sequence[tuple[Term, bool]], **more: Any) -> None:
        """Take what `SumColumns` takes; `ends` are the values, with True for those that skip
        None."""
        super().__init__(*given, **more)
        self._ends = ends

    def exprs(self) -> list[Expr]:
        return [*super().exprs(), *(f for term, _ in self._ends for f in term.factors)]

    def prologue(self) -> list[str]:
        return [*super().prologue(), "    valued = []", "    add_value = valued.append"]

    def write(self, emitter: Emitter, weight: str) -> None:
        """Write the lines that add a row or pair to the sums, and list its values."""
        key = self._write_sums(emitter, weight)
        for place, (term, skips_none) in enumerate(self._ends):
            (factor,) = term.factors
            value, often = emitter.variable_of(factor), term.times(weight)
            test = f"{value} is not None and {often}" if skips_none else often
            emitter.line(f"if {test}: add_value(({key}, {place}, {value}, {often}))")


class SummingInLists(SumColumns):
    """Loop sink that lists values by key, of rows without weights; they are summed afterwards."""

    is_of_batch = True

    def prologue(self) -> list[str]:
        return []

    def write(self, emitter: Emitter, weight: str) -> None:
        """Write the line that appends the values of a row to the list of its key."""
        key = self._write_key(emitter)
        factors = [factor for (factor,) in (term.factors for term in self._values)]
        values = list(map(emitter.use, factors))
        value = values[0] if len(values) == 1 else f"({', '.join(values)})"
        if self._groups:
            key = self._with_part(emitter, key)
        emitter.line(f"changed[{key}].append({value})")


def sum_by_lists(
    loop: Callable[..., dict[Any, list[Any]]], width: int
) -> Callable[[UniformDelta], Any]:
    """Return a function that sums a batch by a loop that lists values.

    The function returns None for a batch of another weight than 1.
    """

    def sums(delta: UniformDelta) -> Changed | None:
        if delta.weight != 1:
            return None
        found = loop(defaultdict(list), delta.rows)
        lists = list(found.values())
        columns = (
            [lists]
            if width == 1
            else [
                [list(map(itemgetter(place), values)) for values in lists] for place in range(width)
            ]
        )
        made = [GroupColumn(column).states(SumAccumulator()) for column in columns]
        return dict(zip(found, zip(map(len, lists), *made, strict=True), strict=True))

    return sums


class SummingOfOne(SumColumns):
    """Loop sink that adds a single row to the stored sums; it raises before any change or never."""

    result = "()"

    def prologue(self) -> list[str]:
        return []

    def write(self, emitter: Emitter, weight: str) -> None:
        """Write the lines that add the row to the stored sums, and return the change."""
        key = self._write_key(emitter)
        key = key if key.isidentifier() else emitter.variable("key", key)
        terms = [term.write(emitter, weight) for term in self._values]
        more = [emitter.variable("more", text_times(*term)) for term in terms]
        emitter.line(f"new = ({', '.join([weight, *more])},)")
        emitter.line(f"old = sums.get({key})")
        emitter.line("if old is None:")
        emitter.line(f"    sums[{key}] = new")
        emitter.line(f"    return (({key}, new),)")
        count = emitter.variable("count", f"old[0] + {weight}")
        parts = [count]
        for place, add in enumerate(more, 1):
            part = emitter.variable("kept", f"old[{place}]")
            for line in write_plus(part, add, "1", is_own=False):
                emitter.line(line)
            parts.append(part)
        emitter.line(f"if {' or '.join(parts)}: sums[{key}] = ({', '.join(parts)},)")
        emitter.line(f"else: del sums[{key}]")
        emitter.line(f"return (({key}, new),)")


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)})"


WHOLE: frozenset[type] = frozenset({int, bool})
NUMBERS = WHOLE | {float}
NEVER_NAN = ORDERED - {float, Decimal}
Groups = Sequence[list[Any]]
"""The values of each group."""


class Slow(Exception):
    """Raised if no fast method fits the values."""


class GroupColumn:
    """Values of one expression in all groups."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._kinds = frozenset(map(type, chain.from_iterable(groups)))

    def without_none(self) -> GroupColumn:
        """Return the column without None."""
        if type(None) not in self._kinds:
            return self
        return GroupColumn([[v for v in values if v is not None] for values in self._groups])

    def states(self, accumulator: Any) -> list[Any]:
        """Return the state of an accumulator for each group."""
        if accumulator.skip_none and type(None) in self._kinds:
            return self.without_none().states(accumulator)
        try:
            return self._quick(accumulator)
        except (Slow, OverflowError, ValueError):
            return [_add_each(accumulator, values) for values in self._groups]

    def _quick(self, accumulator: Any) -> list[Any]:
        """Return the state of an accumulator for each group; raises `Slow` if values do not fit."""
        groups = self._groups
        match accumulator:
            case CountAccumulator():
                return list(map(len, groups))
            case SumAccumulator():
                return self._sums()
            case AvgAccumulator():
                return list(zip(self._sums(), map(len, groups), strict=True))
            case MinAccumulator() | MaxAccumulator() if self._are_ordered():
                return [OrderedValues.from_values(values, in_order=True) for values in groups]
            case CountDistinctAccumulator() if self._kinds <= EXACT:
                return [OrderedValues.from_values(values, in_order=False) for values in groups]
        raise Slow

    def _are_ordered(self) -> bool:
        """Return True if the values have an order that agrees with equality, and none is NaN."""
        if self._kinds == {float}:
            return not any(map(isnan, chain.from_iterable(self._groups)))
        return self._kinds <= NEVER_NAN

    def _sums(self) -> list[RunningSum]:
        """Return the running sum of each group; raises `Slow` if a value is not a plain number."""
        kinds, groups = self._kinds, self._groups
        if kinds <= WHOLE:
            return list(map(sum, groups))
        if kinds == {float}:
            return list(map(scaled_sum, map(_scale_floats, groups), map(len, groups)))
        if kinds <= NUMBERS:
            return list(map(_mixed_sum, groups))
        raise Slow


def accumulator_results(accumulator: Any, states: Sequence[Any]) -> list[Any]:
    """Return the result of an accumulator for each state.

    >>> states = GroupColumn([[1, 2], [0.5, 1]]).states(SumAccumulator())
    >>> accumulator_results(SumAccumulator(), states)
    [3, 1.5]
    """
    match accumulator:
        case CountAccumulator():
            return list(states)
        case SumAccumulator() if set(map(type, states)) == {tuple}:
            try:
                return [number * UNIT for number, _ in states]
            except OverflowError:
                pass
    return list(map(accumulator.result, states))


def _add_each(accumulator: Any, values: Sequence[Any]) -> Any:
    """Return the state after all values, added one by one."""
    state, add = accumulator.zero(), accumulator.add
    for value in values:
        state = add(state, value, 1)
    return state


def _scale_floats(floats: list[float]) -> int:
    """Return the exact sum of floats times 2**BITS, if that is an integer.

    It is the sum of a rounded float and, in the same way, of the rounding errors.
    """
    number, rounded = 0, fsum(floats)
    while rounded:
        scaled = ldexp(rounded, BITS)
        if not scaled.is_integer():
            raise Slow
        number += int(scaled)
        floats = [*floats, -rounded]
        rounded = fsum(floats)
    return number


def _mixed_sum(values: list[Any]) -> RunningSum:
    """Return the sum of integers and floats."""
    floats = [value for value in values if value.__class__ is float]
    whole = sum(value for value in values if value.__class__ is not float)
    return scaled_sum(_scale_floats(floats) + (whole << BITS), len(floats))


class Gathering:
    """Loop sink that lists the values of an aggregate by group.

    `best` is `min` or `max` if only the least or the largest value of a group matters: then the
    rows of an innermost loop that are all of one group leave one value. NaN raises `Unordered`.
    """

    result = "groups"

    def __init__(self, key: Expr | None, values: Sequence[Expr], best: str = "") -> None:
        self._key = key
        self._values = list(values)
        self._best = best if len(values) == 1 and isinstance(values[0], Display) else ""
        self.bound: dict[str, Any] = {}
        self._append = ""
        """The variable that appends to the group of the loop, if it is looked up before."""

    def exprs(self) -> list[Expr]:
        return [*([] if self._key is None else [self._key]), *self._values]

    def open(self, body: Emitter, places: frozenset[int]) -> list[str]:
        """Look up the group before the loop over its rows; a group without rows is deleted."""
        key = self._key
        if key is None or not reads(key) or not reads(key) <= places or reads_local(key):
            return []
        name = body.variable("key", body.canonical(key))
        group = body.variable("group", "[]" if self._best else f"groups[{name}]")
        self._append = body.variable("add", f"{group}.append")
        if self._best:
            return [f"if {group}: groups[{name}].append({self._best}({group}))"]
        return [f"if not {group}: del groups[{name}]"]

    def prologue(self) -> list[str]:
        return []

    def epilogue(self) -> list[str]:
        return []

    def write(self, body: Emitter, weight: str) -> None:
        """Write the line that appends the values of a row to the list of its group."""
        if self._append and self._best:
            self._exclude_nan(body, self._values[0])
        values = [body.use(value) for value in self._values]
        value = values[0] if len(values) == 1 else f"({', '.join(values)})"
        if self._append:
            body.line(f"{self._append}({value})")
            return
        key = "()" if self._key is None else body.canonical(self._key)
        body.line(f"groups[{key}].append({value})")

    def _exclude_nan(self, body: Emitter, value: Expr) -> None:
        """Write the lines that raise if a part of a tuple is NaN."""
        self.bound["unordered"] = raise_unordered
        for part in parts(value):
            if not isinstance(part, Constant):
                name = body.variable_of(part)
                body.line(f"if {name} != {name}: unordered()")


def reads_local(expr: Expr) -> bool:
    """Return True if an expression reads a variable that a chain sets."""
    return any(isinstance(part, Local) for part in walk(expr))


def aggregate_value(pipeline: RowPipeline, value: Any) -> Expr:
    """Return the expression that an aggregate reads of the rows of a pipeline."""
    if value is None:
        return pipeline.value()
    assert isinstance(value, Lifted)
    return pipeline.take(value.body)


def index_rows(keys: Sequence[Any], rows: Sequence[Row]) -> dict[Any, FewRows]:
    """Return the rows by their keys."""
    found: dict[Any, FewRows] = {}
    get = found.get
    for key, row in zip(keys, rows, strict=True):
        bucket = get(key)
        if bucket is None:
            found[key] = bucket = FewRows()
        bucket.append(row)
    return found
