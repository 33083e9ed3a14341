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

A source produces rows, a move (mostly a probe) produces the matches of each row, and the sink
consumes them: each writes its lines, and the next writes its own lines inside. Fields that are read
in an inner loop are read before it.

Source: T. Neumann, *Efficiently Compiling Efficient Query Plans for Modern Hardware*, 2011.

A sink consumes the rows of a nest of loops: it writes lines before the loops, inside, and after.

    ListSink    out        pairs of row and weight; of a batch, rows
    CountSink   counts     equal rows of a batch, counted
    KeySink     out        keys beside pairs; of a batch, keys and rows
    PartnerSink counts     the partners of each row of one side of a join

The sinks of aggregates are beside their operators (`operators/loops`).

`write_plus_value` and others write the lines of a running sum (`collections/exact.py`).

    if price.__class__ is int and total.__class__ is int:
        total += price * weight
    elif price.__class__ is float and ... (scaled := price * UP * DOWN).is_integer():
        floats = total[1] + weight                      a sum of floats is a pair
        ...
    elif price.__class__ is Decimal and total.__class__ is DecimalSum and price.is_finite():
        total = total.plus(price, weight)
    else:
        total = plus_value(total, price, weight)

Cost: some 0.1 us for a float, beside 0.04 us for an integer; the call takes 0.3 us more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Protocol, runtime_checkable

from optimizer.expr import Expr
from optimizer.record import record
from reactive.engine.codegen import loop_expressions
from reactive.engine.codegen.emitter import Emitter, RowPipeline
from reactive.engine.codegen.functions import BoundValues, build
from reactive.engine.collections.exact import (
    DOWN,
    UNIT,
    UP,
    DecimalSum,
    ExactSum,
    RingSum,
    add_sums,
    add_value,
    copy_sum,
    scale_sum,
    scale_value,
    scaled_sum,
    sum_result,
)


@record
class Bound:
    """The bindings and the weight of a row at the start of a part of the nest.

    `places` are the places of bindings; the product of the texts in `weights` is the weight.
    """

    places: frozenset[int]
    weights: tuple[str, ...]

    def and_found(self, places: Iterable[int], *weights: str) -> Bound:
        """Return a copy with the bindings and weights that a move has added."""
        return Bound(self.places.union(places), (*self.weights, *weights))


Then = Callable[[Emitter, Bound], None]
"""Writes the code for each row that a part of the nest produces."""


@record
class LoopSource:
    """The source of a loop.

    Parameters
    ----------
    over: the variable that the loop iterates over.
    each: the variables that the loop binds.
    taken: lines that unpack these.
    weights: the texts of the weight of a row.
    places: the places of the row's bindings in the joined row; empty for sums.
    """

    over: str
    each: str
    taken: tuple[str, ...] = ()
    weights: tuple[str, ...] = ("weight",)
    places: tuple[int, ...] = (0,)


class Move(Protocol):
    """A step from a row to the rows that it is joined with."""

    @property
    def has_key(self) -> bool:
        """True if the source has its key."""

    def exprs(self) -> Iterable[Expr]:
        """Return the expressions that it evaluates."""

    def look_up(self, nest: LoopNest, emitter: Emitter) -> None:
        """Write the lines that look up the matches."""

    def produce(self, nest: LoopNest, emitter: Emitter, bound: Bound, then: Then) -> None:
        """Write the loops over the matches."""


class LoopNest:
    """Writes a function: loops, one after the other, into one sink.

    Parameters
    ----------
    names: the variables of the bindings of a joined row.
    pipeline: the instructions for a joined row.
    more: variables that lines of sources and moves set.
    counts: True if the function also returns the number of rows, or sums, that were found.
    """

    def __init__(
        self,
        names: Sequence[str],
        pipeline: RowPipeline,
        sink: LoopSink,
        *,
        more: Sequence[str] = (),
        counts: bool = False,
    ) -> None:
        self.names = tuple(names)
        self.values = BoundValues()
        self.shapes = pipeline.shapes
        self._counts = counts
        self._pipeline = pipeline
        self._sink = sink
        self._more = tuple(more)
        self._lines: list[str] = []

    def first(self, over: str, function: Callable[[Any], Any], name: str) -> None:
        """Apply a function to the source of a loop before it begins; `name` gets a number."""
        name = f"{name}_{len(self._lines)}"
        self.values.bind({name: function})
        self._lines.append(f"    {over} = {name}({over})")

    def loop(self, source: LoopSource, *moves: Move, first: RowPipeline | None = None) -> None:
        """Write the loop over a source, and inside it the loops over the joined rows.

        `first` has the instructions for a row before it is joined.
        """
        self._lines.append(f"    for {source.each} in {source.over}:")
        emitter = Emitter(self.values, (*self.names, *self._more), self.shapes, 2, self._lines)
        asked = [expr for move in moves for expr in move.exprs()]
        before = [] if first is None else first.instructions
        emitter.expect([*before, *self._pipeline.instructions], [*asked, *self._sink.exprs()])
        if moves and moves[0].has_key:
            moves[0].look_up(self, emitter)
        for line in source.taken:
            emitter.line(line)
        self.unpack(emitter, source.places)
        emitter.write(before)
        self.follow(emitter, moves, Bound(frozenset(source.places), source.weights))

    def become(self, pipeline: RowPipeline, sink: LoopSink) -> None:
        """Set the instructions and the sink of later loops; the sink is of the same kind."""
        self._pipeline, self._sink = pipeline, sink

    def follow(
        self, emitter: Emitter, moves: Sequence[Move], bound: Bound, *, is_found: bool = False
    ) -> None:
        """Write moves, one inside the other, and the sink; the first may be looked up already."""
        if not moves:
            self._consume(emitter, bound.weights)
            return
        move, rest = moves[0], moves[1:]
        if not move.has_key and not is_found:
            move.look_up(self, emitter)
        move.produce(self, emitter, bound, lambda inner, now: self.follow(inner, rest, now))

    def _consume(self, emitter: Emitter, weights: Sequence[str]) -> None:
        """Write the innermost body: the product of the weights, the chain, and the sink."""
        weight = weights[0] if weights else "1"
        if len(weights) > 1:
            emitter.line(f"weight = {' * '.join(weights)}")
            weight = "weight"
        emitter.write(self._pipeline.instructions)
        self._sink.write(emitter, weight)

    def after(self) -> list[Expr]:
        """Return the expressions evaluated for a row after all moves."""
        return [
            *(instruction.expr for instruction in self._pipeline.instructions),
            *self._sink.exprs(),
        ]

    def hoist(self, emitter: Emitter, bound: Bound) -> None:
        """Read fields of bound rows before a loop begins."""
        emitter.hoist(bound.places, self.after())

    def open_group(self, emitter: Emitter, bound: Bound) -> list[str]:
        """Look the group of all rows of a loop up before it begins, if the sink can do that.

        Return the lines that follow the loop.
        """
        return self._sink.open(emitter, bound.places) if isinstance(self._sink, Opening) else []

    def one(self, places: Sequence[int]) -> str:
        """Return the variable that holds some bindings as one value."""
        return self.names[places[0]] if len(places) == 1 else "row"

    def unpack(self, emitter: Emitter, places: Sequence[int]) -> None:
        """Assign bindings to variables."""
        emitter.unpack([self.names[place] for place in places])

    def count(self, emitter: Emitter, text: str) -> None:
        """Write the line that counts the found rows."""
        if self._counts:
            emitter.line(f"met += {text}")

    def build(self, parameters: str, name: str = "step") -> tuple[Callable[..., Any], str]:
        """Build the function; return it with its text."""
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


class LoopSink(Protocol):
    """A consumer of rows: `bound` are the values that its lines name, `result` is returned."""

    bound: dict[str, Any]
    result: str

    def exprs(self) -> list[Expr]: ...
    def prologue(self) -> list[str]: ...
    def write(self, body: Emitter, weight: str) -> None: ...
    def epilogue(self) -> list[str]: ...


@runtime_checkable
class Opening(Protocol):
    """A sink that may look a group up once for all rows of the innermost loop."""

    def open(self, body: Emitter, places: frozenset[int]) -> list[str]:
        """Write the look-up before the loop, if it reads the bindings at `places` only.

        Return the lines that follow the loop.
        """


class ListSink:
    """Appends rows to a list of pairs; of a `batch`, without their weight."""

    result = "out"

    def __init__(self, pipeline: RowPipeline, *, batch: bool = False) -> None:
        self._batch = batch
        self._row = pipeline.value()
        self._is_input = pipeline.is_input
        self.bound: dict[str, Any] = {}

    def prologue(self) -> list[str]:
        return ["    out = []", "    append = out.append"]

    def epilogue(self) -> list[str]:
        return []

    def exprs(self) -> list[Expr]:
        return [] if self._is_input else [self._row]

    def write(self, body: Emitter, weight: str) -> None:
        row = "row" if self._is_input else body.canonical(self._row)
        body.line(f"append({row})" if self._batch else f"append(({row}, {weight}))")


class CountSink:
    """Counts equal rows of a batch."""

    result = "counts"

    def __init__(self, pipeline: RowPipeline) -> None:
        self._row = pipeline.value()
        self._is_input = pipeline.is_input
        self.bound: dict[str, Any] = {}

    def prologue(self) -> list[str]:
        return ["    counts = {}", "    get = counts.get"]

    def epilogue(self) -> list[str]:
        return []

    def exprs(self) -> list[Expr]:
        return [] if self._is_input else [self._row]

    def write(self, body: Emitter, weight: str) -> None:
        made = "row" if self._is_input else body.variable("made", body.canonical(self._row))
        body.line(f"counts[{made}] = get({made}, 0) + 1")


class PartnerSink:
    """Adds up the weights of the partners of each row of one side, by the handle of the row.

    `row` is the variable of the row, and its handle its `id` if rows are interned.
    """

    result = "counts"

    def __init__(self, row: str, *, is_interned: bool) -> None:
        self._handle = f"id({row})" if is_interned else row
        self.bound: dict[str, Any] = {}

    def prologue(self) -> list[str]:
        return ["    counts = {}", "    get = counts.get"]

    def epilogue(self) -> list[str]:
        return []

    def exprs(self) -> list[Expr]:
        return []

    def write(self, body: Emitter, weight: str) -> None:
        handle = body.variable("handle", self._handle)
        body.line(f"counts[{handle}] = get({handle}, 0) + {weight}")


class KeySink:
    """Appends keys beside the pairs; of a `batch`, makes lists of keys and of rows.

    If a pair is passed on unchanged, it is the same object: `pair`.
    """

    def __init__(
        self, pipeline: RowPipeline, key: Sequence[Expr], *, is_written: bool, batch: bool = False
    ) -> None:
        self._pipeline = pipeline
        self._key = list(key)
        self._is_written = is_written
        self._batch = batch
        self.bound: dict[str, Any] = loop_expressions.KEYS
        self.result = "keys, kept" if batch else "out"

    def exprs(self) -> list[Expr]:
        return [*self._key, *([] if self._pipeline.is_input else [self._pipeline.value()])]

    def prologue(self) -> list[str]:
        if self._batch:
            return ["    keys, kept = [], []", "    add_key, add_row = keys.append, kept.append"]
        return ["    out = []", "    append = out.append"]

    def epilogue(self) -> list[str]:
        return []

    def write(self, body: Emitter, weight: str) -> None:
        """Write the append of the row, or of the row and its weight, with its key."""
        pipeline = self._pipeline
        key = loop_expressions.key_or_no_match(
            body, self._key, pipeline.shapes, is_written=self._is_written
        )
        row = "row" if pipeline.is_input else body.canonical(pipeline.value())
        if self._batch:
            body.line(f"add_key({key})")
            body.line(f"add_row({row})")
        else:
            pair = "pair" if pipeline.is_input else f"({row}, {weight})"
            body.line(f"append(({key}, {pair}))")


RUNNING_SUMS: dict[str, Any] = {
    "UP": UP,
    "DOWN": DOWN,
    "UNIT": UNIT,
    "Decimal": Decimal,
    "DecimalSum": DecimalSum,
    "ExactSum": ExactSum,
    "scaled_sum": scaled_sum,
    "plus_value": add_value,
    "plus": add_sums,
    "RingSum": RingSum,
    "times_value": scale_value,
    "times_sum": scale_sum,
    "copied": copy_sum,
    "sum_of": sum_result,
}
"""The functions that the lines call by name."""


def write_plus_value(total: str, value: str, weight: str, *, is_own: bool) -> Iterator[str]:
    """Write lines that add `weight` times a value to the variable `total`.

    `is_own` allows them to change the sum in place.
    """
    yield f"if {value}.__class__ is int and {total}.__class__ is int:"
    yield f"    {total} += {value} * {weight}"
    yield f"elif {total}.__class__ is tuple and {_is_scaled(value)}:"
    yield f"    floats = {total}[1] + {weight}"
    number = f"{total}[0] + int(scaled) * {weight}"
    yield f"    {total} = ({number}, floats) if floats else scaled_sum({number}, 0)"
    yield f"elif {_is_decimal(total, value)}:"
    yield f"    {total} = {total}.plus({value}, {weight})"
    yield "else:"
    before = total if is_own else f"copied({total})"
    yield f"    {total} = plus_value({before}, {value}, {weight})"


def write_plus(total: str, more: str, times: str, *, is_own: bool) -> Iterator[str]:
    """Write lines that add `times` times another sum, a variable, to the variable `total`."""
    yield f"if {more}.__class__ is int and {total}.__class__ is int:"
    yield f"    {total} += {more} * {times}"
    yield f"elif {more}.__class__ is tuple and {total}.__class__ is tuple:"
    yield f"    floats = {total}[1] + {more}[1] * {times}"
    number = f"{total}[0] + {more}[0] * {times}"
    yield f"    {total} = ({number}, floats) if floats else scaled_sum({number}, 0)"
    yield "else:"
    before = total if is_own else f"copied({total})"
    yield f"    {total} = plus({before}, {more}, {times})"


def text_times(value: str, often: str, is_sum: bool) -> str:
    """Return the expression of a value or sum, multiplied by `often`."""
    times_int = f"{value} * {often} if {value}.__class__ is int"
    if is_sum:
        return f"{times_int} else times_sum({value}, {often})"
    of_float = f"scaled_sum(int(scaled) * {often}, {often}) if {_is_scaled(value)}"
    return f"{times_int} else {of_float} else times_value({value}, {often})"


def text_plus(total: str, value: str, often: str, is_sum: bool) -> str:
    """Return the expression of a sum plus `often` times a value or sum."""
    are_int = f"{total}.__class__ is int and {value}.__class__ is int"
    plus_int = f"{total} + {value} * {often} if {are_int}"
    if is_sum:
        return f"{plus_int} else plus({total}, {value}, {often})"
    number, floats = f"{total}[0] + int(scaled) * {often}", f"{total}[1] + {often}"
    is_scaled = f"{total}.__class__ is tuple and {_is_scaled(value)}"
    of_float = f"scaled_sum({number}, {floats}) if {is_scaled}"
    of_decimal = f"{total}.plus({value}, {often}) if {_is_decimal(total, value)}"
    other = f"plus_value({total}, {value}, {often})"
    return f"{plus_int} else {of_float} else {of_decimal} else {other}"


def _is_scaled(value: str) -> str:
    """Return the test of a float that is an integer when scaled; it assigns `scaled`."""
    return f"{value}.__class__ is float and (scaled := {value} * UP * DOWN).is_integer()"


def _is_decimal(total: str, value: str) -> str:
    """Return the test of a finite decimal that is added to a sum of decimals."""
    classes = f"{value}.__class__ is Decimal and {total}.__class__ is DecimalSum"
    return f"{classes} and {value}.is_finite()"


def text_mean(state: str) -> str:
    """Return the expression of an average, whose state is a running sum and a count."""
    of_floats = f"{state}[0].__class__ is tuple and {state}[1] > 0"
    return f"({state}[0][0] * UNIT / {state}[1] if {of_floats} else avg_of({state}))"


def text_shown(total: str) -> str:
    """Return the expression of the value of a running sum, in a variable or list item."""
    of_floats = f"{total}[0] * UNIT if {total}.__class__ is tuple else sum_of({total})"
    return f"({total} if {total}.__class__ is int else {of_floats})"
