"""Sources and their batches: the protocol, two small sources, and the tables that they feed.

A batch is a set of changes that become one commit, with the position to continue from:

    Batch(upserts, deletes)     by key: current rows, and deleted keys
    Batch(upserts, removes)     without key: inserted rows, deleted rows
    Batch(origins={o: rows})    for each origin o, all of its rows: the difference is the change
    Batch(appends={o: rows})    for each origin o, rows added to its earlier ones

A batch describes the state after it, not the order of events: a key that is both deleted and
upserted is upserted. Hence a batch that is delivered twice changes nothing the second time, if its
rows have keys or origins.

A source yields batches; a generator function is a source too:

    for batch in source.batches(since, stop):  -->  one commit, and with it `batch.token`

Cost: O(rows of the batch) to assign its rows to tables.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from optimizer.errors import PlanError
from reactive.api.internal_interface import engine_of, keyed_of, statements_of
from reactive.api.table import Table
from reactive.engine.collections.zset import Row
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.errors import SourceError, TableError

T = TypeVar("T")


Token: TypeAlias = Any
"""The position from which a source can continue.

An offset, a position in a log, a time, or a dictionary of them. Tokens are only compared by `==`. A
token in a batch must not be changed.
"""
OnRefusal: TypeAlias = Literal["raise", "drop"]
"""The policy for a row that a table refuses, or that makes a view raise."""
Rows: TypeAlias = Collection[T] | Mapping[type, Collection[T]]
"""Rows; or rows grouped by their classes, the keys of `ingest(into={...})`."""
Keys: TypeAlias = Collection[Any] | Mapping[type, Collection[Any]]
"""Keys of a table; for several tables, grouped by the classes of their rows."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A value of a source that cannot be converted to a row, and the reason.

    given: the value as it was read; it identifies the entry in a table without key.
    key: the key of the row that it would be, in a table with a key.

    >>> Refused("1,x", ValueError("'x' is no number")).error
    ValueError("'x' is no number")
    """

    given: Any
    error: Exception
    key: Any = None


@dataclass(frozen=True, slots=True)
class Batch(Generic[T]):
    """Changes of a source that become one commit.

    Parameters
    ----------
    upserts: rows to insert. In a table with a key, each replaces the row with its key, and the last
        of several rows with the same key counts; in a table without key, each adds one copy.
    deletes: keys whose rows to delete. Absent keys are ignored; a key that `upserts` has too is
        upserted.
    removes: rows of a table without key, of which one copy each is deleted. A row in `removes` and
        `upserts` cancels out.
    origins: origin -> all of its rows, such as those of a file. Earlier rows of the origin that are
        not among them are deleted. An empty collection deletes all of them. Rows of other origins
        stay. In a table with a key, two origins cannot have rows with the same key; the last of
        several rows of one origin with the same key counts.
    appends: origin -> rows added to its earlier ones, such as new lines at the end of a file. The
        cost depends on these rows only. In a table with a key, one of them may replace a row of the
        origin, at the cost of all its rows.
    refused: origin -> values that cannot be converted to rows, beside the rows in `origins` or
        `appends`. They stop the source, or are listed in `Ingestion.errors` until all rows of the
        origin are given. Or class of rows -> such values: each replaces the row with its key, and
        is listed in `errors` until its key is upserted or deleted; in a table without key, until
        `removes` has the value in `given`.
    anew: classes of rows whose listed errors, except those of origins, are deleted: this batch and
        later ones report them again. A source begins so when it rereads a table.
    token: the position to continue from after this batch; `None` keeps the last one.
    token_changes: for a token that is a dictionary, its changed entries, with None for deleted
        ones. The cost depends on these entries only.
    made: the time when the source had these changes, as `time.time()`; for `Ingestion.lag`.

    An empty batch with a token is a commit too. The contents of a batch must not change once it is
    given.

    >>> Batch(["to", "be"], token=2).upserts
    ['to', 'be']
    """

    upserts: Rows[T] = ()
    _: KW_ONLY
    deletes: Keys = ()
    removes: Rows[T] = ()
    origins: Mapping[Any, Rows[T]] = field(default_factory=dict)
    appends: Mapping[Any, Rows[T]] = field(default_factory=dict)
    refused: Mapping[Any, Collection[Refused]] = field(default_factory=dict)
    anew: Collection[type] = ()
    token: Token = None
    token_changes: Mapping[Any, Token] = field(default_factory=dict)
    made: float | None = None


def check_policy(on_error: object) -> None:
    """Raise `PlanError` for an unknown policy."""
    if on_error not in ("raise", "drop"):
        raise PlanError(
            f"on_error={on_error!r} is no policy for rows that are refused\n"
            '  write "raise" or "drop"'
        )


# The tables of a source: each row belongs to the table of its class.

ByTable: TypeAlias = dict[int, list[Any]]
"""Rows or keys by the number of their table among the targets; `NOWHERE` for rows of no table."""
NOWHERE = -1


class Targets:
    """The tables of a source: one table for all rows, or several by the classes of rows."""

    __slots__ = ("_by_class", "_numbers", "tables")

    def __init__(self, into: Table[Any] | Mapping[type, Table[Any]], engine: object) -> None:
        by_class: Mapping[type, Table[Any]] | None = into if isinstance(into, Mapping) else None
        self.tables = (into,) if not isinstance(into, Mapping) else tuple(into.values())
        self._by_class = None if by_class is None else {kind: n for n, kind in enumerate(by_class)}
        self._numbers: dict[type, int] = dict(self._by_class or {})
        for table in self.tables:
            _check_table(table, engine)
        if not self.tables or len({*map(id, self.tables)}) < len(self.tables):
            raise PlanError("ingest takes tables by the classes of their rows, each table once")

    def __str__(self) -> str:
        return ", ".join(table.name for table in self.tables)

    def by_class(self) -> dict[type, Table[Any]]:
        """Return the tables by the classes of their rows."""
        classes = self._by_class or {table.row_type: 0 for table in self.tables}
        return {kind: self.tables[number] for kind, number in classes.items()}

    def check_there(self, tables: Mapping[int, object]) -> None:
        """Raise `SourceError` if a table was dropped."""
        for table in self.tables:
            if tables.get(table.plan.number) is not table:
                raise SourceError(
                    f"table {table.name!r} of the source was dropped, or replaced by another one\n"
                    "  ingest under another name, into the table that is there now: db.tables()"
                )

    def by_table(self, given: Rows[Any]) -> ByTable:
        """Group rows by table."""
        if isinstance(given, Mapping):
            return {self.number(kind): list(rows) for kind, rows in given.items() if rows}
        if self._by_class is None:
            return {0: list(given)} if given else {}
        found: ByTable = {}
        for row in given:
            number = self._numbers.get(type(row))
            if number is None:
                number = self._learn(type(row))
            found.setdefault(number, []).append(row)
        return found

    def keys(self, given: Keys) -> dict[int, Collection[Any]]:
        """Group keys by table.

        Raises `PlanError` for keys without a class if there are several tables.
        """
        if isinstance(given, Mapping):
            return {self.number(kind): keys for kind, keys in given.items() if keys}
        if given and self._by_class is not None:
            raise PlanError(
                "keys that are deleted from one of several tables are given by the classes of "
                "their rows\n  Batch(deletes={Order: [7, 8]})"
            )
        return {0: given} if given else {}

    def held(self, number: int) -> Mapping[Any, Row]:
        """Return the rows of a keyed table by key, as of the open transaction."""
        keyed = keyed_of(self.tables[number])
        assert keyed is not None
        return keyed.by_key

    def expect(self, number: int, keys: Collection[Any]) -> None:
        """Announce keys of a keyed table that will be looked up."""
        keyed: Any = keyed_of(self.tables[number])
        if hasattr(keyed, "expect"):
            keyed.expect(keys)

    def key_of(self, number: int) -> Callable[[Row], Any]:
        """Return the key function of a keyed table."""
        keyed = keyed_of(self.tables[number])
        assert keyed is not None
        return keyed.key

    def by_key(self, number: int, rows: Sequence[Row]) -> dict[Any, Row]:
        """Return rows by their keys; of rows with the same key, the last one."""
        keyed = keyed_of(self.tables[number])
        assert keyed is not None
        return dict(zip(keyed.keys_of(rows), rows, strict=True))

    def is_keyed(self, number: int) -> bool:
        """Return True if the table has a key."""
        return keyed_of(self.tables[number]) is not None

    def is_stream(self, number: int) -> bool:
        """Return True if the table is a stream, whose rows are not removed."""
        return number != NOWHERE and is_stream(self.tables[number])

    def number(self, kind: type) -> int:
        """Return the number of the table for a class of rows; `NOWHERE` if there is none."""
        if self._by_class is None:
            return 0
        number = self._numbers.get(kind)
        return self._learn(kind) if number is None else number

    def refusal(self, number: int, row: Row) -> Exception | None:
        """Return the reason why a table refuses a row regardless of its other rows.

        None if it does not.
        """
        try:
            if number == NOWHERE:
                raise TableError(
                    f"no table was given for {row!r:.100}, of class {type(row).__name__}\n"
                    f"  ingest(source, into={{{type(row).__name__}: table, ...}})"
                )
            table = self.tables[number]
            statements_of(table).check(row)
            if (keyed := keyed_of(table)) is not None:
                keyed.key(row)
        except Exception as error:
            reraise_asynchronous(error)
            return error
        return None

    def _learn(self, kind: type) -> int:
        """Find the table for a subclass of a class with a table, and remember it."""
        known = self._by_class or {}
        found = next((known[base] for base in kind.__mro__ if base in known), NOWHERE)
        self._numbers[kind] = found
        return found


def is_stream(table: Table[Any]) -> bool:
    """Return True if a table is a stream: its rows flow through and are not removed."""
    return table.plan.time is not None


def refuse_streams(source: str, into: Mapping[type, Table[Any]], why: str) -> None:
    """Raise `PlanError` if a source feeds a stream that might have to remove events.

    why: the reason, and a remedy in a line of its own.
    """
    for table in into.values():
        if is_stream(table):
            raise PlanError(
                f"source {source!r} cannot feed stream {table.name!r}, from which no event is "
                f"removed: {why}"
            )


def _check_table(table: Any, engine: object) -> None:
    """Refuse what is not a table of the database, and a table with a key whose rows are remote."""
    if not isinstance(table, Table) or engine_of(table) is not engine:
        raise PlanError(
            f"ingest takes a table of its database to put rows into, not {table!r:.100}\n"
            "  db.ingest(source, into=table), or into={Order: orders, Customer: customers}"
        )
    if table.plan.key is not None and keyed_of(table) is None:
        raise PlanError(
            f"table {table.name!r} has its rows elsewhere, and finds none by key\n"
            "  ingest into a table of the process, or into one without key"
        )


@dataclass(frozen=True, slots=True)
class TableBatches:
    """The contents of a batch, grouped by table."""

    upserts: ByTable
    deletes: Mapping[int, Collection[Any]]
    removes: ByTable
    origins: Mapping[Hashable, ByTable]
    appends: Mapping[Hashable, ByTable]
    refused: Mapping[Hashable, Collection[Refused]]
    unfit: Mapping[int, Collection[Refused]]
    anew: Collection[int]
    token: Token
    token_changes: Mapping[Any, Token]

    def rows(self) -> Iterable[tuple[int, Row]]:
        """Yield all rows to insert, with the numbers of their tables."""
        for some in (self.upserts, *self.origins.values(), *self.appends.values()):
            for number, rows in some.items():
                for row in rows:
                    yield number, row


def group_by_table(batch: Batch[Any], targets: Targets) -> TableBatches:
    """Group the contents of a batch by table.

    Raises
    ------
    TableError: keys are given for a table without key, or rows to remove for a table with one.
    """
    found = TableBatches(
        targets.by_table(batch.upserts),
        targets.keys(batch.deletes),
        targets.by_table(batch.removes),
        {origin: targets.by_table(rows) for origin, rows in batch.origins.items()},
        _appends(batch, targets),
        {origin: some for origin, some in batch.refused.items() if not isinstance(origin, type)},
        {
            targets.number(kind): some
            for kind, some in batch.refused.items()
            if isinstance(kind, type)
        },
        [targets.number(kind) for kind in batch.anew],
        batch.token,
        batch.token_changes,
    )
    if batch.token is not None and batch.token_changes:
        raise TableError("a batch has a token, or the changes of one, and not both")
    if both := batch.origins.keys() & batch.appends.keys():
        raise TableError(
            f"a batch gives all rows of {min(both, key=repr)!r}, and more of them\n"
            "  origin: all rows, in `origins`; or those that are new, in `appends`"
        )
    if NOWHERE in found.unfit:
        raise TableError(
            "what is refused would be a row of a class that no table was given for\n"
            "  Batch(refused={Order: [Refused(text, error, key=7)]}), of a class with a table"
        )
    _check_streams(found, targets)
    for number in found.deletes:
        if number == NOWHERE or not targets.is_keyed(number):
            raise TableError(
                f"{_table_text(targets, number)} has no key to delete by\n  Batch(removes)"
            )
    for number in found.removes:
        if number == NOWHERE or targets.is_keyed(number):
            raise TableError(
                f"{_table_text(targets, number)} has a key to delete by\n  Batch(deletes)"
            )
    return found


def _check_streams(found: TableBatches, targets: Targets) -> None:
    """Move the appended events of streams to the rows that come: no origin holds them.

    Raises `TableError` for a removal from a stream, or for all rows of an origin.
    """
    for by_table in found.appends.values():
        for number in filter(targets.is_stream, list(by_table)):
            found.upserts.setdefault(number, []).extend(by_table.pop(number))
    owned = (number for by_table in found.origins.values() for number in by_table)
    is_only = all(map(is_stream, targets.tables)) and bool(found.origins)
    for number in (*found.deletes, *found.removes, *owned, *([0] if is_only else [])):
        if targets.is_stream(number):
            raise TableError(
                f"{_table_text(targets, number)} takes no changes that remove rows: events are not "
                "removed\n  give a stream new rows: Batch(rows), or Batch(appends=...); "
                "db.table has rows that change"
            )


def _appends(batch: Batch[Any], targets: Targets) -> dict[Hashable, ByTable]:
    """Return the appended rows, with empty entries for origins that only have refused values."""
    found = {origin: targets.by_table(rows) for origin, rows in batch.appends.items()}
    beside = (
        origin
        for origin in batch.refused
        if origin not in batch.origins and not isinstance(origin, type)
    )
    return {**{origin: {} for origin in beside}, **found}


def _table_text(targets: Targets, number: int) -> str:
    if number == NOWHERE:
        return "what was given"
    kind = "stream" if targets.is_stream(number) else "table"
    return f"{kind} {targets.tables[number].name!r}"


# Two small sources, which also serve as examples for your own.


def from_rows(rows: Iterable[T], *, size: int = 1000, name: str = "rows") -> Source[T]:
    """Return a source of rows in batches, which ends after the last row.

    Parameters
    ----------
    rows: to continue after a restart, they must have the same order: the token is the number of
        rows taken.
    size: the number of rows in a batch.

    Raises
    ------
    PlanError: `size` is less than 1.

    >>> from reactive import Database
    >>> db = Database()
    >>> numbers = db.table(int, name="numbers")
    >>> db.ingest(from_rows(range(2500)), numbers).wait()
    >>> len(numbers), db.version, db.tokens
    (2500, 3, {'rows': 2500})
    """
    if type(size) is not int or size < 1:
        raise PlanError(f"size={size!r} is no number of rows\n  give an integer from 1 on")
    return _FromRows(name, rows, size)


def poll(
    function: Callable[[], Iterable[T] | Mapping[type, Any]], *, every: float, name: str
) -> Source[T]:
    """Return a source that calls `function` repeatedly for all rows; only differences are changes.

    Parameters
    ----------
    function: returns all current rows, or a mapping of classes to rows.
    every: the seconds from one answer to the next call.

    All rows belong to one origin, named like the source.

    Raises
    ------
    PlanError: `every` is not a positive number.

    >>> from reactive import Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> answers = iter([["to", "be"], ["be", "or"]])
    >>> source = poll(lambda: next(answers), every=60, name="answers")
    >>> reading = db.ingest(source, words, start=False)
    >>> for batch in islice(source.batches(None, threading.Event()), 1):
    ...     reading.take(batch)
    >>> list(words)
    ['to', 'be']
    """
    if isinstance(every, bool) or not isinstance(every, int | float) or not every > 0:
        raise PlanError(f"every={every!r} is no interval\n  give the seconds between questions")
    return _Poll(name, function, every)


@dataclass(frozen=True, slots=True)
class _FromRows(Generic[T]):
    """Rows in batches; see `from_rows`."""

    name: str
    rows: Iterable[T]
    size: int

    def batches(self, since: Token, stop: threading.Event) -> Iterator[Batch[T]]:
        """Yield the rows from number `since` on, in batches; the token counts the rows."""
        taken = since or 0
        rows = islice(self.rows, taken, None)
        while some := list(islice(rows, self.size)):
            taken += len(some)
            yield Batch(some, token=taken)


@dataclass(frozen=True, slots=True)
class _Poll(Generic[T]):
    """A function that is called for all rows; see `poll`."""

    name: str
    function: Callable[[], Iterable[T] | Mapping[type, Any]]
    every: float

    def feeds(self, into: Mapping[type, Table[Any]]) -> None:
        """Refuse streams; called by `ingest`."""
        refuse_streams(
            self.name,
            into,
            "poll gives all rows each time\n  give new rows only, by a function "
            "(since, stop) -> batches",
        )

    def batches(self, since: Token, stop: threading.Event) -> Iterator[Batch[T]]:
        """Call the function every `every` seconds until `stop` is set, and yield its answers."""
        while not stop.is_set():
            made, found = time.time(), self.function()
            rows: Rows[T] = found if isinstance(found, Mapping) else list(found)
            yield Batch(origins={self.name: rows}, made=made)
            stop.wait(self.every)


T_co = TypeVar("T_co", covariant=True)

Batches: TypeAlias = Callable[[Any, threading.Event], Iterable[Batch[T]]]
"""The type of `Source.batches`."""


class Source(Protocol[T_co]):
    """A source of rows in batches; `Database.ingest` commits each batch.

    A source may have more methods. Any thread may call `waiting() -> int | None`, the number of
    changes that it knows of but has not given yet, or `None` if unknown; `behind() -> int | None`,
    its lag in bytes of a log; and `trouble() -> Exception | None`, the reason why it waits for a
    server that does not answer. `feeds(tables)` receives the tables by the classes of their rows
    before the source runs; `stopped_by(error)` the error that stopped it, or `None`; `begin_anew()`
    requests that the next `batches` reads all rows, ignoring `since`.

    >>> import threading
    >>> from reactive import Batch, Database
    >>> class Lines:
    ...     name = "lines"
    ...     def __init__(self, lines):
    ...         self.lines = lines
    ...     def batches(self, since, stop):
    ...         for number in range(since or 0, len(self.lines)):
    ...             yield Batch([self.lines[number]], token=number + 1)
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> db.ingest(Lines(["to", "be"]), words).wait()
    >>> list(words), db.tokens
    (['to', 'be'], {'lines': 2})
    """

    @property
    def name(self) -> str:
        """The name under which the token of the source is stored."""
        ...

    def batches(self, since: Token, stop: threading.Event) -> Iterable[Batch[Any]]:
        """Yield the batches after a token; all of them if it is `None`.

        The next batch is requested when the last one is committed. A source that waits for
        something must also wait for `stop`, or check it regularly, and end once it is set. An
        exception stops the source.
        """
        ...


@dataclass(frozen=True, slots=True)
class GeneratorSource:
    """A generator function as a source."""

    name: str
    batches: Batches[Any]


def as_source(
    source: Source[T] | Batches[T] | None, name: str | None
) -> tuple[Source[T] | None, str]:
    """Return a source, or None if there is none, and its name.

    Raises
    ------
    PlanError: it is not a source, or has no name.
    """
    if source is not None and not callable(getattr(source, "batches", None)):
        if not callable(source):
            raise PlanError(
                f"ingest takes a source, not {source!r:.100}\n"
                "  a function (since, stop) -> batches, or an object with `name` and `batches`; "
                "from_rows(rows) gives rows in batches"
            )
        source = GeneratorSource(getattr(source, "__name__", "") if name is None else name, source)
    called = getattr(source, "name", None) if name is None else name
    if not isinstance(called, str) or not called or called == "<lambda>":
        raise PlanError(
            f"a source needs a name, by which its token is kept, and {called!r} is none\n"
            '  give it one: db.ingest(source, table, name="...")'
        )
    return source, called  # type: ignore[return-value]
