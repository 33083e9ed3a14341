"""Aggregates in whole fragments: after every flush what plain evaluation of the query gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive import Avg, Collect, Count, CountDistinct, Database, Max, Min, Sum
from reactive.remote.whole import whole_of
from spark_backend.cluster.session import Session
from spark_backend.incremental.inputs import can_be_columns
from spark_backend.incremental.remote import StateRemote
from tests.budget import TIMES
from tests.spark.fragments import Customer, Order, Query, check, fragment_of

QUERIES: dict[str, Query] = {
    "of groups of floats, odd ones among them": lambda o, c: (
        o.join(c, on=lambda o, c: o.customer == c.id)
        .group_by(lambda o, c: (c.town, o.tag))
        .aggregate(
            *(Count(), Min(lambda o, c: o.amount), Max(lambda o, c: o.amount)),
            *(CountDistinct(lambda o, c: o.amount), CountDistinct(lambda o, c: c.tag)),
            *(Avg(lambda o, c: o.id), Sum(lambda o, c: o.amount), Avg(lambda o, c: o.id * 3 - 10)),
        )
    ),
    "with None left out": lambda o, c: (
        o.left_join(c, on=lambda o, c: o.customer == c.id and o.amount < c.rate)
        .group_by(lambda o, c: o.customer)
        .aggregate(
            Sum(lambda o, c: None if c is None else c.rate, skip_none=True),
            Avg(lambda o, c: None if c is None else c.rate, skip_none=True),
            Avg(lambda o, c: None if c is None else c.id, skip_none=True),
            Min(lambda o, c: None if c is None else c.town, skip_none=True),
            Max(lambda o, c: o.tag, skip_none=True),
            CountDistinct(lambda o, c: o.tag, skip_none=True),
            CountDistinct(lambda o, c: (o.tag, o.amount)),
        )
    ),
    "of all rows": lambda o, c: (
        o.where(lambda o: o.customer > 2)
        .distinct()
        .aggregate(
            *(Count(), Sum(lambda o: o.amount), Avg(lambda o: o.id), Max(lambda o: o.amount)),
            *(Min(lambda o: (o.customer, o.id)), CountDistinct(lambda o: o.tag)),
        )
    ),
    "one of all rows": lambda o, c: c.distinct().aggregate(CountDistinct(lambda c: c.rate)),
    "a named one of another": lambda o, c: (
        o.group_by(lambda o: o.customer)
        .aggregate(best=Max(lambda o: o.id), count=Count())
        .group_by(lambda r: r.count)
        .aggregate(least=Min(lambda r: r.best), of=Avg(lambda r: r.best))
    ),
}


@pytest.mark.parametrize("name", QUERIES if TIMES else list(QUERIES)[:3])
def test_after_every_flush_aggregates_are_those_of_the_query(
    name: str, session: Session, tmp_path: Path
) -> None:
    check(session, QUERIES[name], tmp_path, seed=len(name))


def test_an_aggregate_of_all_rows_shows_a_row_of_none(session: Session, tmp_path: Path) -> None:
    remote = StateRemote(session, fragment_of(QUERIES["of all rows"]), str(tmp_path), stable=False)
    assert list(remote.apply(0, [])) == [((0, 0, None, None, None, 0), 1)]
    assert list(remote.apply(1, [])) == []


def test_a_view_of_all_rows_moves_with_what_is_below_it(session: Session, offload: Any) -> None:
    with Database(offload=offload) as db:
        orders, customers = db.table(Order), db.table(Customer)
        joined = orders.join(customers, on=lambda o, c: o.customer == c.id)
        total = joined.aggregate(Count(), Max(lambda o, c: o.amount)).materialize("total")
        total.offload()
        assert [count for count, _ in total] == [0]
        orders.add_all([Order(n, n % 3, float(n), None) for n in range(6)])
        customers.add(Customer(1, "a", 1.0, None))
        assert list(total) == [(2, 4.0)]
        orders.remove(Order(4, 1, 4.0, None))
        assert list(total) == [(1, 1.0)]
        assert len(db.offload_status()) == 1
        total.verify()


def test_the_average_of_integers_is_rounded_once(session: Session, tmp_path: Path) -> None:
    numbers = [2**53 + 1, 2**62 - 1, 3, -(2**63), 2**63 - 1, -(2**55) - 1, 7]
    groups = {n: numbers[: n + 1] for n in range(len(numbers))}
    groups[-1] = [2**58 + 32, 2**58 + 33]  # a little above the middle of two floats
    rows = [Order(value, n, float(k), None) for n in groups for k, value in enumerate(groups[n])]
    query: Query = lambda o, c: o.group_by(lambda o: o.customer).aggregate(Avg(lambda o: o.id))  # noqa: E731
    remote = StateRemote(session, fragment_of(query), str(tmp_path), stable=False)
    found = dict(remote.apply(0, [(0, 0, row, 1) for row in rows]))
    assert found == {(n, sum(some) / len(some)): 1 for n, some in groups.items()}


@pytest.mark.parametrize(
    "query",
    [
        lambda o, c: o.group_by(lambda o: o.customer).aggregate(Min(lambda o: o.tag)),
        lambda o, c: o.group_by(lambda o: o.customer).aggregate(Sum(lambda o: o.tag)),
        lambda o, c: o.group_by(lambda o: o.customer).aggregate(Collect(lambda o: o.tag)),
        lambda o, c: o.group_by(lambda o: o.customer).aggregate(Min(lambda o: (o.id, o.amount))),
        lambda o, c: o.group_by(lambda o: o.customer).aggregate(Min(lambda o: o)),
    ],
    ids=["None has no order", "text is not summed", "no type", "NaN in a tuple", "no order"],
)
def test_aggregates_that_columns_do_not_have_are_refused(query: Query, session: Session) -> None:
    db = Database()
    orders, customers = db.table(Order), db.table(Customer)
    optimized = db._engine.queries.optimized(query(orders, customers).plan).plan
    found = whole_of(optimized, lambda node: False)
    assert found is not None
    assert not can_be_columns(session, found)
