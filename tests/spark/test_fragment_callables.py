"""Callables that are no columns, inside whole fragments: what they return is columns again."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from optimizer import plan
from reactive import Aggregate, Avg, Count, Database, Max, Monoid, OffloadError, Sum
from reactive.engine.remote.fragments import whole_fragment
from reactive.errors import TakenIn
from spark_backend.cluster.session import Session
from spark_backend.codec.result_types import infer_result_type
from spark_backend.codec.schema import column_type, describe_encoding
from spark_backend.codec.values import Inexact, Value
from spark_backend.fragments.remote import StateRemote
from spark_backend.fragments.roster import find_column_obstacle
from tests.budget import TIMES
from tests.spark.fragments import Customer, Order, Query, check, fragment_of
from tests.spark.test_bucketed import jobs


def grade(amount: float) -> str | None:
    """A callable that no column can express, because of its loop."""
    for limit, name in ((1.0, "low"), (10.0, "middle")):
        if amount < limit:
            return name
    return None if amount != amount else "high"


def halves(order: Order) -> list[tuple[int, float]]:
    return [(order.customer, order.amount / 2) for _ in range(2)]


def unsaid(order: Order):  # type: ignore[no-untyped-def]
    return [n * 2 for n in range(order.id)]


def wrongly(order: Order) -> float:
    for number in (order.customer, order.amount):
        return number
    return 0.0


def even(order: Order, customer: Customer) -> bool:
    return all((order.id + n * customer.id) % 2 == 0 for n in range(2))


QUERIES: dict[str, Query] = {
    "select between a join and an aggregate by an opaque key": lambda o, c: (
        o.join(c, on=lambda o, c: o.customer == c.id and even(o, c))
        .select(lambda o, c: (c.town.upper(), grade(o.amount), round(c.rate, 3) if c.id else None))
        .where(lambda r: r[1] is None or any(r[1].startswith(a) for a in "lm"))
        .group_by(lambda r: f"{r[0]}!")
        .aggregate(Count(), Max(lambda r: r[1], skip_none=True), Sum(lambda r: len(r[0]) // 2))
    ),
    "elements": lambda o, c: (
        o.where(lambda o: o.amount == o.amount)
        .select_many(halves)
        .distinct()
        .group_by(lambda r: grade(r[1]))
        .aggregate(Avg(lambda r: r[0]))
    ),
}


@pytest.mark.parametrize("name", QUERIES if TIMES else list(QUERIES)[:1])
def test_after_every_flush_the_output_is_that_of_the_query(
    name: str, session: Session, tmp_path: Path
) -> None:
    given = (session, QUERIES[name], tmp_path)
    check(*given, seed=len(name), odd=False, counts=(20, 5, 8), is_begun=not TIMES)


def test_what_is_returned_is_known_by_annotations_and_builtin_types(spark: Any) -> None:
    from pyspark.sql import functions as F

    db = Database()
    orders = db.table(Order)
    row = [Value(F.col("row"), column_type(Order))]

    def of(call: Any) -> str:
        node = db._engine.queries.optimize(orders.select(call).plan).plan
        assert isinstance(node, plan.Select)
        return describe_encoding(infer_result_type(node.function, row))

    assert of(lambda o: grade(o.amount)) == "a column of str | None"
    assert of(lambda o: (o.tag, 1 / o.amount)) == "columns _1: str | None, _2: float"
    assert of(lambda o: Customer(round(o.amount), o.tag.strip(), o.amount, None)) == (
        "columns id: int, town: str, rate: float, tag: None"
    )
    unknown = (unsaid, lambda o: o.tag.split(), lambda o: {o.id: 1})
    for call in unknown:
        with pytest.raises(Inexact):
            of(call)


@pytest.mark.quick
def test_a_result_of_another_type_than_is_said_names_it(session: Session, tmp_path: Path) -> None:
    query: Query = lambda o, c: o.distinct().select(wrongly).distinct()  # noqa: E731
    remote = StateRemote(session, fragment_of(query), str(tmp_path), stable=False)
    with pytest.raises(OffloadError, match="3 is of type int, not float; annotate"):
        remote.apply(0, [(0, 0, Order(1, 3, 0.5, None), 1)])
    assert remote.applied == -1


def fails_for_three(order: Order) -> float:
    for number in (order.id, 3):
        if number == 3 and order.id == 3:
            raise ValueError("three")
        if number == 4:
            sys.exit("four")
    return order.amount


def test_rows_that_raise_or_leave_are_not_in_the_way_once_they_have_gone(
    session: Session, tmp_path: Path
) -> None:
    """Rows of the same flush arrive with the next one; each error is reported after one job."""
    query: Query = lambda o, c: o.select(fails_for_three).distinct()  # noqa: E731
    remote = StateRemote(session, fragment_of(query), str(tmp_path), stable=True)
    three, four, good = (Order(n, n, n + 0.5, None) for n in (3, 4, 1))
    before = jobs(session)
    with pytest.raises(TakenIn, match="ValueError: three"):
        remote.apply(0, [(0, 0, three, 1), (0, 0, good, 1)])
    with pytest.raises(TakenIn, match=r"SystemExit: four.* on row Order\(id=4"):
        remote.apply(1, [(0, 0, three, -1), (0, 0, four, 1)])
    assert jobs(session) == before + 2
    assert list(remote.apply(2, [(0, 0, four, -1)])) == [(1.5, 1)]
    assert list(remote.entries()) == [(0, 0, good, 1)]


def test_callables_whose_results_are_of_no_known_type_stay(session: Session) -> None:
    db = Database()
    orders = db.table(Order)
    run = db._engine.queries.optimize(orders.distinct().select_many(unsaid).distinct().plan).plan
    found = whole_fragment(run, lambda node: False)
    assert found is not None
    assert "its elements" in str(find_column_obstacle(session, found)) or "unsaid" in str(
        find_column_obstacle(session, found)
    )


def _weighed(state: int, value: int) -> int:
    return state + 60 // (value - 3)


def _unweighed(state: int, value: int) -> int:
    return state - 60 // (value - 3)


def _share(state: int) -> float | None:
    return 12 / state if state != 24 else None


def _least(left: int, right: int) -> int:
    if 3 in (left, right):
        raise ValueError("three")
    return min(left, right)


OWN: dict[str, Any] = {
    "a step": lambda: Aggregate(0, _weighed, _unweighed, of=lambda o, c: o.id),
    "a result": lambda: Aggregate(
        0, lambda s, v: s + v, lambda s, v: s - v, _share, of=lambda o, c: o.id
    ),
    "a merge": lambda: Monoid(99, _least, of=lambda o, c: o.id),
    "the result of a merge": lambda: Monoid(99, min, _share, of=lambda o, c: o.id),
}


@pytest.mark.parametrize("policy", ["drop", "null"])
@pytest.mark.parametrize("of", OWN)
@pytest.mark.usefixtures("either_way")
def test_own_aggregates_that_raise_go_by_their_policy(of: str, policy: Any, offload: Any) -> None:
    """A group is an error while its function raises, until its rows change."""
    with Database(offload=offload) as db, Database() as other:
        views, tables = [], []
        for each in (db, other):
            orders, customers = each.table(Order), each.table(Customer)
            joined = orders.join(customers, on=lambda o, c: o.customer == c.id)
            groups = joined.group_by(lambda o, c: c.town).aggregate(Count(), OWN[of](), OWN[of]())
            views.append(groups.materialize("groups", on_error=policy))
            tables.append((orders, customers))
        views[0].offload()
        assert db.offload_status()[0].where is not None
        town = [Customer(n, str(n), 1.0, None) for n in range(3)]
        steps: Any = (
            ([Order(1, 1, 0.5, None), Order(24, 2, 0.5, None), Order(5, 0, 0.5, None)], []),
            ([Order(3, 1, 0.5, None), Order(0, 0, 0.5, None)], []),
            ([Order(4, 1, 0.5, None)], []),
            ([Order(2, 0, 0.5, None), Order(-8, 1, 0.5, None)], [Order(5, 0, 0.5, None)]),
            ([], [Order(3, 1, 0.5, None), Order(0, 0, 0.5, None)]),
        )
        seen = 0
        for place, (added, removed) in enumerate(steps):
            for orders, customers in tables:
                if not place:
                    customers.add_all(town)
                orders.add_all(added)
                orders.remove_all(removed)
            assert Counter(views[0]) == Counter(views[1])
            assert Counter(views[0].errors) == Counter(views[1].errors)
            seen += len(views[1].errors)
            views[0].verify()
        assert seen
        key = next(iter(views[1]))[0]
        assert views[0][key] == views[1][key]


@pytest.mark.parametrize("policy", ["drop", "null"])
def test_rows_that_raise_in_a_fragment_go_by_their_policy(policy: Any, offload: Any) -> None:
    """A view over all kinds of steps is never stuck, and is what it is in the process."""
    with Database(offload=offload) as db, Database() as other:
        views, tables = [], []
        for each in (db, other):
            orders, customers = each.table(Order), each.table(Customer)
            joined = orders.where(lambda o: o.id != 2).join(
                customers, on=lambda o, c: o.customer == c.id and 6 // o.id > c.id - 9
            )
            sums = (
                joined.select(lambda o, c: (c.town, 12 // (o.id - 3), even(o, c)))
                .group_by(lambda r: r[0])
                .aggregate(Count(), Sum(lambda r: r[1], skip_none=True))
            )
            views.append(sums.materialize("sums", on_error=policy))
            tables.append((orders, customers))
        views[0].offload()
        for changes in (
            [Order(n, n % 2, 0.5, None) for n in range(6)],
            [Order(0, 1, 1.5, None), Order(3, 1, 1.5, None), Order(7, 1, 1.5, None)],
        ):
            for orders, customers in tables:
                customers.add(Customer(len(customers), "a", 1.0, None))
                orders.add_all(changes)
            assert Counter(views[0]) == Counter(views[1])
        for orders, _ in tables:
            orders.remove_all([Order(0, 0, 0.5, None), Order(3, 1, 0.5, None)])
        assert Counter(views[0]) == Counter(views[1])
        assert Counter(views[0].errors) == Counter(views[1].errors)
        views[0].verify()
