"""Sums and groups of large loads: values by group, sums by key, and accumulators of lists.

Aggregation of a large load where there are no groups yet: values by group, then all states.

    for row in delta:                                {"Bonn": [3, 5], "Kiel": [4]}
        groups[row.town].append(row.amount)          counts [2, 1]    sums [8, 4]    rows of both

No group is looked up to be changed, no row has a weight, and each accumulator makes the states of
all groups together (`first_load.py`).

State:  while it runs the values of all rows; the groups of the plain operator.
Cost:   O(rows), a third of what the loop takes.

What takes the rows of a loop, or pairs, as sums by key: what a join keeps of a side.

    for row, weight in delta:
        ...                                     the chain below, tests, the key
        changed[key] = (weight, value * weight)     or added to what is there

Of a single row the sums themselves are changed.

State:  the sums of `operators/join.py`.
Cost:   O(|d|).

The states of accumulators of groups whose values are in lists, all of one kind by a call in C.

    [1.5, 2.0] [0.5]        sums of floats by `fsum`, again of what it rounds off, until nothing is
    [3, 5] [4]              sums of integers by `sum`; the least of values that are sorted together

They are the states that adding the values one after the other would give. Whether a way fits is
seen in one pass over the classes of all values; of others each is added by the accumulator.

State:  none.
Cost:   O(values), some 0.15 us for a float and less for an integer.
Source: Shewchuk, Adaptive precision floating-point arithmetic (1997), which `fsum` follows.

What passes over rows without weights make: values by group, and rows by key.

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

from optimizer.expr import Expr, Lifted
from reactive.engine.codegen.emitter import Emitter, RowPipeline
from reactive.engine.codegen.loop_expressions import KEYS, matching_key
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
from reactive.engine.operators.loops.factored import Term
from reactive.engine.operators.loops.grouped import Grouping
from reactive.engine.operators.loops.nests import delta_loop

Loop = Callable[[dict[Any, list[Any]], Sequence[Any]], Any]


class FirstLoad:
    """The groups of a first load, as the loop of an aggregate makes them.

    accumulators: each with the place of what it reads among the values; None of one that reads
                  none.
    """

    def __init__(
        self,
        plain: GroupAggregates,
        pipeline: RowPipeline,
        grouping: Callable[[RowPipeline], Grouping],
        called: Sequence[Lifted],
    ) -> None:
        sink = grouping(pipeline)
        values = _values(sink)
        self._plain = plain
        self._places = [None if v is None else values.index(v) for _, v in sink.accumulators]
        self._homes, self._row, self._is_keyed = sink.shared, sink.row, sink.is_keyed
        self._width = len(values)
        gathering = Gathering(sink.key, values)
        self._loop: Loop = delta_loop("groups, delta", pipeline, called, gathering, batch=True)[0]

    def step(
        self, delta: UniformDelta, groups: dict[Any, Any], before: dict[Any, Any]
    ) -> Sequence[Pair] | None:
        """As that of a loop; None if there are groups with rows."""
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
        """Those of all groups, of one accumulator after the other."""
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
                found.append([None] * len(lists))  # another one has its state
            else:
                found.append(columns[self._places[number] or 0].states(accumulator))
        return found

    def _rows(self, keys: Sequence[Any], states: Sequence[Sequence[Any]]) -> list[Any]:
        """What groups show; of the one without a key that is asked for later."""
        if not self._is_keyed:
            return [None] * len(keys)
        accumulators = zip(self._homes, self._plain.accumulators, strict=True)
        columns = [shown(accumulator, states[home - 1]) for home, accumulator in accumulators]
        rows = zip(keys, *columns, strict=True)
        return list(rows if self._row is None else map(partial(tuple.__new__, self._row), rows))


def _values(sink: Grouping) -> list[Expr]:
    """What is read, each once."""
    return list(dict.fromkeys(value for _, value in sink.accumulators if value is not None))


class SumColumns:
    """Takes rows or pairs as sums by key, and by a part of the group."""

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
    ) -> None:
        self._key = list(key)
        self._groups = list(groups)
        self._values = list(values)
        self._pipeline = pipeline
        self._is_written = is_written
        self.bound: dict[str, Any] = {**KEYS, **RUNNING_SUMS}

    def exprs(self) -> list[Expr]:
        return [*self._key, *self._groups, *(f for term in self._values for f in term.factors)]

    def prologue(self) -> list[str]:
        return ["    changed = {}", "    get = changed.get"]

    def epilogue(self) -> list[str]:
        return []

    def over_columns(self) -> Callable[[UniformDelta], Changed | None] | None:
        """The same, of many rows over columns."""
        if len(self._key) != 1 or self._groups:
            return None
        values = [factor for term in self._values for factor in term.factors]
        if len(values) > len(self._values):
            return None
        sums = column_sums(self._pipeline, self._key, values)
        return None if sums is None else sums.of

    def write(self, emitter: Emitter, weight: str) -> None:
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

    def _with_part(self, emitter: Emitter, key: str) -> str:
        """The text of a key and the part of the group."""
        parts = [emitter.canonical(part) for part in self._groups]
        return f"({key}, {parts[0] if len(parts) == 1 else _tuple(parts)})"

    def _write_key(self, emitter: Emitter) -> str:
        """The lines that leave out what matches nothing, and the text of the key."""
        return matching_key(emitter, self._key, self._pipeline.shapes, is_written=self._is_written)


class SummingInLists(SumColumns):
    """Takes rows without weights as lists of values by key, of which all sums are made together."""

    is_of_batch = True

    def prologue(self) -> list[str]:
        return []

    def write(self, emitter: Emitter, weight: str) -> None:
        key = self._write_key(emitter)
        factors = [factor for (factor,) in (term.factors for term in self._values)]
        values = list(map(emitter.use, factors))
        value = values[0] if len(values) == 1 else f"({', '.join(values)})"
        if self._groups:
            key = self._with_part(emitter, key)
        emitter.line(f"changed[{key}].append({value})")


def of_lists(
    loop: Callable[..., dict[Any, list[Any]]], width: int
) -> Callable[[UniformDelta], Any]:
    """What gives the sums of a batch by such a loop; None where rows have another weight than 1."""

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
    """Adds a single row to the sums; all that may raise is done before."""

    result = "()"

    def prologue(self) -> list[str]:
        return []

    def write(self, emitter: Emitter, weight: str) -> None:
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
"""The values of each of some groups."""


class Slow(Exception):
    """Values are not such that a way fits them."""


class GroupColumn:
    """The values that one expression has in all groups."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._kinds = frozenset(map(type, chain.from_iterable(groups)))

    def without_none(self) -> GroupColumn:
        """The same, but for None."""
        if type(None) not in self._kinds:
            return self
        return GroupColumn([[v for v in values if v is not None] for values in self._groups])

    def states(self, accumulator: Any) -> list[Any]:
        """What an accumulator holds of each group."""
        if accumulator.skip_none and type(None) in self._kinds:
            return self.without_none().states(accumulator)
        try:
            return self._quick(accumulator)
        except (Slow, OverflowError, ValueError):
            return [_added(accumulator, values) for values in self._groups]

    def _quick(self, accumulator: Any) -> list[Any]:
        groups = self._groups
        match accumulator:
            case CountAccumulator():
                return list(map(len, groups))
            case SumAccumulator():
                return self._sums()
            case AvgAccumulator():
                return list(zip(self._sums(), map(len, groups), strict=True))
            case MinAccumulator() | MaxAccumulator() if self._are_ordered():
                return [OrderedValues.of(values, in_order=True) for values in groups]
            case CountDistinctAccumulator() if self._kinds <= EXACT:
                return [OrderedValues.of(values, in_order=False) for values in groups]
        raise Slow

    def _are_ordered(self) -> bool:
        """Whether values have an order that agrees with equality, and none is NaN."""
        if self._kinds == {float}:
            return not any(map(isnan, chain.from_iterable(self._groups)))
        return self._kinds <= NEVER_NAN

    def _sums(self) -> list[RunningSum]:
        kinds, groups = self._kinds, self._groups
        if kinds <= WHOLE:
            return list(map(sum, groups))
        if kinds == {float}:
            return list(map(scaled_sum, map(_scaled, groups), map(len, groups)))
        if kinds <= NUMBERS:
            return list(map(_mixed, groups))
        raise Slow


def shown(accumulator: Any, states: Sequence[Any]) -> list[Any]:
    """What an accumulator shows of each state.

    >>> shown(SumAccumulator(), GroupColumn([[1, 2], [0.5, 1]]).states(SumAccumulator()))
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


def _added(accumulator: Any, values: Sequence[Any]) -> Any:
    state, add = accumulator.zero(), accumulator.add
    for value in values:
        state = add(state, value, 1)
    return state


def _scaled(floats: list[float]) -> int:
    """The exact sum of floats times 2**BITS, if that is an integer: a float that is rounded, and
    then, in the same way, what it differs by."""
    number, rounded = 0, fsum(floats)
    while rounded:
        scaled = ldexp(rounded, BITS)
        if not scaled.is_integer():
            raise Slow
        number += int(scaled)
        floats = [*floats, -rounded]
        rounded = fsum(floats)
    return number


def _mixed(values: list[Any]) -> RunningSum:
    """The sum of integers and floats."""
    floats = [value for value in values if value.__class__ is float]
    whole = sum(value for value in values if value.__class__ is not float)
    return scaled_sum(_scaled(floats) + (whole << BITS), len(floats))


class Gathering:
    """Takes what an aggregate reads of each row into a list for each group."""

    result = "groups"

    def __init__(self, key: Expr | None, values: Sequence[Expr]) -> None:
        self._key = key
        self._values = list(values)
        self.bound: dict[str, Any] = {}

    def exprs(self) -> list[Expr]:
        return [*([] if self._key is None else [self._key]), *self._values]

    def prologue(self) -> list[str]:
        return []

    def epilogue(self) -> list[str]:
        return []

    def write(self, body: Emitter, weight: str) -> None:
        values = [body.use(value) for value in self._values]
        value = values[0] if len(values) == 1 else f"({', '.join(values)})"
        key = "()" if self._key is None else body.canonical(self._key)
        body.line(f"groups[{key}].append({value})")


def value_of(pipeline: RowPipeline, value: Any) -> Expr:
    """What an aggregate reads of the rows of a pipeline."""
    if value is None:
        return pipeline.value()
    assert isinstance(value, Lifted)
    return pipeline.take(value.body)


def indexed(keys: Sequence[Any], rows: Sequence[Row]) -> dict[Any, FewRows]:
    """Rows by their keys."""
    found: dict[Any, FewRows] = {}
    get = found.get
    for key, row in zip(keys, rows, strict=True):
        bucket = get(key)
        if bucket is None:
            found[key] = bucket = FewRows()
        bucket.append(row)
    return found
