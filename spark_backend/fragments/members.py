"""Fragments that share state tables, the inputs of a flush, and its retries.

A fragment among those that share state tables, and what it is given for a flush.

What it is given is by its own inputs; what is shared is by the places that these have among all.

State:  how far a fragment has come.

What a flush is given, as frames: entries from the process, staged files, rows that are fed.

State:  none.
Cost:   O(entries) here; rows that are fed do not come by.

A flush is tried again where it fails, as one that failed has changed nothing.

Where a callable of the query raised, it is done again together with what comes next: that may take
the row away that made it raise.

State:  what flushes were of that have failed.

What a flush is fed with by tables that are on Spark: rows that do not come by the process.

State:  none.
Cost:   O(1) here; how many rows there are is read from the ends of files.
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
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.reference.bags import Bag
from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import Batch, Entry, ExternalInput, RemotePart
from reactive.errors import OffloadError, TakenIn
from spark_backend.cluster.paths import said
from spark_backend.cluster.session import Session
from spark_backend.codec.arrow import to_arrow
from spark_backend.codec.schema import Typed
from spark_backend.codec.values import Value
from spark_backend.direct.flush import TooMany, present, summed, through
from spark_backend.state.ends import Staged
from spark_backend.state.one_job import TableSpec
from spark_backend.state.tables import StateTables, united
from spark_backend.steps.keys import bound
from spark_backend.steps.step import Step, hashed, schema_of
from spark_backend.tables.chain import Chain, Weighted
from spark_backend.tables.frames import net

_ONE_FOR_ONE = (plan.Where, plan.Select, plan.Extend)
"""Nodes that make no more rows than they are given."""


class Inflow:
    """Makes frames of what is given to inputs, by their place."""

    def __init__(self, session: Session, inputs: Mapping[int, Input], tables: StateTables) -> None:
        self._session, self._inputs, self._tables = session, inputs, tables

    def version(self, place: int, upto: int) -> int:
        """Up to which version an input is taken in that is fed."""
        found: int = self._tables.manifest.tokens.get(version_of(place), upto)
        return found

    def not_taken_in(self, fed: Iterable[ExternalInput]) -> list[ExternalInput]:
        """What is fed, from the version on up to which it was taken in."""
        later = [replace(f, after=self.version(f.place, f.after)) for f in fed]
        return [source for source in later if source.upto > source.after]

    def local(self, of: FlushInput, *, is_late: bool) -> frozenset[int]:
        """The inputs whose rows are in the query itself, not in files that it reads."""
        if of.staged:
            return frozenset()
        own, others = {entry[0] for entry in of.entries}, of.fed_places
        some = {source.place for source in of.fed if not is_late and _is_local(source)}
        return frozenset((own - others) | (some - own))

    def frames(self, of: FlushInput, *, is_late: bool) -> dict[int, DataFrame]:
        """What is given, by place."""
        by_place: dict[int, list[Entry]] = {}
        for entry in of.entries:
            by_place.setdefault(entry[0], []).append(entry)
        found = dict(of.staged)
        for place, entries in by_place.items():
            frame = self._frame(place, entries)
            found[place] = united([found[place], frame]) if place in found else frame
        for source in of.fed:
            found[source.place] = self.fed(source, is_late=is_late)
        return found

    def bags(self, of: FlushInput) -> dict[int, Bag]:
        """The same of few rows, here, which have not been staged.

        Raises
        ------
        TooMany: they have, or are those of a table that is on Spark from the start.
        """
        if of.staged or any(source.after < 0 for source in of.fed):
            raise TooMany("rows that are not here")
        found: dict[int, Bag] = {}
        for place, _, row, weight in of.entries:
            found.setdefault(place, Counter())[canonical(row)] += weight
        for source in of.fed:
            rows: Any = source.rows
            given = rows.frames.few(source.after, source.upto)
            found[source.place] = through(source.chain, summed(given))
        return {place: present(bag) for place, bag in found.items()}

    def staged(self, member: Member, part: RemotePart, live: set[int]) -> dict[int, DataFrame]:
        """What has been staged of inputs that nobody else brings, by place."""
        schemas = [schema_of(self._inputs[place].kept) for place in member.places]
        found = member.staged.frames(self._session.spark, part.number, schemas)
        placed = {member.places[place]: frame for place, frame in found.items()}
        return {place: frame for place, frame in placed.items() if place not in live}

    def _frame(self, place: int, entries: Sequence[Entry]) -> DataFrame:
        kept = self._inputs[place].kept
        schema: Any = schema_of(kept)
        made: DataFrame = self._session.spark.createDataFrame(table_of(kept, entries), schema)
        return made

    def fed(self, source: ExternalInput, *, is_late: bool) -> DataFrame:
        given = since(source, is_late=is_late)
        return Chain(self._session.paths, is_typed=True).run(source.chain, given).frame


def table_of(kept: Typed, entries: Sequence[Entry]) -> pa.Table:
    """Rows with their weights.

    Raises
    ------
    OffloadError: columns do not hold one of them.
    """
    array = to_arrow(kept, [entry[2] for entry in entries])
    return pa.table({"row": array, "weight": pa.array([e[3] for e in entries], pa.int64())})


def version_of(place: int) -> str:
    """The token of an input that is fed: the version of its table that is taken in."""
    return f"input{place}"


def _is_local(source: ExternalInput) -> bool:
    rows: Any = source.rows
    is_here: bool = rows.frames.is_local(source.after, source.upto)
    return is_here and all(isinstance(n, _ONE_FOR_ONE) for n in source.chain)


T = TypeVar("T")
log = logging.getLogger("reactive")
TRIES = 3
"""How often a flush is tried again."""


def tried(
    attempt: Callable[[], None],
    session: Session,
    goes_on: Callable[[Exception], bool],
    tables: StateTables,
) -> None:
    """Run an attempt, until it succeeds.

    Parameters
    ----------
    goes_on: what to do about an error; whether it is worth another try.
    tables: what it writes to.

    Raises
    ------
    TakenIn: a callable of the query raised.
    OffloadError: it failed each time, or in the same way in a session that is there; or state has
        been removed.
    """
    try:
        _tried(attempt, session, goes_on)
    except TakenIn:
        raise
    except OffloadError:
        tables.check()  # it says more
        raise


def if_spark_can(session: Session, read: Callable[[], T]) -> T | None:
    """What is read with Spark; None if it is gone, or cannot do it now."""
    try:
        session.restart()
        return read()
    except Exception as error:
        log.warning("offloading: read without Spark: %s", said(error))
        return None


def _tried(
    attempt: Callable[[], None], session: Session, goes_on: Callable[[Exception], bool]
) -> None:
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
        f"Spark failed at a flush: {said(failed)}\n"
        "  the changes are kept and will be tried again at the next flush"
    ) from failed


class Owed:
    """What is to be taken in: by numbers that failed, and by the next one."""

    def __init__(self) -> None:
        self._by_number: dict[int, Batch] = {}

    @property
    def is_late(self) -> bool:
        """Whether some of it is of numbers that failed."""
        return len(self._by_number) > 1

    def added(self, number: int, entries: Sequence[Entry], fed: Sequence[ExternalInput]) -> Batch:
        """All of it, with what comes with a number; that may come again. What has gone since is
        not there any more."""
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
        """It has been taken in."""
        self._by_number = {}


@dataclass(eq=False)
class Member:
    """A fragment among those that share, and how far it has come."""

    fragment: Fragment
    name: str
    """Of its plan, in any process."""
    node: plan.Node
    """Its node on top, over inputs by their place among those that are shared."""
    places: tuple[int, ...]
    """Of each of its inputs, the place there."""
    staged: Staged
    owed: Owed = field(default_factory=Owed)
    """What first flushes were of that have failed."""
    resumed: int | None = None
    """The last flush of an earlier process, if this goes on from there."""
    brought: set[int] = field(default_factory=set)
    """The places whose rows others brought when it began."""
    is_loaded: bool = False
    applied: int = -1
    """The last of its numbers that has been taken in."""
    told: int = -1
    """The flush in which that was."""
    raised: tuple[int, TakenIn] | None = None
    """The number at which a callable has raised."""
    top: Step = field(init=False)
    lines: list[str] = field(init=False)
    """What runs where."""
    output: TableSpec = field(init=False)
    tables: dict[str, TableSpec] = field(init=False)
    """All that it reads or adds to."""
    rows: dict[int, TableSpec] = field(init=False)
    """The tables that hold the rows of the inputs, by place."""

    def placed(self, entries: Sequence[Entry]) -> list[Entry]:
        """Entries of its inputs as those of the places that these have."""
        return [(self.places[place], at, row, weight) for place, at, row, weight in entries]

    def placed_inputs(self, fed: Sequence[ExternalInput]) -> list[ExternalInput]:
        """The same of what its inputs are fed with."""
        return [replace(source, place=self.places[source.place]) for source in fed]


@dataclass(frozen=True)
class FlushInput:
    """What a flush is of, by place: entries, what inputs are fed with, and what has been staged."""

    entries: Sequence[Entry]
    fed: Sequence[ExternalInput]
    staged: Mapping[int, DataFrame] = field(default_factory=dict)
    staged_rows: Mapping[int, int] = field(default_factory=dict)
    """How many rows have been staged of each input."""

    @property
    def is_nothing(self) -> bool:
        """Whether no row can change by it."""
        return not (self.entries or self.fed or self.staged)

    @property
    def fed_places(self) -> set[int]:
        """The inputs that are fed."""
        return {source.place for source in self.fed}

    @property
    def count(self) -> int:
        """How many rows change at most."""
        return self.counts.total()

    @property
    def counts(self) -> Counter[int]:
        """How many rows of each input change at most."""
        found = Counter(entry[0] for entry in self.entries)
        found.update(self.staged_rows)
        for source in self.fed:
            found[source.place] += changed((), [source])
        return found


class Loading:
    """A member that is loaded, and the tables by which inputs of it are fed."""

    def __init__(self, member: Member, sources: Sequence[ExternalInput]) -> None:
        self.member = member
        self.sources = {source.place: source for source in sources}


def name_of(fragment: Fragment, inputs: Sequence[Input]) -> str:
    """The name of a plan over inputs, in any process."""
    return fingerprint(fragment.node, fragment.inputs, tuple(given.kept for given in inputs))


def rows_table(
    name: str, kept: Typed, *, by_group: bool = False, of_groups: bool = False
) -> TableSpec:
    """A table of rows with weights, in buckets by what they are looked up by."""

    def bucket() -> Column:
        return hashed(looked_up(kept, by_group=by_group))

    return TableSpec(name, schema_of(kept), ("row",), ("weight",), bucket, of_groups=of_groups)


def looked_up(kept: Typed, *, by_group: bool) -> Value:
    """What of the rows of the output a reader gives: their group, or all of them."""
    row = Value(F.col("row"), kept)
    return bound(row, 2)[0] if by_group else row


def moved(read: plan.Recursive, places: Sequence[int]) -> plan.Node:
    """An input of a fragment, by its place among all."""
    place = places[read.index]
    return replace(read, index=place, name=f"input {place}")


def since(source: ExternalInput, *, is_late: bool) -> Weighted:
    """The rows that are fed; each once, where some were to come with a flush that failed."""
    rows: Any = source.rows
    given: Weighted = rows.frames.since(source.after, source.upto)
    return replace(given, frame=net(given.frame)) if is_late else given


def changed(entries: Sequence[Entry], fed: Sequence[ExternalInput]) -> int:
    """How many rows change at most."""
    rows = len(entries)
    for source in fed:
        given: Any = source.rows
        rows += given.frames.changed(source.after, source.upto)
    return rows


# An input of fragments: the node of the plan that gives its rows, and what these are.


@dataclass(frozen=True, slots=True)
class Input:
    """An input of one or more fragments."""

    node: plan.Node
    kept: Typed
    """What its rows are."""
