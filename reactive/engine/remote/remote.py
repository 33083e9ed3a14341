"""Fragments elsewhere: the store of their rows, external inputs, and a resume after a restart.

`RemoteWindow` holds the first rows of an order whose other rows are elsewhere.

    order_by(k).limit(n, offset)      needs the first offset + n rows; some more are held here, up
                                      to a bound. Rows beyond the bound are only stored elsewhere.

A row within the bound is inserted or deleted here. When too few rows are left, all stored rows are
scanned once for the next ones: after at least as many deletions from the top as there were reserve
rows.

State:  some multiple of offset + n rows.
Cost:   O(|dL| + rows held) per flush; now and then O(all rows).
Source: K. Yi et al., *Efficient Maintenance of Materialized Top-k Views*, 2003.

`Remote` stores the rows of a fragment elsewhere, in Spark for example, and applies their changes.

entries --apply--> delta of the output

`ExternalStream` feeds batches of rows that are elsewhere to a table.

    batches --prepare, without the lock--> staged --publish, inside it--> a version

A batch has a number and the name of its query; the numbers of published batches are stored with the
rows.

After a restart, `entry_difference` compares the rows that an earlier process stored for a fragment
with the current rows of the tables.

    difference  =  rows of the process  -  rows of the state

    none         the fragment resumes from the state
    "process"    the difference is sent to the state
    "state"      the opposite is committed to the tables, which then hold the rows of the state
    neither      an error: otherwise one of the two would be lost silently

State:  none.
Cost:   O(rows of the fragment's inputs), once after a restart.
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
"""Minimum number of rows held beyond the needed ones."""


class RemoteWindow:
    """A `Remote` whose output is the first rows of an order and some more; `rows` stores all.

    Parameters
    ----------
    order: the node to compute; another operator does so from the output of this one.
    rows: a remote whose output is the node's input.
    """

    def __init__(self, order: plan.OrderBy, rows: Remote) -> None:
        assert isinstance(order.limit, int)
        self._rows = rows
        self._key = order_key(order)
        self._descending = order.descending
        self._needed = order.limit + order.offset
        self._held: Counter[Row] = Counter()
        self._bound: _Rank | None = None
        """The last row held, if rows beyond it are stored elsewhere."""
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
        return bucket, _PackedRow(packed, row)

    def stage(self, number: int, entries: Sequence[Entry]) -> None:
        self._is_known = False  # the held rows are read again after the entries have arrived
        self._rows.stage(number, _sent(entries))

    def apply(
        self,
        number: int,
        entries: Sequence[Entry],
        fed: Sequence[ExternalInput] = (),
        *,
        quiet: bool = False,
    ) -> Pairs:
        """Apply entries, and return how the window changes; nothing is returned if `quiet`."""
        self._rows.apply(number, _sent(entries), fed, quiet=True)
        seen = self._is_known and not fed
        held, bound = self._after(entries) if seen else self._looked_up()
        changes = consolidate([*held.items(), *((row, -n) for row, n in self._held.items())])
        self._held, self._bound, self._is_known = held, bound, True
        return () if quiet else changes

    def _after(self, entries: Sequence[Entry]) -> tuple[Counter[Row], _Rank | None]:
        """Return the held rows after insertions and deletions, and the last rank held.

        The rank is None if these are all rows.
        """
        held, bound = self._held.copy(), self._bound
        for _, _, packed, weight in entries:
            if bound is None or not bound < self._rank(packed.row):
                held[packed.row] += weight
        held = Counter({row: n for row, n in held.items() if n})
        if held.total() < self._needed and bound is not None:
            return self._looked_up()
        return self._first(held.items, bound) if len(held) > 2 * self._capacity else (held, bound)

    def _looked_up(self) -> tuple[Counter[Row], _Rank | None]:
        return self._first(self._rows.contents, None)

    def _first(
        self, pairs: Callable[[], Iterable[Pair]], bound: _Rank | None
    ) -> tuple[Counter[Row], _Rank | None]:
        """Return the first of some rows, and the last rank held; `bound` if these are all rows."""
        first = heapq.nsmallest(self._capacity + 1, pairs(), key=lambda pair: self._rank(pair[0]))
        if len(first) <= self._capacity:
            return Counter(dict(first)), bound
        last, beyond = (self._rank(row) for row, _ in first[-2:])
        if last < beyond:
            return Counter(dict(first[:-1])), last
        return Counter({row: n for row, n in pairs() if not last < self._rank(row)}), last

    @property
    def _capacity(self) -> int:
        return 2 * self._needed + RESERVE

    def _rank(self, row: Row) -> _Rank:
        return _Rank(sort_key(self._key(row)), row, self._descending)

    def contents(self) -> Iterable[Pair]:
        """Return the rows of the window, which are looked up first if unknown."""
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


class _PackedRow:
    """A row in packed form, with the row itself."""

    __slots__ = ("packed", "row")

    def __init__(self, packed: Any, row: Row) -> None:
        self.packed = packed
        self.row = row

    def __eq__(self, other: object) -> bool:
        return bool(self.packed == _packed_form(other))

    def __hash__(self) -> int:
        return hash(self.packed)


def _sent(entries: Sequence[Entry]) -> list[Entry]:
    return [(place, bucket, _packed_form(row), weight) for place, bucket, row, weight in entries]


def _packed_form(row: Any) -> Any:
    return row.packed if isinstance(row, _PackedRow) else row


class _Rank:
    """The position of a row in the order; rows that compare equal share it."""

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
"""The encoding of changes in the rows of a stream."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Options of a stream, named as in `Database.spark_stream`."""

    changes: Changes = "append"
    deletes: Any = None
    change_column: str | None = None
    order: str | None = None
    trigger: str | float = 1.0
    format: str = "parquet"
    drops: bool = False


@dataclass(frozen=True, slots=True)
class FrameBatch:
    """Rows that arrived together.

    `made` is the time of the batch, as in `time.time()`. `token` is the number of the batch in its
    query.
    """

    frame: Any
    query: str
    token: int
    made: float


class StagedBatch(Protocol):
    """A batch that is staged and not published yet."""

    @property
    def rows(self) -> int:
        """The number of changed rows, including rows left out."""
        ...

    @property
    def is_change(self) -> bool:
        """True if it must be published: it was not published before, and changes rows."""
        ...

    def publish(self) -> None:
        """Publish the batch; fast. Call it inside the lock of the database."""
        ...


class ExternalStream(Protocol):
    """A source of batches for a table whose rows are elsewhere."""

    @property
    def rows(self) -> ExternalRows:
        """The rows of the table."""
        ...

    @property
    def unfit(self) -> ExternalRows | None:
        """The rows left out; None if the stream stops at the first unfit row."""
        ...

    @property
    def token(self) -> int | None:
        """The number of the last published batch; None before the first one."""
        ...

    def batches(self, since: Any, stop: threading.Event) -> Iterable[FrameBatch]:
        """Yield batches, as a `Source` does."""
        ...

    def waiting(self) -> int | None:
        """Return the number of changes still to come, or None if unknown."""
        ...

    def write_aside(self, batch: FrameBatch) -> AbstractContextManager[StagedBatch]:
        """Stage a batch.

        Raises
        ------
        TableError: a row does not fit, and none may be left out; nothing has changed.
        """
        ...


Adopt: TypeAlias = Literal["state", "process"]
"""The side whose rows count if process and state differ."""


def check_adopt(adopt: Adopt | None) -> None:
    """Raise ValueError if `adopt` is invalid."""
    if adopt not in (None, "state", "process"):
        raise ValueError(f'adopt is "state" or "process", not {adopt!r}')


def entry_difference(wanted: Iterable[Entry], kept: Iterable[Entry]) -> list[Entry]:
    """Return the entries that change the state of an earlier process to the wanted entries.

    `wanted` is consumed last, and then nothing can raise.
    """
    weights: Counter[tuple[int, int, Row]] = Counter()
    for place, bucket, row, weight in kept:
        weights[place, bucket, row] -= weight
    for place, bucket, row, weight in wanted:
        weights[place, bucket, row] += weight
    return [(*entry, weight) for entry, weight in weights.items() if weight]


def to_restore(fragment: Fragment, found: Iterable[Entry]) -> dict[plan.Table, list[Pair]]:
    """Return the insertions and deletions in tables that make a difference empty.

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
        of.setdefault(table, {})[row] = -weight  # equal in each input with the row
    return {table: list(rows.items()) for table, rows in of.items()}


def adoption_error(fragment: Fragment, found: Sequence[Entry]) -> OffloadError:
    """Return the error for tables that differ from the stored state, if neither was chosen."""
    places = {place for place, *_ in found}
    of_rows = places.issubset(range(len(fragment.inputs)))
    inputs = [fragment.inputs[place] for place in places] if of_rows else fragment.inputs
    names = {table.name: None for node in inputs for table in tables(node)}
    apart = _rows_apart(fragment, found) if of_rows else f"sums of {len(found):,} groups differ"
    return OffloadError(
        f"{_tables_text(list(names))} not hold what an earlier process left in the checkpoint: "
        f"{apart}\n"
        '  view.offload(adopt="state") puts the rows of the state into the process\n'
        '  view.offload(adopt="process") sends the difference to the state\n'
        "  SparkOffload(adopt=...) says so for all views"
    )


def _rows_apart(fragment: Fragment, found: Sequence[Entry]) -> str:
    """Return the words for a difference: how many rows only the process or the state has."""
    here = sum(weight for *_, weight in found if weight > 0)
    there = -sum(weight for *_, weight in found if weight < 0)
    sample = f", such as {found[0][2]!r}" if fragment.is_whole else ""
    return f"{here:,} rows are in the process only, {there:,} in the state only{sample}"


def _tables_text(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names))
    return f"table {shown} does" if len(names) == 1 else f"tables {shown} do"


# Rows elsewhere that are fed to a fragment without passing through the process.

BEFORE = -1
"""The version before the first rows."""
Once: TypeAlias = tuple[str, int]
"""A query and the number of a batch of it, in ascending order; each is applied once."""


class ExternalRows(Protocol):
    """Rows that are stored elsewhere, and their changes, by version."""

    @property
    def version(self) -> int:
        """The last version; version 0 has the initial rows."""
        ...

    def check(self, row: Row) -> None:
        """Raise `OffloadError` if a row cannot be stored unchanged."""
        ...

    def append(self, pairs: Sequence[Pair]) -> int:
        """Insert and delete rows; return the new version."""
        ...

    def append_frame(self, frame: Any, weight: int, once: Once | None = None) -> int:
        """Insert or delete the rows of a frame; return the version, unchanged for a known batch."""
        ...

    def upsert(self, rows: Any, once: Once | None = None) -> int:
        """Replace the rows of equal keys by the given rows, or by the rows of a frame."""
        ...

    def replace(self, frame: Any, once: Once | None = None) -> int:
        """Replace all rows by the rows of a frame."""
        ...

    def pairs(self) -> Iterator[Pair]:
        """All rows, each once."""
        ...

    def size(self) -> int:
        """Return the number of rows."""
        ...

    def frame(self) -> Any:
        """Return all rows as a frame, without fetching them."""
        ...

    def stop(self) -> None:
        """Release resources when there are no readers."""
        ...

    def steps(self, chain: Sequence[plan.Node]) -> list[str]:
        """Describe how the nodes of a chain run there, a line each."""
        ...


@record
class ExternalInput:
    """External rows that are fed directly to an input of a fragment, not from the process.

    These are the rows of versions after `after`, up to `upto`, mapped by `chain`, whose first node
    reads the rows.
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
        """Save all commits as a version; return the number of the last version."""
        ...


Batch = tuple[Sequence[Entry], Sequence[ExternalInput]]
"""The arguments of one `apply`."""
Sources = Mapping[int, tuple[ExternalSource, tuple[plan.Node, ...]]]
"""The external inputs by place: the table, and the chain over it."""
NO_SOURCES: Sources = MappingProxyType({})
Output = Pairs | int
"""The delta of the output, or the number of the `apply` that can still return it."""


class Remote(Protocol):
    """Store of the rows of a fragment elsewhere.

    Its methods are called by one thread at a time, never concurrently.
    """

    begun_anew: str
    """The reason why it does not resume the state of an earlier process.

    Empty if it does, or if there is no state.
    """
    adopt: Adopt | None
    """The side whose rows count if tables differ from the stored state; None: an error."""

    def bucket(self, key: Any) -> int:
        """Return the bucket of a key; equal keys have the same bucket."""
        ...

    def pack(self, place: int, key: Any, row: Row) -> tuple[int, Any]:
        """Return the bucket of a key, and the packed form of an input row.

        Raises
        ------
        OffloadError: the row cannot be stored unchanged.
        """
        ...

    def stage(self, number: int, entries: Sequence[Entry]) -> None:
        """Stage entries of a number that `apply` will apply later, together with its arguments.

        They belong to one input. Staged entries of a number that is never applied have no effect.
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
        """Apply entries and return the delta of the output; `quiet` may return nothing.

        Staged entries of the same number are applied, too.

        Numbers count up from 0, or from `resumed` + 1. If this raises, the caller repeats the
        number with the same entries and external inputs: they must be applied once.

        Raises
        ------
        TakenIn: a callable raised; the next number must return the changes of this one, too.
        """
        ...

    def contents(self) -> Iterable[Pair]:
        """Return the output as of the last `apply`, each row once."""
        ...

    def at(self, bucket: int) -> Iterable[Pair]:
        """Return the part of the output that derives from the rows of a bucket."""
        ...

    @property
    def resumed(self) -> int | None:
        """The last number that an earlier process applied, if its state is resumed; else None."""
        ...

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows stored, and their bytes."""
        ...

    def describe(self) -> str:
        """Describe where and how the rows are stored, and which work runs where: one line."""
        ...

    def entries(self) -> Iterable[Entry]:
        """Return the stored entries, each row once."""
        ...

    def stop(self) -> None:
        """Release resources without readers; keep the state that a later process resumes."""
        ...

    def close(self) -> None:
        """Release everything, including the state."""
        ...


@runtime_checkable
class RemoteSums(Protocol):
    """A remote that may store sums by group, which are compared with rows by their sums."""

    def net_entries(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return entries of rows and of sums as one entry per group whose sums are not 0."""
        ...


@dataclass(frozen=True, slots=True)
class RemotePart:
    """The input of one of several remotes that apply together.

    `barrier` is the commit that the part reaches; None if no other remote gets the same part.
    """

    number: int
    barrier: int | None
    entries: Sequence[Entry]
    fed: Sequence[ExternalInput] = ()


@runtime_checkable
class Sharing(Protocol):
    """A `Remote` that shares its store with others, and applies together with them."""

    shared: object
    """Equal for all remotes with the same store."""

    @property
    def left(self) -> int:
        """The number of remotes that have left the store.

        Without them, a failed `apply` may succeed.
        """
        ...

    def is_brought(self, place: int) -> bool:
        """Return True if another remote brings the rows of an input, so that this one does not."""
        ...

    def take_in(self, parts: Sequence[tuple[Any, RemotePart]]) -> None:
        """Apply the parts of several remotes, once; `apply` then returns the changes of each."""
        ...
