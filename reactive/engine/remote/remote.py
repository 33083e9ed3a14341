"""Fragments that are elsewhere: what keeps their rows, what feeds them, and what is left after a
restart.

The first rows of an order whose other rows are elsewhere.

    order_by(k).limit(n, offset)      needs the first offset + n rows; some more are held here,
                                      up to a bound. What is beyond it is only kept.

A row within the bound is inserted or deleted here. When so many were deleted that there are too
few, the rows that are kept are looked through once for the next ones: after at least as many
removals from the top as were held in reserve.

State:  some multiple of offset + n rows.
Cost:   O(|dL| + rows held) per flush; now and then O(all rows).
Source: K. Yi et al., *Efficient Maintenance of Materialized Top-k Views*, 2003.

What keeps the rows of a fragment elsewhere, in Spark or wherever, and takes their changes in.

entries --apply--> delta of the output

Batches of rows that are elsewhere, and what is known of a table that they feed.

    batches --prepare, without the lock--> written aside --publish, inside it--> a version

A batch has the query that it is of and a number: those that have come are noted with the rows.

After a restart: the rows that an earlier process left of a part, and those that tables hold now.

    difference  =  rows of the process  -  rows of the state

    none         the part goes on from the state
    "process"    the difference is sent to the state
    "state"      its opposite is committed to the tables, which then hold what the state does
    neither      an error: one of the two would be lost without a word

State:  none.
Cost:   O(rows of the part's inputs), once after a restart.
"""

from __future__ import annotations

import heapq
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from optimizer import plan
from optimizer.plans.properties import tables
from optimizer.record import record
from reactive.engine.collections.order import sort_key, tie_key
from reactive.engine.collections.zset import Pair, Pairs, Row, consolidate
from reactive.engine.operators.plain import order_key
from reactive.engine.remote.fragments import Fragment
from reactive.errors import OffloadError

Entry = tuple[int, int, Row, int]
"""The input, the bucket, the packed row and its weight."""


RESERVE = 64
"""Rows that are held at least beyond those that are needed."""


class RemoteWindow:
    """A `Remote` whose output are the first rows of an order and some more; `rows` keeps them all.

    Parameters
    ----------
    order: the node that is to be shown; another operator does so with what this emits.
    rows: a remote whose output is its input.
    """

    def __init__(self, order: plan.OrderBy, rows: Remote) -> None:
        assert order.limit is not None
        self._rows = rows
        self._key = order_key(order)
        self._descending = order.descending
        self._needed = order.limit + order.offset
        self._held: Counter[Row] = Counter()
        self._bound: _Rank | None = None
        """The last row that is held, if rows beyond it are kept."""
        self._is_known = False
        self.begun_anew = rows.begun_anew
        self.adopt = rows.adopt
        self.bucket = rows.bucket
        self.entries = rows.entries
        self.footprint = rows.footprint

    @property
    def resumed(self) -> int | None:
        return self._rows.resumed

    def pack(self, place: int, key: Any, row: Row) -> tuple[int, Any]:
        bucket, packed = self._rows.pack(place, key, row)
        return bucket, _Packed(packed, row)

    def stage(self, number: int, entries: Sequence[Entry]) -> None:
        self._is_known = False  # what is held is looked up once they are there
        self._rows.stage(number, _sent(entries))

    def apply(
        self,
        number: int,
        entries: Sequence[Entry],
        fed: Sequence[ExternalInput] = (),
        *,
        quiet: bool = False,
    ) -> Pairs:
        self._rows.apply(number, _sent(entries), fed, quiet=True)
        seen = self._is_known and not fed
        held, bound = self._after(entries) if seen else self._looked_up()
        changes = consolidate([*held.items(), *((row, -n) for row, n in self._held.items())])
        self._held, self._bound, self._is_known = held, bound, True
        return () if quiet else changes

    def _after(self, entries: Sequence[Entry]) -> tuple[Counter[Row], _Rank | None]:
        """What is held after these insertions and deletions."""
        held, bound = self._held.copy(), self._bound
        for _, _, packed, weight in entries:
            if bound is None or not bound < self._rank(packed.row):
                held[packed.row] += weight
        held = Counter({row: n for row, n in held.items() if n})
        if held.total() < self._needed and bound is not None:
            return self._looked_up()
        return self._first(held.items, bound) if len(held) > 2 * self._wanted else (held, bound)

    def _looked_up(self) -> tuple[Counter[Row], _Rank | None]:
        return self._first(self._rows.contents, None)

    def _first(
        self, pairs: Callable[[], Iterable[Pair]], bound: _Rank | None
    ) -> tuple[Counter[Row], _Rank | None]:
        """The first of some rows, and the last rank that is held; `bound` if these are all."""
        first = heapq.nsmallest(self._wanted + 1, pairs(), key=lambda pair: self._rank(pair[0]))
        if len(first) <= self._wanted:
            return Counter(dict(first)), bound
        last, beyond = (self._rank(row) for row, _ in first[-2:])
        if last < beyond:
            return Counter(dict(first[:-1])), last
        return Counter({row: n for row, n in pairs() if not last < self._rank(row)}), last

    @property
    def _wanted(self) -> int:
        return 2 * self._needed + RESERVE

    def _rank(self, row: Row) -> _Rank:
        return _Rank(sort_key(self._key(row)), row, self._descending)

    def contents(self) -> Iterable[Pair]:
        if not self._is_known:
            self._held, self._bound = self._looked_up()
            self._is_known = True
        return list(self._held.items())

    def at(self, bucket: int) -> Iterable[Pair]:
        return self.contents()

    def describe(self) -> str:
        return f"{self._rows.describe()}; the first {self._held.total()} rows in the process"

    def stop(self) -> None:
        self._rows.stop()

    def close(self) -> None:
        self._rows.close()


class _Packed:
    """A row as it is sent, and as it is."""

    __slots__ = ("packed", "row")

    def __init__(self, packed: Any, row: Row) -> None:
        self.packed = packed
        self.row = row

    def __eq__(self, other: object) -> bool:
        return bool(self.packed == _unpacked(other))

    def __hash__(self) -> int:
        return hash(self.packed)


def _sent(entries: Sequence[Entry]) -> list[Entry]:
    return [(place, bucket, _unpacked(row), weight) for place, bucket, row, weight in entries]


def _unpacked(row: Any) -> Any:
    return row.packed if isinstance(row, _Packed) else row


class _Rank:
    """The place of a row in the order; rows that no order tells apart share theirs."""

    __slots__ = ("_descending", "_key", "_row")

    def __init__(self, key: Any, row: Row, descending: bool) -> None:
        self._key = key
        self._row = row
        self._descending = descending

    def __lt__(self, other: _Rank) -> bool:
        first, second = (other, self) if self._descending else (self, other)
        if first._key < second._key or second._key < first._key:
            return bool(first._key < second._key)
        return bool(tie_key(self._row) < tie_key(other._row))


Changes: TypeAlias = Literal["append", "cdf", "debezium", "weight", "snapshot"]
"""How the rows of a stream say what changes."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a stream is read; the names are those of `Database.spark_stream`."""

    changes: Changes = "append"
    deletes: Any = None
    change_column: str | None = None
    order: str | None = None
    trigger: str | float = 1.0
    format: str = "parquet"
    drops: bool = False


@dataclass(frozen=True, slots=True)
class FrameBatch:
    """Rows that came together.

    `made` is when, as `time.time()` tells. `token` is the number of the batch in its query.
    """

    frame: Any
    query: str
    token: int
    made: float


class StagedBatch(Protocol):
    """A batch that is written aside."""

    @property
    def rows(self) -> int:
        """How many rows change, with those that are left out."""
        ...

    @property
    def is_change(self) -> bool:
        """Whether it is to be published: not if it was before, or is a snapshot without a
        difference."""
        ...

    def publish(self) -> None:
        """Let it count; quick. Inside the lock of the database."""
        ...


class ExternalStream(Protocol):
    """What feeds a table of rows that are elsewhere, and these rows."""

    @property
    def rows(self) -> ExternalRows:
        """The rows of the table."""
        ...

    @property
    def unfit(self) -> ExternalRows | None:
        """The rows that are left out; None while one of them stops the stream."""
        ...

    @property
    def token(self) -> int | None:
        """The number of the last batch that counts."""
        ...

    def batches(self, since: Any, stop: threading.Event) -> Iterable[FrameBatch]:
        """As of a `Source`."""
        ...

    def waiting(self) -> int | None:
        """How many changes are still to come, if that is known."""
        ...

    def prepared(self, batch: FrameBatch) -> AbstractContextManager[StagedBatch]:
        """Write a batch aside.

        Raises
        ------
        TableError: a row does not fit, and none is to be left out; nothing has changed.
        """
        ...


Adopt: TypeAlias = Literal["state", "process"]
"""Whose rows count where the process and the state differ."""


def check_adopt(adopt: Adopt | None) -> None:
    """Raise ValueError for what is none."""
    if adopt not in (None, "state", "process"):
        raise ValueError(f'adopt is "state" or "process", not {adopt!r}')


def difference(wanted: Iterable[Entry], kept: Iterable[Entry]) -> list[Entry]:
    """What leads from the entries that an earlier process left to those that are wanted.

    These are taken last: once they are, nothing raises.
    """
    weights: Counter[tuple[int, int, Row]] = Counter()
    for place, bucket, row, weight in kept:
        weights[place, bucket, row] -= weight
    for place, bucket, row, weight in wanted:
        weights[place, bucket, row] += weight
    return [(*entry, weight) for entry, weight in weights.items() if weight]


def to_restore(fragment: Fragment, found: Iterable[Entry]) -> dict[plan.Table, list[Pair]]:
    """What is to be inserted into and deleted from tables so that a difference is none.

    Raises
    ------
    OffloadError: the state does not hold whole rows.
    """
    if not fragment.is_whole:
        raise OffloadError(
            "the state of this part holds what it needs of rows, not the rows of a table\n"
            '  fill the table, and then say adopt="process"'
        )
    of: dict[plan.Table, dict[Row, int]] = {}
    for place, _, row, weight in found:
        (table,) = tables(fragment.inputs[place])
        of.setdefault(table, {})[row] = -weight  # the same of each input that the row is in
    return {table: list(rows.items()) for table, rows in of.items()}


def refusal(fragment: Fragment, found: Sequence[Entry]) -> OffloadError:
    """The error of a difference that nobody has decided about."""
    places = {place for place, *_ in found}
    of_rows = places.issubset(range(len(fragment.inputs)))
    inputs = [fragment.inputs[place] for place in places] if of_rows else fragment.inputs
    names = {table.name: None for node in inputs for table in tables(node)}
    apart = _rows_apart(fragment, found) if of_rows else f"sums of {len(found):,} groups differ"
    return OffloadError(
        f"{_listed(list(names))} not hold what an earlier process left in the checkpoint: {apart}\n"
        '  view.offload(adopt="state") puts the rows of the state into the process\n'
        '  view.offload(adopt="process") sends the difference to the state\n'
        "  SparkOffload(adopt=...) says so for all views"
    )


def _rows_apart(fragment: Fragment, found: Sequence[Entry]) -> str:
    here = sum(weight for *_, weight in found if weight > 0)
    there = -sum(weight for *_, weight in found if weight < 0)
    sample = f", such as {found[0][2]!r}" if fragment.is_whole else ""
    return f"{here:,} rows are in the process only, {there:,} in the state only{sample}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names))
    return f"table {shown} does" if len(names) == 1 else f"tables {shown} do"


# Rows that are elsewhere already, and what of them goes to a fragment without coming by.

BEFORE = -1
"""The version before the first rows."""
Once: TypeAlias = tuple[str, int]
"""A query and the number of one of its batches, which count up: it is taken in once."""


class ExternalRows(Protocol):
    """Rows that are kept elsewhere, and their changes, by version."""

    @property
    def version(self) -> int:
        """The last one; 0 is what there was at first."""
        ...

    def check(self, row: Row) -> None:
        """Raise `OffloadError` for a row that cannot be kept as what it is."""
        ...

    def append(self, pairs: Sequence[Pair]) -> int:
        """Insert and delete rows: a new version."""
        ...

    def append_frame(self, frame: Any, weight: int, once: Once | None = None) -> int:
        """The same of rows that are there already. With a batch that came before, no new one."""
        ...

    def upsert(self, rows: Any, once: Once | None = None) -> int:
        """Rows, or a frame of them, in the place of the rows that have their keys."""
        ...

    def replace(self, frame: Any, once: Once | None = None) -> int:
        """The rows of a frame in the place of all rows."""
        ...

    def pairs(self) -> Iterator[Pair]:
        """All rows, each once."""
        ...

    def size(self) -> int:
        """How many there are."""
        ...

    def frame(self) -> Any:
        """All rows, without fetching them."""
        ...

    def stop(self) -> None:
        """Nobody reads it any more."""
        ...

    def steps(self, chain: Sequence[plan.Node]) -> list[str]:
        """How the nodes of a chain run there, a line each."""
        ...


@record
class ExternalInput:
    """Rows that an input of a fragment is fed from where they are, instead of from the process.

    Those of versions after `after`, up to `upto`, through `chain`; the node that sees them first
    comes first.
    """

    place: int
    rows: ExternalRows
    chain: tuple[plan.Node, ...]
    after: int
    upto: int


class ExternalSource(Protocol):
    """A table whose rows are elsewhere."""

    rows: ExternalRows

    def save(self) -> int:
        """Give what has been committed a version; the number of the last one."""
        ...


Batch = tuple[Sequence[Entry], Sequence[ExternalInput]]
"""What one `apply` is of."""
Sources = Mapping[int, tuple[ExternalSource, tuple[plan.Node, ...]]]
"""The inputs that are fed from elsewhere, by their place: from which table, through which chain."""
NO_SOURCES: Sources = MappingProxyType({})
Output = Pairs | int
"""How the output changes, or the number of the `apply` that can still tell."""


class Remote(Protocol):
    """Where the rows of a fragment are kept.

    Its methods are called by one thread at a time, and never while another one of it runs.
    """

    begun_anew: str
    """Why it does not go on with what an earlier process kept of its views; empty if it does, or if
    nothing was kept."""
    adopt: Adopt | None
    """Whose rows count where tables hold others than an earlier process left; None: an error."""

    def bucket(self, key: Any) -> int:
        """Where rows of a key belong: the same for equal keys."""
        ...

    def pack(self, place: int, key: Any, row: Row) -> tuple[int, Any]:
        """The bucket of a key, and a row of an input as it is sent.

        Raises
        ------
        OffloadError: it cannot be kept there as what it is.
        """
        ...

    def stage(self, number: int, entries: Sequence[Entry]) -> None:
        """Keep entries of a number that is to be applied later, with what is given then.

        They are of one input. What has been staged of a number that is never applied counts for
        nothing.
        """
        ...

    def apply(
        self,
        number: int,
        entries: Sequence[Entry],
        fed: Sequence[ExternalInput] = (),
        *,
        quiet: bool = False,
    ) -> Pairs:
        """Take entries in, and say how the output changes, unless that is to be `quiet`.

        What was staged of the number is taken in too.

        Numbers count up from 0, or from one after `resumed`. When this raises, the same number
        comes again, with the same entries and the same that is fed: they must be taken in once.

        Raises
        ------
        TakenIn: a callable raised; the next number is to give what came of this one too.
        """
        ...

    def contents(self) -> Iterable[Pair]:
        """The output as of the last `apply`, each row once."""
        ...

    def at(self, bucket: int) -> Iterable[Pair]:
        """What of the output is made of the rows of a bucket."""
        ...

    @property
    def resumed(self) -> int | None:
        """The last number that an earlier process had applied, if this goes on from there."""
        ...

    def footprint(self) -> tuple[int, int]:
        """Rows and bytes kept."""
        ...

    def describe(self) -> str:
        """Where and how it is kept, and what runs where: a line for `explain`."""
        ...

    def entries(self) -> Iterable[Entry]:
        """What is kept, each row once."""
        ...

    def stop(self) -> None:
        """Nobody reads it any more. What a later process is to go on with is kept."""
        ...

    def close(self) -> None:
        """Give everything up."""
        ...


@runtime_checkable
class RemoteSums(Protocol):
    """A remote that may keep sums by group, which are compared with rows by their sums."""

    def netted(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return entries of rows and of sums as one entry per group whose sums are not 0."""
        ...


@dataclass(frozen=True, slots=True)
class RemotePart:
    """What one of several remotes is given, that take it in together.

    `barrier` is the commit up to which it is; None if nobody else is given the same.
    """

    number: int
    barrier: int | None
    entries: Sequence[Entry]
    fed: Sequence[ExternalInput] = ()


@runtime_checkable
class Sharing(Protocol):
    """A `Remote` that shares what it keeps with others, and takes in together with them."""

    shared: object
    """The same for all that do."""

    @property
    def left(self) -> int:
        """How many have left that shared with it: what failed may do now without them."""
        ...

    def is_brought(self, place: int) -> bool:
        """Whether others bring the rows of an input, so that they are not to be handed over."""
        ...

    def take_in(self, parts: Sequence[tuple[Any, RemotePart]]) -> None:
        """Have what some of them are given taken in, once; each can then be asked by `apply` what
        came of it."""
        ...
