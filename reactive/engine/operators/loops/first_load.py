"""Aggregation of a large load where there are no groups yet: values by group, then all states.

    for row in delta:                                {"Bonn": [3, 5], "Kiel": [4]}
        groups[row.town].append(row.amount)          counts [2, 1]    sums [8, 4]    rows of both

No group is looked up to be changed, no row has a weight, and each accumulator makes the states of
all groups together (`states.py`).

State:  while it runs the values of all rows; the groups of the plain operator.
Cost:   O(rows), a third of what the loop takes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from optimizer.expr import Expr, Lifted
from reactive.engine.codegen.emitter import RowPipeline
from reactive.engine.collections.zset import Batch, Pair
from reactive.engine.operators.aggregate import WEIGHT, Aggregate
from reactive.engine.operators.loops.gathering import Gathering
from reactive.engine.operators.loops.grouped import Grouping
from reactive.engine.operators.loops.nests import delta_loop
from reactive.engine.operators.loops.states import Gathered, shown

Loop = Callable[[dict[Any, list[Any]], Sequence[Any]], Any]


class FirstLoad:
    """The groups of a first load, as the loop of an aggregate makes them.

    accumulators: each with the place of what it reads among the values; None of one that reads
                  none.
    """

    def __init__(
        self,
        plain: Aggregate,
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
        self, delta: Batch, groups: dict[Any, Any], before: dict[Any, Any]
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
        return Batch(rows, 1) if self._is_keyed else plain.differences(before)

    def _states(self, lists: list[list[Any]]) -> list[Sequence[Any]]:
        """Those of all groups, of one accumulator after the other."""
        columns = (
            [Gathered(lists)]
            if self._width < 2
            else [
                Gathered([list(map(itemgetter(place), values)) for values in lists])
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
