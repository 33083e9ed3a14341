"""Bindings that are computed: the same rows as tuples that a comprehension makes of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Collect, Count, Database, PlanError, Sum, col, fixpoint
from tests.budget import examples
from tests.replica import Replica


class Order(NamedTuple):
    id: int
    town: str | None
    total: Any


ROWS = st.builds(
    Order,
    st.integers(0, 3),
    st.sampled_from(["a", "b", None]),
    st.sampled_from([0, 1, 2.5, math.nan]),
)
Make = Callable[[Any], Any]
Plain = Callable[[list[Order]], list[Any]]
QUERIES: dict[str, tuple[Make, Plain]] = {
    "appended": (
        lambda t: t.extend(twice=lambda o: 2 * o.total),
        lambda rows: [(o, 2 * o.total) for o in rows],
    ),
    "appended twice": (
        lambda t: t.extend(lambda o: o.id + 1).extend(lambda o, n: n * n, lambda o, n: (o.id, n)),
        lambda rows: [(o, o.id + 1, (o.id + 1) ** 2, (o.id, o.id + 1)) for o in rows],
    ),
    "in their place": (
        lambda t: t.bind("town", double=lambda o: 2 * o.id),
        lambda rows: [(o.town, 2 * o.id) for o in rows],
    ),
    "turned": (
        lambda t: t.extend(lambda o: o.id).bind(lambda o, n: n, lambda o, n: o),
        lambda rows: [(o.id, o) for o in rows],
    ),
    "one": (lambda t: t.bind(id="id"), lambda rows: [o.id for o in rows]),
    "the row": (lambda t: t.bind(lambda o: o), lambda rows: [*rows]),
    "opaque": (
        lambda t: t.extend(str).where(lambda o, text: o.id > 1).extend(lambda o, text: o.id),
        lambda rows: [(o, str(o), o.id) for o in rows if o.id > 1],
    ),
    "asked below": (
        lambda t: t.extend(n=lambda o: o.id * 2).where(n=2).select(lambda o, n: (o.town, n)),
        lambda rows: [(o.town, 2) for o in rows if o.id == 1],
    ),
    "joined": (
        lambda t: t.extend(k=lambda o: o.id % 2).join(t, on=lambda o, k, p: k == p.id),
        lambda rows: [(o, o.id % 2, p) for o in rows for p in rows if o.id % 2 == p.id],
    ),
    "joined on the right": (
        lambda t: t.join(t.bind("id", "town"), on=lambda o, p: o.id == p[0]).extend(
            lambda o, p: p[1]
        ),
        lambda rows: [(o, (p.id, p.town), p.town) for o in rows for p in rows if o.id == p.id],
    ),
    "between joins": (
        lambda t: (
            t.join(t, on=lambda o, p: o.id == p.id)
            .extend(n=lambda o, p: o.id + p.id)
            .join(t, on=lambda o, p, n, q: n == q.id)
            .select(lambda o, p, n, q: (o.id, n, q.id))
        ),
        lambda rows: [
            (o.id, o.id + p.id, q.id)
            for o in rows
            for p in rows
            for q in rows
            if o.id == p.id and o.id + p.id == q.id
        ],
    ),
    "grouped": (
        lambda t: t.bind("town", n=lambda o: o.id).group_by("town").aggregate(Sum("n"), Count()),
        lambda rows: [
            (town, sum(o.id for o in rows if o.town == town), n)
            for town, n in Counter(o.town for o in rows).items()
        ],
    ),
    "distinct": (
        lambda t: t.bind("town", lambda o: o.id > 1).distinct(),
        lambda rows: [*{(o.town, o.id > 1) for o in rows}],
    ),
    "distinct of sets": (
        lambda t: (
            t.distinct().extend(lambda o: o.id).distinct().bind(lambda o, n: n, lambda o, n: o.town)
        ),
        lambda rows: [(o.id, o.town) for o in dict.fromkeys(rows)],
    ),
    "of each group": (
        lambda t: t.group_by("town").each(
            lambda g: g.extend(n=lambda o: o.id).where(lambda o, n: n > 0)
        ),
        lambda rows: [(o.town, o, o.id) for o in rows if o.id > 0],
    ),
    "of sums of each group": (
        lambda t: t.group_by("town").each(
            lambda g: g.aggregate(Count()).extend(lambda n: n * 2, lambda n: -n)
        ),
        lambda rows: [(t, n, 2 * n, -n) for t, n in Counter(o.town for o in rows).items()],
    ),
    "in order": (
        lambda t: t.extend(n=lambda o: -o.id).order_by("n").limit(1).bind(lambda o, n: n, "n"),
        lambda rows: [(-max(o.id for o in rows),) * 2] if rows else [],
    ),
    "recursive": (
        lambda t: fixpoint(partial(_further, t)),
        lambda rows: [*_reached({o.id for o in rows})],
    ),
}


def _further(t: Any, r: Any) -> Any:
    return t.select(lambda o: (o.id, o.id + 1)).union(
        r.join(t, on=lambda r, o: r[1] == o.id)
        .bind(lambda r, o: r[0], end=lambda r, o: o.id + 1)
        .extend(lambda a, end: (a, end))
        .select(lambda a, end, both: both)
    )


def _reached(ids: set[int]) -> set[tuple[int, int]]:
    found = {(n, n + 1) for n in ids}
    while True:
        more = found | {(a, b + 1) for a, b in found if b in ids}
        if more == found:
            return found
        found = more


def _canonical(rows: Any) -> Counter[str]:
    return Counter(map(repr, rows))


HISTORIES = st.lists(st.lists(st.tuples(st.booleans(), ROWS), max_size=4), max_size=5)


@examples(40)
@given(history=HISTORIES, optimize=st.booleans())
@pytest.mark.parametrize("name", QUERIES)
def test_it_is_what_a_comprehension_makes(
    name: str, history: list[list[tuple[bool, Order]]], optimize: bool
) -> None:
    make, plain = QUERIES[name]
    db = Database(optimize=optimize)
    table = db.table(Order, name="orders")
    relation = make(table)
    view = relation.materialize()
    replica, held = Replica(view), list[Order]()
    for commit in history:
        with db.transaction():
            for comes, row in commit:
                if comes:
                    table.add(row)
                else:
                    table.discard(row)
        held = [*table]
        assert _canonical(view) == _canonical(plain(held))
        view.verify()
        replica.check()
    assert _canonical(relation.materialize()) == _canonical(plain(held))


def test_names_are_found_and_shown() -> None:
    orders: Any = Database().table(Order, name="orders")
    sums = orders.extend(double=lambda o: 2 * o.total, half=col("total") / 2)
    view = sums.where(double=4).materialize()
    orders.add(Order(1, "a", 2))
    assert list(view) == [(Order(1, "a", 2), 4, 1)]
    assert view.columns == ["0", "double", "half"]
    assert "extend double=2 * o.total, half=order.total / 2" in str(sums.explain())
    assert sums.join(orders, on=lambda o, d, h, p: d == p.id).where(double=1).materialize().columns
    ids = orders.bind(n="id")
    assert ids.join(ids, on="n").where(n=1).materialize().columns == ["n", "1"]
    assert list(orders.join(ids, on=("id", "n")).where(n=1).select(col("n")).materialize()) == [1]
    assert orders.bind("town", "total").materialize().columns == ["town", "total"]
    assert orders.bind(lambda o: o.town, lambda o: o.id).materialize().columns is None


def test_a_name_of_a_binding_comes_before_fields_of_that_name() -> None:
    orders = Database().table(Order, name="orders")
    view = orders.extend(total=lambda o: o.total * 10).where(total=10).materialize()
    orders.add_all([Order(1, "a", 1), Order(2, "a", 10)])
    assert list(view) == [(Order(1, "a", 1), 10)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (lambda t: t.extend(), "extend takes callables of the bindings"),
        (lambda t: t.bind(), r"bind takes callables .*\n  bind\(total="),
        (lambda t: t.extend(n=3), "extend takes a callable, not 3"),
        (lambda t: t.extend(n=lambda a, b: 1), "extend calls its callable with 1 argument"),
        (
            lambda t: t.extend(n="totl"),
            "extend: no binding has a field 'totl'; did you mean 'total'",
        ),
        (lambda t: t.extend(n=len).extend(n=len), "there is a binding 'n' already"),
        (lambda t: t.extend(n=lambda o: o.totl), r"no field 'totl'.*\n  in extend: "),
        (
            lambda t: t.extend(size=len).where(siz=3),
            "no binding has a field 'siz'; did you mean 'size'",
        ),
    ],
)
def test_what_is_refused(query: Any, message: str) -> None:
    orders = Database().table(Order, name="orders")
    with pytest.raises(PlanError, match=message):
        query(orders)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize(
    "query",
    [
        lambda t: t.extend(lambda o: 1 / o.total),
        lambda t: t.extend(lambda o: 1 / o.total).where(lambda o, x: o.id < 0),
        lambda t: t.extend(lambda o: 1 / o.total).select(lambda o, x: o.id),
        lambda t: t.extend(lambda o: 1 / o.total).bind(lambda o, x: o.id, lambda o, x: o.town),
        lambda t: t.extend(lambda o: 1 / o.total).group_by(lambda o, x: o.id).aggregate(Count()),
        lambda t: t.extend(lambda o: 1 / o.total).distinct(),
    ],
)
def test_a_column_that_nobody_reads_raises_where_it_does(query: Any, optimize: bool) -> None:
    orders = Database(optimize=optimize).table(Order, name="orders")
    view = query(orders).materialize("shares")
    with pytest.raises(ZeroDivisionError) as raised:
        orders.add(Order(1, "a", 0))
    assert "in extend of view 'shares'" in "".join(raised.value.__notes__)
    assert not list(view) and not len(orders)


@pytest.mark.parametrize(("policy", "rows"), [("drop", []), ("null", [(1, None)])])
def test_rows_that_raise_go_by_the_policy(policy: Any, rows: list[Any]) -> None:
    orders = Database().table(Order, name="orders")
    view = orders.bind("id", share=lambda o: 1 // o.total).materialize(on_error=policy)
    orders.add(Order(1, "a", 0))
    assert list(view) == rows
    (error,) = view.errors
    assert "bind" in error.operator and error.error.kind == "ZeroDivisionError"
    orders.remove(Order(1, "a", 0))
    orders.add(Order(1, "a", 1))
    assert list(view) == [(1, 1)] and not list(view.errors)


def test_unread_columns_are_no_work() -> None:
    table: Any = Database().table(Order, name="orders")
    relation = table.extend(lambda o: (o.id, o.town)).group_by(lambda o, p: o.town)
    counted = relation.aggregate(Collect(lambda o, p: o.id))
    assert "aggregate Collect(o.id) by o.town\n    table orders" in str(counted.explain())


NAMES = ["self", "cls", "row", "a b", "", "1x", "class", "_x", "__class__", "count", "mro", "é"]
CALLS: dict[str, Any] = {
    "extend": lambda rows, name: rows.extend(**{name: lambda r: r}),
    "bind": lambda rows, name: rows.bind(**{name: lambda r: r}),
    "nest": lambda rows, name: rows.nest(**{name: lambda r: rows.where(lambda s: s == r)}),
    "aggregate": lambda rows, name: rows.aggregate(**{name: Count()}),
    "aggregate of groups": lambda rows, name: rows.group_by(lambda r: r).aggregate(
        **{name: Count()}
    ),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_taken_or_refused_as_a_name(call: str, name: str) -> None:
    rows = Database().table(str, name="words")
    rows.add("to")
    try:
        made = CALLS[call](rows, name).materialize()
    except PlanError as error:
        assert repr(name) in str(error)
        assert name != "self"
    else:
        assert len(list(made)) == 1
