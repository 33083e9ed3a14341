"""Aggregates in whole fragments: after every flush what plain evaluation of the query gives."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive import (
    Aggregate,
    ApproxCountDistinct,
    ArgMax,
    ArgMin,
    Avg,
    BoolAnd,
    BoolOr,
    Collect,
    Count,
    CountDistinct,
    Database,
    FirstBy,
    Max,
    Median,
    Min,
    Monoid,
    MostCommon,
    Quantile,
    StdDev,
    StringJoin,
    Sum,
    Variance,
)
from reactive.engine.collections.bag import Bag
from reactive.engine.remote.fragments import whole_fragment
from reactive.errors import OffloadError
from spark_backend.cluster.session import Session
from spark_backend.fragments.remote import StateRemote
from spark_backend.fragments.roster import can_be_columns
from tests.budget import TIMES
from tests.spark.fragments import Customer, Order, Query, check, fragment_of


def price(o: Order) -> Decimal:
    return Decimal(o.id % 12 * 10 + 1) * Decimal("1e17") + Decimal("0.125")


def rate(c: Customer | None) -> Decimal | None:
    return None if c is None else Decimal(c.id) * Decimal("0.1")


def _added(state: tuple[int, int], value: int) -> tuple[int, int]:
    return state[0] + value, state[1] + 1


def _taken(state: tuple[int, int], value: int) -> tuple[int, int]:
    return state[0] - value, state[1] - 1


@dataclass(frozen=True, slots=True, order=True)
class Place:
    number: int
    name: int


QUERIES: dict[str, Query] = {
    "of Python's own": lambda o, c: (
        o.left_join(c, on=lambda o, c: o.customer == c.id)
        .group_by(lambda o, c: o.tag)
        .aggregate(
            *(Sum(lambda o, c: price(o)), Avg(lambda o, c: price(o))),
            *(Sum(lambda o, c: rate(c), skip_none=True), Avg(lambda o, c: rate(c), skip_none=True)),
            *(Count(), Sum(lambda o, c: o.amount), Collect(lambda o, c: (o.amount, o.tag))),
            Aggregate(0, lambda s, v: s ^ v, lambda s, v: s ^ v, of=lambda o, c: o.id % 8),
            Monoid(0, max, lambda s: (s, -s), of=lambda o, c: o.customer),
        )
    ),
    "of Python's own, of all rows": lambda o, c: (
        o.where(lambda o: o.customer > 2)
        .distinct()
        .aggregate(
            Min(lambda o: Place(o.customer, o.id)),
            Max(lambda o: Place(o.customer, o.id)),
            Collect(lambda o: o.tag),
            Sum(lambda o: price(o)),
            Aggregate((0, 0), _added, _taken, lambda s: s[0] - s[1], of=lambda o: o.id),
        )
    ),
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
    "of statistics": lambda o, c: (
        o.join(c, on=lambda o, c: o.customer == c.id)
        .group_by(lambda o, c: c.town)
        .aggregate(
            *(Median(lambda o, c: o.amount), Quantile(lambda o, c: o.id, 0.3)),
            Quantile(lambda o, c: c.town, 0.9, interpolation="lower"),
            *(Variance(lambda o, c: o.amount), StdDev(lambda o, c: o.id, sample=False)),
            *(BoolAnd(lambda o, c: o.id > 2), BoolOr(lambda o, c: o.amount > 7)),
            ArgMin(lambda o, c: o.tag, by=lambda o, c: o.amount),
            ArgMax(lambda o, c: (o.id, c.town), by=lambda o, c: o.tag, skip_none=True),
            *(FirstBy(lambda o, c: o.id, of=lambda o, c: o), MostCommon(lambda o, c: c.tag)),
            StringJoin(lambda o, c: c.town, order=lambda o, c: o.id),
            ApproxCountDistinct(lambda o, c: (o.id, c.town)),
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


BY_JOBS = "of Python's own"
"""The query that only jobs run."""
SAMPLE = (BY_JOBS, f"{BY_JOBS}, of all rows", "with None left out", "one of all rows")
"""The sample of a short run."""


@pytest.mark.parametrize("name", QUERIES if TIMES else SAMPLE)
def test_after_every_flush_aggregates_are_those_of_the_query(
    name: str, session: Session, tmp_path: Path
) -> None:
    is_direct = name != BY_JOBS
    counts = (25, 6, 8, 5) if is_direct or TIMES else (25, 8)
    given = (session, QUERIES[name], tmp_path)
    is_begun = name == "with None left out" and not TIMES
    check(*given, seed=len(name), counts=counts, is_direct=is_direct, is_begun=is_begun)


def test_an_aggregate_of_all_rows_shows_a_row_of_none(session: Session, tmp_path: Path) -> None:
    remote = StateRemote(session, fragment_of(QUERIES["of all rows"]), str(tmp_path), stable=False)
    assert list(remote.apply(0, [])) == [((0, 0, None, None, None, 0), 1)]
    assert list(remote.apply(1, [])) == []


@pytest.mark.quick
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
        lambda o, c: o.group_by(lambda o: o.customer).aggregate(Min(lambda o: (o.id, o.tag))),
        lambda o, c: o.group_by(lambda o: o.customer).aggregate(Min(lambda o: (o.id, o.amount))),
        lambda o, c: o.group_by(lambda o: o.customer).aggregate(Min(lambda o: o)),
        lambda o, c: o.group_by(lambda o: o.customer).aggregate(
            Aggregate(0, int.__xor__, int.__xor__, of=lambda o: o.id)
        ),
        lambda o, c: o.group_by(lambda o: o.customer).aggregate(
            Monoid(0.0, max, of=lambda o: o.id)
        ),
    ],
    ids=[
        *("None has no order", "text is not summed", "None in a tuple", "NaN in a tuple"),
        "no order",
        *("no known type", "a zero of another type"),
    ],
)
def test_aggregates_that_columns_do_not_have_are_refused(query: Query, session: Session) -> None:
    db = Database()
    orders, customers = db.table(Order), db.table(Customer)
    optimized = db._engine.queries.optimize(query(orders, customers).plan).plan
    found = whole_fragment(optimized, lambda node: False)
    assert found is not None
    assert not can_be_columns(session, found)


def _inverse(state: int) -> float:
    return 12 / state


def test_what_a_callable_of_ones_own_raises_is_told_and_gone_with_its_row(offload: Any) -> None:
    with Database(offload=offload) as db:
        orders, customers = db.table(Order), db.table(Customer)
        joined = orders.join(customers, on=lambda o, c: o.customer == c.id)
        view = (
            joined.group_by(lambda o, c: c.town)
            .aggregate(
                Collect(lambda o, c: o.tag),
                Aggregate(
                    0, lambda s, v: s + v, lambda s, v: s - v, _inverse, of=lambda o, c: o.id
                ),
            )
            .where(lambda town, tags, share: "x" in tags and share < 5)
            .materialize("shares")
        )
        customers.add_all([Customer(1, "a", 1.0, None), Customer(2, "b", 1.0, None)])
        orders.add_all([Order(3, 1, 0.5, "x"), Order(1, 1, 0.5, "x"), Order(2, 2, 0.5, None)])
        view.offload()
        where = str(db.offload_status()[0].where)
        assert "Aggregate: Python workers, of the groups that changed" in where
        assert list(view) == [("a", Bag({"x": 2}), 3.0)]
        assert view["a"] == (Bag(["x", "x"]), 3.0)
        orders.add(Order(-4, 1, 0.5, None))
        with pytest.raises(OffloadError, match=r"ZeroDivisionError.*in Aggregate, on values"):
            list(view)
        orders.add(Order(4, 1, 0.5, None))
        assert list(view) == [("a", Bag({"x": 2, None: 2}), 3.0)]
        orders.remove(Order(3, 1, 0.5, "x"))
        view.verify()
        assert view.to_spark().count() == len(view) == 0
