"""Play nested queries, and compare their views with plain Python after every commit.

These are the view, its replica from edits, a subscriber of one path, a late view, and `verify()`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import reduce
from random import Random
from typing import Any
from unittest.mock import patch

from optimizer.plans import shredding
from reactive import Bag, Database, Delta
from tests.nests.drawn import (
    GROUPS,
    KEYS,
    NUMBERS,
    TABLES,
    TAGS,
    Draw,
    Row,
    Shape,
    expected,
    expected_groups,
    groups,
    query,
)
from tests.nests.replica import Replica, has_key
from tests.thresholds import drawn, thresholds

COMMITS = 7
Act = Callable[[Random, Any, bool], None]


def play(seed: int, depth: int = 3) -> None:
    """One query over one history; some seeds without trees, and with thresholds that are drawn."""
    random = Random(seed)
    kept = {"return_value": None} if seed % 3 == 2 else {"wraps": shredding.shred}
    with (
        thresholds(drawn(Random(seed)) if seed % 2 else {}),
        patch.object(shredding, "shred", **kept),
    ):
        _play(random, depth)


def _play(random: Random, depth: int) -> None:
    db = Database(optimize=random.random() < 0.75)
    is_keyed = random.random() < 0.4
    tables = {name: _table(db, name, is_keyed=is_keyed) for name in TABLES}
    shape = Draw(random).shape(random.randrange(2, depth + 2))
    sources = Sources(tables, random if random.random() < 0.3 else None)
    for _ in range(random.randrange(3)):
        change(random, db, tables, is_keyed=is_keyed)
    drawn_query = Drawn(random, sources, shape)
    states = [drawn_query.expected()]
    view = drawn_query.relation.materialize()
    hearing = None
    if drawn_query.has_paths:
        path = _path(random, drawn_query, is_keyed=is_keyed)
        hearing = Hearing(view, path)
    for _ in range(COMMITS):
        version = db.version
        change(random, db, tables, is_keyed=is_keyed)
        if db.version > version:
            states = [states[-1], drawn_query.expected()]
        weights = states[0] if drawn_query.is_before else states[-1]
        there = Bag({row: weight for row, weight in weights.items() if weight > 0})
        assert dict(view.zset().items()) == weights
        assert (Bag(view), len(view)) == (there, len(there))
        view.verify()
        if hearing is not None:
            hearing.check()
        if drawn_query.is_of_rows and not is_keyed:
            assert sorted(map(repr, view.keys())) == sorted({repr(row[0]) for row in there})
            assert all(view[row[0]] == row for row in there)
    assert drawn_query.relation.materialize().zset() == view.zset()
    for table in tables.values():
        table.clear()
    db.table(int, name="other").add(1)  # rows as they were go with the next commit
    assert not view.zset()
    if hearing is not None:
        hearing.check()


class Drawn:
    """A nest of a shape, or groups.

    The rows are current, those before the last commit, or have negative weights.
    """

    def __init__(self, random: Random, sources: Sources, shape: Shape) -> None:
        self._sources, self.shape = sources, shape
        kind = random.random()
        self.is_before, self._is_negative = kind < 0.15, 0.15 <= kind < 0.22
        self._key, self._inside = random.choice(KEYS), random.choice([*GROUPS])
        self.is_grouped = random.random() < 0.25 and sources.is_table(shape.table)
        made: Any
        if self.is_grouped:
            made = groups(sources.relations[shape.table], self._key, self._inside)
        else:
            made = query(sources.relations, shape)
        if self.is_before:
            made = made.previous()
        self.relation: Any = made.negate() if self._is_negative else made
        self.has_paths = sources.is_plain(shape) and not self._is_negative
        self.is_of_rows = not (self.is_grouped or self._is_negative)

    def expected(self) -> dict[Any, int]:
        """Return the current rows, with their weights."""
        weights = self._sources.weights()
        if self.is_grouped:
            found = expected_groups(weights[self.shape.table], self._key, self._inside)
        else:
            found = expected(weights, self.shape)
        sign = -1 if self._is_negative else 1
        return {row: sign * weight for row, weight in found.items()}

    def top_key(self, row: Row) -> Any:
        """Return the key of the group that a row is in."""
        return self._key(row)


class Hearing:
    """A replica of a view, and the deltas of one path."""

    def __init__(self, view: Any, path: tuple[Any, ...]) -> None:
        self._view = view
        self._path = path
        self._replica = Replica(view)
        self._told: list[Delta[Any]] = []
        self._hears = view.subscribe(self._told.append, path=path, snapshot=True)
        self._later: list[Delta[Any]] = []
        self._begin = Bag(self._at_path())
        self._hears_later = view.subscribe(self._later.append, path=path)

    def check(self) -> None:
        view, replica = self._view, self._replica
        assert (replica.rows, replica.subscription.error) == (Bag(view), None)
        here = Bag(self._at_path())
        assert added_up(self._told) == here, self._hears.error
        assert here.difference(self._begin) == _net(self._later), self._hears_later.error

    def _at_path(self) -> Any:
        rows: Any = list(self._view)
        for key, name in zip(self._path[::2], self._path[1::2], strict=True):
            found = [row for row in rows if has_key(row, key)]
            rows = list(getattr(found[0], name)) if found else []
        return rows


def _path(random: Random, of: Drawn, *, is_keyed: bool) -> tuple[Any, ...]:
    """A path of a query, of one or two levels."""
    if of.is_grouped:
        return of.top_key(drawn_row(random)), "rows"
    key, shape = _key(random, of.shape, is_keyed=is_keyed), of.shape
    name, inner = random.choice([*shape.inside.items()])
    if not inner.inside or random.random() < 0.5:
        return key, name
    return key, name, _key(random, inner, is_keyed=is_keyed), random.choice([*inner.inside])


class Sources:
    """Inputs of queries: a table, or, for some drawn ones, a negated table or a difference."""

    def __init__(self, tables: dict[str, Any], random: Random | None) -> None:
        self._tables = tables
        self._signs = {name: _signs(name, random) for name in tables}
        self.relations = {name: self._relation(name) for name in tables}

    def is_plain(self, shape: Shape) -> bool:
        """Return True if the rows of the view are those of tables."""
        names = [name for name in (shape.table, shape.joined) if name is not None]
        return all(map(self.is_table, names))

    def is_table(self, name: str) -> bool:
        """Return True if the rows of a name are those of its table."""
        return self._signs[name] == [(name, 1)]

    def weights(self) -> dict[str, Counter[Row]]:
        """The rows of each, with their weights."""
        found: dict[str, Counter[Row]] = {}
        for name, signs in self._signs.items():
            found[name] = Counter()
            for other, sign in signs:
                for row, weight in self._tables[other].zset().items():
                    found[name][row] += sign * weight
        return found

    def _relation(self, name: str) -> Any:
        every = [
            self._tables[other] if sign > 0 else self._tables[other].negate()
            for other, sign in self._signs[name]
        ]
        return reduce(lambda a, b: a.union_all(b), every)


def _signs(name: str, random: Random | None) -> list[tuple[str, int]]:
    if random is None:
        return [(name, 1)]
    another = random.choice(TABLES)
    return random.choice(([(name, 1)], [(name, -1)], [(name, 1), (another, -1)]))


def _table(db: Database, name: str, *, is_keyed: bool) -> Any:
    return db.table(Row, name=name, key="id") if is_keyed else db.table(Row, name=name)


def _key(random: Random, shape: Shape, *, is_keyed: bool) -> Any:
    """Draw a key of a row of the view."""
    if is_keyed and shape.joined is None:
        return random.randrange(NUMBERS)
    return drawn_row(random)


def drawn_row(random: Random) -> Row:
    return Row(random.randrange(NUMBERS), random.randrange(NUMBERS), random.choice(TAGS))


def change(random: Random, db: Database, tables: dict[str, Any], *, is_keyed: bool) -> None:
    """Insert, delete or update one to three rows in one commit."""
    with db.transaction():
        for _ in range(random.choice((1, 1, 3))):
            random.choice(ACTS)(random, tables[random.choice(TABLES)], is_keyed)


def _added(random: Random, table: Any, is_keyed: bool) -> None:
    (table.upsert if is_keyed else table.add)(drawn_row(random))


def _removed(random: Random, table: Any, is_keyed: bool) -> None:
    if len(table):
        table.remove(random.choice(list(table)))


def _patched(random: Random, table: Any, is_keyed: bool) -> None:
    if not len(table):
        return
    row = random.choice(list(table))
    key, value = row.id if is_keyed else row, random.randrange(NUMBERS)
    removed = random.sample(list(row.bag), min(len(row.bag), random.randrange(2)))
    table.patch(key, "bag", removed=removed, added=[value])


def _updated(random: Random, table: Any, is_keyed: bool) -> None:
    if len(table):
        old = random.choice(list(table))
        table.update(old, old._replace(ref=random.randrange(NUMBERS)))


ACTS: tuple[Act, ...] = (_added, _added, _added, _removed, _updated, _patched)
"""Kinds of statements."""


def _net(deltas: list[Delta[Any]]) -> dict[Any, int]:
    counts: Counter[Any] = Counter()
    for delta in deltas:
        for row, weight in delta:
            counts[row] += weight
    return {row: count for row, count in counts.items() if count}


def added_up(deltas: list[Delta[Any]]) -> Bag[Any]:
    return Bag(_net(deltas))
