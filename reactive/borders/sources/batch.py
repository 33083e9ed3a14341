"""Sources and their batches: the protocol, two small sources, and the tables that rows of a batch
go into.

What a source gives: changes that belong together, and where to go on after them.

    Batch(upserts, deletes)     by key: rows that are there now, keys that are not any more
    Batch(upserts, removes)     without key: rows that come, rows that go
    Batch(origins={o: rows})    of each origin o, all of its rows: only the difference is a change
    Batch(appends={o: rows})    of each origin o, rows that it has beside those that it had

A batch says what is so after it, and not in which order it came about: a key that is both deleted
and upserted is upserted. Hence a batch that is made again changes nothing, if rows have keys or
origins.

A batch whose rows are with the tables that they go into.

Cost: O(rows of the batch).

The protocol of what gives rows.

    for batch in source.batches(since, stop):  -->  one commit, and with it `batch.token`

That is all. A generator function is a source too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from optimizer.errors import PlanError
from reactive.api.table import Table
from reactive.engine.collections.zset import Row
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.errors import SourceError, TableError

T = TypeVar("T")


Token: TypeAlias = Any
"""Where a source can go on: an offset, a position in a log, a time, a dictionary of any of them.
Two are compared by `==` only. It must not be changed once it is in a batch."""
OnRefusal: TypeAlias = Literal["raise", "drop"]
"""The policy for a row that a table refuses, or of which a view raises."""
Rows: TypeAlias = Collection[T] | Mapping[type, Collection[T]]
"""Rows; also grouped by their classes, which are those that `ingest` was told tables of."""
Keys: TypeAlias = Collection[Any] | Mapping[type, Collection[Any]]
"""Keys of a table; of several tables by the classes of their rows."""


@dataclass(frozen=True, slots=True)
class Refused:
    """What a source has and can make no row of, and why.

    given: as it came; that which tells it apart in a table without key.
    key: of the row that it would be, in a table with a key.

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
    upserts: rows that are there from now on. In a table with a key each takes the place of the row
        with its key, and of two with one key the last one counts; in a table without key each is
        one row more.
    deletes: keys whose rows are there no more; one that has none is passed over, and one that is
        among the `upserts` too is upserted.
    removes: rows of a table without key, each of which is there once less. A row that is among the
        `upserts` too neither comes nor goes.
    origins: origin -> all rows that come of it, such as those of a file. Rows that were of it and
        are not among these go. An empty collection says that the origin is gone. Rows of origins
        that are not named stay. In a table with a key, two origins cannot have a row of one key;
        of two rows of one origin the last one counts.
    appends: origin -> rows that come of it beside those that it has, such as lines at the end of a
        file. It costs these rows only. In a table with a key one of them may take the place of a
        row of the origin, at the cost of all of its rows.
    refused: origin -> what can be made no row of, beside the rows of `origins` or `appends`. It
        stops the source, or is in `Ingestion.errors` until all rows of the origin are given. Also
        class of rows -> what would be rows of it: it takes the place of the row of its key, and is
        in `errors` until its key is upserted or deleted; in a table without key, until `removes`
        has what was `given`.
    anew: classes of rows of which all that was left out, and is of no origin, is told again by this
        batch and those after it: a source that reads a table from its beginning says so first.
    token: where to go on after this batch; `None` leaves the last one.
    token_changes: of a token that is a dictionary, the entries that are others now, and None for
        those that are there no more. It costs these entries only.
    made: when the source had these changes, as `time.time()` tells; for `Ingestion.lag`.

    An empty batch is a commit too, if it has a token. Once given, what is in it must not change.

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
    """Raise `PlanError` for what is no policy."""
    if on_error not in ("raise", "drop"):
        raise PlanError(
            f"on_error={on_error!r} is no policy for rows that are refused\n"
            '  write "raise" or "drop"'
        )


# The tables that rows of a source go into: each row into that of its class.

ByTable: TypeAlias = dict[int, list[Any]]
"""Rows or keys by the number of a table among the targets; rows that have none by `NOWHERE`."""
NOWHERE = -1


class Targets:
    """One table that takes all rows, or several, by the classes of their rows."""

    __slots__ = ("_by_class", "_numbers", "tables")

    def __init__(self, into: Table[Any] | Mapping[type, Table[Any]], engine: object) -> None:
        by_class: Mapping[type, Table[Any]] | None = into if isinstance(into, Mapping) else None
        self.tables = (into,) if not isinstance(into, Mapping) else tuple(into.values())
        self._by_class = None if by_class is None else {kind: n for n, kind in enumerate(by_class)}
        self._numbers: dict[type, int] = dict(self._by_class or {})
        for table in self.tables:
            _check(table, engine)
        if not self.tables or len({*map(id, self.tables)}) < len(self.tables):
            raise PlanError("ingest takes tables by the classes of their rows, each table once")

    def __str__(self) -> str:
        return ", ".join(table.name for table in self.tables)

    def by_class(self) -> dict[type, Table[Any]]:
        """The tables by the classes of their rows."""
        classes = self._by_class or {table.row_type: 0 for table in self.tables}
        return {kind: self.tables[number] for kind, number in classes.items()}

    def check_there(self, tables: Mapping[int, object]) -> None:
        """Raise `SourceError` if one of them was dropped."""
        for table in self.tables:
            if tables.get(table.plan.number) is not table:
                raise SourceError(
                    f"table {table.name!r} of the source was dropped, or replaced by another one\n"
                    "  ingest under another name, into the table that is there now: db.tables()"
                )

    def by_table(self, given: Rows[Any]) -> ByTable:
        """Rows by the table that they go into."""
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
        """Keys by the table that they are of."""
        if isinstance(given, Mapping):
            return {self.number(kind): keys for kind, keys in given.items() if keys}
        if given and self._by_class is not None:
            raise PlanError(
                "keys that are deleted from one of several tables are given by the classes of "
                "their rows\n  Batch(deletes={Order: [7, 8]})"
            )
        return {0: given} if given else {}

    def held(self, number: int) -> Mapping[Any, Row]:
        """The rows of a keyed table by their keys, as they are in the transaction that is open."""
        keyed = self.tables[number]._keyed
        assert keyed is not None
        found: Mapping[Any, Row] = keyed.by_key
        return found

    def expect(self, number: int, keys: Collection[Any]) -> None:
        """These keys of a keyed table are about to be looked up."""
        keyed = self.tables[number]._keyed
        if hasattr(keyed, "expect"):
            keyed.expect(keys)

    def key_of(self, number: int) -> Callable[[Row], Any]:
        """What gives the key of a row of a keyed table."""
        keyed = self.tables[number]._keyed
        assert keyed is not None
        found: Callable[[Row], Any] = keyed.key
        return found

    def is_keyed(self, number: int) -> bool:
        """Whether a table has a key."""
        return self.tables[number]._keyed is not None

    def number(self, kind: type) -> int:
        """The number of the table that takes rows of a class."""
        if self._by_class is None:
            return 0
        number = self._numbers.get(kind)
        return self._learn(kind) if number is None else number

    def refusal(self, number: int, row: Row) -> Exception | None:
        """Why a table does not take a row, whatever else is in it."""
        try:
            if number == NOWHERE:
                raise TableError(
                    f"no table was given for {row!r:.100}, of class {type(row).__name__}\n"
                    f"  ingest(source, into={{{type(row).__name__}: table, ...}})"
                )
            self.tables[number]._do.check(row)
            if self.is_keyed(number):
                self.key_of(number)(row)
        except Exception as error:
            reraise_asynchronous(error)
            return error
        return None

    def _learn(self, kind: type) -> int:
        """The table of a class that is made of one that a table was given for."""
        known = self._by_class or {}
        found = next((known[base] for base in kind.__mro__ if base in known), NOWHERE)
        self._numbers[kind] = found
        return found


def _check(table: Any, engine: object) -> None:
    if not isinstance(table, Table) or table._engine is not engine:
        raise PlanError(
            f"ingest takes a table of its database to put rows into, not {table!r:.100}\n"
            "  db.ingest(source, into=table), or into={Order: orders, Customer: customers}"
        )
    if table.plan.key is not None and table._keyed is None:
        raise PlanError(
            f"table {table.name!r} has its rows elsewhere, and finds none by key\n"
            "  ingest into a table of the process, or into one without key"
        )


@dataclass(frozen=True, slots=True)
class TableBatches:
    """A batch, by tables."""

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
        """All rows that are to be there."""
        for some in (self.upserts, *self.origins.values(), *self.appends.values()):
            for number, rows in some.items():
                for row in rows:
                    yield number, row


def given(batch: Batch[Any], targets: Targets) -> TableBatches:
    """A batch by the tables that its rows go into.

    Raises
    ------
    TableError: what is given by key is for a table without key, or the reverse.
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
    for number in found.deletes:
        if number == NOWHERE or not targets.is_keyed(number):
            raise TableError(f"{_table(targets, number)} has no key to delete by\n  Batch(removes)")
    for number in found.removes:
        if number == NOWHERE or targets.is_keyed(number):
            raise TableError(f"{_table(targets, number)} has a key to delete by\n  Batch(deletes)")
    return found


def _appends(batch: Batch[Any], targets: Targets) -> dict[Hashable, ByTable]:
    """Also of origins of which there is only what was refused."""
    found = {origin: targets.by_table(rows) for origin, rows in batch.appends.items()}
    beside = (
        origin
        for origin in batch.refused
        if origin not in batch.origins and not isinstance(origin, type)
    )
    return {**{origin: {} for origin in beside}, **found}


def _table(targets: Targets, number: int) -> str:
    return "what was given" if number == NOWHERE else f"table {targets.tables[number].name!r}"


# Two small sources, which are also what one's own may look like.


def from_rows(rows: Iterable[T], *, size: int = 1000, name: str = "rows") -> Source[T]:
    """A source of rows that are there already, in batches; it ends with them.

    Parameters
    ----------
    rows: if they are ingested again, they must come in the same order: the token is how many of
        them were taken.
    size: rows of a batch.

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
    """A source that asks for all rows now and then; only what differs is a change.

    Parameters
    ----------
    function: gives all rows that there are now; also grouped by their classes.
    every: seconds from one answer to the next question.

    The rows are those of one origin, which has the name of the source.

    Raises
    ------
    PlanError: `every` is no number of seconds.

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
    name: str
    rows: Iterable[T]
    size: int

    def batches(self, since: Token, stop: threading.Event) -> Iterator[Batch[T]]:
        taken = since or 0
        rows = islice(self.rows, taken, None)
        while some := list(islice(rows, self.size)):
            taken += len(some)
            yield Batch(some, token=taken)


@dataclass(frozen=True, slots=True)
class _Poll(Generic[T]):
    name: str
    function: Callable[[], Iterable[T] | Mapping[type, Any]]
    every: float

    def batches(self, since: Token, stop: threading.Event) -> Iterator[Batch[T]]:
        while not stop.is_set():
            made, found = time.time(), self.function()
            rows: Rows[T] = found if isinstance(found, Mapping) else list(found)
            yield Batch(origins={self.name: rows}, made=made)
            stop.wait(self.every)


T_co = TypeVar("T_co", covariant=True)

Batches: TypeAlias = Callable[[Any, threading.Event], Iterable[Batch[T]]]
"""As `Source.batches`."""


class Source(Protocol[T_co]):
    """What gives rows, in batches; `Database.ingest` makes a commit of each.

    A source may also have a method `waiting() -> int | None`, which says how many changes it knows
    of that it has not given yet; `None` if it cannot tell. It is called by any thread; so is
    `behind() -> int | None`, bytes of a log; and `trouble() -> Exception | None`, which says why it
    waits for a server that does not answer. A method `feeds(tables)` is told the tables that it
    feeds, by the classes of their rows, before it is run; `stopped_by(error)` what has stopped it,
    or `None`; `begin_anew()` that its next `batches` are to read all rows, in spite of `since`.

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
        """What it is called; its token is kept by this name."""
        ...

    def batches(self, since: Token, stop: threading.Event) -> Iterable[Batch[Any]]:
        """The batches from a token on; from the beginning, if it is `None`.

        The next batch is asked for when the last one is committed. Whoever waits here for something
        waits for `stop` as well, or looks at it every now and then, and ends once it is set. What
        this raises stops the source.
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
    """A source, if there is one, and its name.

    Raises
    ------
    PlanError: it is none, or has no name.
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
