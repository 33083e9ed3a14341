"""`apply`, `negate` and `previous` always stay in the process.

Nests move automatically, from the first row on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from reactive import Aggregate, Bag, Count, Database, OffloadError, Operator
from reactive.rings import INTEGERS
from tests.borders.offload.elsewhere import Together
from tests.nests.drawn import TABLES, Draw, Row, expected, query
from tests.nests.play import change
from tests.nests.replica import Replica

Query = Callable[[Any, Any], Any]
APPLY, NEGATE, PREVIOUS = "asked of all rows together", "reads rows of negate", "of each commit"


def sizes(*relations: Bag[Any]) -> list[tuple[int, int]]:
    return [(place, len(rows)) for place, rows in enumerate(relations)]


class Sizes(Operator[Any, tuple[int, int]]):
    def __init__(self) -> None:
        self.shown: list[tuple[int, int]] = []
        self.sizes = [0, 0]

    def step(self, *deltas: Any, **_: Any) -> list[tuple[tuple[int, int], int]]:
        before = self.shown
        self.sizes = [
            size + sum(weight for _, weight in delta)
            for size, delta in zip(self.sizes, deltas, strict=True)
        ]
        self.shown = [*enumerate(self.sizes)]
        return [*((row, -1) for row in before), *((row, 1) for row in self.shown)]


def counted(rows: Any) -> Any:
    return rows.group_by(lambda r: r[0]).aggregate(Count())


STAY: dict[str, tuple[Query, str]] = {
    "apply": (lambda a, b: a.apply(sizes, b), APPLY),
    "through": (lambda a, b: a.through(Sizes, b), APPLY),
    "a ring": (
        lambda a, b: a.group_by(lambda r: r[0]).aggregate(
            Aggregate(ring=INTEGERS, of=lambda r: r[1])
        ),
        "of a ring of the user",
    ),
    "reduce of one group": (lambda a, b: a.group_by(lambda r: 0).reduce(lambda k, r: r), APPLY),
    "negate": (lambda a, b: a.negate(), "keeps nothing but its rows"),
    "a sum with what is negated": (lambda a, b: a.union_all(b.negate()).distinct(), NEGATE),
    "previous": (lambda a, b: a.previous(), PREVIOUS),
    "of previous": (lambda a, b: counted(a.previous()), PREVIOUS),
    "previous of groups": (lambda a, b: counted(a).previous(), PREVIOUS),
    "what is new": (lambda a, b: a.difference_all(a.previous()), PREVIOUS),
}
"""Queries that stay in the process completely, with the reason."""
PARTS: dict[str, tuple[Query, str]] = {
    "groups of apply": (lambda a, b: counted(a.apply(sizes, b)), "aggregate"),
    "apply of groups": (lambda a, b: counted(a).apply(sizes, b), "select"),
    "negate of groups": (lambda a, b: counted(a).negate(), "aggregate"),
    "a join with apply": (
        lambda a, b: a.join(b.apply(sizes), left_key=lambda r: r[1], right_key=lambda s: s[1]),
        "join",
    ),
}
"""Queries of which a part stays, with the name of its first operator."""


class Twins:
    """A query here, and over the same tables where parts are elsewhere."""

    def __init__(self, made: Query, offload: Any) -> None:
        self._made, self._random = made, Random(7)
        self.db, here = Database(offload=offload), Database()
        self.tables = [
            [db.table(tuple[int, int], name=name) for name in "ab"] for db in (self.db, here)
        ]
        self.view, self._twin = (made(*tables).materialize() for tables in self.tables)
        self.change(9)

    def change(self, count: int = 3) -> None:
        """One commit in both."""
        rows = [(self._random.randrange(3), self._random.randrange(3)) for _ in range(count)]
        place = self._random.randrange(2)
        for table in (tables[place] for tables in self.tables):
            table.add_all(rows)
        if self._random.random() < 0.5:
            for table in (tables[place] for tables in self.tables):
                table.remove(rows[0])

    def check(self) -> None:
        """Check the view after some more commits, and a late view."""
        for _ in range(4):
            self.change()
            assert self.view.zset() == self._twin.zset()
        late = [self._made(*tables).materialize() for tables in self.tables]
        for _ in range(2):
            self.change()
            assert late[0].zset() == late[1].zset()


@pytest.mark.parametrize("name", STAY)
def test_it_stays_and_says_why(name: str) -> None:
    made, why = STAY[name]
    twins = Twins(made, Together())
    with pytest.raises(OffloadError, match=rf"cannot be moved(.|\n)*{why}"):
        twins.view.offload()
    twins.check()


@pytest.mark.parametrize("name", [*STAY, *PARTS])
def test_by_itself_no_more_of_it_moves(name: str) -> None:
    made, told = {**STAY, **PARTS}[name]
    twins = Twins(made, Together(threshold_rows=0))
    settle(twins.db)
    lines = {line.operator: line.where for line in twins.db.offload_status()}
    gone = [each for each, where in lines.items() if not where.startswith("in process")]
    if name in PARTS:
        assert gone and all(each.startswith(told) for each in gone)
        twins.view.offload()
    else:
        assert not gone
        assert all(told in where for where in lines.values())
    twins.check()


@pytest.mark.parametrize("name", ["apply", "negate", "a sum with what is negated"])
def test_it_reads_tables_whose_rows_are_elsewhere(name: str) -> None:
    twins = Twins(lambda a, b: counted(a), Together())
    twins.view.offload()
    late = [STAY[name][0](*tables).materialize() for tables in twins.tables]
    twins.check()
    assert late[0].zset() == late[1].zset()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_nests_move_by_themselves_from_the_first_row_on(seed: int) -> None:
    """The view, its copy that applies edits, and a late view equal plain Python.

    Every level with rows has moved, unless that is refused.
    """
    random = Random(seed)
    db = Database(offload=Together(threshold_rows=0))
    tables: dict[str, Any] = {name: db.table(Row, name=name) for name in TABLES}
    shape = Draw(random).shape(2)
    view = query(tables, shape).materialize()
    replica = Replica(view)
    for number in range(12):
        change(random, db, tables, is_keyed=False)
        settle(db)
        rows = {name: Counter(table) for name, table in tables.items()}
        assert Bag(view) == Bag(expected(rows, shape))
        assert (replica.rows, replica.subscription.error) == (Bag(view), None)
        if number % 3 == 2:
            assert Bag(query(tables, shape).materialize()) == Bag(view)
    assert db._offloading.overflow is not None
    has_moved = any(not line.where.startswith("in process") for line in db.offload_status())
    assert has_moved or db._offloading.overflow.refused
    view.verify()


def settle(db: Database) -> None:
    assert db._offloading.overflow is not None
    db._offloading.overflow.background.settle()
