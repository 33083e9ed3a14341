"""A nest of loops: from sources through probes and a chain of linear operators into a sink.

    def step(groups, before, left, right, find_right, find_left):
        get = groups.get                                            the sink, before
        for key, pair in left:                                      a source
            found = find_right(key, NOTHING)                        a probe
            if found is NOTHING or key is NO_MATCH: continue
            row0, weight = pair
            for row1 in found:
                if not row0.price < row1.limit: continue            the chain
                group = get(row1.region)                            the sink, in the middle
                ...
        for key, pair in right:                                     another source
            ...
        return out                                                  the sink, after

A source produces rows, a move (a probe, mostly) produces for each what it finds, and the sink
consumes them: each writes its lines, and lets the next write its own within. Fields that are read
within a loop over what was found are read before it.

Source: T. Neumann, *Efficiently Compiling Efficient Query Plans for Modern Hardware*, 2011.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from optimizer.expr import Expr
from optimizer.record import record
from reactive.engine.codegen.emitter import Emitter, RowPipeline
from reactive.engine.codegen.functions import Values, build
from reactive.engine.codegen.sinks import Sink


@record
class Bound:
    """What is bound where a part of the nest begins: the places of bindings, and texts whose
    product is how often the row is there."""

    places: frozenset[int]
    weights: tuple[str, ...]

    def and_found(self, places: Iterable[int], *weights: str) -> Bound:
        """With what a move has found."""
        return Bound(self.places.union(places), (*self.weights, *weights))


Then = Callable[[Emitter, Bound], None]
"""Writes what is done with each row that a part of the nest produces."""


@record
class Source:
    """What a loop goes through.

    Parameters
    ----------
    over: the variable of it.
    each: what a loop over it binds.
    taken: lines that take this apart.
    weights: of a row.
    places: of the bindings of the row, among all that are joined; none of sums.
    """

    over: str
    each: str
    taken: tuple[str, ...] = ()
    weights: tuple[str, ...] = ("weight",)
    places: tuple[int, ...] = (0,)


class Move(Protocol):
    """A step from a row to what it is joined with."""

    @property
    def given(self) -> bool:
        """Whether the source has its key."""

    def exprs(self) -> Iterable[Expr]:
        """What is evaluated to go it."""

    def look_up(self, nest: Nest, emitter: Emitter) -> None:
        """Write the lines that find what it leads to."""

    def produce(self, nest: Nest, emitter: Emitter, bound: Bound, then: Then) -> None:
        """Write the loops over what was found."""


class Nest:
    """Writes a function: loops, one after the other, into one sink.

    Parameters
    ----------
    names: the variables of the bindings of a joined row.
    pipeline: what is done with a row.
    more: variables that lines of sources and moves set.
    counts: whether the function also returns the number of rows, or sums, that were found.
    """

    def __init__(
        self,
        names: Sequence[str],
        pipeline: RowPipeline,
        sink: Sink,
        *,
        more: Sequence[str] = (),
        counts: bool = False,
    ) -> None:
        self.names = tuple(names)
        self.values = Values()
        self.shapes = pipeline.shapes
        self._counts = counts
        self._pipeline = pipeline
        self._sink = sink
        self._more = tuple(more)
        self._lines: list[str] = []

    def first(self, over: str, function: Callable[[Any], Any], name: str) -> None:
        """Do something to what a loop goes through, before it begins; `name` gets a number."""
        name = f"{name}_{len(self._lines)}"
        self.values.bind({name: function})
        self._lines.append(f"    {over} = {name}({over})")

    def loop(self, source: Source, *moves: Move, first: RowPipeline | None = None) -> None:
        """The loop over a source, and in it those over what its rows are joined with.

        `first` is what is done with a row before it is joined.
        """
        self._lines.append(f"    for {source.each} in {source.over}:")
        emitter = Emitter(self.values, (*self.names, *self._more), self.shapes, 2, self._lines)
        asked = [expr for move in moves for expr in move.exprs()]
        before = [] if first is None else first.instructions
        emitter.expect([*before, *self._pipeline.instructions], [*asked, *self._sink.exprs()])
        if moves and moves[0].given:
            moves[0].look_up(self, emitter)
        for line in source.taken:
            emitter.line(line)
        self.unpack(emitter, source.places)
        emitter.write(before)
        self.follow(emitter, moves, Bound(frozenset(source.places), source.weights))

    def become(self, pipeline: RowPipeline, sink: Sink) -> None:
        """Do something else with the rows of later loops; the sink is of the same kind."""
        self._pipeline, self._sink = pipeline, sink

    def follow(
        self, emitter: Emitter, moves: Sequence[Move], bound: Bound, *, is_found: bool = False
    ) -> None:
        """Write moves, one within the other, and the sink; the first may be looked up already."""
        if not moves:
            self._consume(emitter, bound.weights)
            return
        move, rest = moves[0], moves[1:]
        if not move.given and not is_found:
            move.look_up(self, emitter)
        move.produce(self, emitter, bound, lambda inner, now: self.follow(inner, rest, now))

    def _consume(self, emitter: Emitter, weights: Sequence[str]) -> None:
        weight = weights[0] if weights else "1"
        if len(weights) > 1:
            emitter.line(f"weight = {' * '.join(weights)}")
            weight = "weight"
        emitter.write(self._pipeline.instructions)
        self._sink.write(emitter, weight)

    def after(self) -> list[Expr]:
        """What is evaluated of a row once all moves have been made."""
        return [
            *(instruction.expr for instruction in self._pipeline.instructions),
            *self._sink.exprs(),
        ]

    def hoist(self, emitter: Emitter, bound: Bound) -> None:
        """Read fields of what is bound now, before a loop begins."""
        emitter.hoist(bound.places, self.after())

    def one(self, places: Sequence[int]) -> str:
        """The variable that holds some bindings as one value."""
        return self.names[places[0]] if len(places) == 1 else "row"

    def unpack(self, emitter: Emitter, places: Sequence[int]) -> None:
        """Put bindings into variables."""
        emitter.unpack([self.names[place] for place in places])

    def count(self, emitter: Emitter, text: str) -> None:
        """Count what was found."""
        if self._counts:
            emitter.line(f"met += {text}")

    def build(self, parameters: str, name: str = "step") -> tuple[Callable[..., Any], str]:
        """The function, and its text."""
        sink = self._sink
        text = "\n".join(
            [
                f"def {name}({parameters}):",
                *["    met = 0"] * self._counts,
                *sink.prologue(),
                *self._lines,
                *sink.epilogue(),
                f"    return {sink.result}{', met' * self._counts}",
                "",
            ]
        )
        self.values.bind(sink.bound)
        return build(name, text, self.values), text
