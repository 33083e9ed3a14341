"""An aggregate of a join of an input with itself in a circle, of which no row is read.

    for row, weight in delta:
        ...                                 the chain below, in terms of the row
        source, target = row.source, row.target
        closed += turn(source, target, weight)
    ...                                     the aggregate, of so many rows at once

State:  which ends the rows have (`circle.py`); the groups of the plain operator.
Cost:   of a row, O(the smaller of the two sides that it meets).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from optimizer import plan
from optimizer.expr import Expr, Lifted, reads
from optimizer.plans.multiway import Wide
from reactive.codegen.body import Body, Plan, row_names
from reactive.codegen.functions import Values, build
from reactive.collections.circle import Circle
from reactive.collections.zset import Pair
from reactive.operators.aggregate import Aggregate
from reactive.operators.generated.grouped import NONE_BEFORE, Grouped
from reactive.operators.generated.single import GroupingOfOne
from reactive.operators.sums_by import Unfit


class Circling(Grouped):
    """Runs the loop on the groups of a plain operator; what goes wrong in it is `Unfit`."""

    __slots__ = ("_circle", "_turn", "holds_for")

    def __init__(
        self, plain: Aggregate, loop: Callable[..., Any], source: str, owner: plan.Node
    ) -> None:
        super().__init__(plain, loop, _never, source)
        self._circle = Circle()
        self._turn = self._circle.turn
        self.holds_for = owner
        """The joins that it stands for: what moves elsewhere if this grows."""
        self.step = self._step_around

    def _step_around(self, delta: Sequence[Pair]) -> Sequence[Pair]:
        count = len(delta)
        self.touched += count
        before = self._before = {}
        if count > 1:
            self._circle.begin()
        loop = self._loop
        try:
            out: Sequence[Pair] = loop(self._groups, before, self._turn, delta)
            return out
        except Exception as error:
            self.undo()
            raise Unfit(self.holds_for, self) from error

    def undo(self) -> None:
        self._circle.undo()
        super().undo()

    def commit(self) -> None:
        self._before = NONE_BEFORE
        self._circle.log = []  # as `commit`, whose call would take longer

    def footprint(self) -> tuple[int, int]:
        edges, size = self._circle.footprint()
        groups, more = super().footprint()
        return edges + groups, size + more


def _never(*deltas: Sequence[Any]) -> Sequence[Pair]:
    raise AssertionError("there is no plain operator of it")


@dataclass(frozen=True, slots=True)
class Edge:
    """What a loop does with a row of an input, and then the ends that it has as an edge."""

    todo: Plan
    ends: tuple[Expr, Expr]

    def seen(self) -> Hashable:
        """What is the same for all inputs that go around alike, and raise for the same rows.

        What is evaluated anyway may be in any order, but not across a test.
        """
        runs: list[Hashable] = []
        for is_touch, some in groupby(self.todo.acts, lambda act: act.kind == "touch"):
            acts = list(some)
            runs += [frozenset(acts)] if is_touch else acts
        return (*runs, self.ends)


def edge(wide: Wide, chains: Sequence[Plan]) -> Edge | None:
    """A row as an edge, if three of one base meet in a circle: from each to the next, all alike.

    `chains` are of the inputs, over their base; what is tested is added to them.
    """
    equal = {(e.left, e.right): (e.of_left, e.of_right) for e in wide.equations}
    equal |= {(e.right, e.left): (e.of_right, e.of_left) for e in wide.equations}
    if len(wide.tests) != 3 or len(wide.equations) != 3 or len(equal) != 6:
        return None
    edges = []
    for place, todo in enumerate(chains):
        for test in wide.tests[place]:
            todo.test(test)
        _, of = equal[(place - 1) % 3, place]
        to, _ = equal[place, (place + 1) % 3]
        edges.append(Edge(todo, (todo.take(of), todo.take(to))))
    return edges[0] if len({edge.seen() for edge in edges}) == 1 else None


def counts_only(todo: Plan, taker: GroupingOfOne) -> bool:
    """Whether nothing is read of the joined rows."""
    return not any(map(reads, [*(act.expr for act in todo.acts), *taker.exprs()]))


def circle_loop(
    called: Sequence[Lifted], edge: Edge, above: Plan, taker: GroupingOfOne
) -> tuple[Callable[..., Any], str]:
    """The function, and its text; `above` is done with what edges close."""
    values, todo = Values(), edge.todo
    body = Body(values, row_names(called, todo.bindings), todo.shapes, 2)
    body.begin(todo.acts, edge.ends)
    body.write(todo.acts)
    source, target = map(body.named, edge.ends)
    body.line(f"if {source} != {source} or {target} != {target}: continue")
    body.line(f"closed += turn({source}, {target}, weight)")
    counted = Body(values, ("row",), above.shapes, 2)
    counted.write(above.acts)
    taker.write(counted, "weight")
    lines = [
        "def step(groups, before, turn, delta):",
        "    closed = 0",
        "    for row, weight in delta:",
        *body.lines,
        "    if not closed: return ()",
        "    for weight in (closed,):",
        *counted.lines,
        *taker.epilogue(),
    ]
    values.bind(taker.bound)
    text = "\n".join([*lines, ""])
    return build("step", text, values), text
