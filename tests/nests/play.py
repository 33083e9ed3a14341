"""Play nested queries: after every commit the view, its replica from edits, what hears of one path,
a late view and `verify()` agree with plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import reduce
from random import Random
from typing import Any
from unittest.mock import patch

from optimizer.plans import shredding
from reactive import Bag, Database, Delta
from tests.nests.drawn import NUMBERS, TABLES, TAGS, Draw, Row, Shape, expected, query
from tests.nests.replica import Replica
from tests.thresholds import drawn, thresholds

COMMITS = 7
Act = Callable[[Random, Any, bool], None]


def play(seed: int, depth: int = 3) -> None:
    """One query over one history; some seeds without trees, and with thresholds that are drawn."""
    random = Random(seed)
    kept = {"return_value": None} if seed % 3 == 2 else {"wraps": shredding.shredded}
    with (
        thresholds(drawn(Random(seed)) if seed % 2 else {}),
        patch.object(shredding, "shredded", **kept),
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
    view = query(sources.relations, shape).materialize()
    hearing = None
    if sources.is_plain(shape):
        hearing = Hearing(view, next(iter(shape.inside)), _key(random, shape, is_keyed=is_keyed))
    for _ in range(COMMITS):
        change(random, db, tables, is_keyed=is_keyed)
        weights = expected(sources.weights(), shape)
        there = Bag({row: weight for row, weight in weights.items() if weight > 0})
        assert dict(view.zset().items()) == weights
        assert (Bag(view), len(view)) == (there, len(there))
        view.verify()
        if hearing is not None:
            hearing.check()
        if not is_keyed:
            assert sorted(map(repr, view.keys())) == sorted({repr(row[0]) for row in there})
            assert all(view[row[0]] == row for row in there)
    assert query(sources.relations, shape).materialize().zset() == view.zset()
    for table in tables.values():
        table.clear()
    assert not view.zset()
    if hearing is not None:
        hearing.check()


class Hearing:
    """A replica of a view, and what is heard of one path."""

    def __init__(self, view: Any, name: str, key: Any) -> None:
        self._view = view
        self._name = name
        self._key = key
        self._replica = Replica(view)
        self._told: list[Delta[Any]] = []
        self._hears = view.subscribe(self._told.append, path=(key, name), snapshot=True)

    def check(self) -> None:
        view, replica, key = self._view, self._replica, self._key
        assert (replica.rows, replica.subscription.error) == (Bag(view), None)
        at_key = [x for r in view if key in (r.row, r.row.id) for x in getattr(r, self._name)]
        if len({*view.items()}) == len(view):  # no two copies, of which one is heard of
            assert added_up(self._told) == Bag(at_key), self._hears.error


class Sources:
    """What queries read: a table, or, if some are drawn, one negated or without another's rows."""

    def __init__(self, tables: dict[str, Any], random: Random | None) -> None:
        self._tables = tables
        self._signs = {name: _signs(name, random) for name in tables}
        self.relations = {name: self._relation(name) for name in tables}

    def is_plain(self, shape: Shape) -> bool:
        """Whether the rows of the view are those of tables."""
        names = [name for name in (shape.table, shape.joined) if name is not None]
        return all(self._signs[name] == [(name, 1)] for name in names)

    def weights(self) -> dict[str, Counter[Row]]:
        """The rows of each, with their weights."""
        found: dict[str, Counter[Row]] = {}
        for name, signs in self._signs.items():
            found[name] = Counter()
            for other, sign in signs:
                for row, weight in self._tables[other].items():
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
    """What a row of the view may be found by."""
    if is_keyed and shape.joined is None:
        return random.randrange(NUMBERS)
    return drawn_row(random)


def drawn_row(random: Random) -> Row:
    return Row(random.randrange(NUMBERS), random.randrange(NUMBERS), random.choice(TAGS))


def change(random: Random, db: Database, tables: dict[str, Any], *, is_keyed: bool) -> None:
    """One to three rows that come, go or are another then, in one commit."""
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
"""What a statement does."""


def added_up(deltas: list[Delta[Any]]) -> Bag[Any]:
    counts: Counter[Any] = Counter()
    for delta in deltas:
        for row, weight in delta:
            counts[row] += weight
    return Bag({row: count for row, count in counts.items() if count})
