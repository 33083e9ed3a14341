"""Aggregate: one row per group, with its key and the result of each accumulator.

    d(row of g)  =  - (g, results before)  +  (g, results after)      for each touched group

A group exists while it has rows. Without a key there is one group that always exists, so that the
aggregate of no rows is a row as well. If it has one aggregate only, its row is the bare value.

If weights may be negative (`keeps_negative`), a group of total weight zero is dropped only if its
accumulators are zero too; it is shown while its total weight is positive.

The state of a group is a list: its total weight, the state of each accumulator, the shown row.
All callables are evaluated before any group changes. Accumulators may still raise (values that
cannot be compared, a user's `remove`), so the previous state of each group is kept until the commit
ends.

State:  one list per group; the states of the accumulators (`accumulators.py`).
Cost:   O(|dL|) for Count, Sum, Avg; times log group for Min, Max and Monoid.
Source: [dbsp] section 4.2, aggregation; [i3ql] aggregation operators.

Group states: groups that store their own rows, and reduce by a function that keeps such a state.

    d(g)  =  f(changes of g)      for each touched group

Each group receives its changed rows and returns its changed result. The law is that of `Reduce` in
`rowwise.py`, but each group computes its change in its own way.

State:  the state of the function for each group.
Cost:   that of the function for the changes of the touched groups.
Source: `reduce` of differential dataflow, with a function that is itself incremental.

Stored state of an operator: a later process starts from it, without computing it.

    state()                  lists and plain values, which no later step changes
    restore(state, inputs)   load it into a new operator, as if that had stepped over `inputs`

A list is a column of values, rows among them (`durable/rows/packed.py`); any other value is a
number, a string, or a dictionary or tuple of such values. An operator that can be computed from its
inputs as fast as its state can be read has no `state`. It returns None if its state cannot be
stored.

Cost: O(rows); some 20 ns for each, during which no commit can run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeGuard, TypeVar

from reactive.engine.collections.exact import state_bytes
from reactive.engine.collections.zset import (
    Pair,
    Pairs,
    Row,
    by_group,
    canonical,
    consolidate,
    is_mixed,
)
from reactive.engine.operators.accumulators import (
    Accumulator,
    AvgAccumulator,
    CountAccumulator,
    SumAccumulator,
    UserAccumulator,
    ValuesAccumulator,
)
from reactive.engine.operators.operator import DetachedState
from reactive.engine.runtime.interrupts import reraise_asynchronous

Value = Callable[[Row], Any]
Group = list[Any]
Evaluated = tuple[Sequence[Any], Sequence[Sequence[Any]], Pairs]

WEIGHT = 0
STATES = slice(1, -1)
SHOWN = -1
PLAIN = (CountAccumulator, SumAccumulator, AvgAccumulator)
"""Accumulators whose state is a number or a tuple of numbers, except for rare sums."""
_NOTHING: Evaluated = ((), (), ())


class GroupAggregates:
    """Maintain groups; `accumulators` are pairs of an accumulator and the value that it reads.

    The value is None if it reads none. `row` is the class of rows with field names.

    >>> from reactive.engine.operators.accumulators import CountAccumulator, SumAccumulator
    >>> totals = GroupAggregates(len, [(CountAccumulator(), None), (SumAccumulator(), len)])
    >>> totals.step([("anna", 1), ("otto", 1), ("eva", 1)])
    [((4, 2, 8), 1), ((3, 1, 3), 1)]
    >>> totals.step([("otto", -1), ("eva", -1)])
    [((4, 2, 8), -1), ((4, 1, 4), 1), ((3, 1, 3), -1)]
    """

    change_cost: ClassVar[float] = 3.5
    emits_changes: ClassVar[bool] = True
    __slots__ = (
        *("_adders", "_bare", "_before", "_homes", "_key", "_last", "_own", "_to_canonical"),
        *(
            "_progress",
            "_results",
            "_row",
            "_values",
            "accumulators",
            "groups",
            "keeps_negative",
            "touched",
        ),
    )

    def __init__(
        self,
        key: Value | None,
        accumulators: Sequence[tuple[Accumulator, Value | None]],
        *,
        keeps_negative: bool = False,
        row: Any = None,
        to_canonical: Callable[[Any], Any] = canonical,
    ) -> None:
        self._key = key
        self._to_canonical = to_canonical
        self.keeps_negative = keeps_negative
        self._bare = key is None and len(accumulators) == 1 and row is None
        self._row = row
        self.accumulators = [accumulator for accumulator, _ in accumulators]
        self._values = [value for _, value in accumulators]
        self.groups: dict[Any, Group] = {}
        self._before: dict[Any, Group | None] = {}  # touched groups, before the step
        self._last: Evaluated = _NOTHING
        self._progress = (0, 0)  # the current accumulator, and how many rows it has added
        self._homes = shared_accumulators_of(accumulators)
        own = {home: self.accumulators[home - 1] for home in self._homes}
        self._adders = [(position, accumulator.add) for position, accumulator in own.items()]
        self._own = {
            p for p, accumulator in own.items() if isinstance(accumulator, UserAccumulator)
        }
        self._results = [
            (home, accumulator.result)
            for home, accumulator in zip(self._homes, self.accumulators, strict=True)
        ]
        self.touched = 0
        if key is None:
            self._add_single_group()

    def step(self, delta: Pairs) -> list[Pair]:
        """Return the changed rows; if a mixed delta raises, retry its net, deletions first."""
        self.touched += len(delta)
        evaluated = self._evaluate(delta)
        try:
            return self._take(delta, *evaluated)
        except Exception as error:
            reraise_asynchronous(error)
            if not is_mixed(delta):
                raise
        net = _removals_first(delta)
        return self._take(net, *self._evaluate(net))

    def _take(self, delta: Pairs, keys: list[Any], columns: list[Sequence[Any]]) -> list[Pair]:
        """Add evaluated values to the groups; return the changed rows. Undoes all if it raises."""
        self._before, self._last = {}, (keys, columns, delta)
        position = done = 0
        try:
            groups = self._touch(keys, delta)
            for position, add in self._adders:
                column = columns[position - 1]
                done = 0
                if position in self._own and len(delta) > 1:
                    _insertions_first(groups, position, add, column, delta)
                    continue
                for row, weight in delta:  # noqa: B007
                    group = groups[done]
                    group[position] = add(group[position], column[done], weight)
                    done += 1
            self._progress = (len(self.accumulators) + 1, 0)
            return self.differences(self._before)
        except BaseException:
            if not self._progress[0]:
                self._progress = (position, done)
            self.undo()
            raise

    def undo(self) -> None:
        """Restore the groups as before the last step, even one that raised midway."""
        try:
            self._take_back()
        finally:
            for key, before in self._before.items():
                if before is None:
                    self.groups.pop(key, None)
                else:
                    self.groups[key] = before
            self.commit()

    def _take_back(self) -> None:
        """Undo additions to states that are changed in place, the last first."""
        keys, columns, delta = self._last
        complete, done = self._progress
        for position, add in self._adders:
            if position > complete:
                break
            if self.accumulators[position - 1].in_place:
                rows = len(delta) if position < complete else done
                added = islice(zip(keys, columns[position - 1], delta, strict=True), rows)
                for key, value, (_, weight) in reversed(list(added)):
                    before = self._before[key]
                    if before is not None:
                        add(before[position], value, -weight)

    def commit(self) -> None:
        self._before, self._last, self._progress = {}, _NOTHING, (0, 0)

    def contents(self) -> Iterable[Pair]:
        shown = (group[SHOWN] for group in self.groups.values())
        return self._out([(row, 1) for row in shown if row is not None])

    def state(self) -> State | None:
        """Return the groups, in columns; None if the state of an accumulator cannot be stored."""
        if not all(isinstance(accumulator, PLAIN) for accumulator in self.accumulators):
            return None
        groups, width = list(self.groups.values()), len(self.accumulators) + 2
        columns = [list(map(itemgetter(place), groups)) for place in range(width)]
        for accumulator, states in zip(self.accumulators, columns[STATES], strict=True):
            is_mean = isinstance(accumulator, AvgAccumulator)
            sums = map(itemgetter(0), states) if is_mean else states
            if not {*map(type, sums)} <= SUMS:
                return None
        parts = {str(place): column for place, column in enumerate(columns)}
        return {"keys": list(self.groups), "parts": width, **parts}

    def restore(self, state: State, inputs: Inputs) -> None:
        """Load a stored state."""
        columns = [state[str(place)] for place in range(state["parts"])]
        groups = map(list, zip(*columns, strict=True))
        self.groups.update(zip(state["keys"], groups, strict=True))

    def copy_groups(self, groups: Mapping[Any, Group]) -> None:
        """Continue with the groups of an operator with the same aggregates.

        States that are changed in place are shared: undo each step.
        """
        self.groups.clear()
        self.groups.update((key, group.copy()) for key, group in groups.items())

    @property
    def is_detachable(self) -> bool:
        """True if the results depend on the rows alone, and not on the order in which they came."""
        own = (CountAccumulator, SumAccumulator, AvgAccumulator, ValuesAccumulator)
        return not self.keeps_negative and all(isinstance(each, own) for each in self.accumulators)

    def detach_state(self) -> DetachedState:
        """Empty the groups, in the same dictionary, to which loops refer."""
        kept, groups = dict(self.groups), self.groups

        def restore() -> None:
            groups.clear()
            groups.update(kept)
            self.commit()

        groups.clear()
        if self._key is None:
            self._add_single_group()
        return DetachedState(restore, lambda: self._changes_since(kept))

    def _changes_since(self, kept: Mapping[Any, Group]) -> list[Pair]:
        """Return the changes of the shown rows since the groups were `kept`."""
        out: list[Pair] = []
        for key, group in self.groups.items():
            before = kept.get(key)
            old, new = None if before is None else before[SHOWN], group[SHOWN]
            if old == new:
                group[SHOWN] = old  # as in `differences`
                continue
            out += [(row, weight) for row, weight in ((old, -1), (new, 1)) if row is not None]
        gone = [group[SHOWN] for key, group in kept.items() if key not in self.groups]
        out += [(row, -1) for row in gone if row is not None]
        return self._out(out)

    def footprint(self) -> tuple[int, int]:
        """Return the number of groups, and the bytes of their states and shown rows."""
        size = sys.getsizeof(self.groups)
        for group in self.groups.values():
            size += sys.getsizeof(group) + sum(map(state_bytes, group[STATES]))
            size += sys.getsizeof(group[SHOWN])
        return len(self.groups), size

    def _out(self, pairs: list[Pair]) -> list[Pair]:
        """Return pairs of rows, or pairs of bare values if rows have one column and no name."""
        return [(row[0], weight) for row, weight in pairs] if self._bare else pairs

    def _evaluate(self, delta: Pairs) -> tuple[list[Any], list[Sequence[Any]]]:
        """Return the key of each row, and for each accumulator a list of the values that it reads.

        For an accumulator that reads none, or whose state another one holds, `delta` stands in
        place of the values.
        """
        columns: list[Sequence[Any]] = []
        for position, value in enumerate(self._values, 1):
            is_own = self._homes[position - 1] == position and value is not None
            columns.append(_evaluate_column(value, delta) if is_own and value else delta)
        if self._key is None:
            return [()] * len(delta), columns
        keys = []
        key, to_canonical = self._key, self._to_canonical
        for row, _ in delta:
            keys.append(to_canonical(key(row)))
        return keys, columns

    def _new(self) -> Group:
        """Return an empty group; None in the place of a state that another accumulator holds."""
        states = [
            accumulator.zero() if home == position else None
            for position, (home, accumulator) in enumerate(
                zip(self._homes, self.accumulators, strict=True), 1
            )
        ]
        return [0, *states, None]

    def _add_single_group(self) -> None:
        """Add the group of an aggregate without a key, which exists without rows."""
        self.groups[()] = group = self._new()
        group[SHOWN] = self._show((), group)

    def _touch(self, keys: list[Any], delta: Pairs) -> list[Group]:
        """Return the group of each row, with the weight added; save the previous groups."""
        groups, before = self.groups, self._before
        touched = []
        for done, (row, weight) in enumerate(delta):  # noqa: B007
            key = keys[done]
            group = groups.get(key)
            if group is None:
                before.setdefault(key, None)
                group = groups[key] = self._new()
            elif key not in before:
                before[key] = group.copy()
            group[WEIGHT] += weight
            touched.append(group)
        return touched

    def differences(self, touched: Mapping[Any, Group | None]) -> list[Pair]:
        """Return the changes of the shown rows of touched groups; drop empty groups."""
        out: list[Pair] = []
        for key, before in touched.items():
            group = self.groups[key]
            old = None if before is None else before[SHOWN]
            new = self._show(key, group)
            if old == new:
                new = old  # equal, but perhaps of another type: the emitted row stays
            group[SHOWN] = new
            if old is not new:
                if old is not None:
                    out.append((old, -1))
                if new is not None:
                    out.append((new, 1))
            if self._key is not None and not group[WEIGHT] and self.is_empty(group):
                del self.groups[key]
        return self._out(out) if self._bare else out

    def is_empty(self, group: Group) -> bool:
        """Return True if a group of total weight zero has no rows, of negative weight neither."""
        if not self.keeps_negative:
            return True
        return all(self.accumulators[p - 1].is_zero(group[p]) for p, _ in self._adders)

    def _show(self, key: Any, group: Group) -> Row | None:
        """Return the row of a group, or None while its weight is not positive."""
        if group[WEIGHT] <= 0 and self._key is not None:
            return None
        results = [result(group[position]) for position, result in self._results]
        row = tuple(results) if self._key is None else (key, *results)
        return row if self._row is None else self._row(*row)


def _insertions_first(
    groups: Sequence[Group],
    position: int,
    add: Callable[[Any, Any, int], Any],
    column: Sequence[Any],
    delta: Pairs,
) -> None:
    """Feed a user's accumulator; its `remove` may need values that this commit inserts."""
    for comes in (True, False):
        for group, value, (row, weight) in zip(groups, column, delta, strict=True):  # noqa: B007
            if (weight > 0) is comes:
                group[position] = add(group[position], value, weight)


def shared_accumulators_of(accumulators: Sequence[tuple[Accumulator, Any]]) -> list[int]:
    """Return the place of each accumulator's state in a group, counted from 1.

    Accumulators over the distinct values of one callable share the place of the first.
    """
    found: dict[Any, int] = {}
    return [
        found.setdefault((value, accumulator.skip_none), position)
        if accumulator.over_values and value is not None
        else position
        for position, (accumulator, value) in enumerate(accumulators, 1)
    ]


def _removals_first(delta: Pairs) -> Pairs:
    """Return the net delta, deletions first: old and new values may not be comparable."""
    return sorted(consolidate(delta), key=_pair_weight)


def _pair_weight(pair: Pair) -> int:
    return pair[1]


def _evaluate_column(value: Value, delta: Pairs) -> list[Any]:
    """Return the value of each row. The loop is plain because an error note reads `row`."""
    column = []
    for row, _ in delta:
        column.append(value(row))
    return column


class KeptGroup(Protocol):
    """State of a group, kept by the function. `undo` reverts the last `step`."""

    @property
    def is_empty(self) -> bool: ...
    def step(self, changes: Sequence[Pair]) -> Sequence[Pair]: ...
    def undo(self) -> None: ...
    def commit(self) -> None: ...
    def contents(self) -> Iterable[Pair]: ...
    def footprint(self) -> tuple[int, int]: ...


G = TypeVar("G", bound=KeptGroup)


class GroupStates(Generic[G]):
    """Groups by key. Undo and commit apply to the groups that the last step made or changed."""

    __slots__ = ("_groups", "_key", "_made", "_new", "_stepped", "touched")

    def __init__(self, key: Callable[[Row], Any], new: Callable[[], G]) -> None:
        self._key = key
        self._new = new
        self._groups: dict[Any, G] = {}
        self._stepped: dict[Any, G] = {}
        self._made: list[Any] = []  # keys of groups that the step has made
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        """Return the changes of the shown rows; undoes all groups if one raises."""
        self._stepped, self._made = {}, []
        out: list[Pair] = []
        try:
            for key, changes in by_group(delta, self._key).items():
                out += self._step_group(key, changes)
        except BaseException:
            self.undo()
            raise
        return out

    def _step_group(self, key: Any, changes: Sequence[Pair]) -> Iterable[Pair]:
        """Apply the changes of a group; return the changes of its shown rows."""
        return self._group(key).step(changes)

    def undo(self) -> None:
        """Undo the last step of each touched group, and drop the groups that it made."""
        for group in self._stepped.values():
            group.undo()
        for key in self._made:
            self._groups.pop(key, None)
        self._stepped, self._made = {}, []

    def commit(self) -> None:
        """Commit the touched groups, and drop the empty ones."""
        for key, group in self._stepped.items():
            group.commit()
            if group.is_empty:
                del self._groups[key]
        self._stepped, self._made = {}, []

    def contents(self) -> Iterable[Pair]:
        return [pair for group in self._groups.values() for pair in group.contents()]

    def footprint(self) -> tuple[int, int]:
        """Return the rows and bytes that the groups report, added up."""
        rows, size = 0, sys.getsizeof(self._groups)
        for group in self._groups.values():
            held, taken = group.footprint()
            rows += held
            size += taken + sys.getsizeof(group)
        return rows, size

    def _group(self, key: Any) -> G:
        """Return the group of a key, made if absent, and note that this step touches it."""
        group = self._groups.get(key)
        if group is None:
            self._made.append(key)
            group = self._groups[key] = self._new()
        self._stepped[key] = group
        return group


class KeptGroups(GroupStates[KeptGroup]):
    """Groups whose state a function keeps; shown rows are pairs of the key and the row."""

    __slots__ = ()

    def _step_group(self, key: Any, changes: Sequence[Pair]) -> Iterable[Pair]:
        """Apply the changes of a group; return those of its rows, each in a pair with the key."""
        shown = self._group(key).step(changes)
        self.touched += len(changes) + len(shown)
        return [((key, row), weight) for row, weight in shown]

    def contents(self) -> Iterable[Pair]:
        """Return all rows, each in a pair with the key of its group."""
        return [
            ((key, row), weight)
            for key, group in self._groups.items()
            for row, weight in group.contents()
        ]


State: TypeAlias = Mapping[str, Any]
Inputs: TypeAlias = Callable[[], Sequence[Any]]
"""Returns all rows of the inputs of an operator, input by input."""
SUMS = frozenset({int, tuple})
"""Classes of sums that can be stored; rare sums have classes of their own."""


class Restorable(Protocol):
    """An operator whose state can be stored."""

    def state(self) -> State | None: ...
    def restore(self, state: State, inputs: Inputs) -> None: ...


def is_restorable(operator: object) -> TypeGuard[Restorable]:
    """Return True if the class of an operator itself, not its base, defines `restore`."""
    return "restore" in vars(type(operator))


def compress_constant(values: list[Any]) -> Any:
    """Return the single value of a list whose items are all equal, since it is read faster.

    >>> compress_constant([1, 1]), compress_constant([1, 2]), compress_constant([])
    (1, [1, 2], [])
    """
    return values[0] if values and values.count(values[0]) == len(values) else values


def expand_constant(value: Any, length: int) -> list[Any]:
    """Undo `compress_constant`."""
    return value if isinstance(value, list) else [value] * length


def weight_columns(weights: Mapping[Any, int], prefix: str = "") -> State:
    """Return rows and their weights as two columns, whose names begin with `prefix`.

    >>> weight_columns({"a": 1, "b": 1})
    {'rows': ['a', 'b'], 'weights': 1}
    """
    weight = compress_constant(list(weights.values()))
    return {f"{prefix}rows": list(weights), f"{prefix}weights": weight}


def weighted_rows(state: State, prefix: str = "") -> Iterable[tuple[Any, int]]:
    """Undo `weight_columns`.

    >>> list(weighted_rows({"rows": ["a", "b"], "weights": 1}))
    [('a', 1), ('b', 1)]
    """
    rows = state[f"{prefix}rows"]
    return zip(rows, expand_constant(state[f"{prefix}weights"], len(rows)), strict=True)
