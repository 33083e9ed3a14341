"""Making a query takes work that grows with its length and no faster; it may be of any length."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asv_benchmarks.making_calls import FAMILIES, QUERIES, calls, further_calls, own_calls
from reactive import Count, Database, fixpoint
from tests.budget import TIMES, sampled
from tests.counted_calls import calls_of

ROOT = Path(__file__).parents[2]
MOST = 2.5
"""Limit of the calls for twice the length, in multiples of the calls for the length."""
LENGTH, EACH, LEVELS = (75, 36, 1_000) if TIMES else (28, 20, 200)

CHAINS: dict[str, Callable[[Any, Any, int], Any]] = {
    "where": lambda query, table, n: query.where(lambda r: r[0] != -n),
    "select": lambda query, table, n: query.select(lambda r: (r[0], r[1] + 1)),
    "distinct": lambda query, table, n: query.distinct().select(lambda r: (r[0], r[1] + 1)),
    "select_many": lambda query, table, n: query.select_many(lambda r: [r]),
    "semi_join": lambda query, table, n: query.semi_join(table, on=lambda r, s: r[0] == s[0]),
    "join": lambda query, table, n: query.join(table, on=lambda r, s: r[0] == s[0]).select(
        lambda r, s: r
    ),
    "left_join": lambda query, table, n: query.left_join(
        table, on=lambda r, s: r[0] == s[0]
    ).select(lambda r, s: r),
    "union": lambda query, table, n: query | table.where(lambda r: r[0] + n == 0),
    "difference": lambda query, table, n: query - table.where(lambda r: r[0] == n),
    "group_by": lambda query, table, n: (
        query.group_by(lambda r: r[0]).aggregate(Count()).select(lambda key, count: (key, count))
    ),
    "order_by": lambda query, table, n: query.order_by(lambda r: r[0]).limit(5 + n),
}
VIEWS = ("where", "select", "join", "group_by", "union")


@pytest.mark.long
@pytest.mark.parametrize("kind", CHAINS)
def test_a_chain_of_twice_the_length_takes_at_most_two_and_a_half_times_the_calls(
    kind: str,
) -> None:
    def make(length: int) -> None:
        _, _, query = _chain(CHAINS[kind], length)
        query.materialize()

    _grows_with_length(make)


@pytest.mark.long
@pytest.mark.parametrize("kind", CHAINS)
def test_so_does_a_chain_as_it_is_written(kind: str) -> None:
    def make(length: int) -> None:
        _, _, query = _chain(CHAINS[kind], length, optimize=False)
        query.materialize()

    _grows_with_length(make)


@pytest.mark.long
@pytest.mark.parametrize("kind", VIEWS)
def test_so_do_views_on_views(kind: str) -> None:
    def make(length: int) -> None:
        _chain(lambda *args: CHAINS[kind](*args).materialize(), length)

    _grows_with_length(make, LENGTH if kind in ("where", "select") else LENGTH // 2)


@pytest.mark.long
@pytest.mark.parametrize("kind", VIEWS)
def test_so_do_views_of_each_query_of_a_chain(kind: str) -> None:
    views = []

    def link(query: Any, table: Any, n: int) -> Any:
        longer = CHAINS[kind](query, table, n)
        views.append(longer.materialize())
        return longer

    def make(length: int) -> None:
        views.clear()
        _chain(link, length)

    _grows_with_length(make, EACH // 2 if kind == "join" else EACH)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["where", "select", "select_many", "join", "union"])
def test_so_does_the_body_of_a_recursion(kind: str) -> None:
    def make(length: int) -> None:
        table = Database().table(tuple)

        def step(rows: Any) -> Any:
            for n in range(length):
                rows = CHAINS[kind](rows, table, n)
            return table | rows

        fixpoint(step).materialize()

    # up to some size, selects become one
    _grows_with_length(make, 200 if TIMES else 100 if kind == "select" else LENGTH)


@pytest.mark.long
@sampled
@pytest.mark.parametrize(
    "ask",
    [
        lambda view: view.explain(),
        lambda view: view.explain(analyze=True),
        lambda view: view.verify(),
        lambda view: view.stats(),
        lambda view: repr(view.relation),
        lambda view: view.where(lambda r: True).materialize(),
        lambda view: view.close(),
    ],
    ids=["explain", "analyze", "verify", "stats", "repr", "one more", "close"],
)
@pytest.mark.parametrize("kind", ["where", "select", "semi_join", "group_by"])
def test_so_does_what_is_asked_of_a_view(kind: str, ask: Callable[[Any], object]) -> None:
    def asked(length: int) -> int:
        _, _, query = _chain(CHAINS[kind], length)
        view = query.materialize()
        return calls_of(lambda: ask(view))

    _is_linear(asked(LENGTH), asked(2 * LENGTH))


def test_names_of_columns_are_asked_by_calls_that_grow_with_their_number() -> None:
    def ask(columns: int) -> None:
        db = Database()
        db.execute(f"create table t ({', '.join(f'c{n} int' for n in range(columns))})")
        db.sql("select * from information_schema.columns").materialize()

    _grows_with_length(ask, 10)


@pytest.mark.long
@pytest.mark.parametrize("kind", CHAINS)
def test_many_levels_are_made_and_kept_up_to_date(kind: str) -> None:
    _, table, query = _chain(CHAINS[kind], LEVELS)
    view = query.materialize()
    table.add((10_000, 2))
    assert table.count((10_000, 2)) == 1 and len(view) == 1
    table.remove((10_000, 2))
    assert len(view) == 0
    view.verify()


@pytest.mark.long
@pytest.mark.parametrize("kind", VIEWS)
def test_many_views_on_views(kind: str) -> None:
    views: list[Any] = []

    def link(query: Any, table: Any, n: int) -> Any:
        views.append(CHAINS[kind](query, table, n).materialize())
        return views[-1]

    db, table, view = _chain(link, LEVELS)
    table.add((10_000, 2))
    assert {len(each) for each in views} == {1}
    view.verify()
    for each in views[:-1]:
        each.close()
    table.remove((10_000, 2))
    assert len(view) == 0
    db.close()


@pytest.mark.long
def test_five_thousand_levels() -> None:
    _, table, query = _chain(CHAINS["where"], 5_000)
    view = query.materialize()
    table.add((10_000, 2))
    assert len(view) == 1
    assert "(5000)" in str(view.explain())


def _chain(
    link: Callable[[Any, Any, int], Any], length: int, *, optimize: bool = True
) -> tuple[Database, Any, Any]:
    db = Database(optimize=optimize)
    table: Any = db.table(tuple, name="t")
    query = table
    for n in range(length):
        query = link(query, table, n)
    return db, table, query


def _grows_with_length(make: Callable[[int], None], length: int = LENGTH) -> None:
    """Measure calls of Python and C functions for two lengths, and check that they grow linearly.

    Calls are equal in each run; both lengths are long enough to hide one-time work.
    """
    make(5)
    _is_linear(calls_of(lambda: make(length)), calls_of(lambda: make(2 * length)))


def _is_linear(short: int, long: int) -> None:
    assert long <= MOST * short, f"{long} calls for twice the length of {short}"


CALLS = {
    "where, group_by, aggregate": 1_700,
    "join, select": 1_920,
    "closure": 10_000,
    "SQL": 9_600,
}
"""The most calls of functions that a view takes: some 6 % more than in a process of its own, since
caches that other tests have filled are looked through, too."""
OWN = {
    "where, group_by, aggregate": (770, 60),
    "join, select": (950, 60),
    "closure": (4_000, 100),
    "SQL": (2_900, 108),
}
"""The highest numbers of calls of the project's own functions, and of the files of these."""
FAMILY = {
    "where o.id == value": (205, 930),
    "where, group_by, aggregate": (610, 1_350),
    "join, where e.target == value": (390, 1_900),
    "comprehension of two tables": (430, 3_000),
    "SQL": (125, 1_600),
    "SQL with groups": (125, 3_250),
}
"""The most calls of functions that one more query of a family takes, and its view."""
FIRST = (3_350, 125)
"""Limits for the first view of a process, in the form of `OWN`."""


@pytest.mark.parametrize("name", QUERIES)
def test_a_view_takes_few_calls(name: str) -> None:
    assert calls(QUERIES[name]) <= CALLS[name]


@pytest.mark.parametrize("name", QUERIES)
def test_a_view_takes_few_calls_of_the_project_in_few_files(name: str) -> None:
    found = own_calls(QUERIES[name])
    assert found.calls <= OWN[name][0] and found.files <= OWN[name][1], found


@pytest.mark.parametrize("name", FAMILIES)
def test_one_more_view_of_a_family_takes_few_calls(name: str) -> None:
    query, view = further_calls(FAMILIES[name])
    assert query <= FAMILY[name][0] and view <= FAMILY[name][1], (query, view)


def test_the_first_view_of_a_process_takes_few_calls() -> None:
    script = (
        "from asv_benchmarks.making_calls import group, own_calls\n"
        "print(*own_calls(group, is_first=True))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True
    )
    found, files = map(int, run.stdout.split())
    assert found <= FIRST[0] and files <= FIRST[1], run.stdout


def test_rules_over_an_empty_relation_are_not_run_when_a_view_is_made() -> None:
    def make(rules: int) -> int:
        lines = [".decl e(a: number, b: number)", ".input e"]
        lines += [".decl p(a: number, b: number)", ".output p"]
        lines += [f"p(a, b) :- e(a, b), a > {bound}." for bound in range(rules)]
        made: Any = Database().datalog("\n".join(lines))
        return calls_of(lambda: next(iter(made.values())).materialize())

    make(3)
    assert make(60) - make(30) < 30 * 4_000  # 4,467 if each loop over a batch is generated
