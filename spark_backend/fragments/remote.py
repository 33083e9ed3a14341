"""A fragment of a plan on Spark, of any depth: state tables, and one job per flush.

    entries --columns--> deltas of the inputs --steps--> rows to add to each table --write--> done
                                                    `--> the delta of the output, as a table too

The output is a table like the others: reading it evaluates nothing. A flush that meets values
without limbs is repeated in careful mode, and so are all later ones. Fragments over the same tables
share state and flushes (`shared.py`).

State:  on disk; in the driver, the changes that were not sent.
Cost:   per flush one job; O(changed rows) here.
Source: [mrql] state that is partitioned as its changes are; [dbsp] the chain rule.

`split_of` describes a fragment by its state, the merge of changes into it, and the answer computed
from it:

    where total > 10                answer
      aggregate Sum, Avg by town    h: sums and counts of each group      merge: +
        join ...                    answer: Avg = sum / count, then the nodes above

Source: [mrql] a homomorphism, its monoid, and an answer function.

`TableReader` gives a sink the rows of the output table as of a flush, and then the rows that later
flushes added. They are read when the sink writes them, from files that are kept until then
(`state/manifest.py`).

State:  the held files.
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
from spark_backend.codec.hashing import flattened_values, leaf_types
from spark_backend.codec.schema import Record, Typed
from spark_backend.direct.flush import MOST_FETCHED, Lookup, leaf_fields
from spark_backend.fragments.compile import Maker
from spark_backend.fragments.members import plan_name, rows_to_table, try_with_spark
from spark_backend.fragments.roster import inputs_of
from spark_backend.fragments.shared import SharedState
from spark_backend.sinks.frame_rows import FrameRows, to_file_columns
from spark_backend.sinks.rows import has_columns
from spark_backend.state.manifest import Segment
from spark_backend.state.one_job import TableSpec
from spark_backend.state.tables import StateTables, union_frames
from spark_backend.state.whole import Copies, read_copies, read_whole
from spark_backend.steps.step import ByWeight, schema_of
from spark_backend.tables.chain import Weighted
from spark_backend.tables.frames import as_columns


class StateRemote:
    """A `reactive.engine.remote.remote.Remote` over state tables.

    Parameters
    ----------
    fragment: a fragment that columns can express (`can_be_columns`).
    folder: the folder of its state; the state that an earlier process left is continued if it is of
        this plan.
    makers: functions that make the steps of further nodes.
    shared: the state that it shares with others, instead of one in the folder.

    Raises
    ------
    NotColumns: columns cannot express it; nothing has been written.
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
            session, folder, plan_name(fragment, self._inputs), stable=stable, makers=makers
        )
        self._member = self.shared.join(fragment)
        self._fits = [fitting(given.kept) for given in self._inputs]
        self.is_closed = False
        self.begun_anew = ""
        self.adopt: Adopt | None = None

    @property
    def resumed(self) -> int | None:
        """The last number that an earlier process applied, if this remote continues its state; else
        None."""
        return self._member.resumed

    @property
    def left(self) -> int:
        """The number of fragments that have left the shared state."""
        return self.shared.left

    @property
    def applied(self) -> int:
        """The last number that has been applied; -1 for none."""
        return self._member.applied

    def bucket(self, key: Any) -> Any:
        """Return the key itself."""
        return key

    def pack(self, place: int, key: Any, row: Row) -> tuple[int, Row]:
        """Return the row as it is.

        Raises
        ------
        OffloadError: columns cannot store it.
        """
        if not self._fits[place](row):
            to_arrow(self._inputs[place].kept, [row])
        return 0, row

    def is_brought(self, place: int) -> bool:
        """Return True if other fragments provide the rows of the input at `place`."""
        return self.shared.is_live(self._member, place)

    def stage(self, number: int, entries: Sequence[Entry]) -> None:
        """Write entries to a file, for the flush of a number.

        Raises
        ------
        OffloadError: columns cannot store an entry.
        """
        if entries and number > self.applied:
            place = entries[0][0]
            self._member.staged.add(number, place, rows_to_table(self._inputs[place].kept, entries))

    def take_in(self, parts: Sequence[tuple[Any, RemotePart]]) -> None:
        """Apply the changes of this and other fragments that share its state, in one job; `apply`
        raises the error of a callable.

        Raises
        ------
        OffloadError: Spark is gone; nothing was applied.
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
        """Apply entries unless their number was applied already, and return how the output changes.

        Raises
        ------
        TakenIn: a callable of the query raised. The next number retries.
        OffloadError: Spark is gone; nothing was applied.
        """
        self._raise_if_failed(number)
        if number > self.applied:
            self.take_in([(self, RemotePart(number, None, entries, fed))])
            self._raise_if_failed(number)
        return () if quiet else self.told(number)

    def _raise_if_failed(self, number: int) -> None:
        """Raise the error of a callable in the flush of a number."""
        if self._member.raised is not None and self._member.raised[0] == number:
            raise self._member.raised[1]

    def stop(self) -> None:
        """Stop reading; keep the state if a later process may continue it."""
        self.is_closed = True
        self.shared.leave(self._member, for_good=False)

    def close(self) -> None:
        """Delete the state that no other fragment needs."""
        self.is_closed = True
        self.shared.leave(self._member, for_good=True)

    def contents(self) -> Iterable[Pair]:
        """Fetch the output as of the last `apply`; from its files if it has few rows, or Spark
        fails."""
        with self.shared.lock:
            if self.shared.tables.rows_near(self._member.output) <= MOST_FETCHED:
                return self._in_files()
            found = try_with_spark(self._session, lambda: self._fetch(self.current()))
            return self._in_files() if found is None else found

    def _in_files(self) -> Pairs:
        """Return the output, read from its files by this process, with the copies of a row added
        up."""
        return consolidate(
            pairs_of(self._row_type, self.shared.tables.all_rows(self._member.output))
        )

    def at(self, bucket: Any) -> Iterable[Pair]:
        """Return the rows of a group, or equal to a key: only its bucket of the base is read."""
        first, key = self._fragment.is_by_group, canonical(bucket)
        with self.shared.lock:
            found = self._read_near((key,), first=first)
            return [(r, n) for r, n in found if ((r[0] if first else r),) == (key,)]

    def some(self, keys: Collection[Any]) -> Pairs:
        """Return the rows of some groups; other rows may be included."""
        if not self._fragment.is_by_group:
            return [pair for key in keys for pair in self.at(key)]
        with self.shared.lock:
            return list(self._read_near([canonical(key) for key in keys], first=True))

    def _read_near(self, keys: Collection[Any], *, first: bool) -> Iterable[Pair]:
        """Return the rows of the files that can contain some keys; other rows may be included."""
        of, output = self._lookup_type(first=first), self._member.output
        path = (self._row_type.names[0],) if first and isinstance(self._row_type, Record) else ()
        look = Lookup(leaf_types(of), leaf_fields(of, "row", *path))
        found_by = [tuple(flattened_values(of, key)) for key in keys]
        hashed = look.hashes(found_by)
        found = self.shared.tables.sought(output, hashed, look.values(found_by))
        return consolidate(pairs_of(self._row_type, found))

    @property
    def _row_type(self) -> Typed:
        """The type of the rows of the output."""
        return self._member.top.kept

    def _lookup_type(self, *, first: bool) -> Typed:
        """Return the type of the part of an output row that readers look up: its group, or the
        whole row."""
        if first:
            assert isinstance(self._row_type, Record)
            return self._row_type.fields[0]
        return self._row_type

    def current(self) -> DataFrame | None:
        """Return the output on Spark, each row once with its weight; None if it is empty."""
        with self.shared.lock:
            self.shared.roster.compile()
            of = self.shared.tables, self._member.output
            return read_whole(*of, is_set=self._is_set, is_net=self._is_net)

    @property
    def is_followable(self) -> bool:
        """True if files store the rows of the output in their own columns."""
        return has_columns(self._row_type)

    def follow(self) -> TableReader:
        """Return a reader of the output, as of the last `apply`."""
        with self.shared.lock:
            self.shared.roster.compile()
            made = self._session, self.shared.tables, self._member.output, self._row_type
            return TableReader(
                Output(*made, self._is_set, self._is_net, is_over=lambda: self.is_closed)
            )

    @property
    def _is_net(self) -> bool:
        """True if the first flush nets the rows that it outputs."""
        return isinstance(self._member.top, Totals | ByWeight | ReducedRows)

    @property
    def _is_set(self) -> bool:
        """True if no row of the output occurs twice."""
        return is_set(self._fragment.node)

    def told(self, number: int) -> Pairs:
        """Fetch how the output changed in the last flush; () if `number` is another flush."""
        with self.shared.lock:
            if number != self.applied:
                return ()
            written = self.shared.tables.written(self._member.told, self._member.output)
            return consolidate(pairs_of(self._row_type, written)) if written is not None else ()

    def size(self) -> int:
        """Return the number of rows of the output, with copies."""
        with self.shared.lock:
            tables, output = self.shared.tables, self._member.output
            segments = tables.manifest.tables.get(output.name, ())
            if all(segment.weights == (1, 1) for segment in segments if segment.files):
                return sum(tables.manifest.rows(output.name))
            return pc.sum(tables.all_rows(output).column("weight")).as_py() or 0

    def to_spark(self, row_type: Any = None) -> DataFrame:
        """Return all rows, a column per field; nothing of the query is evaluated."""
        with self.shared.lock:
            self.shared.roster.compile()
            of = self.shared.tables, self._member.output
            found = read_copies(*of, is_set=self._is_set, is_net=self._is_net)
        if found is None:
            found = Copies(self._session.spark.createDataFrame([], schema_of(self._row_type)), True)
        return as_columns(Weighted(found.rows, self._row_type), once=found.once)

    def entries(self) -> Iterator[Entry]:
        """Yield the rows of inputs that came from the process, for a later process."""
        with self.shared.lock:
            self.shared.roster.compile()
            for place, given in enumerate(self._inputs):
                there = self._member.places[place]
                is_elsewhere = self.is_brought(place) or self.shared.roster.is_fed(there)
                if is_elsewhere or there not in self._member.rows:
                    continue
                rows = read_whole(self.shared.tables, self._member.rows[there])
                if rows is not None:
                    pairs = pairs_of(given.kept, rows.toArrow())
                    yield from ((place, 0, row, weight) for row, weight in pairs)

    def rows_of(
        self, node: plan.Node, fed: Sequence[ExternalInput]
    ) -> tuple[DataFrame | None, int] | None:
        """Return the rows of one of its inputs, each once, and their maximum number.

        Return None for any other node.

        Parameters
        ----------
        fed: the external inputs, with all versions.
        """
        places = [place for place, given in enumerate(self._inputs) if given.node == node]
        if not places:
            return None
        with self.shared.lock:
            source = next((f for f in fed if f.place == places[0]), None)
            return self.shared.rows_of(self._member, places[0], source)

    def hold_inputs(self) -> Callable[[], None]:
        """Keep the files of the rows of its inputs; return a function that releases them."""
        with self.shared.lock:
            rows = self._member.rows.values()
            held = [self.shared.tables.hold(spec) for spec in rows]

        def end() -> None:
            for hold in held:
                hold.close()

        return end

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows in its tables, and their bytes."""
        tables = self.shared.tables
        names = tables.manifest.tables.keys() & self._member.tables.keys()
        return sum(sum(tables.manifest.rows(name)) for name in names), tables.bytes(names)

    def describe(self) -> str:
        """Describe where and how it is stored, and where its steps run."""
        others = len(self.shared.roster.members) - 1
        beside = [f"shared with {others} more over the same tables"] if others > 0 else []
        odd = ["values without limbs: Python workers"] if self.shared.careful else []
        split = split_of(self._fragment.node).lines()
        few = _describe_flushes(self.shared.flushes, self.shared.flushes_here)
        how = ["Spark, state tables, one job per flush", *few, *beside, *self._member.lines]
        return "; ".join([*how, *odd, *self._describe_parts(), *split])

    def _describe_parts(self) -> list[str]:
        """Describe large groups whose values are in parts, if any."""
        rows = self.shared.tables.manifest.rows
        known = self.shared.tables.manifest.tables
        specs = [s for s in self._member.tables.values() if s.is_here and s.name in known]
        count = sum(sum(rows(spec.name)) for spec in specs)
        return [f"large groups in parts: {count:,} results of parts are kept"] if count else []

    def _fetch(self, rows: DataFrame | None) -> list[Pair]:
        return [] if rows is None else pairs_of(self._row_type, rows.toArrow())


def _describe_flushes(flushes: int, here: int) -> list[str]:
    """Describe the number of flushes that ran without a job, if any."""
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
    """The state of the last stateful operator of a fragment, and the answer computed from it."""

    held: str
    merge: str
    answer: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return lines for `explain`."""
        answer = ", then ".join(self.answer) or "as it is"
        return [f"h: {self.held}", f"merge: {self.merge}", f"answer, of what changed: {answer}"]


def split_of(node: plan.Node) -> Split:
    """Describe the state, merge and answer of a fragment.

    >>> given = plan.Recursive("part", 0, "input 1", False)
    >>> split_of(plan.Distinct(given)).lines()[0]
    'h: the weight of each row'
    """
    chain, top = chain_over(node)
    held, shown = _describe_operator(top)
    return Split(held, ADDED, (*shown, *map(headline, chain)))


def _describe_operator(node: plan.Node) -> tuple[str, tuple[str, ...]]:
    """Describe the state of an operator, and its answer."""
    match node:
        case plan.Aggregate():
            return _describe_aggregate(node)
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
            return " and ".join(_describe_operator(side)[0] for side in (left, right)), (
                "rows of both",
            )
        case plan.Recursive():
            return "rows", ()
        case plan.Fixpoint() | plan.Iterate() | plan.Component():
            return "the rows of its relations and of its sides", (
                "what it comes to over these, less what it was",
            )
        case plan.SetOperation():
            return "the weights of each row on both sides", (headline(node),)
        case _:
            return f"what {headline(node)} keeps", ()


def _describe_aggregate(node: plan.Aggregate) -> tuple[str, tuple[str, ...]]:
    """Return as text what the state of an aggregate stores, and how its results are computed from
    that."""
    kinds = [type(folded.accumulator) for folded in map(_without_policy, node.aggregates)]
    held = list(dict.fromkeys(_HELD[kind] for kind in kinds if kind in _HELD))
    shown = tuple(dict.fromkeys(_SHOWN[kind] for kind in kinds if kind in _SHOWN))
    of = "of all rows" if node.key is None else f"by {written(node.key)}"
    return f"{', '.join(held)} {of}", shown


def _without_policy(folded: plan.Folded) -> plan.Folded:
    """Return the aggregate without the error policy of its view."""
    own = folded.accumulator
    return replace(folded, accumulator=own.inner) if isinstance(own, Tolerant) else folded


@dataclass(frozen=True, slots=True)
class Output:
    """A state table of rows with weights, and the type of its rows."""

    session: Session
    tables: StateTables
    spec: TableSpec
    kept: Typed
    is_set: bool
    is_net: bool
    """True if the first flush was net, as in `read_whole`."""
    is_over: Callable[[], bool]
    """Returns True once the output is closed."""


class TableReader:
    """The position of one reader in a table: a
    `reactive.engine.remote.remote_operator.Following`."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._hold = output.tables.hold(output.spec)
        self._first = self._hold.first
        self._taken: tuple[Segment, ...] = ()

    @property
    def is_over(self) -> bool:
        """True if the reader has to start again."""
        return self._hold.is_over or self._output.is_over()

    @property
    def waiting(self) -> int:
        """The maximum number of changed rows that it has not read."""
        return sum(segment.rows for segment in self._hold.later)

    def rows(self) -> FrameRows:
        """Return all rows as of the start of the reader."""
        return self._frame_rows(self._first, partial(self._read_whole, self._first), is_net=True)

    def changes(self) -> FrameRows | None:
        """Take the rows that flushes have added since, for `forget` to release; return them.

        Return None if there are none.
        """
        self._taken = self._hold.later
        if not self._taken:
            return None
        return self._frame_rows(self._taken, partial(self._read_added, self._taken), is_net=False)

    def forget(self) -> None:
        """Release the files of `rows` and of the last `changes`, which have been read."""
        self._first = ()
        self._hold.forget(self._taken)

    def close(self) -> None:
        """Release all files."""
        self._hold.close()

    def _frame_rows(
        self, segments: tuple[Segment, ...], made: Callable[[Typed], DataFrame], *, is_net: bool
    ) -> FrameRows:
        """Return the rows of segments, which `made` reads as a DataFrame of the wanted type when
        asked."""
        output = self._output
        rows = sum(segment.rows for segment in segments)
        return FrameRows(output.session, output.kept, rows, (made,), is_net)

    def _read_whole(self, segments: tuple[Segment, ...], of: Typed) -> DataFrame:
        """Return the rows of segments as columns of the type `of`, with copies added up; an empty
        frame if there are none."""
        o = self._output
        found = read_whole(o.tables, o.spec, is_set=o.is_set, is_net=o.is_net, held=segments)
        if found is None:
            found = o.session.spark.createDataFrame([], o.spec.schema)
        return to_file_columns(found, o.kept, of)

    def _read_added(self, segments: tuple[Segment, ...], of: Typed) -> DataFrame:
        """Return the changes that the segments store, as columns of the type `of`; equal rows are
        not added up."""
        o = self._output
        parts = o.tables.split(o.spec, held=segments).values()
        names = o.spec.schema.names
        return to_file_columns(union_frames([part.select(*names) for part in parts]), o.kept, of)
