"""A key may have any share of the rows: changes under heavy and light keys cost the same.

The tests count the rows that are read from files and become Python objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from reactive import Count, CountDistinct, Database, Max, Min
from reactive.engine.remote.fragments import offloaded_fragment
from spark_backend import SparkOffload
from spark_backend.aggregates import parts, value_tables
from spark_backend.bucketed import remote as needed
from spark_backend.cluster.session import Session
from spark_backend.direct import flush
from spark_backend.fragments.remote import StateRemote
from spark_backend.state.tables import StateTables
from spark_backend.steps import firsts
from tests.spark.fragments import (
    Customer,
    Histories,
    Order,
    Query,
    entries,
    evaluated,
    fragment_of,
    inputs_in_order,
)
from tests.spark.histories import History, Twins
from tests.spark.test_bucketed import Make, part, remote_of
from tests.spark.ways import Ways, begun, jobs, way

HEAVY, LIGHT, ROWS = 0, 1, 400
"""Two customers: one with `ROWS` orders, and one with three."""
QUERIES: dict[str, Query] = {
    "semi join of the few": lambda o, c: c.semi_join(o, on=lambda c, o: c.id == o.customer),
    "semi join of the many": lambda o, c: o.semi_join(c, on=lambda o, c: o.customer == c.id),
    "anti join": lambda o, c: c.anti_join(o, on=lambda c, o: c.id == o.customer),
    "left join": lambda o, c: c.left_join(o, on=lambda c, o: c.id == o.customer),
    "full join": lambda o, c: c.full_join(o, on=lambda c, o: c.id == o.customer),
    "inner join": lambda o, c: o.join(c, on=lambda o, c: o.customer == c.id),
    "least, greatest, different": lambda o, c: (
        o.distinct()
        .group_by(lambda o: o.customer)
        .aggregate(
            *(Count(), Min(lambda o: o.id), Max(lambda o: o.amount)),
            *(CountDistinct(lambda o: o.tag), CountDistinct(lambda o: (o.id, o.tag))),
        )
    ),
    "first two": lambda o, c: (
        o.select(lambda o: (o.customer, o.id, o.amount))
        .group_by(lambda t: t[0])
        .top(2, by=lambda t: t[1], descending=True)
    ),
}
GROUPED, FIRST = "least, greatest, different", "first two"


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups are large from three values on."""
    monkeypatch.setattr(parts, "LARGE", 3)
    monkeypatch.setattr(parts, "SHRUNK", 2)
    monkeypatch.setattr(value_tables, "PARTS", 16)
    monkeypatch.setattr(firsts, "LARGE", 3)
    monkeypatch.setattr(firsts, "SHRUNK", 2)
    monkeypatch.setattr(firsts, "RESERVE", 1)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Return the number of rows that are read from files."""
    counts: list[int] = []
    real = StateTables.sought

    def noted(self: StateTables, *given: Any) -> pa.Table:
        found = real(self, *given)
        counts.append(found.num_rows)
        return found

    monkeypatch.setattr(StateTables, "sought", noted)
    yield counts


def order(number: int, customer: int) -> Order:
    return Order(number, customer, number / 8, str(number))


@pytest.mark.quick
@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("name", QUERIES)
def test_a_change_under_a_heavy_key_takes_as_few_rows_as_one_under_another(
    name: str, session: Session, tmp_path: Path, taken: list[int]
) -> None:
    fragment = fragment_of(QUERIES[name])
    places = inputs_in_order(fragment)
    remote = begun(StateRemote(session, fragment, str(tmp_path), stable=False))

    def apply(number: int, rows: list[tuple[int, Any, int]]) -> int:
        taken.clear()
        remote.apply(number, entries(fragment, places, rows))
        return sum(taken)

    clients = [(1, Customer(n, "a", 0.5, None), 1) for n in (HEAVY, LIGHT)]
    orders = [(0, order(n, HEAVY), 1) for n in range(ROWS)]
    apply(1, [*clients, *orders, *((0, order(n, LIGHT), 1) for n in range(ROWS, ROWS + 3))])
    apply(2, [(0, order(-1, HEAVY), 1), (0, order(-2, LIGHT), 1)])
    for weight in (1, -1):
        light, heavy = (
            apply(3 + 2 * (weight < 0) + n, [(0, order(ROWS + 9 + n, key), weight)])
            for n, key in enumerate((LIGHT, HEAVY))
        )
        in_parts = 4 * (value_tables.PARTS + ROWS // value_tables.PARTS)
        assert heavy <= 2 * light + {GROUPED: in_parts, FIRST: 5}.get(name, 0)
    assert heavy < ROWS


def key(row: Any) -> Any:
    return row[0]


JOINS: dict[str, Make] = {
    "join": lambda a, b: a.join(b, left_key=key, right_key=key),
    "left": lambda a, b: a.left_join(b, left_key=key, right_key=key),
    "right": lambda a, b: a.right_join(b, left_key=key, right_key=key),
    "full": lambda a, b: a.full_join(b, left_key=key, right_key=key),
    "semi": lambda a, b: a.semi_join(b, left_key=key, right_key=key),
    "anti": lambda a, b: a.anti_join(b, left_key=key, right_key=key),
}
"""Operators whose rows are by buckets, pickled."""


TYPED = {
    "semi": QUERIES["semi join of the few"],
    "anti": QUERIES["anti join"],
    **{name: QUERIES[f"{name} join"] for name in ("left", "full")},
}


@pytest.mark.parametrize("name", TYPED)
def test_a_predicate_that_is_a_key_is_known_to_tell_all(
    name: str, offload: SparkOffload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ways, "next", lambda self: way(is_job=False))
    db = Database()
    relation = TYPED[name](db.table(Order, name="orders"), db.table(Customer, name="customers"))
    of = offloaded_fragment(db._engine.queries.optimize(relation.plan).plan)
    remote = remote_of(offload, of, tmp_path)
    remote._tables.put(0, {})
    twins, histories = Twins(of, remote), Histories(len(name))
    twins.number = 1
    counts: list[int] = []
    monkeypatch.setattr(needed, "check_fetched", counts.append)
    for size in (40, *(1, 2, 5) * 8):
        changes = histories.changes(size, odd=False)
        twins.apply([(1 - place, row, weight) for place, row, weight in changes])
    counts.clear()
    twins.apply([(1, Order(n, 3, 0.5, "x"), 1) for n in range(ROWS)], quiet=True)
    counts.clear()
    twins.apply([(1, Order(-1, 3, 0.5, "x"), 1)], quiet=True)
    assert name in ("left", "full") or sum(counts) <= 2
    assert sum(counts) < ROWS // 4
    remote.close()


@pytest.mark.parametrize("name", JOINS)
def test_joins_by_buckets_are_what_they_are_in_memory(
    name: str, offload: SparkOffload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ways, "next", lambda self: way(is_job=False))
    of = part(JOINS[name])
    remote = remote_of(offload, of, tmp_path)
    remote._tables.put(0, {})
    twins, history = Twins(of, remote), History(len(name), 2)
    twins.number = 1
    with jobs() as done:
        for size in (60, *(1, 1, 2, 5) * 12):
            twins.apply(history.changes(size))
    assert not done
    remote.close()


@pytest.mark.parametrize("name", JOINS)
def test_a_change_of_the_many_makes_objects_of_few_rows(
    name: str, offload: SparkOffload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = part(JOINS[name])
    remote = remote_of(offload, of, tmp_path)
    remote._tables.put(0, {})
    counts: list[int] = []
    monkeypatch.setattr(needed, "check_fetched", counts.append)
    many = [(n % 2, (7, n), 1) for n in range(2 * ROWS) if n % 2 == 0 or n == 1]
    for number, changes in enumerate([many, [(0, (7, -2), 1)], [(0, (7, -2), -1)]], 1):
        prepared = [(at, of.prepare[at](row), n) for at, row, n in changes]
        given = [(at, *remote.pack(at, *found), n) for at, found, n in prepared if found]
        counts.clear()
        remote.apply(number, given, quiet=True)
        assert number == 1 or sum(counts) <= 3
    remote.close()


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("name", [GROUPED, FIRST])
@pytest.mark.parametrize("with_jobs", [False, True])
def test_groups_that_become_large_and_small_again_are_those_of_the_query(
    name: str, with_jobs: bool, session: Session, tmp_path: Path
) -> None:
    random = Random(with_jobs)
    fragment = fragment_of(QUERIES[name])
    places = inputs_in_order(fragment)
    remote = StateRemote(session, fragment, str(tmp_path), stable=False)
    first = 1 if not with_jobs else 0
    remote = remote if with_jobs else begun(remote)
    rows: tuple[Counter[Any], Counter[Any]] = (Counter(), Counter())
    shown, seen = Counter[Any](), set[bool]()
    for number in range(first, first + (8 if with_jobs else 60)):
        given = changes(random, rows[0], grows=number % 20 < 11)
        with way(is_job=with_jobs and number % 3 == 0):
            shown.update(dict(remote.apply(number, entries(fragment, places, given))))
        expected = evaluated(fragment, places, rows)
        assert Counter({row: n for row, n in shown.items() if n}) == expected, number
        seen.add("in parts" in remote.describe())
    assert with_jobs or seen == {True, False}, "groups were in parts, and were not"


def changes(random: Random, rows: Counter[Any], *, grows: bool) -> list[tuple[int, Any, int]]:
    """Some orders that come, and some that go."""
    found: list[tuple[int, Any, int]] = []
    for _ in range(random.choice([1, 2, 9])):
        if rows and random.random() < (0.2 if grows else 0.9):
            row, weight = random.choice(list(rows)), -1
        else:
            tag = random.choice(["x", "y", "", None])
            number = random.choice([0.0, -0.0, 0.1, float("inf"), 1e16, 2.0**-60])
            row, weight = Order(random.randrange(30), random.randrange(3), number, tag), 1
        rows[row] += weight
        if not rows[row]:
            del rows[row]
        found.append((0, row, weight))
    return found


@pytest.mark.usefixtures("in_parts")
def test_a_flush_that_is_done_again_counts_once_and_a_job_gives_parts_up(
    session: Session, tmp_path: Path
) -> None:
    fragment = fragment_of(QUERIES[GROUPED])
    places = inputs_in_order(fragment)
    remote = begun(StateRemote(session, fragment, str(tmp_path), stable=True))
    rows = [(0, order(n, HEAVY), 1) for n in range(9)]
    remote.apply(1, entries(fragment, places, rows))
    more = entries(fragment, places, [(0, order(9, HEAVY), 1)])
    with (
        patch.object(flush.DirectFlush, "put", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        remote.apply(2, more)
    remote.apply(2, more)
    assert dict(remote.contents())[(HEAVY, 10, 0, 9 / 8, 10, 10)] == 1
    assert "in parts" in remote.describe()
    with way(is_job=True):
        remote.apply(3, entries(fragment, places, [(0, order(9, HEAVY), -1)]))
    assert "in parts" not in remote.describe()
    later = StateRemote(session, fragment, str(tmp_path), stable=True)
    assert dict(later.contents())[(HEAVY, 9, 0, 8 / 8, 9, 9)] == 1
