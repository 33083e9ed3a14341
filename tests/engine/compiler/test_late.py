"""Late queries over tables that are not stored: they start from rows stored above the tables."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import (
    Avg,
    Count,
    Database,
    Delta,
    Max,
    OrderedView,
    Relation,
    Sum,
    TableError,
    fixpoint,
)
from reactive.engine.reference.evaluate import evaluate
from tests.budget import examples, sampled
from tests.random_queries.drawn import SEEDS, draw
from tests.random_queries.histories import Held
from tests.random_queries.plans import Switches
from tests.random_queries.rows import row_of
from tests.replica import Replica

Rel = Relation[*tuple[Any, ...]]
STREAM = (Held("P"),)
HELD: dict[str, Callable[[Any, Any], Any]] = {
    "the table": lambda t, s: t,
    "where": lambda t, s: t.where(lambda r: r[1] != 2),
    "select": lambda t, s: t.select(lambda r: (r[0], r[1] % 3)),
    "distinct": lambda t, s: t.where(lambda r: r[1] > 0).distinct(),
    "grouped": lambda t, s: t.group_by(lambda r: r[0]).aggregate(Count()),
    "joined": lambda t, s: t.join(s, on=lambda r, x: r[0] == x).select(lambda r, x: (x, r[1])),
    "pairs": lambda t, s: t.join(s, on=lambda r, x: r[0] == x),
    "ordered": lambda t, s: t.order_by(lambda r: r[1]).limit(4),
    "union": lambda t, s: t.union(t.select(lambda r: (r[1], r[0]))),
    "opaque": lambda t, s: t.where(Opaque(lambda r: r[1] != 1)),
}
LATER: dict[str, Callable[[Any, Any], Any]] = {
    "itself": lambda v, s: v,
    "select": lambda v, s: single(v).select(lambda r: r[1]),
    "where": lambda v, s: single(v).where(lambda r: r[1] == 1),
    "distinct": lambda v, s: single(v).select(lambda r: r[0]).distinct(),
    "where below distinct": lambda v, s: single(v).distinct().where(lambda r: r[0] == 1),
    "grouped": lambda v, s: single(v).group_by(lambda r: r[0]).aggregate(Count(), Sum(second)),
    "ungrouped": lambda v, s: single(v).aggregate(Max(second), Avg(second)),
    "joined": lambda v, s: single(v).join(s, on=lambda r, x: r[1] == x),
    "joined with itself": lambda v, s: single(v).join(single(v), on=lambda a, b: a[0] == b[1]),
    "summed over a join": lambda v, s: (
        single(v)
        .join(s, on=lambda r, x: r[0] == x)
        .group_by(lambda r, x: x)
        .aggregate(Count(), Sum(lambda r, x: r[1]))
    ),
    "anti": lambda v, s: s.anti_join(single(v), on=lambda x, r: r[0] == x),
    "ordered": lambda v, s: single(v).order_by(lambda r: (r[1], r[0])).limit(3),
    "recursive": lambda v, s: closure(single(v).distinct()),
}


class Opaque:
    """A callable that cannot be read."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, row: Any) -> Any:
        return self._function(row)


def second(row: Any) -> Any:
    return row[1]


def single(relation: Any) -> Any:
    """A relation with one binding, of pairs."""
    return relation.select(lambda *row: row[0] if len(row) == 1 else (row[0], row[1]))


def closure(edges: Any) -> Any:
    return fixpoint(
        lambda paths: edges.union(
            paths.join(edges, on=lambda p, e: p[1] == e[0]).select(lambda p, e: (p[0], e[1]))
        )
    )


class Twin:
    """A query over a table that is not stored, made early, and the same made late."""

    def __init__(self, held: str, *, optimize: bool) -> None:
        self.dbs = [Database(optimize=optimize) for _ in range(2)]
        self.streams = [db.table(tuple, name="stream", stored=False) for db in self.dbs]
        self.stored = [db.table(int, name="stored") for db in self.dbs]
        for table in self.stored:
            table.add_all([0, 1, 2])
        self.early, self.relation = (
            HELD[held](stream, stored)
            for stream, stored in zip(self.streams, self.stored, strict=True)
        )
        self.view = self.relation.materialize("held")
        self._random = Random(held)
        self._there: list[Any] = []

    def run(self, commits: int) -> None:
        """Make the same commits in both; some rows are removed again."""
        for _ in range(commits):
            there = self._there
            if there and self._random.random() < 0.3:
                self._random.shuffle(there)
                for stream in self.streams:
                    stream.remove_all(there[:2])
                del there[:2]
            else:
                rows = [(self._random.randrange(3), self._random.randrange(4)) for _ in range(2)]
                for stream in self.streams:
                    stream.add_all(rows)
                there += rows
            if self._random.random() < 0.3:
                number = self._random.randrange(4)
                for stored in self.stored:
                    stored.discard(number) if number in stored else stored.add(number)


@pytest.mark.long
@sampled
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("later", LATER)
@pytest.mark.parametrize("held", HELD)
def test_a_late_query_begins_with_what_a_view_holds(held: str, later: str, optimize: bool) -> None:
    twin = Twin(held, optimize=optimize)
    before = LATER[later](twin.early, twin.stored[0]).materialize()
    twin.run(12)
    after = LATER[later](twin.relation, twin.stored[1]).materialize("late")
    replica = Replica(after)
    assert shown(after) == shown(before)
    for _ in range(6):
        twin.run(2)
        assert shown(after) == shown(before)
        assert replica.rows == Counter(dict(after.zset().items()))
    twin.view.close()
    again = LATER[later](twin.relation, twin.stored[1])
    twin.run(4)
    assert shown(after) == shown(before)
    del again


def shown(view: Any) -> Any:
    return sorted(view.zset().items(), key=repr)


@pytest.mark.parametrize("optimize", [True, False])
def test_a_subscription_begins_there_too(optimize: bool) -> None:
    twin = Twin("where", optimize=optimize)
    twin.run(5)
    heard: list[Delta[Any]] = []
    query = twin.relation.select(lambda r: r[1])
    with query.subscribe(heard.append, snapshot=True):
        twin.run(5)
    total: Counter[Any] = Counter()
    for delta in heard:
        for row, weight in delta.items():
            total[row] += weight
    expected: Counter[Any] = Counter()
    for row, weight in twin.view.zset().items():
        expected[row[1]] += weight
    assert heard[0].is_snapshot
    assert {r: n for r, n in total.items() if n} == {r: n for r, n in expected.items() if n}


def test_late_views_can_stand_on_late_views() -> None:
    db = Database()
    clicks = db.table(int, name="clicks", stored=False)
    even = clicks.where(lambda n: n % 2 == 0).materialize("even")
    clicks.add_all(range(10))
    tenfold = even.relation.select(lambda n: n * 10).materialize("tenfold")
    large = tenfold.relation.where(lambda n: n > 30)
    view = large.materialize("large")
    counted = large.aggregate(Count()).materialize()
    even.close()
    clicks.add(12)
    assert (sorted(view), counted.value) == ([40, 60, 80, 120], 4)
    tenfold.close()
    clicks.add(14)
    assert (sorted(view), counted.value) == ([40, 60, 80, 120, 140], 5)
    assert sorted(large.select(lambda n: n + 1).materialize()) == [41, 61, 81, 121, 141]


def test_an_equal_query_written_elsewhere_finds_the_view() -> None:
    clicks = Database().table(int, name="clicks", stored=False)
    limit = 3
    held = clicks.where(lambda n: n > limit).materialize()
    clicks.add_all(range(6))
    late = clicks.where(lambda m: m > limit).aggregate(Sum(lambda n: n)).materialize()
    assert late.value == 9
    del held


def test_what_an_operator_below_a_view_holds_is_found_too() -> None:
    clicks = Database().table(int, name="clicks", stored=False)
    counted = clicks.distinct().aggregate(Count()).materialize()
    clicks.add_all([1, 2, 2, 5])
    late = clicks.distinct().where(lambda n: n > 1).materialize()
    clicks.add(7)
    assert (counted.value, sorted(late)) == (4, [2, 5, 7])


def test_explain_shows_what_a_late_view_begins_with() -> None:
    clicks = Database().table(int, name="clicks", stored=False)
    even = clicks.where(lambda n: n % 2 == 0).materialize("even")
    clicks.add(2)
    late = even.relation.select(lambda n: n * 10).materialize()
    assert str(late.explain()) == (
        "as written\n"
        "  select n * 10\n"
        "    where n % 2 == 0\n"
        "      table clicks (not stored)\n"
        "optimized\n"
        "  select n * 10\n"
        "    rows of view 'even'\n"
        "runs as\n"
        "  pipeline select n * 10\n"
        "    rows of view 'even'\n"
        "rules: none"
    )
    assert "rows of view 'even'" in late.explain(analyze=True)
    assert "rows of" not in even.explain()


def test_a_late_view_is_no_heavier_than_an_early_one() -> None:
    clicks = Database().table(int, name="clicks", stored=False)
    even = clicks.where(lambda n: n % 2 == 0).materialize("even")
    clicks.add_all(range(100))
    late = even.relation.aggregate(Sum(lambda n: n)).materialize()
    work = late.stats().touched
    clicks.add(100)
    assert late.stats().touched - work <= 4
    even.close()
    gc.collect()
    clicks.add(102)
    assert late.value == sum(range(0, 104, 2))


def test_where_nobody_knows_the_rows_it_is_said_of_what() -> None:
    db = Database()
    clicks = db.table(int, name="clicks", stored=False)
    odd = clicks.where(lambda n: n % 2 == 1).materialize("odd")
    heard = clicks.select(lambda n: -n).subscribe(lambda delta: None)
    clicks.add(1)
    nodes = len(db._engine.graph.nodes())
    refusals: list[tuple[Rel, str]] = [
        (clicks, "table clicks"),
        (clicks.where(lambda n: n > 3), "where <lambda> (test_late.py:"),
        (clicks.select(lambda n: -n).distinct(), "select <lambda> (test_late.py:"),
        (odd.relation.union(clicks.where(lambda n: n == 4)), "where <lambda>"),
        (clicks.aggregate(Count()), "aggregate Count()"),
    ]
    for query, part in refusals:
        for make in (query.materialize, lambda q=query: q.subscribe(print, snapshot=True)):
            with pytest.raises(TableError) as caught:
                make()
            first, second, third = str(caught.value).splitlines()
            assert first == "table 'clicks' is not stored, and rows have flowed already"
            assert second.startswith(f"  nobody holds what became of them in: {part}")
            assert third == (
                "  query a view that was there before (view.relation), "
                "or make the table with stored=True"
            )
        assert len(db._engine.graph.nodes()) == nodes
    clicks.add(3)
    assert sorted(odd) == [1, 3]
    del heard


def test_a_table_that_has_not_flowed_is_known() -> None:
    db = Database()
    clicks, other = (db.table(int, name=name, stored=False) for name in ("clicks", "other"))
    even = clicks.where(lambda n: n % 2 == 0).materialize()
    clicks.add(2)
    both = even.relation.union_all(other).materialize()
    other.add(5)
    clicks.add(4)
    assert sorted(both) == [2, 4, 5]


@examples(120)
@given(seed=SEEDS, optimize=st.booleans())
def test_any_query_can_come_late_to_any_view(seed: int, optimize: bool) -> None:
    below = draw(seed, Switches(sizes=(0, 1, 2), pairs=True), tables=STREAM)
    above = draw(seed + 1, tables=STREAM, modes=[below.mode])
    random, db = Random(seed), Database(optimize=optimize)
    (stream,) = below.open(db, stored=False)
    (held,) = below.relations([stream])
    view = held.materialize("held")
    rows: list[Any] = []

    def run() -> None:
        for _ in range(random.randrange(4)):
            if rows and random.random() < 0.4:
                stream.remove(rows.pop(random.randrange(len(rows))))
            else:
                rows.append(row_of("P", random, below.mode))
                stream.add(rows[-1])

    run()
    (late,) = above.relations([held])
    after = late.materialize("late")
    for _ in range(2):
        there = Counter(rows)
        wanted = evaluate(late.plan, lambda table: there.items())
        if isinstance(after, OrderedView):  # tied rows keep the order of their arrival
            assert len(after) == wanted.total()
        else:
            assert Counter(dict(after.zset().items())) == wanted, (below, above)
        run()
    view.close()
    run()
