"""`reduce` in whole fragments: after every flush what plain evaluation of the query gives."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive import Count, Database, OffloadError, Sum
from reactive.engine.collections.bag import Bag
from spark_backend import SparkOffload
from spark_backend.cluster.session import Session
from spark_backend.fragments.roster import find_column_obstacle
from tests.spark.fragments import Customer, Order, Query, check, fragment_of
from tests.spark.ways import way


def dearest(tag: str | None, rows: Bag[Order]) -> list[Order]:
    """Return lists of different lengths, sometimes empty, with repeated rows."""
    return sorted(rows, key=lambda o: (o.id, o.customer, str(o.amount)))[: len(rows) % 3]


def spread_of(key: int, rows: Bag[tuple[Order, Customer]]) -> list[tuple[int, float | None]]:
    rates = [c.rate for _, c in rows if c.rate == c.rate]
    return [(len(rows), max(rates) if rates else None)]


def total(key: object, rows: Bag[Order]) -> list[float]:
    return [math.fsum(o.amount for o in rows if abs(o.amount) < 1e17)]


def customer_of(o: Order) -> int:
    return o.customer % 3


QUERIES: dict[str, Query] = {
    "rows of the group, some of them": lambda o, c: o.group_by(lambda o: o.tag).reduce(dearest),
    "over a join, below an aggregate": lambda o, c: (
        o.join(c, on=lambda o, c: o.customer == c.id)
        .group_by(lambda o, c: c.id % 4)
        .reduce(spread_of)
        .group_by(lambda k, made: made[1])
        .aggregate(Count(), Sum(lambda k, made: made[0]))
    ),
    "a key that is no column, below a join": lambda o, c: (
        o.group_by(customer_of)
        .reduce(total)
        .join(c, on=lambda k, made, c: k == c.id)
        .where(lambda k, made, c: c.town == "a")
    ),
    "known by what is written": lambda o, c: (
        o.select(lambda o: o.id).group_by(lambda n: n % 4).reduce(lambda k, rows: [max(rows)])
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_the_output_is_that_of_the_query_from_scratch(
    name: str, session: Session, tmp_path: Path
) -> None:
    check(session, QUERIES[name], tmp_path, seed=sum(map(ord, name)))


@pytest.mark.quick
@pytest.mark.parametrize(
    "query",
    [
        lambda k, rows: [len(rows)],
        lambda k, rows: [sum(rows), min(rows)],
        lambda k, rows: rows,
        lambda k, rows: sorted(rows)[:2],
        lambda k, rows: [(k, max(map(str, rows)))],
        lambda k, rows: map(float, rows),
    ],
)
def test_what_rows_a_callable_gives_is_read_off_it(query: Any, session: Session) -> None:
    made = lambda o, c: o.select(lambda o: o.id).group_by(lambda n: n % 4).reduce(query)  # noqa: E731
    assert find_column_obstacle(session, fragment_of(made)) is None


@pytest.mark.parametrize(
    "query",
    [
        lambda k, rows: [sum(r for r in rows)],
        lambda k, rows: [max(rows, default=None)],
        lambda k, rows: [sum(map(float, rows))],
    ],
)
def test_what_nothing_says_the_type_of_is_refused(query: Any, session: Session) -> None:
    made = lambda o, c: o.select(lambda o: o.id).group_by(lambda n: n % 4).reduce(query)  # noqa: E731
    assert "reduce" in (find_column_obstacle(session, fragment_of(made)) or "")


def half(key: int, rows: Bag[tuple[int, int]]) -> list[int]:
    return [12 // min(n for _, n in rows)]


def test_a_view_moves_says_how_and_tells_what_its_callable_raises(session: Session) -> None:
    db = Database(offload=SparkOffload(session=session.spark, threshold_rows=None))
    table = db.table(tuple[int, int], name="pairs")
    view = table.group_by(lambda p: p[0]).reduce(half).materialize("halves")
    table.add_all((n % 3, n + 1) for n in range(9))
    view.offload()
    text = str(view.explain())
    assert (
        "one job per flush" in text
        and "min((n for _, n in rows))]: Python workers, of the groups" in text
    )
    assert "h: the rows by" in text
    assert sorted(view) == [(0, 12), (1, 6), (2, 4)]
    for is_job in (True, False):
        with way(is_job=is_job):
            table.add((1, 0))
            with pytest.raises(OffloadError, match=r"ZeroDivisionError.*12 // min"):
                db.flush()
            table.remove((1, 0))
            table.add((2, 1))
            assert sorted(view) == [(0, 12), (1, 6), (2, 12)]
            table.remove((2, 1))
    view.verify()
    db.close()
