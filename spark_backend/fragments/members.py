"""Fragments that share state tables, the inputs of a flush, and its retries.

- `Member` is a fragment that shares tables, with its progress; `Input` an input by position.
- `Inflow` turns the inputs of a flush into frames: entries of the process, staged files, and rows
  of tables on Spark, which do not pass through the process.
- `run_with_retries` repeats a failed flush, which has changed nothing. If a callable of the query
  raised, the changes stay in `PendingChanges` and are retried together with the next ones, which
  may delete the row that made it raise.

State:  the progress of a fragment, and the changes of failed flushes.
Cost:   O(entries); O(1) for rows on Spark, whose number is read from the ends of files.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from optimizer import plan
from optimizer.plans.fingerprint import fingerprint
from optimizer.plans.properties import reads_stream
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.reference.bags import Bag
from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import Batch, Entry, ExternalInput, RemotePart
from reactive.errors import OffloadError, TakenIn
from spark_backend.cluster.paths import spark_message
from spark_backend.cluster.session import Session
from spark_backend.codec.arrow import to_arrow
from spark_backend.codec.schema import Typed
from spark_backend.codec.values import Value
from spark_backend.direct.flush import TooMany, net_bag, run_linear, without_zeros
from spark_backend.state.ends import StagedFiles
from spark_backend.state.one_job import TableSpec
from spark_backend.state.tables import StateTables, union_frames
from spark_backend.steps.keys import row_bindings
from spark_backend.steps.step import Step, hash_column, schema_of
from spark_backend.tables.chain import Chain, Weighted
from spark_backend.tables.frames import net_weights

_ONE_FOR_ONE = (plan.Where, plan.Select, plan.Extend)
"""Nodes that output at most one row per input row."""


class Inflow:
    """Make frames of the inputs of a flush, by position."""

    def __init__(self, session: Session, inputs: Mapping[int, Input], tables: StateTables) -> None:
        self._session, self._inputs, self._tables = session, inputs, tables

    def version(self, place: int, upto: int) -> int:
        """Return the version of a table on Spark up to that its input has been read."""
        found: int = self._tables.manifest.tokens.get(version_token(place), upto)
        return found

    def not_taken_in(self, fed: Iterable[ExternalInput]) -> list[ExternalInput]:
        """Return the external inputs with unread versions, from the first unread version on."""
        later = [replace(f, after=self.version(f.place, f.after)) for f in fed]
        return [source for source in later if source.upto > source.after]

    def local(self, of: FlushInput, *, is_late: bool) -> frozenset[int]:
        """Return the positions of the inputs whose rows are in the query itself instead of in
        files."""
        if of.staged:
            return frozenset()
        own, others = {entry[0] for entry in of.entries}, of.fed_places
        some = {source.place for source in of.fed if not is_late and _is_local(source)}
        return frozenset((own - others) | (some - own))

    def frames(self, of: FlushInput, *, is_late: bool) -> dict[int, DataFrame]:
        """Return the frame of the changed rows of each input, by position."""
        by_place: dict[int, list[Entry]] = {}
        for entry in of.entries:
            by_place.setdefault(entry[0], []).append(entry)
        found = dict(of.staged)
        for place, entries in by_place.items():
            frame = self._frame(place, entries)
            found[place] = union_frames([found[place], frame]) if place in found else frame
        for source in of.fed:
            found[source.place] = self.fed(source, is_late=is_late)
        return found

    def bags(self, of: FlushInput) -> dict[int, Bag]:
        """Return the rows of a flush as bags in this process.

        Raises
        ------
        TooMany: rows are staged, or are all rows of a table on Spark.
        """
        if of.staged or any(source.after < 0 for source in of.fed):
            raise TooMany("rows that are not here")
        found: dict[int, Bag] = {}
        for place, _, row, weight in of.entries:
            found.setdefault(place, Counter())[canonical(row)] += weight
        for source in of.fed:
            rows: Any = source.rows
            given = rows.frames.few(source.after, source.upto)
            found[source.place] = run_linear(source.chain, net_bag(given))
        return {place: without_zeros(bag) for place, bag in found.items()}

    def staged(self, member: Member, part: RemotePart, live: set[int]) -> dict[int, DataFrame]:
        """Return the staged rows of inputs that no other member provides, by position."""
        schemas = [schema_of(self._inputs[place].kept) for place in member.places]
        found = member.staged.frames(self._session.spark, part.number, schemas)
        placed = {member.places[place]: frame for place, frame in found.items()}
        return {place: frame for place, frame in placed.items() if place not in live}

    def _frame(self, place: int, entries: Sequence[Entry]) -> DataFrame:
        """Return changed rows of the input at `place`, with weights, as a DataFrame."""
        kept = self._inputs[place].kept
        schema: Any = schema_of(kept)
        made: DataFrame = self._session.spark.createDataFrame(rows_to_table(kept, entries), schema)
        return made

    def fed(self, source: ExternalInput, *, is_late: bool) -> DataFrame:
        """Return the new rows of an external input, after its chain of nodes, with weights."""
        given = new_rows(source, is_late=is_late)
        return Chain(self._session.paths, is_typed=True).run(source.chain, given).frame


def rows_to_table(kept: Typed, entries: Sequence[Entry]) -> pa.Table:
    """Return rows with their weights as a table.

    Raises
    ------
    OffloadError: columns cannot store a row.
    """
    array = to_arrow(kept, [entry[2] for entry in entries])
    return pa.table({"row": array, "weight": pa.array([e[3] for e in entries], pa.int64())})


def version_token(place: int) -> str:
    """Return the name of the token with the version of the external input at `place`."""
    return f"input{place}"


def _is_local(source: ExternalInput) -> bool:
    rows: Any = source.rows
    is_here: bool = rows.frames.is_local(source.after, source.upto)
    return is_here and all(isinstance(n, _ONE_FOR_ONE) for n in source.chain)


T = TypeVar("T")
log = logging.getLogger("reactive")
TRIES = 3
"""The number of retries of a flush."""


def run_with_retries(
    attempt: Callable[[], None],
    session: Session,
    goes_on: Callable[[Exception], bool],
    tables: StateTables,
) -> None:
    """Run an attempt until it succeeds.

    Parameters
    ----------
    goes_on: handles an error; returns True if a retry may succeed.
    tables: the tables that the attempt writes.

    Raises
    ------
    TakenIn: a callable of the query raised.
    OffloadError: every attempt failed, or two did while the session was alive; or state has been
        removed.
    """
    try:
        _retry(attempt, session, goes_on)
    except TakenIn:
        raise
    except OffloadError:
        tables.check()  # its error text is more specific
        raise


def try_with_spark(session: Session, read: Callable[[], T]) -> T | None:
    """Run a read with Spark; return None if Spark is gone or fails."""
    try:
        session.restart()
        return read()
    except Exception as error:
        log.warning("offloading: read without Spark: %s", spark_message(error))
        return None


def _retry(
    attempt: Callable[[], None], session: Session, goes_on: Callable[[Exception], bool]
) -> None:
    """Run `attempt` until it succeeds, up to `TRIES` times more.

    Raises `OffloadError` immediately if the attempt does; else after the last try, or after a
    second failure that `goes_on` gives up while the session is alive.
    """
    for number in range(TRIES + 1):
        try:
            return attempt()
        except OffloadError:
            raise
        except Exception as error:
            failed = error
            if not goes_on(error) and number and session.is_alive():
                break
    raise OffloadError(
        f"Spark failed at a flush: {spark_message(failed)}\n"
        "  the changes are kept and will be tried again at the next flush"
    ) from failed


class PendingChanges:
    """The changes to apply, of failed flushes and of the next one."""

    def __init__(self) -> None:
        self._by_number: dict[int, Batch] = {}

    @property
    def is_late(self) -> bool:
        """True if some changes are of failed flushes."""
        return len(self._by_number) > 1

    def added(self, number: int, entries: Sequence[Entry], fed: Sequence[ExternalInput]) -> Batch:
        """Add the changes of the flush `number`, in place of earlier ones with that number, and
        return all changes.

        Deleted entries cancel.
        """
        self._by_number[number] = (entries, fed)
        if not self.is_late:
            return entries, fed
        weights: Counter[tuple[int, int, Row]] = Counter()
        places: dict[int, ExternalInput] = {}
        for given, sources in self._by_number.values():
            for *entry, weight in given:
                weights[tuple(entry)] += weight
            for source in sources:
                first = places.get(source.place, source)
                places[source.place] = replace(first, upto=source.upto)
        return [(*entry, n) for entry, n in weights.items() if n], list(places.values())

    def clear(self) -> None:
        """Forget the changes, which have been applied."""
        self._by_number = {}


@dataclass(eq=False)
class Member:
    """A fragment that shares tables, with its progress."""

    fragment: Fragment
    name: str
    """The name of its plan, in any process."""
    node: plan.Node
    """Its top node, over inputs by their position among the shared ones."""
    places: tuple[int, ...]
    """The shared position of each of its inputs."""
    staged: StagedFiles
    owed: PendingChanges = field(default_factory=PendingChanges)
    """The changes of failed first flushes."""
    resumed: int | None = None
    """The last flush of an earlier process, if this member continues it."""
    brought: set[int] = field(default_factory=set)
    """The positions whose rows other members provided when it began."""
    is_loaded: bool = False
    applied: int = -1
    """The last of its numbers that has been applied."""
    told: int = -1
    """The flush that applied it."""
    raised: tuple[int, TakenIn] | None = None
    """The number at that a callable has raised, and the error."""
    top: Step = field(init=False)
    lines: list[str] = field(init=False)
    """The place of each step, in words."""
    output: TableSpec = field(init=False)
    tables: dict[str, TableSpec] = field(init=False)
    """The tables that it reads or writes."""
    rows: dict[int, TableSpec] = field(init=False)
    """The tables with the rows of the inputs, by position."""

    def place_entries(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return entries of its inputs with the shared positions."""
        return [(self.places[place], at, row, weight) for place, at, row, weight in entries]

    def placed_inputs(self, fed: Sequence[ExternalInput]) -> list[ExternalInput]:
        """Return external inputs with the shared positions."""
        return [replace(source, place=self.places[source.place]) for source in fed]


@dataclass(frozen=True)
class FlushInput:
    """The inputs of a flush by position: entries, external inputs, and staged frames."""

    entries: Sequence[Entry]
    fed: Sequence[ExternalInput]
    staged: Mapping[int, DataFrame] = field(default_factory=dict)
    staged_rows: Mapping[int, int] = field(default_factory=dict)
    """The number of staged rows of each input."""

    @property
    def is_nothing(self) -> bool:
        """True if the flush cannot change any row."""
        return not (self.entries or self.fed or self.staged)

    @property
    def fed_places(self) -> set[int]:
        """The inputs that are external."""
        return {source.place for source in self.fed}

    @property
    def count(self) -> int:
        """The maximum number of changed rows."""
        return self.counts.total()

    @property
    def counts(self) -> Counter[int]:
        """The maximum number of changed rows of each input."""
        found = Counter(entry[0] for entry in self.entries)
        found.update(self.staged_rows)
        for source in self.fed:
            found[source.place] += count_changes((), [source])
        return found


class Loading:
    """A member that is being loaded, and the tables on Spark behind its inputs."""

    def __init__(self, member: Member, sources: Sequence[ExternalInput]) -> None:
        self.member = member
        self.sources = {source.place: source for source in sources}


def plan_name(fragment: Fragment, inputs: Sequence[Input]) -> str:
    """Return the name of a plan over inputs, which is the same in any process."""
    return fingerprint(fragment.node, fragment.inputs, tuple(given.kept for given in inputs))


def rows_table(
    name: str, kept: Typed, *, by_group: bool = False, of_groups: bool = False
) -> TableSpec:
    """Return a table of rows with weights, in buckets by their group or by the whole row."""

    def bucket() -> Column:
        return hash_column(lookup_value(kept, by_group=by_group))

    return TableSpec(name, schema_of(kept), ("row",), ("weight",), bucket, of_groups=of_groups)


def lookup_value(kept: Typed, *, by_group: bool) -> Value:
    """Return the part of an output row that readers look up: its group, or the whole row."""
    row = Value(F.col("row"), kept)
    return row_bindings(row, 2)[0] if by_group else row


def place_input(read: plan.Recursive, places: Sequence[int]) -> plan.Node:
    """Return an input of a fragment with its shared position."""
    place = places[read.index]
    return replace(read, index=place, name=f"input {place}")


def new_rows(source: ExternalInput, *, is_late: bool) -> Weighted:
    """Return the new rows of an external input.

    Copies of a row are added up if some of the rows are of a failed flush.
    """
    rows: Any = source.rows
    given: Weighted = rows.frames.since(source.after, source.upto)
    return replace(given, frame=net_weights(given.frame)) if is_late else given


def count_changes(entries: Sequence[Entry], fed: Sequence[ExternalInput]) -> int:
    """Return the maximum number of changed rows."""
    rows = len(entries)
    for source in fed:
        given: Any = source.rows
        rows += given.frames.changed(source.after, source.upto)
    return rows


# The inputs of fragments.


@dataclass(frozen=True, slots=True)
class Input:
    """An input of one or more fragments."""

    node: plan.Node
    kept: Typed
    """The type of its rows."""

    @property
    def has_events(self) -> bool:
        """True if it reads a stream, whose events flow through and are not kept."""
        return reads_stream(self.node)
