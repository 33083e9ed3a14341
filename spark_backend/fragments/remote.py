"""A fragment of a plan on Spark, whatever its depth: state tables, and one job per flush.

    entries --columns--> deltas of the inputs --steps--> what is added to each table --write--> done
                                                    `--> the delta of the output, as a table too

The output is a table like the others: reading it evaluates nothing. A flush that meets values that
columns cannot add up is done again with care, and so are all later ones. Fragments over the same
tables share what they keep, and their flushes (`shared.py`).

State:  on disk; in the driver, what has not been sent.
Cost:   per flush one job; O(rows that changed) here.
Source: [mrql] state that is partitioned as its changes are; [dbsp] the chain rule.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame

from optimizer import plan
from optimizer.plans.properties import is_set
from reactive.engine.collections.zset import Pair, Pairs, Row, canonical, consolidate
from reactive.engine.remote.adoption import Adopt
from reactive.engine.remote.external import ExternalInput
from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import Entry, Part
from spark_backend.aggregates.reduced_rows import ReducedRows
from spark_backend.aggregates.totals import Totals
from spark_backend.cluster.session import Session
from spark_backend.codec.arrow import pairs_of, to_arrow
from spark_backend.codec.fitting import fitting
from spark_backend.codec.hashing import flattened_values, leaves
from spark_backend.codec.schema import Record, Typed
from spark_backend.direct.flush import MOST_FETCHED
from spark_backend.direct.lookup import Lookup, fields_of
from spark_backend.fragments.compile import Maker
from spark_backend.fragments.inflow import table_of
from spark_backend.fragments.inputs import inputs_of
from spark_backend.fragments.members import name_of
from spark_backend.fragments.output import Output, TableReader
from spark_backend.fragments.shared import SharedState
from spark_backend.fragments.split import split_of
from spark_backend.fragments.tries import if_spark_can
from spark_backend.sinks.rows import has_columns
from spark_backend.state.whole import Copies, copies, whole
from spark_backend.steps.sets import ByWeight
from spark_backend.steps.step import schema_of
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

    def take_in(self, parts: Sequence[tuple[Any, Part]]) -> None:
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
            self.take_in([(self, Part(number, None, entries, fed))])
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
