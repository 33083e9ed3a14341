"""Aggregation of a large batch over columns: sums by group, which are added to the groups.

    rows    columns    sums by key            for key, (times_left, left_sum0) in changes:
                                                  group = get(key)
                                                  group[0] += times_left
                                                  group[1] += left_sum0

State:  the groups of the plain operator.
Cost:   that of `column_sums.py`, and O(groups that change).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optimizer.expr import Expr, Local
from reactive.engine.codegen.emitter import RowPipeline
from reactive.engine.collections.zset import Batch, Pair
from reactive.engine.operators.accumulators import AvgAccumulator, CountAccumulator, SumAccumulator
from reactive.engine.operators.loops import factored
from reactive.engine.operators.loops.column_sums import ColumnSums, column_sums
from reactive.engine.operators.loops.grouped import Grouping
from reactive.engine.operators.loops.nests import changes_loop

SUMMED = (CountAccumulator, SumAccumulator, AvgAccumulator)
Columns = Callable[[Batch, dict[Any, Any], dict[Any, Any]], Sequence[Pair] | None]
"""Of a delta, groups, and groups as they were before: what changes; None if the loop is to run."""


def group_columns(
    pipeline: Callable[[], RowPipeline], grouping: Callable[[RowPipeline], Grouping]
) -> Columns | None:
    """The same as the loop of an aggregate, of deltas that can be had over columns."""
    sums = _sums(pipeline(), grouping)
    if sums is None:
        return None
    loops: list[Callable[..., Sequence[Pair]]] = []

    def step(delta: Batch, groups: dict[Any, Any], before: dict[Any, Any]) -> Sequence[Pair] | None:
        changed = sums.of(delta)
        if changed is None:
            return None
        if not loops:  # few views ever come here
            loops.append(_made(pipeline(), grouping))
        return loops[0](groups, before, changed.items())

    return step


def _sums(pipeline: RowPipeline, grouping: Callable[[RowPipeline], Grouping]) -> ColumnSums | None:
    sink = grouping(pipeline)
    if not all(isinstance(a, SUMMED) and not a.skip_none for a, _ in sink.accumulators):
        return None
    return column_sums(pipeline, [] if sink.key is None else [sink.key], _values(sink))


def _values(sink: Grouping) -> list[Expr]:
    """What is summed, each once."""
    return list(dict.fromkeys(value for _, value in sink.accumulators if value is not None))


def _made(of: RowPipeline, grouping: Callable[[RowPipeline], Grouping]) -> Callable[..., Any]:
    """The loop that adds sums by key to groups."""
    sink = grouping(of)
    values = _values(sink)
    names = [f"left_sum{place}" for place in range(len(values))]
    terms = [
        (a, None if value is None else factored.Term(Local(names[values.index(value)])))
        for a, value in sink.accumulators
    ]
    key = None if sink.key is None else Local("key")
    made = factored.GroupingOfSums(key, terms, sink.shared, row=sink.row)
    return changes_loop(names, RowPipeline((), of.bindings, of.shapes), made)
