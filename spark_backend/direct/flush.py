"""One flush of a fragment in this process: the deltas of its steps are bags of rows.

    rows that change --steps, by evaluation of few rows--> rows to add to each table
                            ^
                            '-- rows with the keys that change, from the files that can have them

A step computes the same from a change and the rows with its keys as its columns do in a job: the
same tables are read and written, so that any flush may run either way. A flush that would read many
rows is left to Spark (`TooMany`), and so is a flush that raises, because Spark reports the row.

Sound:  a flush counts when its manifest is written, after every step that may raise.
State:  only the tables.
Cost:   O(changed rows + rows with their keys), some microseconds each; one column is scanned in the
        files that can have such rows.
Source: [dbsp] delta queries, as in the jobs.

`Lookup` finds the rows with some keys in the files of a state table:

    which files     the buckets of the keys, by the hash with which Spark assigns buckets
    which rows      the rows that have, in one column of the key, a value of some key

Rows with other keys may be included: the caller filters them. For a key that is no field of a row,
all rows of its buckets are read.

Cost:   O(rows in these files), a few nanoseconds each, to compare a column.
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
from reactive.engine.reference.asking import linear_map
from reactive.engine.reference.bags import Bag, apply_changes, bag_delta
from reactive.engine.reference.evaluate import evaluate_part
from spark_backend.codec.arrow import Fits, arrow_type, fitting, pairs_of, to_arrow
from spark_backend.codec.hashing import hash_of
from spark_backend.codec.schema import PLAIN, Plain, Record, Typed
from spark_backend.state.one_job import TableSpec
from spark_backend.state.tables import StateTables

T = TypeVar("T")
MOST_DIRECT = 10_000
"""The most changed rows of a flush in this process."""
MOST_SOUGHT = 10_000_000
"""The most rows of a table whose column is scanned for keys."""
MOST_FETCHED = 100_000
"""The most rows that are read from the files of a table."""
MOST_ANEW = 20_000
"""The most rows of a recursion that this process runs to its end."""
NOTHING: Bag = Counter()


class TooMany(Exception):
    """A flush would read many rows, or has a step that only jobs run."""


class DirectStep(Protocol):
    """A step that this process can run."""

    kept: Typed

    def direct(self, flush: DirectFlush) -> Bag:
        """Return how the rows change, and add rows to the tables of the flush.

        Raises
        ------
        TooMany: a job has to run the step.
        """
        ...


@runtime_checkable
class PairingStep(Protocol):
    """A step that can return rows without netting them, which would hash each row."""

    def direct_pairs(self, flush: DirectFlush) -> Collection[Pair]:
        """Return how the rows change, as pairs; copies of a row are not added up."""
        ...


class DirectFlush:
    """A flush: the changes of inputs by position, and the rows to add to tables."""

    def __init__(self, tables: StateTables, given: Mapping[int, Bag]) -> None:
        self.tables, self.given = tables, given
        self.added: dict[str, pa.Table] = {}
        self._made: dict[int, Any] = {}
        self._paired: dict[int, Collection[Pair]] = {}

    def delta(self, step: DirectStep) -> Bag:
        """Return how the rows of a step change; computed once."""
        return self.once(step, step.direct)

    def pairs(self, step: DirectStep) -> Collection[Pair]:
        """Return how the rows of a step change, for callers that read row by row.

        Copies of a row need not be added up: the changes of a row that was never there may cancel.
        """
        if id(step) in self._made or not isinstance(step, PairingStep):
            return self.delta(step).items()
        if id(step) not in self._paired:
            self._paired[id(step)] = step.direct_pairs(self)
        return self._paired[id(step)]

    def once(self, step: Any, make: Callable[[DirectFlush], T]) -> T:
        """Return the result of `make` for a step in this flush, computed once."""
        if id(step) not in self._made:
            self._made[id(step)] = make(self)
        found: T = self._made[id(step)]
        return found

    def fork(self, known: Mapping[Any, Bag]) -> DirectFlush:
        """Return a flush whose additions are discarded, with given changes of some steps."""
        other = DirectFlush(self.tables, self.given)
        other._made.update((id(step), bag) for step, bag in known.items())
        return other

    def add(self, spec: TableSpec, kept: Typed, rows: Bag) -> None:
        """Add rows to a table.

        If several steps share the table, only the first one adds its rows, which are the same.
        """
        if rows and spec.name not in self.added:
            weights = pa.array(rows.values(), pa.int64())
            self.put(spec, {"row": to_arrow(kept, list(rows)), "weight": weights})

    def put(self, spec: TableSpec, columns: Mapping[str, pa.Array]) -> None:
        """Add rows to a table, given as columns."""
        self.added.setdefault(spec.name, pa.table(dict(columns)))

    def having(self, spec: TableSpec, kept: Typed, look: Lookup, keys: Iterable[Leaves]) -> Bag:
        """Return the rows of a table, before the flush, that have keys; other rows may be
        included."""
        return bag_of(kept, self.found(spec, look, keys))

    def check_anew(self, specs: Iterable[TableSpec]) -> None:
        """Raise `TooMany` if tables have too many rows for a recursion in this process."""
        _check_rows(self.rows_of(specs), MOST_ANEW)

    def rows_of(self, specs: Iterable[TableSpec]) -> int:
        """Return the number of rows of tables before the flush."""
        return sum(map(self.tables.rows_near, specs))

    def columns(self, spec: TableSpec, kept: Typed, change: Bag) -> pa.Table:
        """Return the rows of a table and then its change, with the columns `row` and `weight`;
        copies of a row are not added up."""
        weights = pa.array(change.values(), pa.int64())
        more = pa.table({"row": to_arrow(kept, list(change)), "weight": weights})
        before = self.tables.all_rows(spec)
        return pa.concat_tables([before.select(more.column_names).cast(more.schema), more])

    def all_rows(self, spec: TableSpec, kept: Typed) -> Bag:
        """Return all rows of a table before the flush."""
        check_fetched(self.tables.rows_near(spec))
        return bag_of(kept, self.tables.all_rows(spec))

    def found(
        self, spec: TableSpec, look: Lookup, keys: Iterable[Leaves], *, most: int | None = None
    ) -> pa.Table:
        """Return the columns of a table in the rows that have keys; other rows may be included.

        Parameters
        ----------
        most: the most rows to read from files.

        Raises
        ------
        TooMany: there are more rows, or too many to scan.
        """
        keys = set(keys)
        hashes = look.hashes(keys) if self.tables.buckets(spec) > 1 else None
        among = look.values(keys)
        most = most or MOST_FETCHED
        _check_rows(self.tables.rows_near(spec, hashes), most if among is None else MOST_SOUGHT)
        found = self.tables.sought(spec, hashes, among)
        _check_rows(found.num_rows, most)
        return found


def check_few(tables: StateTables, count: int) -> None:
    """Raise `TooMany` for the first flush, and for more than `MOST_DIRECT` changes."""
    _check_rows(count, MOST_DIRECT)
    if tables.number is None:
        raise TooMany("the first flush")


def check_fetched(rows: int) -> None:
    """Raise `TooMany` for more rows than this process reads from files."""
    _check_rows(rows, MOST_FETCHED)


def _check_rows(rows: int, most: int) -> None:
    """Raise `TooMany` for more than `most` rows."""
    if rows > most:
        raise TooMany(f"{rows:,} rows to look at")


def bag_of(kept: Typed, table: pa.Table) -> Bag:
    """Return the columns `row` and `weight` of a table as a bag, with the copies of a row added
    up."""
    return net_bag(pairs_of(kept, table))


def net_bag(pairs: Collection[Pair]) -> Bag:
    """Return the net bag of canonical rows, which may be repeated.

    >>> net_bag([("a", 1), ("b", 1), ("a", 2), ("b", -1)])
    Counter({'a': 3})
    """
    bag: Bag = Counter(dict(pairs))
    if len(bag) < len(pairs):
        bag.clear()
        for row, weight in pairs:
            bag[row] = bag.get(row, 0) + weight
    return without_zeros(bag)


def without_zeros(bag: Bag) -> Bag:
    """Return the bag without rows of weight 0; `bag` itself if it has none, because hashing is
    slow."""
    if all(bag.values()):
        return bag
    return Counter({row: weight for row, weight in bag.items() if weight})


def add_bags(bags: Sequence[Bag]) -> Bag:
    """Return the sum of bags as a new bag; a given bag itself, not a copy, if the others are
    empty."""
    some = [bag for bag in bags if bag]
    if len(some) < 2:
        return some[0] if some else NOTHING
    first, *others = sorted(some, key=len, reverse=True)
    found = Counter(first)
    for bag in others:
        apply_changes(found, bag)
    return found


def run_linear(chain: Sequence[plan.Node], bag: Bag) -> Bag:
    """Run linear nodes over rows, in order."""
    for node in chain:
        call = linear_map(node)
        assert call is not None
        bag = call(bag)
    return without_zeros(bag)


def over_placeholders(node: plan.Node) -> plan.Node:
    """Return a node with placeholders in place of its inputs."""
    sources = enumerate(node.inputs())
    return with_inputs(
        node,
        [plan.Recursive(None, n, f"input {n + 1}", False, shapes(source)) for n, source in sources],
    )


def evaluate_node(node: plan.Node, bags: Sequence[Bag]) -> Bag:
    """Evaluate a node of `over_placeholders` over bags."""
    if not any(bags):
        return Counter()
    return evaluate_part(node, {(None, place): bag for place, bag in enumerate(bags)})


def node_change(node: plan.Node, before: Sequence[Bag], changes: Sequence[Bag]) -> Bag:
    """Return how the rows of a node of `over_placeholders` change."""
    after = [add_bags([bag, change]) for bag, change in zip(before, changes, strict=True)]
    return bag_delta(evaluate_node(node, after), evaluate_node(node, before))


Leaves = tuple[Any, ...]
"""A key as its plain values."""
_COMPARED = (int, str, bool, date, bytes)
"""The types that Arrow compares as Python does; not floats, because of zeros."""


@dataclass(frozen=True, slots=True)
class Field:
    """A plain column of a table, and the position of its leaf in a key."""

    place: int
    path: tuple[str, ...]
    of: Plain


class Lookup:
    """Find rows by a key.

    Parameters
    ----------
    types: the types of the leaves of the key, as they are hashed.
    fields: the columns of the table that hold leaves of the key.
    """

    def __init__(self, types: Sequence[Typed], fields: Iterable[Field]) -> None:
        self._types = tuple(types)
        self._field = next((f for f in fields if f.of.kind in _COMPARED and not f.of.is_wide), None)

    def hashes(self, keys: Iterable[Leaves]) -> set[int] | None:
        """Return the hashes of keys; None if some key has no hash."""
        found = {hash_of(self._types, key) for key in keys}
        return None if None in found else found  # type: ignore[return-value]

    def values(self, keys: Iterable[Leaves]) -> tuple[tuple[str, ...], pa.Array] | None:
        """Return a column, and the values of keys in it; None if matching rows may have others."""
        field = self._field
        if field is None:
            return None
        holds = fitting(replace(field.of, optional=False))
        asked = {_equal_value(field.of.kind, key[field.place], holds) for key in keys}
        if None in asked:
            return None
        asked.discard(_OTHER)
        return field.path, pa.array(list(asked), arrow_type(field.of))


_OTHER: Any = object()
"""A value that no value of the column equals."""
UNKNOWN: Any = object()
"""A value that is not known to be in any column."""
_NUMBERS = frozenset({int, float, bool, Decimal})
_KNOWN = PLAIN | {object}
"""The types whose equality is known."""


def _equal_value(kind: type, value: Any, holds: Fits) -> Any:
    """Return the value of a column that equals `value`; `_OTHER` if none does, None if that is
    unknown."""
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


def column_value(of: Typed, value: Any) -> Any:
    """Return the value of a column of a type that equals `value`; `UNKNOWN` if none is known."""
    if value is None and of.optional:
        return None
    found = _equal_value(of.kind, value, fitting(replace(of, optional=False)))
    return UNKNOWN if found is None or found is _OTHER else found


def leaf_fields(of: Typed, *column: str) -> list[Field]:
    """Return all leaves of a column that is a whole key, with their paths."""
    return [
        Field(place, (*column, *path), kept)
        for place, (path, kept) in enumerate(_leaf_paths(of))
        if isinstance(kept, Plain)
    ]


def key_fields(
    keys: Sequence[Function], kept: Typed, count: int, column: str = "row"
) -> list[Field]:
    """Return the columns of keys that are fields, of rows with `count` bindings."""
    found: list[Field] = []
    place = 0
    for key in keys:
        read = _read_path(key, kept, count)
        if read is None:
            return found  # the leaves of the next keys have no known position
        path, of = read
        for inner, leaf in _leaf_paths(of):
            if isinstance(leaf, Plain):
                found.append(Field(place, (column, *path, *inner), leaf))
            place += 1
    return found


def _read_path(key: Function, kept: Typed, count: int) -> tuple[tuple[str, ...], Typed] | None:
    """Return the path of a callable that only reads a field of a row, and its type; else None."""
    return _expression_path(key.body, kept, count) if isinstance(key, Lifted) else None


def _expression_path(expr: Expr, kept: Typed, count: int) -> tuple[tuple[str, ...], Typed] | None:
    """Return the path of the field that an expression reads of a row, and its type.

    Return None for any other expression. `count`: the number of bindings of a row.
    """
    match expr:
        case Parameter(index):
            return ((), kept) if count == 1 else _record_field(kept, index)
        case Attribute(of, name):
            found = _expression_path(of, kept, count)
            return None if found is None else _field_below(found, name)
        case Item(of, Constant(int(place))):
            found = _expression_path(of, kept, count)
            return None if found is None else _field_below(found, place)
        case _:
            return None


def _field_below(
    found: tuple[tuple[str, ...], Typed], name: str | int
) -> tuple[tuple[str, ...], Typed] | None:
    """Return the path and type of a field of the record that was found.

    Return None if it has no such field.
    """
    path, of = found
    below = _record_field(of, name)
    return None if below is None else ((*path, *below[0]), below[1])


def _record_field(of: Typed, name: str | int) -> tuple[tuple[str, ...], Typed] | None:
    """Return the path and type of a field of a record, by its name or position.

    Return None if there is none.
    """
    if not isinstance(of, Record):
        return None
    if isinstance(name, str):
        if name not in of.names:
            return None
        name = of.names.index(name)
    elif not issubclass(of.kind, tuple) or not 0 <= name < len(of.fields):
        return None
    return (of.names[name],), of.fields[name]


def _leaf_paths(of: Typed) -> list[tuple[tuple[str, ...], Typed]]:
    """Return the leaves of a type, with their paths."""
    if not isinstance(of, Record):
        return [((), of)]
    return [
        ((name, *path), leaf)
        for name, field in zip(of.names, of.fields, strict=True)
        for path, leaf in _leaf_paths(field)
    ]
