"""Ordered levels of a tree equal a sort, with ties, NaN and moves.

Edits have places, and the commit refuses rows that cannot be compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Bag, Database
from tests.nests.replica import Replica
from tests.thresholds import THRESHOLDS, thresholds

NAN = float("nan")


class Top(NamedTuple):
    id: int
    link: int


class Part(NamedTuple):
    id: int
    top: int
    rank: Any


class Leaf(NamedTuple):
    id: int
    part: int
    rank: Any


@pytest.fixture(params=["lowest", "as it is"], autouse=True)
def sizes(request: pytest.FixtureRequest) -> Iterator[None]:
    names = ("shredding.LARGE", "tree.sequences.MANY", *(f"order_tree.{n}" for n in ORDER_TREE))
    lowest = {name: t.lowest for name, t in THRESHOLDS.items() if name.endswith(names)}
    with ExitStack() as stack:
        if request.param == "lowest":
            stack.enter_context(thresholds(lowest))
        yield


ORDER_TREE = ("FILLED", "LEAST", "MOST")


class Rows:
    """A nest: tops show ordered parts, equal for all tops with one number; parts show leaves."""

    def __init__(self, *, descending: bool, limit: int | None, late: bool, leaves: bool) -> None:
        self.how = (descending, limit, leaves)
        self.db = Database()
        self.tops = self.db.table(Top, name="tops", key="id")
        self.parts = self.db.table(Part, name="parts", key="id")
        self.leaves = self.db.table(Leaf, name="leaves", key="id")

        def parts(t: Any) -> Any:
            mine = self.parts.where(lambda p: p.top == t.link)
            if late:
                inner = mine.nest(leaves=self._leaves)
                return self._window(inner.order_by(lambda p, leaves: p.rank, descending=descending))
            ordered = self._window(mine.order_by(lambda p: p.rank, descending=descending))
            return ordered.nest(leaves=self._leaves)

        self.view: Any = self.tops.nest(parts=parts).materialize()

    def _window(self, made: Any) -> Any:
        return made if self.how[1] is None else made.limit(self.how[1])

    def _leaves(self, p: Any) -> Any:
        found = self.leaves.where(lambda x: x.part == p.id)
        return found.order_by(lambda x: x.rank) if self.how[2] else found

    def expected(self) -> Bag[Any]:
        descending, limit, is_ordered = self.how

        def inside(part: Part) -> Any:
            found = [x for x in self.leaves if x.part == part.id]
            return tuple(sorted(found, key=_place)) if is_ordered else Bag(found)

        def parts(top: Top) -> Any:
            found = [p for p in self.parts if p.top == top.link]
            found.sort(key=lambda p: p.id)
            found.sort(key=lambda p: _place(p)[:2], reverse=descending)
            return tuple((part, inside(part)) for part in found[:limit])

        return Bag((top, parts(top)) for top in self.tops)


def _place(row: Part | Leaf) -> Any:
    is_nan = row.rank != row.rank
    return is_nan, 0 if is_nan else row.rank, row.id


def change(rows: Rows, random: Random) -> None:
    rank = random.choice((0, 1, 2, 0.5, NAN))
    number = random.randrange(9)
    makes: dict[Any, Any] = {
        rows.tops: Top(random.randrange(3), random.randrange(2)),
        rows.parts: Part(number, random.randrange(2), rank),
        rows.leaves: Leaf(number, random.randrange(9), rank),
    }
    table: Any = random.choice([rows.tops, rows.parts, rows.parts, rows.leaves])
    if len(table) > 4 and random.random() < 0.3:
        table.remove(random.choice(list(table)))
    else:
        table.upsert(makes[table])


@pytest.mark.long
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("limit", [None, 2])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("leaves", [False, True])
def test_rows_stand_as_sorting_has_them_and_edits_say_where(
    descending: bool, limit: int | None, late: bool, leaves: bool
) -> None:
    random = Random(repr((descending, limit, late, leaves)))
    rows = Rows(descending=descending, limit=limit, late=late, leaves=leaves)
    assert "tree parts by t.link, in order" in str(rows.view.explain())
    replica = Replica(rows.view)
    unread: list[Any] = []
    heard = rows.view.subscribe(unread.append)
    for _ in range(40):
        with rows.db.transaction():
            for _ in range(random.choice((1, 1, 1, 6))):
                change(rows, random)
        if random.random() < 0.4:
            assert (replica.rows, replica.subscription.error) == (Bag(rows.view), None)
            assert Bag(rows.view) == rows.expected()
            assert all(rows.view[row.id] == row for row in rows.view)
        if random.random() < 0.2:
            rows.view.verify()
            with pytest.raises(ZeroDivisionError), rows.db.transaction():
                change(rows, random)
                raise ZeroDivisionError
    assert Bag(rows.view) == rows.expected() == replica.rows
    zset = sum((delta.zset for delta in unread[1:]), unread[0].zset)
    assert zset == rows.view.zset() and heard.error is None
    late_view = rows.tops.nest(
        parts=lambda t: rows.parts.where(lambda p: p.top == t.link).order_by(lambda p: p.rank)
    ).materialize()
    late_view.verify()
    for table in (rows.tops, rows.parts, rows.leaves):
        table.clear()
    assert not len(rows.view) and not replica.rows


def test_what_does_not_compare_is_refused_by_the_commit() -> None:
    rows = Rows(descending=False, limit=None, late=False, leaves=False)
    rows.tops.add(Top(1, 1))
    rows.parts.add_all([Part(1, 1, 5), Part(2, 2, "a")])
    raising = rows.parts.where(lambda p: 1 // (p.id - 7) < 9).materialize()
    with pytest.raises(TypeError, match="not supported between"):
        rows.parts.add(Part(3, 1, "b"))
    with pytest.raises(ZeroDivisionError):
        rows.parts.add(Part(7, 1, 1))
    assert [p.id for p in rows.view[1].parts] == [1] and len(raising) == 2
    rows.parts.upsert(Part(2, 1, 4))
    assert [p.id for p in rows.view[1].parts] == [2, 1]
    rows.view.verify()


def test_rows_that_do_not_compare_stand_as_they_came() -> None:
    class Thing:
        pass

    things = [Thing() for _ in range(5)]
    db = Database()
    tops, parts = db.table(int, name="tops"), db.table(Thing, name="parts", identity=True)
    view: Any = tops.nest(x=lambda t: parts.order_by(lambda p: 0)).materialize()
    tops.add(1)
    for thing in things:
        parts.add(thing)
    parts.remove(things[1])
    parts.add(things[1])
    with pytest.raises(ZeroDivisionError), db.transaction():
        parts.remove(things[3])
        parts.add(things[3])
        raise ZeroDivisionError
    assert view[1].x == tuple(things[n] for n in (0, 2, 3, 4, 1))


def test_what_stands_by_what_is_inside_is_a_value() -> None:
    rows = Rows(descending=False, limit=None, late=False, leaves=False)
    view: Any = rows.tops.nest(
        parts=lambda t: (
            rows.parts.where(lambda p: p.top == t.link)
            .nest(leaves=rows._leaves)
            .order_by(lambda p, leaves: -len(leaves))
        )
    ).materialize()
    rows.tops.add(Top(1, 1))
    rows.parts.add_all([Part(1, 1, 0), Part(2, 1, 0)])
    rows.leaves.add(Leaf(1, 2, 0))
    assert [p.id for p in view[1].parts] == [2, 1]
    view.verify()


def test_long_sequences_share_what_did_not_change() -> None:
    rows = Rows(descending=False, limit=None, late=False, leaves=True)
    rows.tops.add(Top(1, 1))
    rows.parts.add_all([Part(n, 1, n // 3) for n in range(300)])
    told: list[Any] = []
    with rows.view.subscribe(lambda delta: told.append((delta.edits, delta.zset))):
        hash(rows.view[1].parts)
        rows.leaves.add(Leaf(1, 200, 5))
        rows.parts.upsert(Part(299, 1, -1))
        rows.parts.delete(0)
    paths = [[(edit.path, edit.position, edit.weight) for edit in edits] for edits, _ in told]
    assert paths == [
        [((1, "parts", 200, "leaves"), 0, 1)],
        [((1, "parts"), 299, -1), ((1, "parts"), 0, 1)],
        [((1, "parts"), 1, -1)],
    ]
    ((found, _),) = (pair for pair in told[-1][1].items() if pair[1] > 0)
    again = rows.tops.nest(
        parts=lambda t: (
            rows.parts.where(lambda p: p.top == t.link)
            .order_by(lambda p: p.rank)
            .nest(leaves=rows._leaves)
        )
    ).materialize()
    assert hash(again[1].parts) == hash(found.parts) and again[1].parts == rows.view[1].parts
    assert [(Top(1, 1), tuple(rows.view[1].parts))] == list(rows.expected())


def test_one_row_in_an_order_touches_no_more_of_many() -> None:
    touched = []
    for size in (20, 2_000):
        rows = Rows(descending=False, limit=None, late=False, leaves=False)
        rows.tops.add(Top(1, 1))
        rows.parts.add_all([Part(n, 1, n) for n in range(size)])
        before = rows.view.stats().touched
        rows.parts.add(Part(-1, 1, size // 2))
        touched.append(rows.view.stats().touched - before)
    assert touched[0] == touched[1] <= 4
