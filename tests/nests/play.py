"""Play nested queries: after every commit the view, its replica from edits, what hears of one path,
a late view and `verify()` agree with plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from reactive import Bag, Database, Delta
from tests.nests.drawn import NUMBERS, TABLES, TAGS, Draw, Row, Shape, expected, query
from tests.nests.replica import Replica

COMMITS = 7
Act = Callable[[Random, Any, bool], None]


def play(seed: int, depth: int = 3) -> None:
    """One query over one history."""
    random = Random(seed)
    db = Database(optimize=random.random() < 0.75)
    is_keyed = random.random() < 0.4
    tables = {name: _table(db, name, is_keyed=is_keyed) for name in TABLES}
    shape = Draw(random).shape(random.randrange(2, depth + 2))
    begins = random.randrange(3)
    for _ in range(begins):
        change(random, db, tables, is_keyed=is_keyed)
    view = query(tables, shape).materialize()
    replica, inner = Replica(view), list[Delta[Any]]()
    name, first = next(iter(shape.inside)), _key(random, shape, is_keyed=is_keyed)
    hears = view.subscribe(inner.append, path=(first, name), snapshot=True)
    for _ in range(COMMITS):
        change(random, db, tables, is_keyed=is_keyed)
        rows = {name: list(table) for name, table in tables.items()}
        assert Bag(view) == expected(rows, shape)
        view.verify()
        assert (replica.rows, replica.subscription.error) == (Bag(view), None)
        at_key = [x for row in view if first in (row.row, row.row.id) for x in getattr(row, name)]
        if len({*view.items()}) == len(view):  # no two copies of a row, of which one is heard of
            assert added_up(inner) == Bag(at_key), hears.error
    assert Bag(query(tables, shape).materialize()) == Bag(view)
    for table in tables.values():
        table.clear()
    assert not len(view)
    assert not replica.rows


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


def _updated(random: Random, table: Any, is_keyed: bool) -> None:
    if len(table):
        old = random.choice(list(table))
        table.update(old, old._replace(ref=random.randrange(NUMBERS)))


ACTS: tuple[Act, ...] = (_added, _added, _added, _removed, _updated)
"""What a statement does: changes deep in a row, `table.patch(key, path, ...)`, belong here too."""


def added_up(deltas: list[Delta[Any]]) -> Bag[Any]:
    counts: Counter[Any] = Counter()
    for delta in deltas:
        for row, weight in delta:
            counts[row] += weight
    return Bag({row: count for row, count in counts.items() if count})
