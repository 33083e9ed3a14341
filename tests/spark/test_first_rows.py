"""The first rows of orders in whole fragments: after every flush what plain evaluation gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive import Count, Database, Max, Sum, desc
from reactive.engine.remote.fragments import whole_fragment
from spark_backend.cluster.session import Session
from spark_backend.fragments.remote import StateRemote
from spark_backend.fragments.roster import can_be_columns, find_column_obstacle
from spark_backend.steps import firsts
from tests.budget import TIMES
from tests.spark.fragments import Customer, Order, Query, check, fragment_of

QUERIES: dict[str, Query] = {
    "top of each group of a join": lambda o, c: (
        o.join(c, on=lambda o, c: o.customer == c.id)
        .select(lambda o, c: (c.town, o.tag, o.amount, o.id))
        .group_by(lambda t: t[0])
        .top(2, by=lambda t: t[2], descending=True)
        .group_by(lambda t: t[1])
        .aggregate(Count(), Sum(lambda t: t[2]), Max(lambda t: t[3]))
    ),
    "an order with a limit, joined": lambda o, c: (
        o.order_by(desc(lambda o: o.tag, nulls="last"), lambda o: (o.amount, o.customer, o.id))
        .limit(3)
        .join(c, on=lambda o, c: o.customer == c.id)
    ),
    "an order of text and numbers with an offset": lambda o, c: (
        o.select(lambda o: (o.tag, o.amount, o.id))
        .order_by(lambda t: t[2], descending=True)
        .limit(3, offset=2)
        .distinct()
    ),
    "an order by what a query gives, and what is counted of it": lambda o, c: (
        o.order_by(
            lambda o: (sum(1 for x in c if x.id == o.customer), o.id, o.customer),
            desc(lambda o: o.tag, nulls="last"),
            lambda o: o.amount,
        )
        .limit(4)
        .group_by(lambda o: o.id)
        .aggregate(Count())
    ),
    "first of each group": lambda o, c: (
        o.select(lambda o: (o.customer, o.tag, o.amount))
        .distinct()
        .group_by(lambda t: t[0])
        .first(by=lambda t: t[1], nulls="first")
    ),
    "last of each group": lambda o, c: (
        o.select(lambda o: (o.customer, (o.tag, o.id)))
        .group_by(lambda t: t[0])
        .last(by=lambda t: t[1], nulls="first")
        .distinct()
    ),
}


SAMPLE = ("top of each group of a join", "an order with a limit, joined")
"""The sample of a short run: each kind of step."""


@pytest.mark.parametrize("name", QUERIES if TIMES else SAMPLE)
def test_after_every_flush_the_first_rows_are_those_of_the_query(
    name: str, session: Session, tmp_path: Path
) -> None:
    check(session, QUERIES[name], tmp_path, seed=len(name), is_begun=not TIMES)


@pytest.mark.usefixtures("by_jobs")
def test_rows_beyond_those_that_are_held_are_looked_for_when_too_few_are_left(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firsts, "FEW", 0)
    monkeypatch.setattr(firsts, "RESERVE", 0)
    query: Query = lambda o, c: (  # noqa: E731
        o.select(lambda o: (o.amount, o.id)).order_by(lambda t: t).limit(2).distinct()
    )
    remote = StateRemote(session, fragment_of(query), str(tmp_path), stable=False)
    tries: list[bool] = []
    real = remote.shared._write

    def write(*of: Any) -> None:
        tries.append(remote.shared.looks_through)
        real(*of)

    monkeypatch.setattr(remote.shared, "_write", write)

    def flush(*changes: tuple[int, int]) -> list[tuple[int, int]]:
        entries = [(0, 0, Order(n, 0, float(n // 2), None), weight) for n, weight in changes]
        tries.clear()
        told = remote.apply(remote.applied + 1, entries)
        return sorted((row[1], weight) for row, weight in told)

    assert flush(*[(n, 1) for n in range(10, 30)]) == [(10, 1), (11, 1)]
    assert flush((10, -1), (25, -1), (5, 2)) == [(5, 1), (10, -1), (11, -1)]
    assert flush((5, -2)) == [(5, -1), (11, 1), (12, 1)]
    assert tries == [False]  # those that are held were enough
    assert flush((12, -1), (11, -1)) == [(11, -1), (12, -1), (13, 1), (14, 1)]
    assert tries == [False, True]
    assert flush((14, -1), (1, 1)) == [(1, 1), (14, -1)]
    assert tries == [False]


@pytest.mark.quick
def test_an_order_that_moves_shows_rows_that_tie_as_they_came(offload: Any) -> None:
    with Database(offload=offload) as db:
        orders = db.table(Order)
        customers = db.table(Customer)
        customers.add_all(Customer(n, "ab"[n % 2], 1.0, None) for n in range(4))
        of_town = orders.join(customers, on=lambda o, c: o.customer == c.id)
        dearest = of_town.order_by(lambda o, c: o.amount, descending=True).limit(4, offset=1)
        view = dearest.materialize("dearest")
        orders.add_all(Order(n, n % 4, float(n % 3), None) for n in (7, 1, 3, 5, 2, 8, 4))
        before = [o.id for o, _ in view]
        view.offload()
        (status,) = db.offload_status()
        assert "one job per flush" in status.where
        assert [o.id for o, _ in view] == before == [2, 8, 7, 1]
        orders.remove(Order(2, 2, 2.0, None))
        orders.add(Order(9, 1, 2.0, None))
        assert [o.id for o, _ in view] == [8, 9, 7, 1]
        view.verify()


def test_an_order_by_what_a_query_gives_moves(offload: Any) -> None:
    with Database(offload=offload) as db:
        orders = db.table(Order)
        customers = db.table(Customer)
        by = orders.order_by(lambda o: (sum(1 for c in customers if c.id == o.customer), o.id))
        view = by.limit(3, offset=1).materialize("least known")
        customers.add_all(Customer(n, "a", 1.0, None) for n in (1, 2, 2, 3))
        orders.add_all(Order(n, n % 4, 1.0, None) for n in range(8))
        before = [o.id for o in view]
        view.offload()
        assert [o.id for o in view] == before == [4, 1, 3]
        customers.add(Customer(0, "a", 1.0, None))
        customers.remove(Customer(3, "a", 1.0, None))
        assert [o.id for o in view] == [7, 0, 1]
        orders.remove(Order(3, 3, 1.0, None))
        assert [o.id for o in view] == [0, 1, 4]
        view.verify()


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (lambda o: o.order_by(lambda o: o.amount).limit(3).distinct(), "rows that tie stand as"),
        (lambda o: o.group_by(lambda o: o.tag).top(3, by=lambda o: o.id), "rows that tie stand as"),
        (lambda o: o.order_by(lambda o: o.tag).limit(3), "may raise for None"),
        (lambda o: o.group_by(lambda o: o.tag).top(3, by=lambda o: (o.id, o.tag)), "may raise"),
    ],
)
def test_an_order_that_files_do_not_know_is_refused(
    query: Any, reason: str, session: Session
) -> None:
    assert reason in str(find_column_obstacle(session, fragment_of(lambda o, c: query(o))))


def test_the_first_rows_of_tables_with_keys_are_cut_by_these(session: Session) -> None:
    db = Database()
    orders, customers = db.table(Order, key="id"), db.table(Customer, key="id")
    joined = orders.join(customers, on=lambda o, c: o.customer == c.id).where(
        lambda o, c: o.amount > 0
    )
    best = joined.group_by(lambda o, c: c.town).top(2, by=lambda o, c: (o.amount, o.id, c.id))
    found = whole_fragment(db._engine.queries.optimize(best.plan).plan, lambda node: False)
    assert found is not None
    assert can_be_columns(session, found)


def test_an_order_by_all_that_tells_rows_apart_is_not_refused(session: Session) -> None:
    query: Query = lambda o, c: (  # noqa: E731
        c.group_by(lambda c: c.town)
        .top(3, by=(lambda c: (c.id, c.rate), desc(lambda c: c.tag, nulls="first")))
        .distinct()
    )
    assert can_be_columns(session, fragment_of(query))
