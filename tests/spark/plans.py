"""Queries of every kind, and two databases that are given the same: with and without Spark."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from reactive import (
    Aggregate,
    Avg,
    Collect,
    Count,
    CountDistinct,
    Database,
    GroupedView,
    Max,
    Min,
    Monoid,
    OffloadError,
    OrderedView,
    Sum,
    fixpoint,
)
from reactive.api.literal import literal
from reactive.engine.collections.order import tie_key
from reactive.engine.collections.zset import canonical
from tests.replica import Replica
from tests.spark.ways import Ways

NAN = math.nan


@dataclass(frozen=True, slots=True)
class Inner:
    """A value made of others."""

    value: Any


@dataclass(frozen=True, slots=True)
class Row:
    """A row; keys and values are of many types, and some of different types are equal."""

    key: Any
    value: Any


KEYS: tuple[Any, ...] = (
    *(0, False, -0.0, 1, True, 1.0, Decimal(1), Fraction(1), None, NAN, float("inf")),
    *(2**70, float(2**70), "a", b"a", "", (), (None, NAN), (1, True), (True, 1.0)),
    *(Inner(1), Inner(True), Inner(NAN), Inner((None, -0.0)), frozenset([1, "a"])),
)
NUMBERS: tuple[Any, ...] = (
    *(1, 2, 3, True, 1.0, 0.1, 0.2, 0.3, -0.0, 0, 1e16, -1e16, 1e308, 5e-324),
    *(2**70, -(2**70), 7, 0.5),
)
"""Values that can be summed exactly."""
ODD: tuple[Any, ...] = (NAN, float("inf"), None)
"""Values with a sum that is no number, or without a sum."""


class Hidden:
    """A callable that cannot be lifted."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *rows: Any) -> Any:
        return self._function(*rows)


def number(row: Row) -> Any:
    """The value as a number; a NaN if it is none."""
    return NAN if row.value is None else row.value


def rank(row: Row) -> Any:
    """A place in an order that has many rows each."""
    value = row.value
    return 0 if value is None or value != value else int(min(max(value, 0), 9) * 3)


def rank_of_two(row: Row, key: Any) -> Any:
    return rank(row)


def key(row: Row) -> Any:
    return row.key


BY_KEY: dict[str, Any] = {"left_key": lambda a: a.key, "right_key": lambda b: b.key}
Query = Callable[[Any, Any], Any]
"""A query over two tables of `Row`."""

JOINS: dict[str, Query] = {
    "join, residual": lambda a, b: a.join(b, on=lambda x, y: x.key == y.key and x.value != y.value),
    "join, hidden residual": lambda a, b: a.join(
        b, on=Hidden(lambda x, y: rank(x) < rank(y)), **BY_KEY
    ),
    "join, selected": lambda a, b: (
        a.join(b, on=lambda x, y: x.key == y.key)
        .where(lambda x, y: x.value is not None)
        .select(lambda x, y: (x.value, y.value))
    ),
    "left_join": lambda a, b: a.left_join(b, on=lambda x, y: x.key == y.key),
    "right_join": lambda a, b: a.right_join(
        b, on=lambda x, y: x.key == y.key and x.value == y.value
    ),
    "full_join": lambda a, b: a.full_join(b, on=lambda x, y: x.key == y.key),
    "full_join, hidden": lambda a, b: a.full_join(
        b, on=Hidden(lambda x, y: rank(x) == rank(y)), **BY_KEY
    ),
    "semi_join": lambda a, b: a.semi_join(b, on=lambda x, y: x.key == y.key),
    "anti_join": lambda a, b: a.anti_join(b, on=lambda x, y: x.key == y.key and x.value != y.value),
}
SETS: dict[str, Query] = {
    "distinct": lambda a, b: a.distinct(),
    "distinct, chain": lambda a, b: (
        a.where(lambda x: x.value is not None)
        .select(lambda x: x.key)
        .distinct()
        .where(lambda k: k is not None)
        .select(lambda k: (k, 1))
    ),
    "unnest": lambda a, b: a.distinct().unnest(lambda x: (x.key, x.key, x.value)),
    "select_many": lambda a, b: a.select_many(lambda x: [x.key, x.value]).distinct(),
    "extended": lambda a, b: a.distinct().extend(lambda x: x.key).bind(lambda x, k: k, rank_of_two),
    "beside values": lambda a, b: a.distinct().join(
        a._new(literal([0, 1, None], None)), on=lambda x, v: x.value == v
    ),
    "union": lambda a, b: a.union(b),
    "union_all": lambda a, b: a.distinct().union_all(b),
    "difference": lambda a, b: a.difference(b),
    "difference_all": lambda a, b: a.difference_all(b),
    "intersection": lambda a, b: a.intersection(b),
    "intersection_all": lambda a, b: a.intersection_all(b),
}
GROUPS: dict[str, Query] = {
    "totals": lambda a, b: a.group_by(lambda x: x.key).aggregate(Count(), Sum(number), Avg(number)),
    "totals, few groups": lambda a, b: (
        a.where(lambda x: x.value is not None)
        .group_by(Hidden(lambda x: rank(x) % 2))
        .aggregate(Sum(lambda x: x.value))
    ),
    "others": lambda a, b: a.group_by(lambda x: (x.key, 1)).aggregate(
        *(Min(rank), Max(rank), CountDistinct(lambda x: x.value), Collect(lambda x: x.value))
    ),
    "none left out": lambda a, b: a.group_by(lambda x: x.key).aggregate(
        *(kind(lambda x: x.value, skip_none=True) for kind in (Sum, Avg, Min, CountDistinct))
    ),
    "totals, none left out": lambda a, b: a.group_by(lambda x: x.key).aggregate(
        *(Count(), Sum(lambda x: x.value, skip_none=True), Avg(lambda x: x.value, skip_none=True))
    ),
    "own": lambda a, b: a.group_by(lambda x: x.key).aggregate(
        Aggregate(0, lambda s, v: s + v, lambda s, v: s - v, of=rank),
        Monoid(frozenset(), frozenset.union, of=lambda x: frozenset([x.value])),
    ),
    "having": lambda a, b: (
        a.group_by(lambda x: x.key)
        .aggregate(Count())
        .where(lambda k, n: n > 1)
        .select(lambda k, n: (n, k))
    ),
    "of a join": lambda a, b: (
        a.join(b, on=lambda x, y: x.key == y.key)
        .group_by(lambda x, y: y.value)
        .aggregate(Count(), Sum(lambda x, y: rank(x)))
    ),
}
OTHERS: dict[str, Query] = {
    "first": lambda a, b: ranked(a).order_by(lambda x: x[0]).limit(3),
    "last": lambda a, b: ranked(a).order_by(lambda x: x[0], descending=True).limit(4, 2),
    "ordered over a part": lambda a, b: ranked(a).distinct().order_by(lambda x: x[0]),
    "one value": lambda a, b: a.distinct().aggregate(Count()),
    "edges": lambda a, b: edges(a),
    "recursion": lambda a, b: _closed(edges(a)),
}


def ranked(rows: Any) -> Any:
    return rows.select(lambda x: (rank(x), number(x)))


def edges(rows: Any) -> Any:
    return rows.select(lambda x: (x.key, x.value)).distinct()


def _closed(edges: Any) -> Any:
    return fixpoint(
        lambda paths: edges.union(
            paths.join(edges, on=lambda p, e: p[1] == e[0]).select(lambda p, e: (p[0], e[1]))
        )
    )


class Pairing:
    """Equal queries over equal tables, on Spark and in the process.

    Parameters
    ----------
    tables: makes the tables of a database.
    queries: makes relations of them, by name.
    """

    def __init__(
        self,
        offload: Any,
        tables: Callable[[Database], list[Any]],
        queries: Mapping[str, Callable[..., Any]],
        *,
        optimize: bool = True,
    ) -> None:
        self.db = Database(offload=offload, optimize=optimize)
        self.twin = Database(optimize=optimize)
        self.tables = tables(self.db)
        self.twins = tables(self.twin)
        self.views = {n: q(*self.tables).materialize(n) for n, q in queries.items()}
        self.wanted = {n: q(*self.twins).materialize(n) for n, q in queries.items()}
        self.replicas = [Replica(view) for view in self.views.values()]
        self.refused: dict[str, str] = {}
        self._ways = Ways(len(queries))

    def offload(self) -> None:
        """Move what can be moved; keep why the rest cannot."""
        for name, view in self.views.items():
            try:
                view.offload()
            except OffloadError as error:
                self.refused[name] = str(error)

    def change(self, changes: Callable[[list[Any]], object]) -> None:
        """One commit in both."""
        for db, tables in ((self.db, self.tables), (self.twin, self.twins)):
            with db.transaction():
                changes(tables)

    def come(self, seed: int, count: int, values: tuple[Any, ...] = NUMBERS) -> None:
        """Insert `count` rows into each table, and delete a third as many, if it has them."""
        gone = [some_of(table, seed, count // 3) for table in self.twins]

        def change(tables: list[Any]) -> None:
            for place, table in enumerate(tables):
                table.add_all(rows(seed + place, count, values))
                table.remove_all(gone[place])

        self.change(change)

    def check(self, keys: Iterable[Any] = (), *, verify: bool = True) -> None:
        """All views after a flush equal their twins, however they are read."""
        with self._ways.next():
            self.db.flush()
        for name, view in self.views.items():
            compare(view, self.wanted[name], list(keys), name)
            if verify:
                view.verify()
        for replica in self.replicas:
            replica.check()

    def close(self) -> None:
        self.db.close()


def compare(view: Any, twin: Any, keys: list[Any], name: str, *, looked_up: bool = True) -> None:
    """Two views tell the same; also of single rows and keys, if these are to be `looked_up`."""
    if isinstance(twin, OrderedView):
        assert [*map(place_of, view)] == [*map(place_of, twin)], name
        return
    wanted = dict(twin.zset().items())
    found = list(view.zset().items())
    assert dict(found) == wanted, (name, set(dict(found).items()) ^ set(wanted.items()))
    assert len(found) == len(wanted), name
    assert len(view) == len(twin), name
    if not looked_up:
        return
    for row in [*list(wanted)[:2], Row("not", "there"), None]:
        assert view.count(row) == twin.count(row), (name, row)
        assert (row in view) == (row in twin), (name, row)
    if isinstance(twin, GroupedView):
        for each in [*keys, "not there"]:
            assert told(view.get(each, "none")) == told(twin.get(each, "none")), (name, each)
            assert (each in view) == (each in twin), (name, each)
        assert set(view.keys()) == set(twin.keys()), name
    if name == "one value":
        assert view.value == twin.value


def told(value: Any) -> Any:
    """Return True if two values are equal, or both NaN."""
    return canonical((value,))


def place_of(row: Any) -> Any:
    """Return the sort key of a row in an order; rows with equal keys may be exchanged."""
    return row[0], tie_key(row)


def rows(seed: int, count: int, values: tuple[Any, ...] = NUMBERS) -> list[Row]:
    """Rows that a seed decides."""
    own = random.Random(seed)
    return [Row(own.choice(KEYS), own.choice(values)) for _ in range(count)]


def some_of(table: Any, seed: int, count: int) -> list[Any]:
    """Different rows that a table holds, the same of tables that are equal."""
    held = sorted(dict(table.zset().items()), key=repr)
    return random.Random(seed).sample(held, min(count, len(held)))
