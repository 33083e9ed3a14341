"""Operators on single rows and single groups.

Tolerate: replace a shown row only when its value has changed enough.

    shown(key)  =  row           if |value(row) - value(shown(key))| >= least, or the key is new
                   shown(key)    otherwise

So each shown value differs from the input by less than `least`; which of the rows within that
distance is shown depends on the history. Each key has one row.

State:  two rows for each key: the input row, and the shown row.
Cost:   O(|dL|).
Source: differential dataflow's advice for numerical loops, to quantize; here without a grid, at
        whose lines values would flicker.

Reduce: the rows that a callable returns for each group, recomputed when the group changes.

    d(g)  =  f(g, rows after)  -  f(g, rows before)      for each touched group

The callable must return equal rows for equal groups; nothing else is known of it. So it is the
reference for every operator of groups, and the choice if there is no other operator.

A row is in its group while its weight is positive, and a group is shown while it has a row. The
state of a group is immutable: a step makes new groups, and an undo restores the old ones.

State:  every row with its weight, by group; the rows that each group shows.
Cost:   O(rows of the touched groups), and one call for each of these.
Source: `reduce` of differential dataflow.

Top: the first rows of each group in the order of a key.

    top(n, by) of rows grouped by k  =  order_by(by).limit(n), of each group

    a  5 3 | 1        an inserted or deleted row of a group: one row at most enters the window,
    b  4 | 4 2        and one leaves it
       n = 2 | rest

Groups are independent, so each follows the law of a single order, and its window moves as in
`order_by.py`.

State:  every row, sorted, in an order for each group.
Cost:   O(|dL| * log group), whatever the size of the window.
Source: [i3ql] order by, per group; SQL's ROW_NUMBER() OVER (PARTITION BY k ORDER BY by) <= n.

Unnest: pair each row with every element of a collection computed from it.

    d(unnest(f, L))  =  { row + (element,): weight  |  (row, weight) in dL, element in f(row) }

Linear. An element that occurs twice in the collection makes two rows.

State:  none.
Cost:   O(|dL| + elements).
Source: [i3ql] unnest; [slender] flattening.

Select many: every element of a collection computed from each row, without the row.

    d(select_many(f, L))  =  { element: weight  |  (row, weight) in dL, element in f(row) }

Linear.

State:  none.
Cost:   O(|dL| + elements).
Source: [mrql] cmap; [slender] flatten.

Selection: the rows that pass a predicate.

    d(where(p, L))  =  where(p, dL)

Linear: each row is tested alone, whatever its weight and whatever the other rows.

State:  none.
Cost:   O(|dL|).
Source: [dbsp] linear operators; [i3ql] selection.

Projection with bag semantics: a function of each row.

    d(select(f, L))  =  select(f, dL)

Linear. Different rows may be mapped to equal ones, whose weights then add up when a reader
consolidates.

State:  none.
Cost:   O(|dL|).
Source: [dbsp] linear operators; [i3ql] projection.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from reactive.engine.collections.bag import Bag, bag_from_weights
from reactive.engine.collections.bag_folds import rows_returned
from reactive.engine.collections.zset import Pair, Pairs, Row, by_group, canonical
from reactive.engine.operators.aggregate import GroupStates
from reactive.engine.operators.order_by import OrderBy
from reactive.errors import FixpointError

Held = tuple[Row, Row]
"""The row of a key, and the row that is shown for it."""
Changes = dict[Any, dict[Row, int]]


class Tolerate:
    """Emit a row if its value has changed by `least` since the shown row of its key.

    >>> tolerate = Tolerate(lambda row: row[0], lambda row: row[1], 0.5)
    >>> tolerate.step([(("a", 1.0), 1)])
    [(('a', 1.0), 1)]
    >>> tolerate.step([(("a", 1.0), -1), (("a", 1.4), 1)])
    []
    >>> tolerate.step([(("a", 1.4), -1), (("a", 1.6), 1)])
    [(('a', 1.0), -1), (('a', 1.6), 1)]
    """

    __slots__ = ("_before", "_by", "_former", "_least", "_value", "held", "touched")

    def __init__(self, by: Callable[[Row], Any], value: Callable[[Row], Any], least: float) -> None:
        self._by = by
        self._value = value
        self._least = least
        self.held: dict[Any, Held] = {}
        self._before: dict[Any, Held | None] = {}
        self._former: dict[Any, Held] | None = None
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        """Return the changes of shown rows. Raises `FixpointError` if a key has several rows."""
        self.touched += len(delta)
        decided = [(key, self._now(key, rows)) for key, rows in self._changes(delta).items()]
        out: list[Pair] = []
        for key, now in decided:
            was = self.held.get(key)
            self._before.setdefault(key, was)
            if now is None:
                self.held.pop(key, None)
            else:
                self.held[key] = now
            _emit_change(out, was, now)
        return out

    def reset(self, rows: Iterable[Row]) -> None:
        """Restart with the given rows; each of them is shown."""
        held = {self.key(row): (row, row) for row in rows}
        if self._former is None:
            self._undo_keys()
            self._former = self.held
        self.held = held

    def undo(self) -> None:
        """Undo all steps since the last commit."""
        if self._former is not None:
            self.held, self._former = self._former, None
        self._undo_keys()

    def _undo_keys(self) -> None:
        """Restore the rows of all keys changed since the last commit."""
        for key, was in self._before.items():
            if was is None:
                self.held.pop(key, None)
            else:
                self.held[key] = was
        self._before = {}

    def commit(self) -> None:
        self._before, self._former = {}, None

    def key(self, row: Row) -> Any:
        """Return the key that identifies a row."""
        return canonical(self._by(row))

    def contents(self) -> Iterable[Pair]:
        return [(shown, 1) for _, shown in self.held.values()]

    def there(self) -> Iterable[Pair]:
        """Return the input rows; each is near its shown row."""
        return [(row, 1) for row, _ in self.held.values()]

    def state(self) -> dict[str, Any]:
        """Return the input rows, and the shown rows if they differ."""
        there, shown = (
            [row for row, _ in self.held.values()],
            [row for _, row in self.held.values()],
        )
        return {"there": there, "shown": None if there == shown else shown}

    def restore(self, there: Sequence[Row], shown: Sequence[Row] | None) -> None:
        """Load a stored state."""
        pairs = zip(there, there if shown is None else shown, strict=True)
        self.held.update((self.key(row), (row, other)) for row, other in pairs)

    def footprint(self) -> tuple[int, int]:
        return len(self.held), sys.getsizeof(self.held) + 56 * len(self.held)

    def _changes(self, delta: Pairs) -> Changes:
        """Return the changed rows of each key, with their weights."""
        by = self._by
        found: Changes = {}
        for row, weight in delta:
            rows = found.setdefault(canonical(by(row)), {})
            rows[row] = rows.get(row, 0) + weight
        return found

    def _now(self, key: Any, changes: dict[Row, int]) -> Held | None:
        """Return the new row of a key, and the row to show for it; None if no row is left.

        Adds the current row to `changes`. Raises `FixpointError` if the key has several rows.
        """
        was = self.held.get(key)
        if was is not None:
            changes[was[0]] = changes.get(was[0], 0) + 1
        rows = [(row, weight) for row, weight in changes.items() if weight]
        if not rows:
            return None
        (row, weight), *others = rows
        if others or weight != 1:
            raise _ambiguous(key, [row, *(other for other, _ in others)], weight)
        return row, row if was is None or self._moves(row, was[1]) else was[1]

    def _moves(self, row: Row, shown: Row) -> bool:
        return not abs(self._value(row) - self._value(shown)) < self._least


def _emit_change(out: list[Pair], was: Held | None, now: Held | None) -> None:
    """Append the change of a key's shown row to `out`, if the shown row differs."""
    if was is not None and now is not None and was[1] == now[1]:
        return
    if was is not None:
        out.append((was[1], -1))
    if now is not None:
        out.append((now[1], 1))


def _ambiguous(key: Any, rows: list[Row], weight: int) -> FixpointError:
    """Return the error for a key that has several rows, or one row several times."""
    shown = " and ".join(f"{row!r:.60}" for row in rows[:2])
    often = f", {weight} times" if len(rows) == 1 else ""
    return FixpointError(
        f"tolerance= needs one row of each key, and key {key!r:.60} has several\n"
        f"  they are {shown}{often}\n"
        "  by= says which rows correspond from round to round"
    )


Weights = dict[Row, int]


class Group:
    """Rows of a group with their weights, and its shown rows with theirs."""

    __slots__ = ("key", "shown", "weights")

    def __init__(self, key: Any, weights: Weights, shown: Weights) -> None:
        self.key = key
        self.weights = weights
        self.shown = shown


class Reduce:
    """Call `function(key, rows)` for each changed group, and emit the changes of its rows.

    >>> longest = Reduce(lambda word: word[0], lambda key, words: [max(map(len, words))])
    >>> longest.step([("to", 1), ("that", 1), ("be", 1)])
    [(('t', 4), 1), (('b', 2), 1)]
    >>> longest.step([("that", -1), ("by", 1)])
    [(('t', 4), -1), (('t', 2), 1)]
    """

    __slots__ = ("_before", "_function", "_groups", "_key", "touched")

    def __init__(
        self, key: Callable[[Row], Any], function: Callable[[Any, Bag[Row]], Iterable[Row]]
    ) -> None:
        self._key = key
        self._function = function
        self._groups: dict[Any, Group] = {}
        self._before: dict[Any, Group | None] = {}  # touched groups, before the step
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        """Return the changes of the shown rows; no group changes if the function raises."""
        before: dict[Any, Group | None] = {}
        after: dict[Any, Group] = {}
        out: list[Pair] = []
        for key, changes in by_group(delta, self._key).items():
            old = before[key] = self._groups.get(key)
            group = after[key] = _change_weights(
                Group(key, {}, {}) if old is None else old, changes
            )
            self.touched += len(group.weights)
            out += self._renew(group, {} if old is None else old.shown)
        self._replace(before, after)
        return out

    def undo(self) -> None:
        """Restore the groups as before the last step."""
        for key, group in self._before.items():
            if group is None:
                self._groups.pop(key, None)
            else:
                self._groups[key] = group
        self._before = {}

    def commit(self) -> None:
        self._before = {}

    def contents(self) -> Iterable[Pair]:
        return [pair for group in self._groups.values() for pair in group.shown.items()]

    def footprint(self) -> tuple[int, int]:
        """Return the number of input rows, and the bytes of the groups."""
        rows, size = 0, sys.getsizeof(self._groups)
        for group in self._groups.values():
            rows += len(group.weights)
            size += sum(map(sys.getsizeof, (group, group.weights, group.shown)))
            size += sum(map(sys.getsizeof, group.shown))
        return rows, size

    def _renew(self, group: Group, old: Weights) -> list[Pair]:
        """Compute the rows that a group shows, and return the changes.

        A row that equals an old one, perhaps of another type, is replaced by the old one.
        """
        new = self._count_rows(group.key, self._rows_of(group.key, group.weights))
        group.shown = shown = dict.fromkeys([row for row in old if row in new], 0)
        shown.update(new)
        gone = [(row, -weight) for row, weight in old.items() if row not in shown]
        changed = [(row, weight - old.get(row, 0)) for row, weight in shown.items()]
        return [*gone, *(pair for pair in changed if pair[1])]

    def _rows_of(self, key: Any, group: Weights) -> list[Row]:
        """Return the rows that the callable makes of the rows of positive weight."""
        if group and min(group.values()) < 0:
            group = {row: weight for row, weight in group.items() if weight > 0}
        rows = bag_from_weights(dict(group))
        return list(rows_returned(self._function(key, rows), "reduce")) if group else []

    def _count_rows(self, key: Any, made: list[Row]) -> Weights:
        """Return the numbers of equal rows, each row in a pair with the key."""
        counts: Weights = {}
        for row in made:
            shown = (key, canonical(row))
            counts[shown] = counts.get(shown, 0) + 1
        return counts

    def _replace(self, before: dict[Any, Group | None], after: dict[Any, Group]) -> None:
        """Store the new groups, and drop the empty ones; restores all of them if that raises."""
        self._before = before
        try:
            for key, group in after.items():
                if group.weights:
                    self._groups[key] = group
                else:
                    self._groups.pop(key, None)
        except BaseException:
            self.undo()
            raise


def _change_weights(group: Group, changes: Sequence[Pair]) -> Group:
    """Return a copy of a group with changed weights, without shown rows."""
    weights = dict(group.weights)
    for row, change in changes:
        weight = weights.get(row, 0) + change
        if weight:
            weights[row] = weight
        else:
            del weights[row]
    return Group(group.key, weights, {})


class Top(GroupStates[OrderBy]):
    """Maintain each group sorted, and emit the rows that enter and leave its window.

    >>> longest = Top(lambda word: word[0], len, limit=1, descending=True)
    >>> longest.step([("to", 1), ("that", 1), ("be", 1)])
    [('that', 1), ('be', 1)]
    >>> longest.step([("that", -1), ("by", 1)])
    [('that', -1), ('to', 1)]
    """

    __slots__ = ()

    def __init__(
        self,
        key: Callable[[Row], Any],
        by: Callable[[Row], Any],
        *,
        limit: int,
        offset: int = 0,
        descending: bool = False,
    ) -> None:
        new = partial(OrderBy, by, descending=descending, limit=limit, offset=offset)
        super().__init__(key, new)

    def step(self, delta: Pairs) -> list[Pair]:
        self.touched += len(delta)
        return super().step(delta)

    def commit(self) -> None:
        """Commit the stepped groups, and drop their edits."""
        stepped = self._stepped.values()
        super().commit()
        for group in stepped:
            group.edits = []  # no reader follows these orders


class Unnest:
    """Emit one pair per element; `extend(row, element)` makes the row.

    >>> Unnest(str.split, lambda row, word: (row, word)).step([("to be", 1)])
    [(('to be', 'to'), 1), (('to be', 'be'), 1)]
    """

    __slots__ = ("_extend", "_function", "touched")

    def __init__(
        self, function: Callable[[Row], Iterable[Any]], extend: Callable[[Row, Any], Row]
    ) -> None:
        self._function = function
        self._extend = extend
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        """Return one pair per element of each row; weights are those of the rows."""
        function, extend = self._function, self._extend
        out = []
        for row, weight in delta:
            for element in function(row):
                out.append((extend(row, canonical(element)), weight))
        self.touched += len(delta) + len(out)
        return out


class SelectMany:
    """Emit one pair per element.

    >>> SelectMany(str.split).step([("to be", 1), ("or", -1)])
    [('to', 1), ('be', 1), ('or', -1)]
    """

    __slots__ = ("_function", "touched")

    def __init__(self, function: Callable[[Row], Iterable[Any]]) -> None:
        self._function = function
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        """Return one pair per element, with the weight of its row."""
        function = self._function
        out = []
        for row, weight in delta:
            for element in function(row):
                out.append((canonical(element), weight))
        self.touched += len(delta) + len(out)
        return out


class Where:
    """Emit the pairs whose rows pass.

    >>> Where(lambda row: row > 1).step([(1, 1), (2, 1), (3, -1)])
    [(2, 1), (3, -1)]
    """

    __slots__ = ("_predicate", "touched")

    def __init__(self, predicate: Callable[[Row], object]) -> None:
        self._predicate = predicate
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        """Return the pairs whose rows pass, as the same objects."""
        self.touched += len(delta)
        predicate = self._predicate
        out = []
        for pair in delta:
            if predicate(pair[0]):
                out.append(pair)
        return out


class Select:
    """Map the row of each pair.

    >>> Select(lambda row: row % 2).step([(1, 1), (2, 1), (3, -1)])
    [(1, 1), (0, 1), (1, -1)]
    """

    __slots__ = ("_function", "_to_canonical", "touched")

    def __init__(
        self, function: Callable[[Row], Row], to_canonical: Callable[[Row], Row] = canonical
    ) -> None:
        self._function = function
        self._to_canonical = to_canonical
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        """Return the pairs with mapped rows; equal rows are not added up."""
        self.touched += len(delta)
        function, to_canonical = self._function, self._to_canonical
        out = []
        for row, weight in delta:
            out.append((to_canonical(function(row)), weight))
        return out
