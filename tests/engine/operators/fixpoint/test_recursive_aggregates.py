"""Recursion through own aggregates is the least solution by hand, or an error that says why."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest

import reactive
from optimizer.errors import StratificationError
from reactive import (
    Avg,
    Collect,
    Count,
    CountDistinct,
    Database,
    Max,
    Min,
    PlanError,
    Sum,
    fixpoint,
    monotone,
)
from reactive.errors import FixpointError
from tests.engine.operators.fixpoint.recursive_aggregates import (
    PROGRAMS,
    Friend,
    Need,
    Program,
    Share,
    control,
)

HISTORIES = 3
COMMITS = 8


@pytest.mark.parametrize("seed", range(HISTORIES))
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_is_its_least_solution_after_every_commit(program: Program, seed: int) -> None:
    random = Random(seed)
    db = Database(optimize=seed != 1)
    query, tables = program.query(db)
    view = query.materialize()
    facts: dict[str, list[Any]] = {name: [] for name in tables}
    for _ in range(COMMITS):
        before = {name: list(rows) for name, rows in facts.items()}
        is_undone = random.random() < 0.2
        with suppress(KeyError), db.transaction():
            for _ in range(random.choice((1, 1, 3, 20))):
                name = random.choice(list(tables))
                table, make = tables[name]
                rows = facts[name]
                if rows and random.random() < 0.45:
                    table.remove(rows.pop(random.randrange(len(rows))))
                else:
                    rows.append(make(random))
                    table.add(rows[-1])
            if is_undone:
                raise KeyError
        facts = before if is_undone else facts
        assert sorted(view) == sorted(program.by_hand(facts))
    view.verify()
    with db.transaction():
        for table, _ in tables.values():
            table.clear()
    assert (list(view), view.stats().rows) == ([], 0)


def test_a_total_that_stays_above_its_test_touches_no_row_that_is_made_of_it() -> None:
    db = Database()
    query, tables = control(db)
    view, shares = query.materialize(), tables["shares"][0]
    shares.add_all([Share(0, 1, 60), Share(0, 1, 30)])
    shares.add_all([Share(n, n + 1, 51) for n in range(1, 40)])
    before = view.stats().touched
    shares.remove(Share(0, 1, 30))
    assert view.stats().touched - before < 20
    assert len(view) == 40 * 41 // 2


def test_a_negative_number_is_refused_by_the_commit() -> None:
    db = Database()
    query, tables = control(db)
    view, shares = query.materialize(), tables["shares"][0]
    shares.add(Share(1, 2, 51))
    with pytest.raises(FixpointError, match=r"sums -4 of the row Share\(owner=2, of=3"):
        shares.add(Share(2, 3, -4))
    assert (len(view), len(shares)) == (1, 1)


Test = Callable[[int, Any], object]


def Monoid(value: Any) -> Any:
    return reactive.Monoid(0, max, of=value)


def Rising(value: Any) -> Any:
    return reactive.Aggregate(0, lambda s, v: s + v, lambda s, v: s - v, of=value, monotone="rises")


@monotone
def is_large(total: int, of: int) -> bool:
    return total**2 > 8 or of > 3


@monotone
def is_odd(n: int) -> bool:
    return n % 2 == 1


def made(db: Database, kind: Any, test: Test) -> Any:
    aggregate = kind() if kind is Count else kind(lambda a, f: a)
    friends, organisers = db.table(Friend, name="friends"), db.table(int, name="organisers")
    return fixpoint(
        lambda attends: organisers.union(
            attends.join(friends, on=lambda a, f: a == f.who)
            .group_by(lambda a, f: f.of)
            .aggregate(aggregate)
            .where(test)
            .select(lambda of, n: of)
        )
    )


REFUSED: list[tuple[Any, Test, str]] = [
    (Count, lambda of, n: n < 3, "where n < 3 may drop a row later"),
    (Count, lambda of, n: n == 3, "where n == 3 may drop a row later"),
    (Count, lambda of, n: not n > 3, "where not n > 3 may drop a row later"),
    (Count, lambda of, n: -2 * n > -9, "where -2 * n > -9 may drop a row later"),
    (Count, lambda of, n: n - n >= 0, "where n - n >= 0 may drop a row later"),
    (Min, lambda of, n: n > 3, "where n > 3 may drop a row later"),
    (Avg, lambda of, n: n > 3, "Avg may rise or fall with more rows"),
    (Collect, lambda of, n: 3 not in n, "where 3 not in n may drop a row later"),
    (Collect, lambda of, n: min(n) > 3, "where min(n) > 3 may drop a row later"),
    (Count, lambda of, n: n - 2, "where n - 2 may drop a row later"),
    (Count, lambda of, n: (n or 5) > 3, "where (n or 5) > 3 may drop a row later"),
    (Count, lambda of, n: (n > 2) < of, "where (n > 2) < of may drop a row later"),
    (Min, lambda of, n: not n, "where not n may drop a row later"),
    (Max, lambda of, n: n, "where n may drop a row later"),
    (Max, lambda of, n: len(n) > 3, "where len(n) > 3 may drop a row later"),
    (Max, lambda of, n: 3 in n, "where 3 in n may drop a row later"),
    (Max, lambda of, n: int(n) > 3, "where int(n) > 3 may drop a row later"),
    (Max, lambda of, n: n + n > of, "where n + n > of may drop a row later"),
    (Monoid, lambda of, n: n > 3, "Monoid may rise or fall with more rows"),
]


@pytest.mark.parametrize(("kind", "test", "why"), REFUSED)
def test_a_test_that_is_not_monotone_is_refused(kind: Any, test: Test, why: str) -> None:
    with pytest.raises(StratificationError) as caught:
        made(Database(), kind, test)
    lines = str(caught.value).splitlines()
    assert lines[1:3] == ["  attends -> aggregate -> attends", f"  not monotone: {why}"]


ACCEPTED: list[tuple[Any, Test]] = [
    (Min, lambda of, n: n < 3),
    (Collect, lambda of, n: 3 in n),
    (Collect, lambda of, n: len(n) > 2),
    (Sum, lambda of, n: 2 * n + of > 9 and n >= 1),
    (Max, lambda of, n: not n <= 2),
    (Max, lambda of, n: 2 * n + 1 > of and n + 1 > 2),
    (Collect, lambda of, n: max(n) > 3 or min(n) < 1),
    (Count, lambda of, n: n and min(n, 3) > 1),
    (Rising, lambda of, n: n > 3),
    (Rising, lambda of, n: n and is_large(n, of)),
]


@pytest.mark.parametrize(("kind", "test"), ACCEPTED)
def test_a_monotone_test_is_followed(kind: Any, test: Test) -> None:
    db = Database()
    view = made(db, kind, test).materialize()
    tables = {table.name: table for table in db.tables()}
    random = Random(7)
    for _ in range(15):
        name = random.choice(list(tables))
        row: Any = random.randrange(5)
        tables[name].add(row if name == "organisers" else Friend(row, random.randrange(5)))
        view.verify()
        if len(tables[name]) > 6:
            tables[name].remove(random.choice(list(tables[name])))
            view.verify()


def test_a_value_in_the_rows_needs_a_relation_that_keeps_one_row() -> None:
    db = Database()
    needs = db.table(Need, name="needs")

    def step(rows: Any) -> Any:
        totals = rows.group_by(lambda n: n.part).aggregate(Sum(lambda n: n.n))
        return needs.union_all(totals.select(lambda part, n: Need(part + 1, n)))

    with pytest.raises(StratificationError, match=r"a test such as >= decides, or keep=Max"):
        fixpoint(step)
    with pytest.raises(StratificationError, match=r"keeps the smallest row, and the value goes"):
        fixpoint(step, keep=Min(lambda n: n.n), by=lambda n: n.part)


def test_rows_of_a_join_that_are_not_told_apart_are_refused() -> None:
    db = Database()
    shares = db.table(Share, name="shares")

    def step(rows: Any) -> Any:
        through = rows.join(shares, on=lambda c, s: c == s.owner).select(lambda c, s: s.of)
        counted = through.join(shares, on=lambda c, s: c == s.owner).group_by(lambda c, s: s.of)
        more = counted.aggregate(Count()).where(lambda of, n: n > 2).select(lambda of, n: of)
        return shares.select(lambda s: s.owner).union(more)

    with pytest.raises(StratificationError, match="equal rows of select count as one"):
        fixpoint(step)


def test_strict_mode_lets_members_of_a_group_be_replaced_by_better_ones() -> None:
    """A shorter path replaces the member that the old one led to: the minimum is no worse."""
    db = Database(strict=True)
    edges = db.table(tuple[int, int, int], name="edges")
    paths = fixpoint(
        lambda paths: (
            edges.where(lambda e: e[0] == 0)
            .select(lambda e: (e[1], e[2]))
            .union_all(
                paths.join(edges, on=lambda p, e: p[0] == e[0]).select(
                    lambda p, e: (e[1], p[1] + e[2])
                )
            )
            .group_by(lambda p: p[0])
            .aggregate(Min(lambda p: p[1]))
            .select(lambda node, length: (node, length))
        ),
        keep=Min(lambda p: p[1]),
        by=lambda p: p[0],
    ).materialize()
    edges.add_all([(0, 1, 5), (1, 2, 1)])
    assert sorted(paths) == [(1, 5), (2, 6)]
    edges.add((0, 1, 3))
    assert sorted(paths) == [(1, 3), (2, 4)]
    edges.remove((0, 1, 3))
    assert sorted(paths) == [(1, 5), (2, 6)]


def lose_rows(view: Any, db: Database) -> None:
    tables = {table.name: table for table in db.tables()}
    tables["organisers"].add_all([1, 2, 3])
    for who in range(1, 4):
        tables["friends"].add(Friend(9, who))
    tables["organisers"].remove(1)


def test_strict_mode_finds_what_is_not_as_monotone_as_it_is_declared() -> None:
    falling = reactive.Aggregate(
        0, lambda s, v: s - 1, lambda s, v: s + 1, of=lambda a, f: a, monotone="rises"
    )
    for aggregate, test, why in (
        (falling, lambda of, n: n > -2, "Aggregate is not monotone: -2 with one row more than -1"),
        (Count(), lambda of, n: is_odd(n), "is not monotone: it has "),
    ):
        db = Database(strict=True)
        made_of: Any = lambda value, found=aggregate: found  # noqa: E731
        view = made(db, made_of, test).materialize()
        with pytest.raises(FixpointError, match=why):
            lose_rows(view, db)
        view.verify()


def test_a_declaration_that_is_none_is_refused() -> None:
    add: Any = lambda s, v: s + v  # noqa: E731
    with pytest.raises(PlanError, match='write monotone="rises" or monotone="falls"'):
        reactive.Aggregate(0, add, add, monotone=True)  # type: ignore[call-overload]
    with pytest.raises(PlanError, match="monotone takes a function of your own"):
        monotone(len)


def test_a_maximum_of_nan_is_refused_by_the_commit() -> None:
    db = Database()
    marks = db.table(tuple[int, float], name="marks")
    view = fixpoint(
        lambda good: (
            marks.where(lambda m: m[1] > 9)
            .select(lambda m: m[0])
            .union(
                good.join(marks, on=lambda g, m: g < m[0])
                .group_by(lambda g, m: m[0])
                .aggregate(Max(lambda g, m: m[1]))
                .where(lambda n, most: most > 3)
                .select(lambda n, most: n)
            )
        )
    ).materialize()
    marks.add_all([(1, 10.0), (2, 4.0)])
    with pytest.raises(FixpointError, match="the maximum of nan of the row"):
        marks.add((2, float("nan")))
    assert sorted(view) == [1, 2]


def test_values_that_become_equal_are_not_counted_apart() -> None:
    friends: Any = Database().table(Friend, name="friends")

    def step(rows: Any, outer: Any, *, is_distinct: bool) -> Any:
        counts = rows.join(friends, on=lambda r, f: r == f.who).group_by(lambda r, f: f.of)
        pairs = counts.aggregate(Count()).select(lambda of, n: (of % 2, n))
        pairs = pairs.distinct() if is_distinct else pairs
        many = pairs.group_by(lambda p: p[0]).aggregate(outer).where(lambda k, m: m > 1)
        return friends.select(lambda f: f.of).union(many.select(lambda k, m: k))

    second: Any = lambda p: p[1]  # noqa: E731
    different = CountDistinct(second)
    with pytest.raises(StratificationError, match="CountDistinct of the value may rise or fall"):
        fixpoint(lambda r: step(r, different, is_distinct=False))
    with pytest.raises(StratificationError, match="distinct may make rows of values equal"):
        fixpoint(lambda r: step(r, Count(), is_distinct=True))


def test_elements_of_a_collected_group_are_rows_again() -> None:
    db = Database()
    friends, organisers = db.table(Friend, name="friends"), db.table(int, name="organisers")
    view = fixpoint(
        lambda known: organisers.union(
            known.join(friends, on=lambda k, f: k == f.who)
            .group_by(lambda k, f: f.of)
            .aggregate(Collect(lambda k, f: k))
            .where(lambda of, bag: len(bag) > 1)
            .select_many(lambda of, bag: bag)
            .select(lambda who: (who + 1) % 6)
        )
    ).materialize()
    random, rows = Random(3), list[tuple[Any, Any]]()
    for _ in range(40):
        if rows and random.random() < 0.45:
            table, row = rows.pop(random.randrange(len(rows)))
            table.remove(row)
        else:
            table = random.choice((friends, friends, organisers))
            row = random.randrange(6)
            rows.append((table, row if table is organisers else Friend(row, random.randrange(6))))
            table.add(rows[-1][1])
        view.verify()
