"""Recursion evaluated from scratch: the body again and again, until nothing changes.

`run(body, variables)` evaluates a body with the rows that its recursive relations have so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from optimizer import plan
from optimizer.expr import Function
from reactive.codegen import callable_of
from reactive.errors import FixpointError
from reactive.recursion.ranking import ranker
from reactive.zset import Row, canonical

Bag = Counter[Row]
Variables = Mapping[tuple[Any, int], Bag]
Run = Callable[[plan.Node, Variables], Bag]


def iterated(node: plan.Iterate, run: Run) -> Bag:
    """The body so many times."""
    rows = run(node.start, {})
    for _ in range(node.times):
        rows = run(node.body, {(node.level, 0): rows})
    return rows


def smallest(node: plan.Fixpoint, run: Run) -> list[Bag]:
    """All relations of a fixpoint, from none on."""
    relations: list[Bag] = [Counter() for _ in node.bodies]
    for _ in range(node.max_rounds + 2):
        variables = {(node.level, index): rows for index, rows in enumerate(relations)}
        found = [run(body, variables) for body in node.bodies]
        new = [
            _kept(best, rows if best is None else rows | old)  # one may be beaten by its followers
            for best, rows, old in zip(node.best, found, relations, strict=True)
        ]
        if new == relations:
            return relations
        relations = new
    raise FixpointError(f"fixpoint {', '.join(node.names)} does not come to an end")


def _kept(best: plan.Best | None, rows: Bag) -> Bag:
    """Each row once; or the best one of each key."""
    if best is None:
        return Counter(dict.fromkeys(rows, 1))
    rank = ranker(_called(best.value), largest=best.largest)
    by: dict[Any, list[Row]] = {}
    for row in rows:
        by.setdefault(canonical(_called(best.by)(row)), []).append(row)
    return Counter({min(group, key=rank): 1 for group in by.values()})


def _called(function: Function) -> Callable[[Row], Any]:
    return callable_of(function)
