"""Cyclic counts and multiway joins, by generated loops.

Cyclic count: an aggregate of joins that form a cycle, and whose rows are not read.

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

Multiway join: three or more inputs in one operator; a change of each probes the others.

    for key, pair in delta_0:                       changes of a
        found_1 = find_0_0(a.dst, NOTHING)          b: the rows that begin where a ends
        found_2 = find_0_1(a.src, NOTHING)          c: the rows that end where a begins
        for b, c, times in pairs(found_1, found_2):
            ...                                     c begins where b ends
    for key, pair in delta_1: ...

If two inputs do not close a cycle like this, the loop iterates over the one with fewer rows, and
probes the others.

Inputs behind the changed one are probed after the changes of the commit, inputs in front of it
before them:

    d(A B C)  =  dA B C  +  A' dB C  +  A' B' dC            with A' = A + dA

A row that one term adds and another removes is cancelled here, so that no later operator sees it.

State:  none of its own; indexes, shared with all joins of the same input by the same key.
Cost:   O(|d| * the smaller of the sides that it probes).
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
from reactive.engine.codegen.probe_order import Key, ProbeOrder, probe_keys
from reactive.engine.collections.neighbour_rows import Neighbours
from reactive.engine.collections.zset import Pair, consolidate, is_mixed
from reactive.engine.operators.aggregate import GroupAggregates
from reactive.engine.operators.index_by import FINDS_NOTHING, IndexBy
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
    """Return the lines of the loop over the changes of an input."""
    edges = of.edges[number]
    pipeline = edges.pipeline
    emitter = Emitter(values, row_names(edges.called, pipeline.bindings), pipeline.shapes, 2)
    emitter.begin(pipeline.instructions, edges.ends)
    emitter.write(pipeline.instructions)
    ends = [*["nothing"] * (len(edges.ends) == 1), *map(emitter.use, edges.ends)]
    terms = CycleTerms(of.occurrences).write(number)
    counts = " or ".join(f"counts_{other}" for other in range(len(of.edges)))
    is_unary = len(edges.ends) == 1
    for depth, line in [
        (0, f"left = {ends[0]}"),
        (0, f"right = {ends[1]}"),
        (0, "if left != left or right != right: continue"),
        (0, f"kept = find_right_{number}(left)"),
        (0, "old = 0 if kept is None or right not in kept else 1"),
        (0, f"if {counts} or weight != (-1 if old else 1) or left == right:"),
        (1, f"closed += turn_{number}(log, left, right, weight)"),
        (1, "continue"),
        (0, f"log(({number}, left, right, old))"),
        (0, "if not old:"),
        *_insert_lines("kept", f"right_{number}", "left", "right"),
        *([] if is_unary else [(1, f"also = find_left_{number}(right)")]),
        *([] if is_unary else _insert_lines("also", f"left_{number}", "right", "left")),
        (0, "met = 0"),
        *terms,
        (0, "if not old:"),
        (1, "closed += met"),
        (1, "continue"),
        (0, "closed -= met"),
        *_delete_lines("kept", f"right_{number}", "left", "right"),
        *([] if is_unary else [(0, f"also = left_{number}[right]")]),
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


class ProbeOrders:
    """Arguments of the loops of all probe orders: deltas and look-ups.

    Parameters
    ----------
    orders: the probe order of each input.
    indexes: all indexes by their key; the output of each is a delta of the join.
    is_filled: False if the first deltas are all rows, rather than changes.
    """

    __slots__ = (
        *("_as_they_are", "_delta_at", "_is_filled", "_later", "_nodes", "_not_made", "_once"),
        *("_ports", "_starts"),
    )

    def __init__(
        self, orders: Sequence[ProbeOrder], indexes: dict[Key, IndexBy], *, is_filled: bool = False
    ) -> None:
        self._nodes = list(dict.fromkeys(indexes.values()))
        ports = {operator: port for port, operator in enumerate(self._nodes)}
        self._ports = {key: ports[operator] for key, operator in indexes.items()}
        self._starts = [
            next(self._ports[key] for key in indexes if key[0] == place)
            for place in range(len(orders))
        ]
        self._as_they_are: list[Any] = []
        self._delta_at: list[tuple[int, int]] = []  # argument place and port of each delta
        self._later: list[tuple[int, int, int]] = []  # argument, start, port of old look-ups
        self._not_made: dict[int, list[tuple[int, IndexBy]]] = {}  # look-ups that are not built yet
        for place, order in enumerate(orders):
            start = self._starts[place]
            self._delta_at.append((len(self._as_they_are), start))
            self._as_they_are.append(())
            for key in probe_keys(order):
                if key[0] > place:
                    self._later.append((len(self._as_they_are), start, self._ports[key]))
                asked = self._not_made.setdefault(place, [])
                asked.append((len(self._as_they_are), indexes[key]))
                self._as_they_are.append(FINDS_NOTHING)
        self._is_filled = is_filled
        self._once = {
            port: place for place, port in enumerate(self._starts) if self._starts.count(port) == 1
        }

    def look_ups(self, *deltas: Sequence[Any]) -> list[Any]:
        """Return for each probe order its delta, then its look-ups.

        At first all rows arrive, and are joined by one probe order: that of the input with the most
        rows. Raises `LookupError` while an index has error rows.
        """
        self._check()
        place = self._single(deltas)
        if place is not None:
            given = self._as_they_are.copy()
            at, port = self._delta_at[place]
            given[at] = deltas[port]
            return given
        is_first, self._is_filled = not self._is_filled, True
        starts = [deltas[port] for port in self._starts]
        if is_first or all(self._nodes[port].was_empty for port in self._starts):
            most = max(range(len(starts)), key=lambda place: len(starts[place]))
            return self._only(most, starts[most])
        return self._arguments(deltas, starts)

    def _single(self, deltas: Sequence[Sequence[Any]]) -> int | None:
        """Return the place of the only changed input, if it occurs once in the join and its indexes
        are built; no look-up before the commit is then needed."""
        changed = [port for port, delta in enumerate(deltas) if delta]
        place = self._once.get(changed[0]) if len(changed) == 1 else None
        return place if self._is_filled and place not in self._not_made else None

    def meet(self, deltas: Sequence[Sequence[Any]]) -> bool:
        """Return True if changes of two inputs may join: a row may be inserted and deleted in one
        commit."""
        changed = [port for port, delta in enumerate(deltas) if delta]
        return len(changed) > 1 or not self._once.keys() >= set(changed)

    def all(self) -> list[Any]:
        """Return the arguments that join all current rows."""
        self._check()
        place = self._smallest_place()
        return self._only(place, list(self._nodes[self._starts[place]].contents()))

    def _smallest_place(self) -> int:
        """Return the place of the input with the fewest rows, from which all rows are joined.

        It is the first place, if indexes would have to be built that it does not probe.
        """
        starts = [self._nodes[port] for port in self._starts]
        probed = {operator for _, operator in self._not_made.get(0, ())}
        if not starts[0].is_made and not starts[0].is_worth_building():
            return 0
        ready = [n for n, each in enumerate(starts) if n == 0 or each.is_made or each in probed]
        place = min(ready, key=lambda each: starts[each].index.rows)
        asked = [each for _, each in self._not_made.get(place, ()) if each not in probed]
        worth = [each.is_worth_building() for each in asked if not each.is_made]  # counts each
        return place if all(worth) else 0

    def _check(self) -> None:
        """Raise `LookupError` if an index has error rows."""
        for operator in self._nodes:
            if operator.poisoned:
                raise LookupError("a key could not be computed")

    def _only(self, place: int, rows: Sequence[Any]) -> list[Any]:
        """Return the arguments that join all rows by the probe order of one place."""
        self._make_indexes([rows if each == place else () for each in range(len(self._starts))])
        given = self._as_they_are.copy()
        given[self._delta_at[place][0]] = rows
        return given

    def _arguments(
        self, deltas: Sequence[Sequence[Any]], starts: Sequence[Sequence[Any]]
    ) -> list[Any]:
        """Return the arguments for all deltas; later inputs are probed as before the commit."""
        self._make_indexes(starts)
        given = self._as_they_are.copy()
        for at, port in self._delta_at:
            given[at] = deltas[port]
        before: dict[int, Callable[..., Any]] = {}
        for at, start, port in self._later:
            if deltas[port] and deltas[start]:
                found = before.get(port)
                if found is None:
                    found = before[port] = self._nodes[port].find_before(deltas[port])
                given[at] = found
        return given

    def _make_indexes(self, starts: Sequence[Sequence[Any]]) -> None:
        """Build the indexes that the changed places probe for the first time."""
        for place in [place for place in self._not_made if starts[place]]:
            asked = self._not_made[place]
            for at, operator in asked:
                self._as_they_are[at] = operator.find(before=False)
            self._not_made[place] = [each for each in asked if not each[1].is_made]
            if not self._not_made[place]:
                del self._not_made[place]


class MultiwayJoinRunner:
    """Run the loops of all probe orders into a list."""

    __slots__ = ("_loop", "_orders", "_owner", "source", "touched")

    def __init__(
        self, orders: ProbeOrders, loop: Callable[..., Any], source: str, owner: plan.Node
    ) -> None:
        self._orders = orders
        self._loop = loop
        self._owner = owner
        self.source = source
        self.touched = 0

    def step(self, *deltas: Sequence[Any]) -> list[Pair]:
        """Return the changed rows of the join; any exception becomes a `BailOut`."""
        self.touched += sum(map(len, deltas))
        try:
            out, met = self._loop(None, None, *self._orders.look_ups(*deltas))
        except Exception as error:
            raise BailOut(self._owner, self) from error
        self.touched += met
        return consolidate(out) if out and self._orders.meet(deltas) and is_mixed(out) else out

    def contents(self) -> Sequence[Pair]:
        """Return all rows of the join; any exception becomes a `BailOut`."""
        try:
            out, _ = self._loop(None, None, *self._orders.all())
        except Exception as error:
            raise BailOut(self._owner, self) from error
        return out  # type: ignore[no-any-return]
