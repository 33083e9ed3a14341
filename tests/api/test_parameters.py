"""Parameters: queries read them in every place, as from scratch, and a change touches little."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import (
    Avg,
    Count,
    Database,
    Delta,
    Parameter,
    PlanError,
    Sum,
    TableError,
    TransactionError,
    col,
    desc,
    fixpoint,
    session,
    tumbling,
)
from tests.budget import SEED, examples
from tests.moments import Moments


@dataclass(frozen=True)
class Order:
    id: int
    customer: int
    total: float
    at: datetime


START = datetime(2024, 1, 1)
Make = Callable[[Any, Any, Any], Any]
QUERIES: dict[str, Make] = {
    "where": lambda db, o, n: o.where(lambda x: x.total > n()),
    "arithmetic": lambda db, o, n: o.where(lambda x: x.total * 2 - n() > 5 and x.customer != 1),
    "two reads": lambda db, o, n: o.where(lambda x: x.total > n() and x.customer == n() % 3),
    "key": lambda db, o, n: o.where(lambda x: x.customer == n()),
    "select": lambda db, o, n: o.select(lambda x: (x.id, "high" if x.total > n() else "low")),
    "groups": lambda db, o, n: (
        o.where(lambda x: x.total > n()).group_by("customer").aggregate(Count(), Sum("id"))
    ),
    "group key": lambda db, o, n: o.group_by(lambda x: x.total > n()).aggregate(Count()),
    "named group key": lambda db, o, n: o.group_by(lambda x: x.total > n()).aggregate(n=Count()),
    "named aggregates": lambda db, o, n: o.aggregate(
        few=Sum(lambda x: 1 if x.total > n() else 0), all=Count()
    ),
    "aggregate": lambda db, o, n: o.group_by("customer").aggregate(
        Sum(lambda x: x.id if x.total > n() else 0)
    ),
    "reduce": lambda db, o, n: o.group_by(lambda x: x.total > n()).reduce(
        lambda high, rows: [len(rows)]
    ),
    "rows": lambda db, o, n: (
        o.group_by(lambda x: x.total > n()).rows().select(lambda high, rows: (high, len(rows)))
    ),
    "each": lambda db, o, n: o.group_by(lambda x: x.total > n()).each(
        lambda group: group.where(lambda x: x.id > n()).aggregate(Count(), Sum("id"))
    ),
    "as-of time": lambda db, o, n: o.asof_join(
        o, on="customer", at=lambda x: x.total, of=lambda x: x.total + n()
    ).select(lambda a, b: (a.id, b.id)),
    "as-of key": lambda db, o, n: o.left_asof_join(
        o, on=lambda a, b: (a.total > n()) == (b.total > n()), at="id", of="id", allow_equal=False
    ).select(lambda a, b: (a.id, b and b.id)),
    "sessions": lambda db, o, n: o.window(
        session(days=2, by=lambda x: x.total > n()), at=lambda x: x.at
    ).select(lambda x, w: (x.id, w.start)),
    "windows of time": lambda db, o, n: o.window(
        tumbling(days=2), at=lambda x: x.at if x.total > n() else None
    ).select(lambda x, w: (x.id, w.start)),
    "windows of rows": lambda db, o, n: o.over(
        by=lambda x: x.total > n(), order=lambda x: x.customer * n()
    ).select(lambda x, w: (x.id, w.sum(x.id + n()), w.lag(x.id, default=n()))),
    "join": lambda db, o, n: o.join(
        o, on=lambda a, b: a.customer == b.customer and a.total - b.total > n()
    ).select(lambda a, b: (a.id, b.id)),
    "as a relation": lambda db, o, n: o.join(n, on=lambda x, v: x.total > v),
    "comprehension": lambda db, o, n: db.query(lambda: [x.id for x in o if x.total > n()]),
    "sum": lambda db, o, n: db.query(lambda: sum(x.id for x in o if x.total > n())),
    "nested": lambda db, o, n: db.query(
        lambda: [(x.id, sum(1 for y in o if y.total > x.total + n())) for x in o]
    ),
    "having": lambda db, o, n: (
        o.group_by("customer").aggregate(Avg("total")).where(lambda c, mean: mean > n())
    ),
    "distinct": lambda db, o, n: o.where(lambda x: x.total > n()).select("customer").distinct(),
    "sort key": lambda db, o, n: o.order_by(lambda x: abs(x.total - n())).limit(3),
    "limit": lambda db, o, n: o.order_by(desc("total")).limit(n),
    "limit, offset": lambda db, o, n: o.order_by("total", "id").limit(n, 2),
    "limit, select": lambda db, o, n: o.order_by("total").limit(n).select("customer"),
    "limit, sum": lambda db, o, n: o.order_by("total", "id").limit(n).aggregate(Sum("id")),
    "limit in a recursion": lambda db, o, n: fixpoint(
        lambda r: o.order_by("total", "id").limit(n).union(r.where(lambda x: x.id > 3))
    ),
    "limit of a view": lambda db, o, n: o.order_by("total").materialize().limit(n),
    "SQL": lambda db, o, n: db.sql("select id from o where total > :n", n=n),
    "SQL, arithmetic": lambda db, o, n: db.sql(
        "select customer, count(*) from o where total - :n > 5 group by customer", n=n
    ),
    "SQL, value": lambda db, o, n: db.sql("select id, total + :n as t from o order by t", n=n),
    "SQL, FROM": lambda db, o, n: db.sql("select id from o, n where total > n.value", n=n),
    "SQL, LIMIT": lambda db, o, n: db.sql("select id from o order by total desc limit :n", n=n),
    "SQL, both": lambda db, o, n: db.sql(
        "select id from (select * from o order by total limit :n) where id > :n", n=n
    ),
}
EDITS = st.lists(
    st.lists(
        st.integers(0, 12)
        | st.builds(
            Order, st.integers(0, 9), st.integers(0, 2), st.integers(0, 12), st.just(START)
        ),
        max_size=4,
    ),
    min_size=2,
    max_size=8,
)


@pytest.mark.parametrize("name", QUERIES)
@examples(20)
@given(commits=EDITS)
def test_a_view_is_as_from_scratch(name: str, commits: list[list[Any]]) -> None:
    db = Database()
    orders, n = db.table(Order, name="o", key="id"), db.parameter(3)
    view = QUERIES[name](db, orders, n).materialize()
    for number, commit in enumerate(commits):
        try:
            with db.transaction():
                for edit in commit:
                    if isinstance(edit, int):
                        n.set(edit)
                    else:
                        orders.discard(edit) if edit in orders else orders.upsert(edit)
                if number % 3 == 2:
                    raise KeyError
        except KeyError:
            pass
        view.verify()


DEAR = {
    *("sort key", "SQL, value", "as a relation", "nested", "join", "windows of rows", "reduce"),
    "as-of time",
}
CHEAP = sorted(QUERIES.keys() - DEAR)
"""Queries of which few results differ for another value."""


@pytest.mark.parametrize("name", CHEAP)
def test_a_value_that_moves_touches_the_rows_between(name: str) -> None:
    touched = []
    for count in (500, 5_000):
        db = Database()
        orders, n = db.table(Order, name="o", key="id"), db.parameter(100)
        orders.add_all(Order(i, i, i + 0.5, START) for i in range(count))
        view = QUERIES[name](db, orders, n).materialize()
        for value in (101, 100):  # the first one may make an order
            n.set(value)
        before = view.stats().touched
        n.set(102)
        touched.append(view.stats().touched - before)
        view.verify()
    assert max(touched) < 60, touched


def test_a_moment_may_be_a_parameter() -> None:
    db = Database()
    orders, now = db.table(Order, name="o", key="id"), db.parameter(START)
    orders.add_all(Order(i, 0, 1.0, START + timedelta(seconds=i)) for i in range(2_000))
    age = timedelta(minutes=5)
    recent = orders.where(lambda o: timedelta() <= now() - o.at < age).materialize()
    written = db.sql(
        "select id from o where :now - at < interval '5' minute and at <= :now", now=now
    ).materialize()
    for seconds in (900, 901, 902):
        now.set(START + timedelta(seconds=seconds))
    before = recent.stats().touched + written.stats().touched
    now.set(START + timedelta(seconds=905))
    assert recent.stats().touched + written.stats().touched - before < 100
    assert {o.id for o in recent} == {row.id for row in written} == set(range(606, 906))


def test_set_is_a_commit() -> None:
    db = Database()
    n = db.parameter(10)
    told: list[Any] = []
    with n.subscribe(lambda delta: told.append(sorted(delta.items()))):
        n.set(12)
        n.set(12)
        with db.transaction():
            n.set(13)
            assert n() == 13
            n.set(14)
        with pytest.raises(KeyError), db.transaction():
            n.set(20)
            raise KeyError
    assert told == [[(10, -1), (12, 1)], [(12, -1), (14, 1)]]
    assert n() == 14
    assert db.version == 3  # the first value is a commit, too


def test_a_subscription_begins_inside_a_transaction() -> None:
    db = Database()
    orders, n = db.table(Order, key="id"), db.parameter(10)
    orders.add_all(Order(i, 0, float(i), START) for i in range(20))
    told: list[Delta[Any]] = []
    with db.transaction():
        n.set(15)
        view = orders.where(lambda o: o.total > n()).materialize()
        subscription = view.subscribe(told.append)
        n.set(16)
        orders.add(Order(20, 0, 30.0, START))
    assert {row.id for row in view} == {17, 18, 19, 20}
    with subscription:
        n.set(18)
    assert {row.id for row, weight in told[-1].items() if weight < 0} == {17, 18}
    view.verify()


def test_a_view_that_refuses_a_value_refuses_the_commit() -> None:
    db = Database()
    orders, n = db.table(Order, key="id"), db.parameter(2)
    orders.add(Order(1, 0, 4.0, START))
    share = orders.select(lambda o: o.total / n()).materialize()
    first = orders.order_by("total").limit(n).materialize()
    with pytest.raises(ZeroDivisionError):
        n.set(0)
    with pytest.raises(ValueError, match="a limit counts rows, from 0 on, and is not -1"):
        n.set(-1)
    assert (n(), list(share), len(first)) == (2, [2.0], 1)


def test_other_threads_see_a_value_once_it_is_committed() -> None:
    db = Database()
    n = db.parameter(0)
    rows = db.table(int, name="rows")
    rows.add_all(range(50))
    view = rows.where(lambda row: row < n()).materialize()
    seen: list[int] = []
    with db.transaction():
        n.set(7)
        reader = threading.Thread(target=lambda: seen.append(n()))
        reader.start()
        reader.join()
    assert (seen, n(), len(view)) == ([0], 7, 7)

    def count(first: int) -> None:
        for value in range(first, 40, 4):
            n.set(value)

    writers = [threading.Thread(target=count, args=(first,)) for first in range(4)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert n() in range(36, 40)
    view.verify()


@pytest.mark.parametrize("durability", ["commit", "group", "exit"])
def test_a_named_parameter_is_kept(tmp_path: Path, durability: Any) -> None:
    path = tmp_path / "shop.db"
    with Database(path, durability=durability) as db:
        n = db.parameter(10, name="least")
        n.set(12)
        other = db.parameter(1)
        other.set(2)
        passing = db.parameter(1, name="passing", durable=False)
        passing.set(5)
    with Database(path) as db:
        assert db.parameter(10, name="least")() == 12
        assert db.parameter(1)() == 1
        assert db.parameter(1, name="passing", durable=False)() == 1


def test_a_kept_view_reads_a_parameter(tmp_path: Path) -> None:
    def opened(db: Database) -> tuple[Any, Any, Any]:
        orders = db.table(Order, name="orders", key="id")
        n = db.parameter(5, name="least")
        large = orders.where(lambda o: o.total > n())
        return orders, n, large.materialize("large", kept=True)

    path = tmp_path / "shop.db"
    with Database(path) as db:
        orders, n, view = opened(db)
        orders.add_all(Order(i, 0, float(i), START) for i in range(20))
        n.set(10)
    with Database(path) as db:
        orders, n, view = opened(db)
        assert sorted(row.id for row in view) == list(range(11, 20))
        n.set(17)
        view.verify()
        assert sorted(row.id for row in view) == [18, 19]


def test_options_of_a_parameter() -> None:
    db = Database()
    either: Any = db.parameter(1, row_type=int | str)
    either.set("all")
    assert either() == "all"
    old = db.parameter(1, name="n")
    with pytest.raises(PlanError, match="there is a table 'n' already"):
        db.parameter(2, name="n")
    new: Parameter[int] = db.parameter(2, name="n", replace=True)
    assert (new(), new.name) == (2, "n")
    with pytest.raises(TableError):
        old()
    assert repr(new) == "Parameter('n', 2)"
    assert "parameter n" in str(db.table(int).where(lambda row: row > new()).explain())


def test_execute_reads_the_current_value() -> None:
    db = Database()
    rows, n = db.table(int, name="rows"), db.parameter(3)
    rows.add_all(range(10))
    n.set(5)
    assert db.execute("delete from rows where value < :n", n=n) == 5
    assert sorted(rows) == [5, 6, 7, 8, 9]


MISTAKES: dict[str, tuple[Callable[[Any, Any, Any], object], type[Exception], str]] = {
    "not called": (
        lambda db, o, n: o.where(lambda x: x.total > n),
        PlanError,
        "n is a parameter, not its value",
    ),
    "with an argument": (
        lambda db, o, n: o.where(lambda x: n(x.total)),
        PlanError,
        "is a parameter, not its value",
    ),
    "as a field": (lambda db, o, n: o.where(total=n), PlanError, "is a Parameter"),
    "in an expression": (lambda db, o, n: o.where(col("total") > n), PlanError, "a Parameter"),
    "another type": (
        lambda db, o, n: n.set("x"),
        TableError,
        "'parameter' takes rows of int, not the str 'x'",
    ),
    "a second value": (lambda db, o, n: n.add(4), TableError, "it has a value\n  set"),
    "no value": (lambda db, o, n: n.clear(), TableError, "it has one value\n  set"),
    "removed": (lambda db, o, n: n.remove(3), TableError, "it has one value\n  set"),
    "deleted": (lambda db, o, n: n.delete(()), TableError, "it has one value\n  set"),
    "several": (lambda db, o, n: n.replace_all([1, 2]), TableError, "it has a value\n  set"),
    "deleted in SQL": (
        lambda db, o, n: db.execute("delete from parameter"),
        TableError,
        "it has one value\n  set",
    ),
    "no type": (lambda db, o, n: db.parameter(None), PlanError, "a parameter cannot be None"),
    "None": (lambda db, o, n: n.set(None), TableError, "of int, not the NoneType|cannot be None"),
    "a class": (lambda db, o, n: db.parameter(int), PlanError, "takes its first value"),
    "a relation": (lambda db, o, n: db.parameter(o), PlanError, "holds a value, not table 'o'"),
    "no hash": (lambda db, o, n: db.parameter([1]), PlanError, "have no hash"),
    "a limit of texts": (
        lambda db, o, n: o.order_by("id").limit(db.parameter("x")),
        PlanError,
        "limit takes a parameter of int",
    ),
    "a limit of another database": (
        lambda db, o, n: o.order_by("id").limit(Database().parameter(1)),
        PlanError,
        "is of another database",
    ),
    "of another database": (
        lambda db, o, n: o.where(lambda x, m=None: x.total > n()).join(
            Database().parameter(1), on=lambda x, v: True
        ),
        PlanError,
        "database",
    ),
    "an offset": (
        lambda db, o, n: db.sql("select id from o limit 1 offset :n", n=n),
        PlanError,
        "OFFSET cannot be a parameter",
    ),
    "not in the text": (
        lambda db, o, n: db.sql("select id from o", n=n),
        PlanError,
        "cannot use the parameter 'n'",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told(name: str) -> None:
    do, error, text = MISTAKES[name]
    db = Database()
    orders, n = db.table(Order, name="o", key="id"), db.parameter(3)
    with pytest.raises(error, match=text):
        do(db, orders, n)
    assert n() == 3


def test_a_parameter_is_not_made_inside_a_transaction() -> None:
    db = Database()
    with pytest.raises(TransactionError, match="make it before"), db.transaction():
        db.parameter(1)


def test_a_refused_first_value_leaves_nothing() -> None:
    db = Database()
    with pytest.raises(TableError):
        db.parameter("x", name="n", row_type=int)
    assert db.parameter(1, name="n")() == 1


def test_a_row_may_be_a_parameter() -> None:
    db = Database()
    orders = db.table(Order, name="o", key="id")
    orders.add_all(Order(i, i % 2, float(i), START) for i in range(10))
    at = db.parameter(orders[3])
    same = orders.where(lambda o: o.customer == at().customer and o.total > at().total)
    view = same.materialize()
    assert {row.id for row in view} == {5, 7, 9}
    at.set(replace(at(), customer=0))
    assert {row.id for row in view} == {4, 6, 8}


def test_a_commit_that_is_interrupted_sets_all_or_nothing() -> None:
    """At any moment of a transaction that changes a row, a parameter and another table."""
    seen = set()
    for moment in range(SEED % 3, 600, 3):
        db = Database()
        pairs, orders = db.table(tuple[int, int], name="pairs"), db.table(Order, key="id")
        n = db.parameter(2)
        pairs.add((1, 2))
        with contextlib.suppress(KeyboardInterrupt), Moments(moment), db.transaction():
            pairs.update((1, 2), (1, 3))
            n.set(0)
            orders.upsert(Order(1, 0, 5.0, START))
        seen.add((next(iter(pairs))[1], n(), len(orders)))
    assert seen == {(2, 2, 0), (3, 0, 1)}
