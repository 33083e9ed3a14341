"""Cyclic join: joins that form a cycle, whose rows are read into an aggregate or a list.

    for row, weight in delta_0:
        ...                                 the chain below, in terms of the row
        left, right = row.source, row.target
        ...                                 add an inserted row to the dictionaries
        for part in ...:                    its joined rows in each place (`cycle_rows.py`)
            ...                             the chain above, the groups or the list
        ...                                 remove a deleted row

While no two rows have the same ends, the loops ignore weights. The first such row makes other loops
run from then on.

State:  the rows of each input by their ends (`neighbour_rows.py`), once for equal inputs;
        the groups of the plain operator.
Cost:   O(the smallest of the sides that it probes + joined rows) per row and place.
Source: see `optimizer/plans/multiway.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, MutableSequence, Sequence
from functools import partial
from typing import Any, Protocol

from optimizer import plan
from optimizer.record import record
from reactive.engine.codegen.cycle_rows import CycleRows
from reactive.engine.codegen.emitter import Emitter, RowPipeline, row_names
from reactive.engine.codegen.functions import BoundValues, build
from reactive.engine.codegen.nest import LoopSink
from reactive.engine.collections.index import NOTHING, bucket_pairs
from reactive.engine.collections.neighbour_rows import NeighbourRows, subtract_row
from reactive.engine.collections.trie import SEVERAL
from reactive.engine.collections.zset import Pair, consolidate, is_mixed
from reactive.engine.operators.aggregate import GroupAggregates
from reactive.engine.operators.loops.cyclic_count import Cycle
from reactive.engine.operators.loops.grouped import NONE_BEFORE, GroupLoopRunner, refuse_plain_step
from reactive.engine.operators.operator import BailOut

Logged = tuple[int, Any, Any, Sequence[Pair]]
"""The number of an input, the ends of a row, and the previous rows with these ends."""


Below = dict[Any, Sequence[Pair]]
"""The rows that share an end, by their other end."""


class CrowdedEnds(Exception):
    """Raised if a row of this input has the same ends as another one."""


class Loops(Protocol):
    """Builds the loops over the changes, or over all rows (`is_whole`); in `crowded` inputs several
    rows may share both ends."""

    def __call__(
        self, *, crowded: frozenset[int], is_whole: bool = False
    ) -> tuple[Callable[..., Any], str]: ...


class CyclicRows:
    """Rows of joins in a cycle, and the loops over their changes.

    Parameters
    ----------
    is_net: for each delta, True if it deletes only present rows; others are consolidated.
    """

    __slots__ = ("_crowded", "_held", "_is_net", "_log", "_loop", "_loops", "source")

    def __init__(self, loops: Loops, held: Sequence[NeighbourRows], is_net: Sequence[bool]) -> None:
        self._held = held
        self._loops = loops
        self._crowded: frozenset[int] = frozenset()
        self._loop, self.source = loops(crowded=self._crowded)
        self._is_net = is_net
        self._log: MutableSequence[Logged] = []

    def step(
        self,
        groups: Any,
        new_before: Callable[[], Any],
        deltas: Sequence[Sequence[Pair]],
        undo: Callable[[], None],
    ) -> tuple[Sequence[Pair], int]:
        """Run the loops over deltas; return their output, and the number of joined rows."""
        given = [
            delta if is_net or not is_mixed(delta) else consolidate(delta)
            for delta, is_net in zip(deltas, self._is_net, strict=True)
        ]
        while True:
            self._begin(given)
            try:
                return self._loop(groups, new_before(), self._log.append, *given)  # type: ignore[no-any-return]
            except CrowdedEnds as crowded:
                undo()
                self._crowded |= {*crowded.args}
                self._loop, self.source = self._loops(crowded=self._crowded)

    def _begin(self, deltas: Sequence[Sequence[Pair]]) -> None:
        """Disable the undo log if many rows arrive in an empty state: an undo then clears the
        state."""
        if sum(map(len, deltas)) > 1 and not any(each.onward for each in self._held):
            self._log = deque(maxlen=0)

    def undo(self) -> None:
        """Remove the rows of the last deltas."""
        if self._log.__class__ is deque:
            for each in self._held:
                each.clear()
        while self._log:
            number, left, right, pairs = self._log[-1]
            self._held[number].put(left, right, pairs)
            self._log.pop()
        self._log = []

    def commit(self) -> None:
        """Drop the undo log."""
        self._log = []

    def all(self) -> Sequence[Pair]:
        """Return all joined rows."""
        loop, _ = self._loops(crowded=self._crowded, is_whole=True)
        return loop(None, None)[0]  # type: ignore[no-any-return]

    def find(self, number: int, *, before: bool) -> Callable[[Any, bool], Below]:
        """Return the look-up of the rows that have an end of an input: `find(end, is_onward)`."""
        held = self._held[number]
        if not before:
            return partial(_rows_below, held, {})
        if self._log.__class__ is deque:
            return partial(_rows_below, NeighbourRows(), {})
        had: dict[tuple[Any, Any], Sequence[Pair]] = {}
        for of, left, right, pairs in reversed(self._log):
            if of == number:
                had[left, right] = pairs
        return partial(_rows_below, held, had)

    def footprint(self) -> tuple[int, int]:
        found = [each.footprint() for each in self._held]
        return sum(rows for rows, _ in found), sum(size for _, size in found)


def _rows_below(
    held: NeighbourRows, had: Mapping[tuple[Any, Any], Sequence[Pair]], end: Any, is_onward: bool
) -> Below:
    """Return the rows that have an end; `had` are the previous rows of changed pairs of ends."""
    now = (held.onward if is_onward else held.back).get(end, {})
    found = {other: bucket_pairs(bucket) for other, bucket in now.items()}
    for (left, right), pairs in had.items():
        one, other = (left, right) if is_onward else (right, left)
        if one == end:
            found[other] = pairs
    return found


class CyclicJoinRunner:
    """Run the loops into a list; any error becomes a `BailOut`."""

    __slots__ = ("holds_for", "rows", "source", "touched")

    def __init__(self, rows: CyclicRows, owner: plan.Node) -> None:
        self.rows = rows
        self.source = rows.source
        self.holds_for = owner
        self.touched = 0

    def step(self, *deltas: Sequence[Pair]) -> Sequence[Pair]:
        """Return the changed rows of the joins; any exception is undone, a `BailOut` raised."""
        try:
            out, met = self.rows.step(None, _return_none, deltas, self.rows.undo)
        except Exception as error:
            self.rows.undo()
            raise BailOut(self.holds_for, self) from error
        count = sum(map(len, deltas))
        self.touched += met + count
        return consolidate(out) if count > 1 and is_mixed(out) else out

    def undo(self) -> None:
        self.rows.undo()

    def commit(self) -> None:
        self.rows.commit()

    def contents(self) -> Sequence[Pair]:
        """Return all joined rows; any exception becomes a `BailOut`."""
        try:
            return self.rows.all()
        except Exception as error:
            raise BailOut(self.holds_for, self) from error

    def footprint(self) -> tuple[int, int]:
        return self.rows.footprint()


def _return_none() -> None: ...


class CyclicJoin(GroupLoopRunner):
    """Run the loops into the groups of a plain operator; any error becomes a `BailOut`."""

    __slots__ = ("_rows", "holds_for")

    def __init__(self, plain: GroupAggregates, rows: CyclicRows, owner: plan.Node) -> None:
        super().__init__(plain, refuse_plain_step, refuse_plain_step, rows.source)
        self._rows = rows
        self.holds_for = owner
        """The joins that this operator replaces: `BailOut` names them."""
        self.step = self._step_rows

    def _step_rows(self, *deltas: Sequence[Pair]) -> Sequence[Pair]:
        """Return the changed groups; any exception is undone, and becomes a `BailOut`."""
        try:
            out, met = self._rows.step(self._groups, self._remember, deltas, self.undo)
        except Exception as error:
            self.undo()
            raise BailOut(self.holds_for, self) from error
        self.touched += met + sum(map(len, deltas))
        return out

    def _remember(self) -> Any:
        """Begin to record the previous groups; return the dictionary for them."""
        self._before = {} if self.new_before is None else self.new_before()
        return self._before

    def undo(self) -> None:
        self._rows.undo()
        super().undo()

    def commit(self) -> None:
        self._before = NONE_BEFORE
        self._rows.commit()

    def footprint(self) -> tuple[int, int]:
        (rows, size), (more, larger) = super().footprint(), self._rows.footprint()
        return rows + more, size + larger


def cyclic_join_loop(
    of: Cycle,
    above: RowPipeline,
    sink: LoopSink,
    held: Sequence[NeighbourRows],
    *,
    crowded: frozenset[int],
    is_whole: bool = False,
) -> tuple[Callable[..., Any], str]:
    """Return the function and its text; `above` is the pipeline of joined rows."""
    values = BoundValues()
    values.bind({"empty": {}, "nothing": None, "NOTHING": NOTHING, "Crowded": CrowdedEnds})
    values.bind(
        {"rows_of": bucket_pairs, "without": subtract_row, "SEVERAL": SEVERAL, **sink.bound}
    )
    for number, each in enumerate(held):
        values.bind(
            {
                f"right_{number}": each.onward,
                f"left_{number}": each.back,
                f"find_right_{number}": each.onward.get,
                f"find_left_{number}": each.back.get,
                f"rows_{number}": each.rows,
                f"add_{number}": each.add,
                f"all_{number}": each.items,
            }
        )
    writer = _LoopWriter(values, of, above, sink, crowded, is_whole)
    numbers = [of.occurrences[0].of] if is_whole else range(len(held))
    loops = [line for number in numbers for line in writer.loop(number)]
    deltas = [f"delta_{base}" for base in range(1 + max(each.base for each in of.edges))]
    given = "groups, before" if is_whole else f"groups, before, note, {', '.join(deltas)}"
    lines = [
        f"def step({given}):",
        "    met = 0",
        *sink.prologue(),
        *loops,
        *sink.epilogue(),
        f"    return {sink.result}, met",
    ]
    text = "\n".join([*lines, ""])
    return build("step", text, values), text


@record
class _LoopWriter:
    """Writes the loops over the changes of an input, or over all its rows."""

    values: BoundValues
    of: Cycle
    above: RowPipeline
    sink: LoopSink
    crowded: frozenset[int]
    is_whole: bool

    def loop(self, number: int) -> list[str]:
        """Return the lines of the loop over an input, with the joined rows of its rows."""
        if self.is_whole:
            head = f"    for left, right, row, weight in all_{number}():"
            return [head, *self._terms(number, 2)]
        edges = self.of.edges[number]
        pipeline, is_unary = edges.pipeline, len(edges.ends) == 1
        names = row_names(edges.called, pipeline.bindings)
        below = Emitter(self.values, names, pipeline.shapes, 2)
        assert edges.row is not None
        below.begin(pipeline.instructions, [*edges.ends, edges.row])
        below.write(pipeline.instructions)
        ends = [*["nothing"] * is_unary, *map(below.use, edges.ends)]
        made = "row" if pipeline.is_input else below.canonical(edges.row)
        below.line(f"left, right, row = {ends[0]}, {ends[1]}, {made}")
        below.line("if left != left or right != right: continue")
        crowded = number in self.crowded
        for depth, line in _row_insert_lines(number, is_unary=is_unary, crowded=crowded):
            below.line(line, depth)
        below.lines.extend(self._terms(number, below.indent))
        for depth, line in _row_delete_lines(number, is_unary=is_unary, crowded=crowded):
            below.line(line, depth)
        return [f"    for row, weight in delta_{edges.base}:", *below.lines]

    def _terms(self, number: int, indent: int) -> list[str]:
        """Return the lines for the joined rows of a row in all its places; with `is_whole`, in
        one."""
        occurrences, names = self.of.occurrences, self._names
        lines: list[str] = []
        rows = CycleRows(occurrences, names, self._then, self.crowded, self.is_whole)
        places = [place for place, each in enumerate(occurrences) if each.of == number]
        for place in places[: 1 if self.is_whole else None]:
            emitter = Emitter(self.values, names, self.above.shapes, indent, lines)
            emitter.expect(self.above.instructions, self.sink.exprs())
            emitter.line(f"{names[place]} = row")
            rows.write(emitter, place)
        return lines

    def _then(self, emitter: Emitter, weight: str) -> None:
        """Write the lines for a joined row."""
        emitter.line("met += 1")
        emitter.write(self.above.instructions)
        self.sink.write(emitter, weight)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(f"row{place}" for place in range(len(self.of.occurrences)))


def _row_insert_lines(number: int, *, is_unary: bool, crowded: bool) -> list[tuple[int, str]]:
    """Return the lines that insert a row, or check that a deleted row is the only one.

    Both ends are hashed before the row is logged: an undo could not remove an end without a hash.
    """
    old = "NOTHING if kept is None else kept.get(right, NOTHING)"
    if is_unary:
        old = "(kept or empty).get(right, NOTHING)"
    found = [(1, f"also = find_left_{number}(right)")]
    also = [
        (1, f"if also is None: left_{number}[right] = {{left: row}}"),
        (1, "else: also[left] = row"),
    ]
    others = [
        (0, "elif weight > 0:"),
        (1, f"note(({number}, left, right, rows_{number}(left, right)))"),
        (1, f"add_{number}(left, right, row, weight)"),
    ]
    none = [
        (0, f"elif weight != -1 or old is not row and old != row: raise Crowded({number})"),
        (0, "else: row = old"),
    ]
    return [
        (0, f"kept = find_right_{number}(left)"),
        (0, f"old = {old}"),
        (0, "if weight == 1 and old is NOTHING:"),
        *([] if is_unary else found),
        (1, f"note(({number}, left, right, ()))"),
        (1, f"if kept is None: right_{number}[left] = {{right: row}}"),
        (1, "else: kept[right] = row"),
        *([] if is_unary else also),
        *(others if crowded else none),
    ]


def _row_delete_lines(number: int, *, is_unary: bool, crowded: bool) -> list[tuple[int, str]]:
    """Return the lines that delete a row."""
    also = [
        (1, f"also = left_{number}[right]"),
        (1, "if len(also) > 1: del also[left]"),
        (1, f"else: del left_{number}[right]"),
    ]
    others = [
        (0, "elif weight < 0:"),
        (1, f"note(({number}, left, right, rows_{number}(left, right)))"),
        (1, f"add_{number}(left, right, row, weight)"),
    ]
    return [
        (0, f"if weight == -1{' and old is row' * crowded}:"),
        (1, f"note(({number}, left, right, ((row, 1),)))"),
        (1, "if len(kept) > 1: del kept[right]"),
        (1, f"else: del right_{number}[left]"),
        *([] if is_unary else also),
        *(others if crowded else []),
    ]
