"""Moves of a nest: look up the rows to join with, and loop over them.

    ProbeCode   the entry of an index, or of sums, for a key
    Meeting     the entries of two inputs, with the same value below
    Shorter     two orders: the one that finds fewer rows

A probe finds one row, several, or rows with weights (`collections/index.py`); its form writes the
loops over these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from optimizer.expr import Expr, reads
from optimizer.record import record
from reactive.engine.codegen.emitter import Emitter
from reactive.engine.codegen.loop_expressions import KEYS, matching_key, whole_key
from reactive.engine.codegen.nest import Bound, LoopNest, Move, Then
from reactive.engine.collections.index import NOTHING, FewRows, WeightedRows
from reactive.engine.collections.row_index import ManyRows
from reactive.engine.collections.trie import count_joined_pairs, joined_pairs
from reactive.engine.collections.zset import Pair

Form = Callable[[LoopNest, Emitter, str, Bound, Then], None]
"""Writes the loops over the found rows in a variable."""
MOST_REPEATED = 4
"""Maximum average number of copies of a key's rows that are put into a batch."""


@record
class ProbeCode:
    """A look-up by a key.

    Parameters
    ----------
    find: the function that looks up.
    form: writes the loops over the found rows.
    key: the parts of the key, as expressions over the row; None for the key of the source.
    is_written: True if the key is as the user wrote it; None if any key may be looked up, including
        one that equals nothing.
    tests: conditions on the found rows.
    finds_all: True if the look-up finds something for a key that equals nothing.
    """

    find: str
    form: Form
    key: tuple[Expr, ...] | None = None
    is_written: bool | None = None
    found: str = "found"
    tests: tuple[Expr, ...] = ()
    finds_all: bool = False

    @property
    def has_key(self) -> bool:
        return self.key is None

    def exprs(self) -> Iterable[Expr]:
        return (*(self.key or ()), *self.tests)

    def look_up(self, nest: LoopNest, emitter: Emitter) -> None:
        """Write the look-up of the key, and skip the row if nothing is found."""
        nest.values.bind({"NOTHING": NOTHING, **KEYS})
        found = self.found
        emitter.line(f"{found} = {self.find}({self._key(nest, emitter)}, NOTHING)")
        unkeyed = " or key is NO_MATCH" * (self.has_key and not self.finds_all)
        emitter.line(f"if {found} is NOTHING{unkeyed}: continue")

    def produce(self, nest: LoopNest, emitter: Emitter, bound: Bound, then: Then) -> None:
        """Write the loop over the rows found, its tests, and then what `then` writes."""

        def tested(inner: Emitter, now: Bound) -> None:
            for test in self.tests:
                inner.line(f"if not {inner.use(test, 3)}: continue")
            then(inner, now)

        self.form(nest, emitter, self.found, bound, tested)

    def _key(self, nest: LoopNest, emitter: Emitter) -> str:
        """Return the text of the key to look up."""
        if self.key is None:
            return "key"
        if self.is_written is not None:
            return matching_key(emitter, self.key, nest.shapes, is_written=self.is_written)
        return whole_key([emitter.use(part) for part in self.key])


@record
class Meeting:
    """The rows of two inputs with the same value below the keys that were looked up.

    If these rows are not read, they are counted. `later` are the moves after it.
    """

    left: ProbeCode
    right: ProbeCode
    places: tuple[int, int]
    times: str
    later: Sequence[Move]

    @property
    def has_key(self) -> bool:
        return False

    def exprs(self) -> Iterable[Expr]:
        return (*self.left.exprs(), *self.right.exprs())

    def look_up(self, nest: LoopNest, emitter: Emitter) -> None:
        self.left.look_up(nest, emitter)
        self.right.look_up(nest, emitter)

    def produce(self, nest: LoopNest, emitter: Emitter, bound: Bound, then: Then) -> None:
        """Write the loop over the pairs that meet, or only their number if no row is read."""
        nest.values.bind({"pairs": joined_pairs, "meetings": count_joined_pairs})
        both = f"{self.left.found}, {self.right.found}"
        nest.hoist(emitter, bound)
        if self._is_read(nest):
            first, second = (nest.names[place] for place in self.places)
            emitter = emitter.loop(f"for {first}, {second}, {self.times} in pairs({both}):")
        else:
            emitter.line(f"{self.times} = meetings({both})")
            emitter.line(f"if not {self.times}: continue")
        nest.count(emitter, "1")
        then(emitter, bound.and_found(self.places, self.times))

    def _is_read(self, nest: LoopNest) -> bool:
        """Return True if a later expression reads one of the two rows; else they are counted."""
        exprs = [*nest.after(), *(expr for move in self.later for expr in move.exprs())]
        return any(reads(expr).intersection(self.places) for expr in exprs)


@record
class Shorter:
    """Two orders through all inputs; the one that finds fewer rows first is used."""

    first: Sequence[Move]
    second: Sequence[Move]

    @property
    def has_key(self) -> bool:
        return False

    def exprs(self) -> Iterable[Expr]:
        return (expr for move in (*self.first, *self.second) for expr in move.exprs())

    def look_up(self, nest: LoopNest, emitter: Emitter) -> None:
        self.first[0].look_up(nest, emitter)
        self.second[0].look_up(nest, emitter)

    def produce(self, nest: LoopNest, emitter: Emitter, bound: Bound, then: Then) -> None:
        """Write both orders, and the test of which one has fewer rows."""
        nest.values.bind({"size": _found_size})
        one, other = self.first[0], self.second[0]
        assert isinstance(one, ProbeCode) and isinstance(other, ProbeCode)
        for head, moves in (
            (f"if size({one.found}) <= size({other.found}):", self.first),
            ("else:", self.second),
        ):
            nest.follow(emitter.block(head), moves, bound, is_found=True)


def split_form(*places: int) -> Form:
    """Loop over rows, and separately over rows with weights: the fastest form, and the longest.

    If the probing rows have no weights, as in a batch, found rows are repeated by their weight; the
    function returns None if a weight is below one, or large.
    """

    def form(nest: LoopNest, emitter: Emitter, found: str, bound: Bound, then: Then) -> None:
        nest.values.bind({"Rows": FewRows, "Weighted": WeightedRows})
        nest.hoist(emitter, bound)
        weighted = emitter.block(f"if {found}.__class__ is Weighted:")
        if bound.weights:
            nest.count(weighted, f"len({found})")
            inner = weighted.loop(f"for {nest.one(places)}, times in {found}.values():")
            inner.line(f"times *= {' * '.join(bound.weights)}")
            nest.unpack(inner, places)
            then(inner, Bound(bound.places.union(places), ("times",)))
            rows = emitter.block("else:")
            rows.line(f"if {found}.__class__ is not Rows: {found} = ({found},)")
        else:
            nest.values.bind({"repeated": _repeat_rows})
            weighted.line(f"{found} = repeated({found})")
            weighted.line(f"if {found} is None: return None")
            emitter.line(f"elif {found}.__class__ is not Rows: {found} = ({found},)")
            rows = emitter
        nest.count(rows, f"len({found})")
        inner = rows.loop(f"for {nest.one(places)} in {found}:")
        nest.unpack(inner, places)
        then(inner, bound.and_found(places))

    return form


def pair_form(times: str, *places: int) -> Form:
    """Loop over pairs of row and weight, made from rows in any form."""

    def form(nest: LoopNest, emitter: Emitter, found: str, bound: Bound, then: Then) -> None:
        nest.values.bind({"Rows": FewRows, "Weighted": WeightedRows, "once": _weigh_once})
        nest.hoist(emitter, bound)
        emitter.line(f"if {found}.__class__ is Weighted: {found} = {found}.values()")
        one = f"once({found}) if {found}.__class__ is Rows else (({found}, 1),)"
        emitter.line(f"else: {found} = {one}")
        nest.count(emitter, f"len({found})")
        inner = emitter.loop(f"for {nest.one(places)}, {times} in {found}:")
        nest.unpack(inner, places)
        then(inner, bound.and_found(places, times))

    return form


def set_form(*places: int, weight: str = "") -> Form:
    """Loop over the rows of a set, in an index or a relation.

    `weight` is the text of the weight of a pair, over `{row}` and `{weight}`.
    """

    def form(nest: LoopNest, emitter: Emitter, found: str, bound: Bound, then: Then) -> None:
        nest.values.bind({"Rows": FewRows, "Weighted": WeightedRows, "Many": ManyRows})
        nest.hoist(emitter, bound)
        emitter.line(f"kind = {found}.__class__")
        emitter.line("if kind is not Rows and kind is not Many:")
        rows = f"[row for row, times in {found}.values()] if kind is Weighted else ({found},)"
        emitter.line(f"{found} = {rows}", deeper=1)
        nest.count(emitter, f"len({found})")
        one = nest.one(places)
        end = nest.open_group(emitter, bound)
        inner = emitter.loop(f"for {one} in {found}:")
        nest.unpack(inner, places)
        now = bound.and_found(places)
        if weight:
            (mine,) = bound.weights
            now = Bound(now.places, (weight.format(row=one, weight=mine),))
        then(inner, now)
        for line in end:
            emitter.line(line)

    return form


def single_form(times: str, *places: int) -> Form:
    """Bind the only row, with weight one; if there are more, the function returns None."""

    def form(nest: LoopNest, emitter: Emitter, found: str, bound: Bound, then: Then) -> None:
        nest.values.bind({"Rows": FewRows, "Weighted": WeightedRows})
        nest.hoist(emitter, bound)
        several = f"{found}.__class__ is Weighted or {found}.__class__ is Rows"
        emitter.line(f"if {several}: return None")
        emitter.line(f"{nest.one(places)}, {times} = {found}, 1")
        nest.unpack(emitter, places)
        then(emitter, bound.and_found(places, times))

    return form


def unique_form(place: int) -> Form:
    """Bind the only row: its key is unique."""

    def form(nest: LoopNest, emitter: Emitter, found: str, bound: Bound, then: Then) -> None:
        nest.values.bind({"Weighted": WeightedRows})
        emitter.line(f"if {found}.__class__ is Weighted: (({found}, _),) = {found}.values()")
        emitter.line(f"{nest.one((place,))} = {found}")
        nest.count(emitter, "1")
        then(emitter, bound.and_found((place,)))

    return form


def _weigh_once(rows: Sequence[Any]) -> list[Pair]:
    return [(row, 1) for row in rows]


def _repeat_rows(found: WeightedRows) -> list[Any] | None:
    """Repeat the rows by their weight; None if some weight is below one, or weights are large."""
    rows = [row for row, times in found.values() if times == 1]
    if len(rows) == len(found):
        return rows
    every = [times for _, times in found.values()]
    if min(every) < 1 or sum(every) > MOST_REPEATED * len(every):
        return None
    return [row for row, times in found.values() for _ in range(times)]


def _found_size(found: Any) -> int:
    return len(found) if found.__class__ is FewRows or found.__class__ is WeightedRows else 1
