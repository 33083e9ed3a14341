"""An aggregate of a join of an input with itself in a cycle, of which no row is read.

    for row, weight in delta:
        ...                                 the chain below, in terms of the row
        source, target = row.source, row.target
        closed += turn(source, target, weight)
    ...                                     the aggregate, of so many rows at once

State:  which ends the rows have (`triangle_count.py`); the groups of the plain operator.
Cost:   of a row, O(the smaller of the two sides that it meets).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from optimizer import plan
from optimizer.expr import Expr, Lifted, reads
from optimizer.plans.multiway import MultiwayJoin
from reactive.codegen.emitter import Emitter, RowPipeline, row_names
from reactive.codegen.functions import Values, build
from reactive.collections.triangle_count import TriangleCount
from reactive.collections.zset import Pair
from reactive.operators.aggregate import Aggregate
from reactive.operators.generated.grouped import NONE_BEFORE, Grouped
from reactive.operators.generated.single import GroupingOfOne
from reactive.operators.sums_by import BailOut


class CyclicCount(Grouped):
    """Runs the loop on the groups of a plain operator; what goes wrong in it is `BailOut`."""

    __slots__ = ("_circle", "_turn", "holds_for")

    def __init__(
        self, plain: Aggregate, loop: Callable[..., Any], source: str, owner: plan.Node
    ) -> None:
        super().__init__(plain, loop, _never, source)
        self._circle = TriangleCount()
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
            raise BailOut(self.holds_for, self) from error

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

    pipeline: RowPipeline
    ends: tuple[Expr, Expr]

    def seen(self) -> Hashable:
        """What is the same for all inputs that go around alike, and raise for the same rows.

        What is evaluated anyway may be in any order, but not across a test.
        """
        runs: list[Hashable] = []
        for is_touch, some in groupby(
            self.pipeline.instructions, lambda instruction: instruction.kind == "touch"
        ):
            instructions = list(some)
            runs += [frozenset(instructions)] if is_touch else instructions
        return (*runs, self.ends)


def edge(multiway: MultiwayJoin, chains: Sequence[RowPipeline]) -> Edge | None:
    """A row as an edge, if three of one base meet in a cycle: from each to the next, all alike.

    `chains` are of the inputs, over their base; what is tested is added to them.
    """
    equal = {(e.left, e.right): (e.of_left, e.of_right) for e in multiway.equations}
    equal |= {(e.right, e.left): (e.of_right, e.of_left) for e in multiway.equations}
    if len(multiway.tests) != 3 or len(multiway.equations) != 3 or len(equal) != 6:
        return None
    edges = []
    for place, pipeline in enumerate(chains):
        for test in multiway.tests[place]:
            pipeline.test(test)
        _, of = equal[(place - 1) % 3, place]
        to, _ = equal[place, (place + 1) % 3]
        edges.append(Edge(pipeline, (pipeline.take(of), pipeline.take(to))))
    return edges[0] if len({edge.seen() for edge in edges}) == 1 else None


def counts_only(pipeline: RowPipeline, sink: GroupingOfOne) -> bool:
    """Whether nothing is read of the joined rows."""
    return not any(
        map(reads, [*(instruction.expr for instruction in pipeline.instructions), *sink.exprs()])
    )


def cyclic_count_loop(
    called: Sequence[Lifted], edge: Edge, above: RowPipeline, sink: GroupingOfOne
) -> tuple[Callable[..., Any], str]:
    """The function, and its text; `above` is done with what edges close."""
    values, pipeline = Values(), edge.pipeline
    emitter = Emitter(values, row_names(called, pipeline.bindings), pipeline.shapes, 2)
    emitter.begin(pipeline.instructions, edge.ends)
    emitter.write(pipeline.instructions)
    source, target = map(emitter.named, edge.ends)
    emitter.line(f"if {source} != {source} or {target} != {target}: continue")
    emitter.line(f"closed += turn({source}, {target}, weight)")
    counted = Emitter(values, ("row",), above.shapes, 2)
    counted.write(above.instructions)
    sink.write(counted, "weight")
    lines = [
        "def step(groups, before, turn, delta):",
        "    closed = 0",
        "    for row, weight in delta:",
        *emitter.lines,
        "    if not closed: return ()",
        "    for weight in (closed,):",
        *counted.lines,
        *sink.epilogue(),
        f"    return {sink.result}",
    ]
    values.bind(sink.bound)
    text = "\n".join([*lines, ""])
    return build("step", text, values), text
