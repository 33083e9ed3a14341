"""A fragment of a plan on Spark, whatever its depth: state tables, and one job per flush.

    entries --columns--> deltas of the inputs --steps--> what is added to each table --write--> done
                                                    `--> the delta of the output, as a table too

The output is a table like the others: reading it evaluates nothing. A flush that meets values that
columns cannot add up is done again with care, and so are all later ones. Fragments over the same
tables share what they keep, and their flushes (`shared.py`).

State:  on disk; in the driver, what has not been sent.
Cost:   per flush one job; O(rows that changed) here.
Source: [mrql] state that is partitioned as its changes are; [dbsp] the chain rule.

A fragment as what its state holds, how that is merged, and what its output is made of it.

    where total > 10                answer
      aggregate Sum, Avg by town    h: sums and counts of each group      merge: +
        join ...                    answer: Avg = sum / count, then what is above

Source: [mrql] a homomorphism, its monoid, and an answer function.

Readers of a state table that holds the output of a fragment, as rows for a sink.

    rows       the table as of a flush
    changes    what flushes have added to it since

Both are read when somebody writes them, from files that are kept until then (`state/manifest.py`).

State:  which files.
Cost:   none here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame

from optimizer import plan
from optimizer.expressions.text import written
from optimizer.plans.explain import headline
from optimizer.plans.properties import is_set
from reactive.engine.collections.zset import Pair, Pairs, Row, canonical, consolidate
from reactive.engine.operators import accumulators
from reactive.engine.operators.plain import chain_over
from reactive.engine.operators.tolerant import Tolerant
from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import Adopt, Entry, ExternalInput, RemotePart
from spark_backend.aggregates.totals import ReducedRows, Totals
from spark_backend.cluster.session import Session
from spark_backend.codec.arrow import fitting, pairs_of, to_arrow
from spark_backend.codec.hashing import flattened_values, leaves
from spark_backend.codec.schema import Record, Typed
from spark_backend.direct.flush import MOST_FETCHED, Lookup, fields_of
from spark_backend.fragments.compile import Maker
from spark_backend.fragments.members import if_spark_can, name_of, table_of
from spark_backend.fragments.roster import inputs_of
from spark_backend.fragments.shared import SharedState
from spark_backend.sinks.frame_rows import FrameRows, columns
from spark_backend.sinks.rows import has_columns
from spark_backend.state.manifest import Segment
from spark_backend.state.one_job import TableSpec
from spark_backend.state.tables import StateTables, united
from spark_backend.state.whole import Copies, copies, whole
from spark_backend.steps.step import ByWeight, schema_of
from spark_backend.tables.chain import Weighted
from spark_backend.tables.frames import as_columns


class StateRemote:
    """A `reactive.engine.remote.remote.Remote` over state tables.

    Parameters
    ----------
    fragment: of the plan; it `can_be_columns`.
    folder: of its state; one that an earlier process left is gone on with, if it is of this plan.
    makers: of steps of other nodes than those of `Compiler`.
    shared: the state that it shares with others, instead of one in the folder.

    Raises
    ------
    NotColumns: it cannot be done in columns; nothing has been written.
    """

    def __init__(
        self,
        session: Session,
        fragment: Fragment,
        folder: str,
        *,
        stable: bool,
        makers: tuple[Maker, ...] = (),
        shared: SharedState | None = None,
    ) -> None:
        self._session, self._fragment = session, fragment
        self._inputs = inputs_of(session, fragment)
        self.shared = shared or SharedState(
            session, folder, name_of(fragment, self._inputs), stable=stable, makers=makers
        )
        self._member = self.shared.join(fragment)
        self._fits = [fitting(given.kept) for given in self._inputs]
        self.is_closed = False
        self.begun_anew = ""
        self.adopt: Adopt | None = None

    @property
    def resumed(self) -> int | None:
        """The last number that an earlier process had applied, if this goes on from there."""
        return self._member.resumed

    @property
    def left(self) -> int:
        """How many have left that shared with it."""
        return self.shared.left

    @property
    def applied(self) -> int:
        """The last number that has been taken in; -1 for none."""
        return self._member.applied

    def bucket(self, key: Any) -> Any:
        """The key itself."""
        return key

    def pack(self, place: int, key: Any, row: Row) -> tuple[int, Row]:
        """The row as it is, if columns hold it.

        Raises
        ------
        OffloadError: they do not.
        """
        if not self._fits[place](row):
            to_arrow(self._inputs[place].kept, [row])
        return 0, row

    def is_brought(self, place: int) -> bool:
        """Whether others bring the rows of an input."""
        return self.shared.is_live(self._member, place)

    def stage(self, number: int, entries: Sequence[Entry]) -> None:
        """Write entries to a file, from which the flush of a number reads them.

        Raises
        ------
        OffloadError: columns do not hold one of them.
        """
        if entries and number > self.applied:
            place = entries[0][0]
            self._member.staged.add(number, place, table_of(self._inputs[place].kept, entries))

    def take_in(self, parts: Sequence[tuple[Any, RemotePart]]) -> None:
        """Take in what this and others are given that share its state, in one job; what a callable
        raised is told by `apply`.

        Raises
        ------
        OffloadError: Spark is gone; nothing was taken in.
        """
        self.shared.take_in([(remote._member, part) for remote, part in parts])

    def apply(
        self,
        number: int,
        entries: Sequence[Entry],
        fed: Sequence[ExternalInput] = (),
        *,
        quiet: bool = False,
    ) -> Pairs:
        """Take entries in once, and say how the output changes.

        Raises
        ------
        TakenIn: a callable of the query raised. The next number makes up for it.
        OffloadError: Spark is gone; nothing was taken in.
        """
        self._raise(number)
        if number > self.applied:
            self.take_in([(self, RemotePart(number, None, entries, fed))])
            self._raise(number)
        return () if quiet else self.told(number)

    def _raise(self, number: int) -> None:
        """Raise what a callable raised as a number was taken in."""
        if self._member.raised is not None and self._member.raised[0] == number:
            raise self._member.raised[1]

    def stop(self) -> None:
        """Nobody reads it any more; a later process can go on where that was asked for."""
        self.is_closed = True
        self.shared.leave(self._member, for_good=False)

    def close(self) -> None:
        """Give everything up that it alone needs."""
        self.is_closed = True
        self.shared.leave(self._member, for_good=True)

    def contents(self) -> Iterable[Pair]:
        """The output as of the last `apply`, fetched; from its files where there are few rows, or
        Spark cannot."""
        with self.shared.lock:
            if self.shared.tables.rows_near(self._member.output) <= MOST_FETCHED:
                return self._in_files()
            found = if_spark_can(self._session, lambda: self._fetched(self.current()))
            return self._in_files() if found is None else found

    def _in_files(self) -> Pairs:
        """The output, added up here."""
        return consolidate(pairs_of(self._kept, self.shared.tables.all_rows(self._member.output)))

    def at(self, bucket: Any) -> Iterable[Pair]:
        """The rows that begin with a key, or are it: of the base, only its bucket is read."""
        first, key = self._fragment.is_by_group, canonical(bucket)
        with self.shared.lock:
            found = self._near((key,), first=first)
            return [(r, n) for r, n in found if ((r[0] if first else r),) == (key,)]

    def some(self, keys: Collection[Any]) -> Pairs:
        """The rows that begin with one of some keys; others may come along."""
        if not self._fragment.is_by_group:
            return [pair for key in keys for pair in self.at(key)]
        with self.shared.lock:
            return list(self._near([canonical(key) for key in keys], first=True))

    def _near(self, keys: Collection[Any], *, first: bool) -> Iterable[Pair]:
        """The rows of the files in which those with some keys are; others may come along."""
        of, output = self._looked_up(first=first), self._member.output
        path = (self._kept.names[0],) if first and isinstance(self._kept, Record) else ()
        look = Lookup(leaves(of), fields_of(of, "row", *path))
        found_by = [tuple(flattened_values(of, key)) for key in keys]
        hashed = look.hashes(found_by)
        found = self.shared.tables.sought(output, hashed, look.values(found_by))
        return consolidate(pairs_of(self._kept, found))

    @property
    def _kept(self) -> Typed:
        """What the rows of the output are."""
        return self._member.top.kept

    def _looked_up(self, *, first: bool) -> Typed:
        """What of the rows of the output a reader gives: their group, or all of them."""
        if first:
            assert isinstance(self._kept, Record)
            return self._kept.fields[0]
        return self._kept

    def current(self) -> DataFrame | None:
        """The output on Spark, each row once with its weight."""
        with self.shared.lock:
            self.shared.roster.compile()
            of = self.shared.tables, self._member.output
            return whole(*of, is_set=self._is_set, is_net=self._is_net)

    @property
    def is_followable(self) -> bool:
        """Whether files hold the rows of the output as the columns that they are."""
        return has_columns(self._kept)

    def follow(self) -> TableReader:
        """A reader of the output, as of the last `apply`."""
        with self.shared.lock:
            self.shared.roster.compile()
            made = self._session, self.shared.tables, self._member.output, self._kept
            return TableReader(
                Output(*made, self._is_set, self._is_net, is_over=lambda: self.is_closed)
            )

    @property
    def _is_net(self) -> bool:
        """Whether the first flush has added up what it has given."""
        return isinstance(self._member.top, Totals | ByWeight | ReducedRows)

    @property
    def _is_set(self) -> bool:
        """Whether no row of the output occurs twice."""
        return is_set(self._fragment.node)

    def told(self, number: int) -> Pairs:
        """How the output changed in the last flush, fetched."""
        with self.shared.lock:
            if number != self.applied:
                return ()
            written = self.shared.tables.written(self._member.told, self._member.output)
            return consolidate(pairs_of(self._kept, written)) if written is not None else ()

    def size(self) -> int:
        """How many rows the output has, copies counted."""
        with self.shared.lock:
            tables, output = self.shared.tables, self._member.output
            segments = tables.manifest.tables.get(output.name, ())
            if all(segment.weights == (1, 1) for segment in segments if segment.files):
                return sum(tables.manifest.rows(output.name))
            return pc.sum(tables.all_rows(output).column("weight")).as_py() or 0

    def to_spark(self, row_type: Any = None) -> DataFrame:
        """All rows, a column per field; nothing of the query is evaluated."""
        with self.shared.lock:
            self.shared.roster.compile()
            of = self.shared.tables, self._member.output
            found = copies(*of, is_set=self._is_set, is_net=self._is_net)
        if found is None:
            found = Copies(self._session.spark.createDataFrame([], schema_of(self._kept)), True)
        return as_columns(Weighted(found.rows, self._kept), once=found.once)

    def entries(self) -> Iterator[Entry]:
        """What came from the process, where a later one is to go on."""
        with self.shared.lock:
            self.shared.roster.compile()
            for place, given in enumerate(self._inputs):
                there = self._member.places[place]
                if self.is_brought(place) or self.shared.roster.is_fed(there):
                    continue
                rows = whole(self.shared.tables, self._member.rows[there])
                if rows is not None:
                    pairs = pairs_of(given.kept, rows.toArrow())
                    yield from ((place, 0, row, weight) for row, weight in pairs)

    def rows_of(
        self, node: plan.Node, fed: Sequence[ExternalInput]
    ) -> tuple[DataFrame | None, int] | None:
        """The rows of one of its inputs, each once, and how many there are at most; None of any
        other node.

        Parameters
        ----------
        fed: the inputs that are fed, with all that they have been.
        """
        places = [place for place, given in enumerate(self._inputs) if given.node == node]
        if not places:
            return None
        with self.shared.lock:
            source = next((f for f in fed if f.place == places[0]), None)
            return self.shared.rows_of(self._member, places[0], source)

    def hold_inputs(self) -> Callable[[], None]:
        """Keep the files of the rows of its inputs; gives what ends that."""
        with self.shared.lock:
            rows = self._member.rows.values()
            held = [self.shared.tables.hold(spec) for spec in rows]

        def end() -> None:
            for hold in held:
                hold.close()

        return end

    def footprint(self) -> tuple[int, int]:
        """Rows in files that it reads, and their bytes."""
        tables = self.shared.tables
        names = tables.manifest.tables.keys() & self._member.tables.keys()
        return sum(sum(tables.manifest.rows(name)) for name in names), tables.bytes(names)

    def describe(self) -> str:
        """Where and how it is kept, and what runs where."""
        others = len(self.shared.roster.members) - 1
        beside = [f"shared with {others} more over the same tables"] if others > 0 else []
        odd = ["values without limbs: Python workers"] if self.shared.careful else []
        split = split_of(self._fragment.node).lines()
        few = _done_here(self.shared.flushes, self.shared.flushes_here)
        how = ["Spark, state tables, one job per flush", *few, *beside, *self._member.lines]
        return "; ".join([*how, *odd, *self._in_parts(), *split])

    def _in_parts(self) -> list[str]:
        """Whether some groups are so large that their values are looked at by parts."""
        rows = self.shared.tables.manifest.rows
        known = self.shared.tables.manifest.tables
        specs = [s for s in self._member.tables.values() if s.is_here and s.name in known]
        count = sum(sum(rows(spec.name)) for spec in specs)
        return [f"large groups in parts: {count:,} results of parts are kept"] if count else []

    def _fetched(self, rows: DataFrame | None) -> list[Pair]:
        return [] if rows is None else pairs_of(self._kept, rows.toArrow())


def _done_here(flushes: int, here: int) -> list[str]:
    """How many flushes were of so few rows that there was no job."""
    return [f"{here} of {flushes} flushes in this process, of few rows"] if here else []


_HELD = {
    accumulators.CountAccumulator: "counts",
    accumulators.SumAccumulator: "sums",
    accumulators.AvgAccumulator: "sums and counts",
    accumulators.MinAccumulator: "values with their weights",
    accumulators.MaxAccumulator: "values with their weights",
    accumulators.CountDistinctAccumulator: "values with their weights",
    accumulators.CollectAccumulator: "values with their weights",
    accumulators.UserAccumulator: "values with their weights",
    accumulators.MonoidAccumulator: "values with their weights",
}
_SHOWN = {
    accumulators.AvgAccumulator: "Avg = sum / count",
    accumulators.MinAccumulator: "Min = least value",
    accumulators.MaxAccumulator: "Max = greatest value",
    accumulators.CountDistinctAccumulator: "CountDistinct = number of values",
    accumulators.CollectAccumulator: "Collect = the values",
    accumulators.UserAccumulator: "what its callables make of the values",
    accumulators.MonoidAccumulator: "what its callables make of the values",
}
ADDED = "+, of weights and sums"


@dataclass(frozen=True, slots=True)
class Split:
    """What the last operator of a fragment that keeps anything holds, and what follows on it."""

    held: str
    merge: str
    answer: tuple[str, ...]

    def lines(self) -> list[str]:
        """For `explain`."""
        answer = ", then ".join(self.answer) or "as it is"
        return [f"h: {self.held}", f"merge: {self.merge}", f"answer, of what changed: {answer}"]


def split_of(node: plan.Node) -> Split:
    """How a fragment splits.

    >>> given = plan.Recursive("part", 0, "input 1", False)
    >>> split_of(plan.Distinct(given)).lines()[0]
    'h: the weight of each row'
    """
    chain, top = chain_over(node)
    held, shown = _of(top)
    return Split(held, ADDED, (*shown, *map(headline, chain)))


def _of(node: plan.Node) -> tuple[str, tuple[str, ...]]:
    """What an operator holds, and what is made of it."""
    match node:
        case plan.Aggregate():
            return _of_aggregate(node)
        case plan.Top():
            return f"the rows by {written(node.key)}", (headline(node),)
        case plan.Reduce():
            return f"the rows by {written(node.key)}", (f"what {written(node.function)} gives",)
        case plan.OrderBy():
            return "the rows, and the first of them apart", (headline(node),)
        case plan.Distinct():
            return "the weight of each row", ("1 of each row that is there",)
        case plan.SemiJoin() | plan.AntiJoin():
            is_semi = isinstance(node, plan.SemiJoin)
            return "the rows of both sides by key", (
                f"those {'with' if is_semi else 'without'} a partner",
            )
        case plan.OuterJoin():
            return "the rows of both sides by key", ("pairs, and rows without a partner",)
        case plan.Join():
            return "the rows of both sides by key", ("their pairs",)
        case plan.UnionAll(left, right):
            return " and ".join(_of(side)[0] for side in (left, right)), ("rows of both",)
        case plan.Recursive():
            return "rows", ()
        case plan.Fixpoint() | plan.Iterate() | plan.Component():
            return "the rows of its relations and of its sides", (
                "what it comes to over these, less what it was",
            )
        case (
            plan.Union()
            | plan.Difference()
            | plan.DifferenceAll()
            | plan.Intersection()
            | plan.IntersectionAll()
        ):
            return "the weights of each row on both sides", (headline(node),)
        case _:
            return f"what {headline(node)} keeps", ()


def _of_aggregate(node: plan.Aggregate) -> tuple[str, tuple[str, ...]]:
    kinds = [type(folded.accumulator) for folded in map(_as_written, node.aggregates)]
    held = list(dict.fromkeys(_HELD[kind] for kind in kinds if kind in _HELD))
    shown = tuple(dict.fromkeys(_SHOWN[kind] for kind in kinds if kind in _SHOWN))
    of = "of all rows" if node.key is None else f"by {written(node.key)}"
    return f"{', '.join(held)} {of}", shown


def _as_written(folded: plan.Folded) -> plan.Folded:
    """Return the aggregate without the policy of its view."""
    own = folded.accumulator
    return replace(folded, accumulator=own.inner) if isinstance(own, Tolerant) else folded


@dataclass(frozen=True, slots=True)
class Output:
    """A state table of rows with weights, and what its rows are."""

    session: Session
    tables: StateTables
    spec: TableSpec
    kept: Typed
    is_set: bool
    is_net: bool
    """As of `whole`."""
    is_over: Callable[[], bool]
    """Whether it is given up."""


class TableReader:
    """What one reader has read of a table: a `reactive.engine.remote.remote_operator.Following`."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._hold = output.tables.hold(output.spec)
        self._first = self._hold.first
        self._taken: tuple[Segment, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether it has to begin anew."""
        return self._hold.is_over or self._output.is_over()

    @property
    def waiting(self) -> int:
        """How many changed rows it has not read, at most."""
        return sum(segment.rows for segment in self._hold.later)

    def rows(self) -> FrameRows:
        """All rows as of when it began."""
        return self._given(self._first, partial(self._whole, self._first), is_net=True)

    def changes(self) -> FrameRows | None:
        """What flushes have added since; None for nothing."""
        self._taken = self._hold.later
        if not self._taken:
            return None
        return self._given(self._taken, partial(self._added, self._taken), is_net=False)

    def forget(self) -> None:
        """What `rows` and the last `changes` have given was read."""
        self._first = ()
        self._hold.forget(self._taken)

    def close(self) -> None:
        """It reads no more."""
        self._hold.close()

    def _given(
        self, segments: tuple[Segment, ...], made: Callable[[Typed], DataFrame], *, is_net: bool
    ) -> FrameRows:
        output = self._output
        rows = sum(segment.rows for segment in segments)
        return FrameRows(output.session, output.kept, rows, (made,), is_net)

    def _whole(self, segments: tuple[Segment, ...], of: Typed) -> DataFrame:
        o = self._output
        found = whole(o.tables, o.spec, is_set=o.is_set, is_net=o.is_net, held=segments)
        if found is None:
            found = o.session.spark.createDataFrame([], o.spec.schema)
        return columns(found, o.kept, of)

    def _added(self, segments: tuple[Segment, ...], of: Typed) -> DataFrame:
        o = self._output
        parts = o.tables.split(o.spec, held=segments).values()
        names = o.spec.schema.names
        return columns(united([part.select(*names) for part in parts]), o.kept, of)
