"""Cyclic count: an aggregate of joins that form a cycle, and whose rows are not read.

    for row, weight in delta_0:
        ...                                 the chain below, in terms of the row
        left, right = row.source, row.target
        ...                                 add the pair to the sets
        met += len(...)                     the number of its joined rows (`cycle_rows.py`)
        closed += met
    ...                                     the aggregate, of `closed` rows in one step

State:  the pairs of ends of each input (`neighbour_rows.py`), once for equal inputs; the groups of
        the plain operator.
Cost:   O(the smallest of the sides that it probes) per row and place, by generic join.
Source: see `optimizer/plans/multiway.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, MutableSequence, Sequence
from itertools import groupby
from typing import Any

from optimizer import plan
from optimizer.expr import Expr, Lifted, reads
from optimizer.plans.multiway import MultiwayJoin
from optimizer.record import record
from reactive.engine.codegen.cycle_rows import NOTHING, CycleTerms, Occurrence
from reactive.engine.codegen.emitter import Emitter, RowPipeline, row_names
from reactive.engine.codegen.functions import BoundValues, build
from reactive.engine.collections.neighbour_rows import Neighbours
from reactive.engine.collections.zset import Pair
from reactive.engine.operators.aggregate import GroupAggregates
from reactive.engine.operators.loops.grouped import (
    NONE_BEFORE,
    GroupingOfOne,
    GroupLoopRunner,
    refuse_plain_step,
)
from reactive.engine.operators.operator import BailOut

EMPTY: frozenset[Any] = frozenset()
Logged = tuple[int, Any, Any, int]
"""The number of an input, a pair of ends, and its previous weight."""


class CyclicCount(GroupLoopRunner):
    """Count by a generated loop, into the groups of a plain operator; any error is a `BailOut`."""

    __slots__ = ("_held", "_log", "holds_for")

    def __init__(
        self,
        plain: GroupAggregates,
        loop: Callable[..., Any],
        source: str,
        owner: plan.Node,
        held: Sequence[Neighbours],
    ) -> None:
        super().__init__(plain, loop, refuse_plain_step, source)
        self._held = held
        self._log: MutableSequence[Logged] = []
        self.holds_for = owner
        """The joins that this operator replaces: `BailOut` names them."""
        self.step = self._step_ends

    def _step_ends(self, *deltas: Sequence[Pair]) -> Sequence[Pair]:
        """Return the changed groups; any exception is undone, and becomes a `BailOut`."""
        count = 0
        for delta in deltas:
            count += len(delta)
        self.touched += count
        before = self._before = {}
        if count > 1:
            self._begin()
        try:
            out: Sequence[Pair] = self._loop(self._groups, before, self._log.append, *deltas)
            return out
        except Exception as error:
            self.undo()
            raise BailOut(self.holds_for, self) from error

    def _begin(self) -> None:
        """Disable the undo log if the state is empty: an undo then clears the state."""
        if not any(each.onward for each in self._held):
            self._log = deque(maxlen=0)

    def undo(self) -> None:
        """Restore the pairs of ends, by the log or by clearing them, and the groups."""
        if self._log.__class__ is deque:
            for each in self._held:
                each.clear()
        while self._log:
            number, *was = self._log[-1]
            self._held[number].put(*was)
            self._log.pop()
        self._log = []
        super().undo()

    def commit(self) -> None:
        self._before = NONE_BEFORE
        self._log = []

    def footprint(self) -> tuple[int, int]:
        """Return the rows and bytes of the groups and of the pairs of ends."""
        rows, size = super().footprint()
        for each in self._held:
            pairs, more = each.footprint()
            rows, size = rows + pairs, size + more
        return rows, size


@record
class Edges:
    """Instructions for a row of an input, and its one or two ends."""

    base: int
    pipeline: RowPipeline
    ends: tuple[Expr, ...]
    called: tuple[Lifted, ...]
    row: Expr | None = None
    """The row itself, if it is stored."""

    def make_signature(self) -> Hashable:
        """Return a value that is equal for inputs with equal rows that raise for the same rows.

        Evaluations may be reordered, but not across a test.
        """
        runs: list[Hashable] = []
        for is_touch, some in groupby(
            self.pipeline.instructions, lambda instruction: instruction.kind == "touch"
        ):
            instructions = list(some)
            runs += [frozenset(instructions)] if is_touch else instructions
        return (self.base, *runs, self.ends, self.row)


@record
class Cycle:
    """A join of pairs of ends: its distinct inputs, and the variables of each place."""

    edges: tuple[Edges, ...]
    occurrences: tuple[Occurrence, ...]


def cycle(
    multiway: MultiwayJoin,
    bases: Sequence[int],
    chains: Sequence[RowPipeline],
    called: Sequence[tuple[Lifted, ...]],
    *,
    holds_rows: bool = False,
) -> Cycle | None:
    """Return a join as a cycle of pairs; None if an input has more than two ends, or one twice.

    `chains` are the pipelines of the inputs over their bases; tests of the join are added to them.
    """
    variables = variables_of(multiway)
    if not multiway.is_cyclic or variables is None:
        return None
    known: dict[Hashable, int] = {}
    edges: list[Edges] = []
    occurrences: list[Occurrence] = []
    for place, pipeline in enumerate(chains):
        for test in multiway.tests[place]:
            pipeline.test(test)
        ends = tuple(pipeline.take(expr) for expr in variables[place])
        row = pipeline.value() if holds_rows else None
        found = Edges(bases[place], pipeline, ends, called[place], row)
        seen = found.make_signature()
        if seen not in known:
            known[seen] = len(edges)
            edges.append(found)
        one, two = (NOTHING, *variables[place].values())[-2:]
        occurrences.append(Occurrence(known[seen], (one, two)))
    return Cycle(tuple(edges), tuple(occurrences))


def variables_of(multiway: MultiwayJoin) -> list[dict[Expr, int]] | None:
    """Return the variable of each expression by place; equal expressions share one.

    Return None if a place has more than two variables, or one of them twice.
    """
    found: dict[tuple[int, Expr], int] = {}
    for number, e in enumerate(multiway.equations):
        sides = ((e.left, e.of_left), (e.right, e.of_right))
        shared = {found.get(side, number) for side in sides}
        found |= {side: min(shared) for side, of in found.items() if of in shared}
        found |= dict.fromkeys(sides, min(shared))
    by_place: list[dict[Expr, int]] = [{} for _ in multiway.tests]
    for (place, expr), variable in sorted(found.items(), key=lambda item: repr(item[0][1])):
        by_place[place][expr] = variable
    fits = all(len({*of.values()}) == len(of) <= 2 for of in by_place)
    return by_place if fits else None


def counts_only(pipeline: RowPipeline, sink: GroupingOfOne) -> bool:
    """Return True if no expression reads the joined rows."""
    return not any(
        map(reads, [*(instruction.expr for instruction in pipeline.instructions), *sink.exprs()])
    )


def cyclic_count_loop(
    of: Cycle, above: RowPipeline, sink: GroupingOfOne, held: Sequence[Neighbours]
) -> tuple[Callable[..., Any], str]:
    """Return the function and its text; `above` is evaluated once for all joined rows."""
    values = BoundValues()
    texts = []
    for number, each in enumerate(held):
        _bind_neighbours(values, number, each)
    for number in range(len(held)):
        text = _turn(of, number)
        texts.append(text)
        values.bind({f"turn_{number}": build(f"turn_{number}", text, values)})
    loops = [line for number in range(len(held)) for line in _write_loop(values, of, number)]
    counted = Emitter(values, ("row",), above.shapes, 2)
    counted.write(above.instructions)
    sink.write(counted, "weight")
    deltas = [f"delta_{base}" for base in range(1 + max(each.base for each in of.edges))]
    lines = [
        f"def step(groups, before, log, {', '.join(deltas)}):",
        "    closed = 0",
        *loops,
        "    if not closed: return ()",
        "    for weight in (closed,):",
        *counted.lines,
        *sink.epilogue(),
        f"    return {sink.result}",
    ]
    values.bind(sink.bound)
    text = "\n".join([*lines, ""])
    return build("step", text, values), "\n".join([text, *texts])


def _bind_neighbours(values: BoundValues, number: int, held: Neighbours) -> None:
    """Bind the sets of an input that the loops read and write."""
    values.bind(
        {
            "empty": EMPTY,
            "nothing": None,
            f"right_{number}": held.onward,
            f"left_{number}": held.back,
            f"find_right_{number}": held.onward.get,
            f"find_left_{number}": held.back.get,
            f"times_{number}": held.times.get,
            f"counts_{number}": held.times,
            f"add_{number}": held.put,
            f"old_{number}": held.weight,
        }
    )


def _turn(of: Cycle, number: int) -> str:
    """Return the text of the function for pairs of any weight."""
    terms = CycleTerms(of.occurrences, weighted=True).write(number)
    lines = [
        f"def turn_{number}(log, left, right, weight):",
        f"    old, met = old_{number}(left, right), 0",
        f"    log(({number}, left, right, old))",
        f"    if not old: add_{number}(left, right, weight)",
        "    since = weight if old else -weight",
        *(f"{'    ' * (depth + 1)}{text}" for depth, text in terms),
        f"    if old: add_{number}(left, right, old + weight)",
        "    return met * weight",
    ]
    return "\n".join([*lines, ""])


def _write_loop(values: BoundValues, of: Cycle, number: int) -> list[str]:
    """Return the lines of the loop over the changes of an input.

    Both ends are hashed before the pair is logged: an undo could not remove an end without a hash.
    """
    edges = of.edges[number]
    pipeline = edges.pipeline
    emitter = Emitter(values, row_names(edges.called, pipeline.bindings), pipeline.shapes, 2)
    emitter.begin(pipeline.instructions, edges.ends)
    emitter.write(pipeline.instructions)
    ends = [*["nothing"] * (len(edges.ends) == 1), *map(emitter.use, edges.ends)]
    terms = CycleTerms(of.occurrences).write(number)
    counts = " or ".join(f"counts_{other}" for other in range(len(of.edges)))
    is_unary = len(edges.ends) == 1
    none = "right not in (kept or empty)" if is_unary else "kept is None or right not in kept"
    for depth, line in [
        (0, f"left = {ends[0]}"),
        (0, f"right = {ends[1]}"),
        (0, "if left != left or right != right: continue"),
        (0, f"kept = find_right_{number}(left)"),
        *([] if is_unary else [(0, f"also = find_left_{number}(right)")]),  # hashes `right`
        (0, f"old = 0 if {none} else 1"),
        (0, f"if {counts} or weight != (-1 if old else 1) or left == right:"),
        (1, f"closed += turn_{number}(log, left, right, weight)"),
        (1, "continue"),
        (0, f"log(({number}, left, right, old))"),
        (0, "if not old:"),
        *_insert_lines("kept", f"right_{number}", "left", "right"),
        *([] if is_unary else _insert_lines("also", f"left_{number}", "right", "left")),
        (0, "met = 0"),
        *terms,
        (0, "if not old:"),
        (1, "closed += met"),
        (1, "continue"),
        (0, "closed -= met"),
        *_delete_lines("kept", f"right_{number}", "left", "right"),
        *([] if is_unary else _delete_lines("also", f"left_{number}", "right", "left")),
    ]:
        emitter.line(line, depth)
    return [f"    for row, weight in delta_{edges.base}:", *emitter.lines]


def _insert_lines(held: str, below: str, one: str, other: str) -> list[tuple[int, str]]:
    """Return the lines, with indents, that insert `other` below `one`."""
    return [
        (1, f"if {held} is None: {below}[{one}] = {{{other}}}"),
        (1, f"else: {held}.add({other})"),
    ]


def _delete_lines(held: str, below: str, one: str, other: str) -> list[tuple[int, str]]:
    """Return the lines, with indents, that delete `other` below `one`, or `one` with its last."""
    return [
        (0, f"if len({held}) > 1: {held}.remove({other})"),
        (0, f"else: del {below}[{one}]"),
    ]
