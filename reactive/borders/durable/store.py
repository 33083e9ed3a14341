"""What a store of durable tables does: the protocol, and the data that goes through it.

    open      take it, alone                     tables, rows, version    what it has
    write     commits, all of them or none       create, drop             one table, with its rows
    close     let it go                          history                  the last commits

A store knows nothing of Python's classes. A row is a tuple of plain values, one per column, each of
them None, an int of 64 bits, a float that is no NaN, a str without lone surrogates, or bytes; and
is given back as it came, `1` as `1` and `1.0` as `1.0`, `-0.0` as `-0.0`, whatever the column is
said to hold. (What else rows hold has been made bytes of before: `rows/values.py`.)

Whoever uses it calls one method at a time, from any thread.

Source: stepping's store: `get` is `rows`, `set` and `flush` are `write`, `inc` is `version`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

Plain: TypeAlias = int | float | str | bytes | None
Values: TypeAlias = tuple[Any, ...]
"""A row: a plain value for each column."""
KEPT = '{"kept": '
"""The beginning of `Schema.about` of a table that holds the state of a view."""
BESIDE = ('{"sink": ', KEPT)
Rows: TypeAlias = Iterable[tuple[Sequence[Values], int]]
"""Different rows in batches, with how often each row of a batch is there."""


@dataclass(frozen=True, slots=True)
class Column:
    """A field of rows: name, type as text, and how its values are written (`rows/columns.py`).

    >>> Column("total", "float", "plain")
    Column(name='total', type='float', kind='plain')
    """

    name: str
    type: str
    kind: str


@dataclass(frozen=True, slots=True)
class Schema:
    """What a store notes of a table, and gives back as it was.

    table: its name.
    columns: in the order of the values of rows.
    key: the name of the column by which rows are told apart, of which no value is None; without
         one, they are told apart by all values together, and may be there several times.
    about: more, as text that is nothing to the store, but that one of `BESIDE` is before what is
        written beside the commits, and is not in the history.

    >>> Schema("orders", (Column("id", "int", "plain"),), "id").key_place
    0
    """

    table: str
    columns: tuple[Column, ...]
    key: str | None = None
    about: str = ""

    @property
    def is_beside(self) -> bool:
        """True if no commit changes the table, so that making or dropping it keeps the history."""
        return self.about.startswith(BESIDE)

    @property
    def key_place(self) -> int:
        """Where the key is among the values of a row."""
        return [column.name for column in self.columns].index(self.key or "")


class Change(NamedTuple):
    """What a commit changes of one table. No row is in two of these.

    gone: rows that were there once, and are no more.
    come: rows that were not there, and are now, once.
    counted: rows with how often they were there, and are: of tables without a key only.

    In a table with a key, a row that comes may have the key of one that goes.
    """

    table: str
    gone: Sequence[Values] = ()
    come: Sequence[Values] = ()
    counted: Sequence[tuple[Values, int, int]] = ()

    def weights(self) -> Iterator[tuple[Values, int]]:
        """Each row with how much more often it is there than before."""
        yield from ((row, -1) for row in self.gone)
        yield from ((row, 1) for row in self.come)
        yield from ((row, after - before) for row, before, after in self.counted)


class Record(NamedTuple):
    """A commit; or what several come to that are written together, as the last one of them, if no
    history is kept.

    version: its number; they rise, but not one by one, and two may have the same.
    time: when it was, in seconds since 1970.
    is_commit: False of what is written between two commits, with the version of the first one: it
        has no place in the history.
    is_safe: whether it waits for the disk, with all that was written before, whatever the store
        does otherwise.
    """

    version: int
    time: float
    changes: Sequence[Change]
    is_commit: bool = True
    is_safe: bool = False


class Logged(NamedTuple):
    """A commit of the past, as a store tells it: rows of tables, with their weights."""

    version: int
    time: float
    changes: Mapping[str, Sequence[tuple[Values, int]]]


class Store(Protocol):
    """Where durable tables are: a file of SQLite, a schema of Postgres, or what you write.

    `Database(store=...)` takes one. Names are any text; two that differ in case are two. What goes
    wrong is raised as `DurabilityError`, with what the store is called, what failed, and what to
    do. What `write`, `create` or `drop` raised of has not happened, unless `version` says that it
    has.

    >>> from reactive import Database, Store
    >>> from reactive.borders.durable.memory_store import MemoryStore
    >>> store: Store = MemoryStore()
    >>> with Database(store=store) as db:
    ...     db.table(str, name="words").add("to")
    >>> list(Database(store=store).table(str, name="words"))
    ['to']
    """

    name: str
    """For messages: the path of a file, or an address without its password."""

    def open(self, keep: int) -> None:
        """Take it, making it if there is none, and keep the last `keep` commits for `history`.

        Raises
        ------
        DurabilityError: another process, or another database of this one, has it; or it is none of
            ours, or of a later format.
        """
        ...

    def version(self) -> int:
        """The number of the last commit that it has, 0 if none. What was half done is undone first:
        this is asked after an error, or an interrupt, to know what stands."""
        ...

    def tables(self) -> Mapping[str, Schema]:
        """The tables that it has, by name."""
        ...

    def rows(self, table: str) -> Rows:
        """The rows of a table, in batches. The store is not written to before the last."""
        ...

    def write(self, records: Sequence[Record]) -> None:
        """Write commits, in one transaction of the store. When this returns, they stand."""
        ...

    def create(self, schema: Schema, rows: Rows = ()) -> None:
        """Have a table, with these rows, in the place of the one that has its name if there is
        one; in one transaction of the store."""
        ...

    def drop(self, table: str) -> None:
        """Have a table no more, nor its rows."""
        ...

    def history(self, since: int) -> Sequence[Logged]:
        """The commits after a version, of those that are kept, the first one first. Those before a
        `create` of one of their tables may be forgotten."""
        ...

    def after_fork(self) -> None:
        """This is a child of the process that has it: touch nothing, and forget what is open
        without closing it."""
        ...

    def close(self) -> None:
        """Let it go. May be called again."""
        ...
