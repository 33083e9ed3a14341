"""One flush of a fragment in this process: the deltas of its steps are bags of rows.

    rows that change --steps, by evaluation of few rows--> what is added to each table
                            ^
                            '-- rows with the keys that change, from the files that can have them

A step makes of a change and of the rows with its keys what its columns make of them in a job: the
same tables are read and written, so that any flush may be done either way. What would have to look
at many rows is left to Spark (`TooMany`), and so is what raises, which it tells with the row.

Sound:  a flush counts when its manifest is put, which is after all that may raise.
State:  none beside the tables.
Cost:   O(rows that change + rows with their keys), some microseconds each; of the files that can
        have them, one column is looked through.
Source: [dbsp] delta queries, as in the jobs.

How rows with some keys are found in the files of a state table, by this process.

    which files     the buckets of the keys, by the hash that Spark puts rows into buckets by
    which rows      those that have, in one column of the key, a value that a key has there

Rows with other keys may come along: who asks looks again. So a key that is no field of a row only
has its buckets, all of whose rows come.

State:  none.
Cost:   O(rows in these files), a few nanoseconds each, where a column is compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from optimizer import plan
from optimizer.expr import Attribute, Constant, Expr, Function, Item, Lifted, Parameter
from optimizer.plans.properties import shapes
from optimizer.traverse import with_inputs
from reactive.engine.collections.zset import Pair
from reactive.engine.reference.asking import linear
from reactive.engine.reference.bags import Bag, difference, grow
from reactive.engine.reference.evaluate import evaluate_part
from spark_backend.codec.arrow import Fits, arrow_type, fitting, pairs_of, to_arrow
from spark_backend.codec.hashing import hash_of
from spark_backend.codec.schema import PLAIN, Plain, Record, Typed
from spark_backend.state.one_job import TableSpec
from spark_backend.state.tables import StateTables

T = TypeVar("T")
MOST_DIRECT = 10_000
"""Changed rows up to which a flush is done in the process."""
MOST_SOUGHT = 10_000_000
"""Rows of a table up to which a column is looked through for those with some keys."""
MOST_FETCHED = 100_000
"""Rows of a table up to which they are taken out of its files."""
MOST_ANEW = 20_000
"""Rows that a recursion reads up to which it is brought to its end here."""
NOTHING: Bag = Counter()


class TooMany(Exception):
    """A flush would look at many rows, or has a step that is only done in jobs."""


class DirectStep(Protocol):
    """A step that can be done in the process."""

    kept: Typed

    def direct(self, flush: DirectFlush) -> Bag:
        """How the rows change; the tables are given what is to be added to them.

        Raises
        ------
        TooMany: it is to be done by a job.
        """
        ...


@runtime_checkable
class PairingStep(Protocol):
    """A step whose rows are made without being added up, which takes a hash of each of them."""

    def direct_pairs(self, flush: DirectFlush) -> Collection[Pair]:
        """How the rows change; those that come several times are not added up."""
        ...


class DirectFlush:
    """A flush: what comes in by the places of inputs, and what is to be added to tables."""

    def __init__(self, tables: StateTables, given: Mapping[int, Bag]) -> None:
        self.tables, self.given = tables, given
        self.added: dict[str, pa.Table] = {}
        self._made: dict[int, Any] = {}
        self._paired: dict[int, Collection[Pair]] = {}

    def delta(self, step: DirectStep) -> Bag:
        """How the rows of a step change; made once."""
        return self.once(step, step.direct)

    def pairs(self, step: DirectStep) -> Collection[Pair]:
        """The same for those who look at one row after the other: rows may come several times, and
        such as were never there, if others take them back."""
        if id(step) in self._made or not isinstance(step, PairingStep):
            return self.delta(step).items()
        if id(step) not in self._paired:
            self._paired[id(step)] = step.direct_pairs(self)
        return self._paired[id(step)]

    def once(self, step: Any, make: Callable[[DirectFlush], T]) -> T:
        """What is made for a step in this flush, once."""
        if id(step) not in self._made:
            self._made[id(step)] = make(self)
        found: T = self._made[id(step)]
        return found

    def beside(self, known: Mapping[Any, Bag]) -> DirectFlush:
        """A flush whose additions do not count, in which some steps change otherwise."""
        other = DirectFlush(self.tables, self.given)
        other._made.update((id(step), bag) for step, bag in known.items())
        return other

    def add(self, spec: TableSpec, kept: Typed, rows: Bag) -> None:
        """Add rows to a table; those that several steps share, once."""
        if rows and spec.name not in self.added:
            weights = pa.array(rows.values(), pa.int64())
            self.put(spec, {"row": to_arrow(kept, list(rows)), "weight": weights})

    def put(self, spec: TableSpec, columns: Mapping[str, pa.Array]) -> None:
        """The same, of columns that are there."""
        self.added.setdefault(spec.name, pa.table(dict(columns)))

    def having(self, spec: TableSpec, kept: Typed, look: Lookup, keys: Iterable[Leaves]) -> Bag:
        """The rows of a table, as of before, that have keys; others may come along."""
        return bag_of(kept, self.found(spec, look, keys))

    def check_anew(self, specs: Iterable[TableSpec]) -> None:
        """Raise `TooMany` for tables of so many rows that a recursion over them is not for here."""
        _check(self.rows_of(specs), MOST_ANEW)

    def rows_of(self, specs: Iterable[TableSpec]) -> int:
        """How many rows tables have, as of before."""
        return sum(map(self.tables.rows_near, specs))

    def columns(self, spec: TableSpec, kept: Typed, change: Bag) -> pa.Table:
        """The columns `row` and `weight` of a table with what changes; not added up."""
        weights = pa.array(change.values(), pa.int64())
        more = pa.table({"row": to_arrow(kept, list(change)), "weight": weights})
        before = self.tables.all_rows(spec)
        return pa.concat_tables([before.select(more.column_names).cast(more.schema), more])

    def all_rows(self, spec: TableSpec, kept: Typed) -> Bag:
        """All rows of a table, as of before."""
        check_fetched(self.tables.rows_near(spec))
        return bag_of(kept, self.tables.all_rows(spec))

    def found(
        self, spec: TableSpec, look: Lookup, keys: Iterable[Leaves], *, most: int | None = None
    ) -> pa.Table:
        """The columns of a table in the rows that have keys; others may come along.

        Parameters
        ----------
        most: rows that may be taken out of files.

        Raises
        ------
        TooMany: there are many, or many to look through.
        """
        keys = set(keys)
        hashes = look.hashes(keys) if self.tables.buckets(spec) > 1 else None
        among = look.values(keys)
        most = most or MOST_FETCHED
        _check(self.tables.rows_near(spec, hashes), most if among is None else MOST_SOUGHT)
        found = self.tables.sought(spec, hashes, among)
        _check(found.num_rows, most)
        return found


def check_few(tables: StateTables, changed: int) -> None:
    """Raise `TooMany` for a flush that is to be done by a job, or is the first."""
    _check(changed, MOST_DIRECT)
    if tables.number is None:
        raise TooMany("the first flush")


def check_fetched(rows: int) -> None:
    """Raise `TooMany` for rows that are not to be taken out of files here."""
    _check(rows, MOST_FETCHED)


def _check(rows: int, most: int) -> None:
    if rows > most:
        raise TooMany(f"{rows:,} rows to look at")


def bag_of(kept: Typed, table: pa.Table) -> Bag:
    """The columns `row` and `weight` as a bag."""
    return summed(pairs_of(kept, table))


def summed(pairs: Collection[Pair]) -> Bag:
    """A bag of canonical rows, which may come several times; without those of no weight.

    >>> summed([("a", 1), ("b", 1), ("a", 2), ("b", -1)])
    Counter({'a': 3})
    """
    bag: Bag = Counter(dict(pairs))
    if len(bag) < len(pairs):
        bag.clear()
        for row, weight in pairs:
            bag[row] = bag.get(row, 0) + weight
    return present(bag)


def present(bag: Bag) -> Bag:
    """Without rows of no weight; itself if there are none. Rows take long to hash."""
    if all(bag.values()):
        return bag
    return Counter({row: weight for row, weight in bag.items() if weight})


def together(bags: Sequence[Bag]) -> Bag:
    """The sum of bags; one of them, if the others have no rows."""
    some = [bag for bag in bags if bag]
    if len(some) < 2:
        return some[0] if some else NOTHING
    first, *others = sorted(some, key=len, reverse=True)
    found = Counter(first)
    for bag in others:
        grow(found, bag)
    return found


def through(chain: Sequence[plan.Node], bag: Bag) -> Bag:
    """What linear nodes make of rows; the one that sees them first comes first."""
    for node in chain:
        call = linear(node)
        assert call is not None
        bag = call(bag)
    return present(bag)


def over_given(node: plan.Node) -> plan.Node:
    """A node over relations that are given, in the place of its inputs."""
    sources = enumerate(node.inputs())
    return with_inputs(
        node,
        [plan.Recursive(None, n, f"input {n + 1}", False, shapes(source)) for n, source in sources],
    )


def evaluated(node: plan.Node, bags: Sequence[Bag]) -> Bag:
    """The rows of a node that is `over_given`."""
    if not any(bags):
        return Counter()
    return evaluate_part(node, {(None, place): bag for place, bag in enumerate(bags)})


def changed(node: plan.Node, before: Sequence[Bag], changes: Sequence[Bag]) -> Bag:
    """How the rows of a node that is `over_given` change."""
    after = [together([bag, change]) for bag, change in zip(before, changes, strict=True)]
    return difference(evaluated(node, after), evaluated(node, before))


Leaves = tuple[Any, ...]
"""A key as its plain values."""
_COMPARED = (int, str, bool, date, bytes)
"""What Arrow compares as Python does; of floats it does not, for the sake of zeros."""


@dataclass(frozen=True, slots=True)
class Field:
    """A plain column of a table, and which of the leaves of a key it has."""

    place: int
    path: tuple[str, ...]
    of: Plain


class Lookup:
    """Finds rows by a key.

    Parameters
    ----------
    types: of the leaves of the key, as they are hashed.
    fields: the columns of the table that hold leaves of it.
    """

    def __init__(self, types: Sequence[Typed], fields: Iterable[Field]) -> None:
        self._types = tuple(types)
        self._field = next((f for f in fields if f.of.kind in _COMPARED and not f.of.is_wide), None)

    def hashes(self, keys: Iterable[Leaves]) -> set[int] | None:
        """The hashes of keys; None if one has none."""
        found = {hash_of(self._types, key) for key in keys}
        return None if None in found else found  # type: ignore[return-value]

    def values(self, keys: Iterable[Leaves]) -> tuple[tuple[str, ...], pa.Array] | None:
        """A column, and the values that keys have in it; None if rows may have others."""
        field = self._field
        if field is None:
            return None
        holds = fitting(replace(field.of, optional=False))
        asked = {_as(field.of.kind, key[field.place], holds) for key in keys}
        if None in asked:
            return None
        asked.discard(_OTHER)
        return field.path, pa.array(list(asked), arrow_type(field.of))


_OTHER: Any = object()
"""Stands for a value that no value of the column is equal to."""
UNKNOWN: Any = object()
"""Stands for a value that no column is known to have."""
_NUMBERS = frozenset({int, float, bool, Decimal})
_KNOWN = PLAIN | {object}
"""Types of which it is known what equals their values."""


def _as(kind: type, value: Any, holds: Fits) -> Any:
    """The value of a column that is equal to a value; None where that is not known."""
    if holds(value):
        return value
    if type(value) not in _KNOWN:
        return None
    if kind not in _NUMBERS or type(value) not in _NUMBERS:
        return _OTHER
    try:
        made = kind(value)
    except (ValueError, OverflowError):
        return _OTHER
    return made if made == value and holds(made) else _OTHER


def in_column(of: Typed, value: Any) -> Any:
    """The value of a column of a type that is equal to a value; `UNKNOWN` if none is known."""
    if value is None and of.optional:
        return None
    found = _as(of.kind, value, fitting(replace(of, optional=False)))
    return UNKNOWN if found is None or found is _OTHER else found


def fields_of(of: Typed, *column: str) -> list[Field]:
    """All leaves of a column that is a key as a whole, by its path."""
    return [
        Field(place, (*column, *path), kept)
        for place, (path, kept) in enumerate(_paths(of))
        if isinstance(kept, Plain)
    ]


def fields_read(
    keys: Sequence[Function], kept: Typed, count: int, column: str = "row"
) -> list[Field]:
    """The columns that keys are, of rows with so many bindings; only those that are fields."""
    found: list[Field] = []
    place = 0
    for key in keys:
        read = _read(key, kept, count)
        if read is None:
            return found  # the leaves of what follows have no known place
        path, of = read
        for inner, leaf in _paths(of):
            if isinstance(leaf, Plain):
                found.append(Field(place, (column, *path, *inner), leaf))
            place += 1
    return found


def _read(key: Function, kept: Typed, count: int) -> tuple[tuple[str, ...], Typed] | None:
    """The path of what a callable reads of a row, if it does no more."""
    return _path(key.body, kept, count) if isinstance(key, Lifted) else None


def _path(expr: Expr, kept: Typed, count: int) -> tuple[tuple[str, ...], Typed] | None:
    match expr:
        case Parameter(index):
            return ((), kept) if count == 1 else _field(kept, index)
        case Attribute(of, name):
            found = _path(of, kept, count)
            return None if found is None else _below(found, name)
        case Item(of, Constant(int(place))):
            found = _path(of, kept, count)
            return None if found is None else _below(found, place)
        case _:
            return None


def _below(
    found: tuple[tuple[str, ...], Typed], name: str | int
) -> tuple[tuple[str, ...], Typed] | None:
    path, of = found
    below = _field(of, name)
    return None if below is None else ((*path, *below[0]), below[1])


def _field(of: Typed, name: str | int) -> tuple[tuple[str, ...], Typed] | None:
    """A field of a record, by its name or place."""
    if not isinstance(of, Record):
        return None
    if isinstance(name, str):
        if name not in of.names:
            return None
        name = of.names.index(name)
    elif not issubclass(of.kind, tuple) or not 0 <= name < len(of.fields):
        return None
    return (of.names[name],), of.fields[name]


def _paths(of: Typed) -> list[tuple[tuple[str, ...], Typed]]:
    """The leaves of a type, with where they are in it."""
    if not isinstance(of, Record):
        return [((), of)]
    return [
        ((name, *path), leaf)
        for name, field in zip(of.names, of.fields, strict=True)
        for path, leaf in _paths(field)
    ]
