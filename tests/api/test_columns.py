"""Expressions over names have the results of the equivalent lambda, and run the same way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.callables.source import Place
from optimizer.expr import Attribute, Item, Operation, Parameter, constant
from optimizer.plan import Where
from optimizer.rewriting.columns import state_expression
from reactive import (
    Column,
    Count,
    Database,
    Max,
    Min,
    PlanError,
    Sum,
    asc,
    call,
    col,
    desc,
    fixpoint,
    left,
    right,
    when,
)
from tests.budget import examples


@dataclass(frozen=True)
class Order:
    id: int
    customer: int
    total: float
    paid: bool


@dataclass(frozen=True)
class Customer:
    id: int
    name: str


ORDERS = st.builds(
    Order, st.integers(0, 3), st.integers(0, 2), st.sampled_from([0.0, 1.5, 20.0]), st.booleans()
)
CUSTOMERS = st.builds(Customer, st.integers(0, 2), st.sampled_from(["ann", "bob"]))
Query = Callable[[Any, Any], Any]
PAIRS: dict[str, tuple[Query, Query]] = {
    "where": (
        lambda o, c: o.where((col("total") > 1) & ~col("paid") | (col("id") == 3)),
        lambda o, c: o.where(lambda o: (o.total > 1 and not o.paid) or o.id == 3),
    ),
    "numbers": (
        lambda o, c: o.select((2 + col("total") * -col("id")) % 7 - 3 // (col("id") + 1) ** 2),
        lambda o, c: o.select(lambda o: (2 + o.total * -o.id) % 7 - 3 // (o.id + 1) ** 2),
    ),
    "reflected": (
        lambda o, c: o.select(2 - col("id") + 7 % (col("id") + 1) + 2 ** col("id")),
        lambda o, c: o.select(lambda o: 2 - o.id + 7 % (o.id + 1) + 2**o.id),
    ),
    "tuples": (
        lambda o, c: o.select(call(lambda a, b: (a, b), col("id"), col("total") >= 1)),
        lambda o, c: o.select(lambda o: (o.id, o.total >= 1)),
    ),
    "choices": (
        lambda o, c: o.select(when(col("paid"), col("id"), when(col("total") <= 1, "low", None))),
        lambda o, c: o.select(lambda o: o.id if o.paid else "low" if o.total <= 1 else None),
    ),
    "calls": (
        lambda o, c: c.select(call(len, col("name")) + call(round, 1.4)).where(
            lambda n: n is not None
        ),
        lambda o, c: c.select(lambda c: len(c.name) + round(1.4)),
    ),
    "methods and items": (
        lambda o, c: c.select(col("name").method("upper")[0]),
        lambda o, c: c.select(lambda c: c.name.upper()[0]),
    ),
    "in": (
        lambda o, c: o.where(col("id").is_in([1, 3]) & (col("customer") != 1)),
        lambda o, c: o.where(lambda o: o.id in (1, 3) and o.customer != 1),
    ),
    "none": (
        lambda o, c: o.where(col("total").is_not_none() | col("total").is_none()),
        lambda o, c: o,
    ),
    "sides": (
        lambda o, c: o.join(c, on=(left("customer") == right("id")) & (col("name") == "ann")),
        lambda o, c: o.join(c, on=lambda o, c: o.customer == c.id and c.name == "ann"),
    ),
    "by binding": (
        lambda o, c: o.join(c, on=col("order.customer") == col("id", of="customer")).select(
            col("id", of=1)
        ),
        lambda o, c: o.join(c, on=lambda o, c: o.customer == c.id).select(lambda o, c: c.id),
    ),
    "keys": (
        lambda o, c: o.join(c, left_key=col("customer"), right_key=col("id")),
        lambda o, c: o.join(c, on=lambda o, c: o.customer == c.id),
    ),
    "a right side of several": (
        lambda o, c: c.join(o.join(c), on=left("id") == col("order.customer")),
        lambda o, c: c.join(o.join(c), on=lambda c, r: c.id == r[0].customer),
    ),
    "halves": (
        lambda o, c: c.anti_join(o, on=left("id") == right("customer")),
        lambda o, c: c.anti_join(o, on=lambda c, o: c.id == o.customer),
    ),
    "outer": (
        lambda o, c: c.left_join(o, on=left("id") == right("customer")),
        lambda o, c: c.left_join(o, on=lambda c, o: c.id == o.customer),
    ),
    "groups": (
        lambda o, c: o.group_by(col("customer")).aggregate(
            n=Count(), total=Sum(col("total") * 2), last=Max(col("id"))
        ),
        lambda o, c: o.group_by(lambda o: o.customer).aggregate(
            n=Count(), total=Sum(lambda o: o.total * 2), last=Max(lambda o: o.id)
        ),
    ),
    "extended": (
        lambda o, c: (
            o.extend(double=col("total") * 2).where(col("double") > 3).bind("double", col("id"))
        ),
        lambda o, c: o.where(lambda o: o.total * 2 > 3).bind(lambda o: o.total * 2, lambda o: o.id),
    ),
    "in order": (
        lambda o, c: o.order_by(desc(col("total")), asc(col("id"))).limit(2),
        lambda o, c: o.order_by(desc(lambda o: o.total), asc(lambda o: o.id)).limit(2),
    ),
    "top": (
        lambda o, c: o.group_by(col("customer")).top(1, by=col("total")),
        lambda o, c: o.group_by(lambda o: o.customer).top(1, by=lambda o: o.total),
    ),
    "elements": (
        lambda o, c: o.unnest(call(range, col("id"))).select(col("order.id")),
        lambda o, c: o.unnest(lambda o: range(o.id)).select(lambda o, n: o.id),
    ),
}


@pytest.mark.long
@examples(40)
@given(
    orders=st.lists(ORDERS, max_size=8),
    customers=st.lists(CUSTOMERS, max_size=4),
    optimize=st.booleans(),
)
@pytest.mark.parametrize("name", PAIRS)
def test_they_are_what_lambdas_are(
    name: str, orders: list[Order], customers: list[Customer], optimize: bool
) -> None:
    db = Database(optimize=optimize)
    o, c = db.table(Order, name="orders"), db.table(Customer, name="customers")
    views = [query(o, c).materialize() for query in PAIRS[name]]
    for commit in range(3):
        with db.transaction():
            o.add_all(orders[commit::3])
            c.add_all(customers[commit::3])
            if commit == 2:
                o.remove_all(orders[::3])
        one, other = (Counter(map(repr, view)) for view in views)
        assert one == other
        views[0].verify()


def test_they_are_optimized_and_explained_as_lambdas_are() -> None:
    db = Database()
    o, c = db.table(Order, name="orders"), db.table(Customer, name="customers")
    query = o.join(c).where((col("order.customer") == col("customer.id")) & (col("total") > 3))
    lambdas = o.join(c).where(
        lambda order, customer: order.customer == customer.id and order.total > 3
    )
    assert str(query.explain()) == str(lambdas.explain())
    assert "join on order.customer == customer.id" in str(query.explain())


ROWS: Any = Database()
ORDER, C = ROWS.table(Order, name="orders"), ROWS.table(Customer, name="customers")
T = ROWS.table(tuple[int, str], name="pairs")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            lambda: ORDER.where(col("totl") > 1),
            r"where \(test_columns.py:\d+\): no binding has a field 'totl'; did you mean 'total'\?",
        ),
        (
            lambda: ORDER.join(C, on=col("id") == 1),
            r"""join \(.*\): both sides have 'id'\n  .* col\("left.id"\) or col\("right.id"\)""",
        ),
        (lambda: ORDER.join(C, on=col("nme") == 1), "neither side has 'nme'; did you mean 'name'"),
        (lambda: ORDER.join(C, on=left("nme") == 1), "no binding has a field 'nme'"),
        (
            lambda: ORDER.join(C).where(col("id") == 1),
            r"""2 bindings have a field 'id'\n  .* col\("order.id"\) or col\("customer.id"\)""",
        ),
        (
            lambda: ORDER.join(C).where(col("ordr.id") == 1),
            r"ordr.id is of no binding; did you mean 'order'\?\n  there are order, customer",
        ),
        (
            lambda: ORDER.join(C).where(col("order.idd") == 1),
            "Order has no field 'idd'; did you mean 'id'",
        ),
        (lambda: ORDER.join(ORDER).where(col("id", of=2) == 1), "2.id is of no binding"),
        (lambda: ORDER.where(left("id") == 1), "left.id is of no binding"),
        (lambda: ORDER.join(C).where(col(0) == 1), r"item 0 of which binding\?"),
        (lambda: T.where(col(2) == 1), "tuple of 2 items has no item 2"),
        (lambda: ORDER.where(col("id") == C), "an expression reads a Table"),
        (
            lambda: ORDER.where(col("id") == 1 and col("paid")),
            "neither true nor false before there are rows\n  write & for `and`",
        ),
        (lambda: ORDER.where(1 < col("id") < 3), "neither true nor false"),
        (lambda: ORDER.where(col("id") in (1, 2)), "neither true nor false"),
        (lambda: [*col("id")], "has no elements"),
        (lambda: col("a b"), "col takes the name of a field or binding, not 'a b'"),
        (lambda: call(3), "call takes a function, not 3"),  # type: ignore[arg-type]
        (lambda: ORDER.group_by("id").reduce(col("id")), "reduce takes a callable, not col: id"),
        (lambda: col("id")(3), "col: id is no callable of rows"),
        (
            lambda: fixpoint(lambda r: ORDER.union(r), keep=Min(col("id")), by=col("id")),
            "fixpoint takes a callable, not col: id",
        ),
    ],
)
def test_what_is_refused(query: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        query()


def test_functions_that_give_other_answers_are_refused() -> None:
    import random

    with pytest.raises(PlanError, match="call: random cannot be used in a query"):
        call(random.random)


def test_errors_name_the_place_of_the_expression() -> None:
    db = Database()
    shares = db.table(Order, name="orders").select(1 / col("total")).materialize("shares")
    (table,) = shares.relation.tables()
    with pytest.raises(ZeroDivisionError) as raised:
        table.add(Order(1, 1, 0.0, True))
    assert re.search(
        r"in select of view 'shares' \(test_columns.py:\d+\)", raised.value.__notes__[0]
    )


def test_they_show_what_they_are() -> None:
    assert repr((col("a") + 1 > left("b")) & ~col("c.d") | (col(0) == "x")) == (
        "col: a + 1 > left.b and not c.d or [0] == 'x'"
    )
    assert isinstance(col("a"), Column)
    with pytest.raises(TypeError, match="unhashable"):
        hash(col("a"))


def test_front_ends_state_expressions_with_names_and_places() -> None:
    db = Database()
    pairs = db.table(tuple[int, str], name="pairs")
    body = Operation(
        ">", (Operation("//", (constant(6), Item(Parameter(0), constant(0)))), constant(1))
    )
    place = Place("<sql>", 3, "SQL", 17)
    asked = state_expression(body, ("p",), place, "where", "6 // p.a > 1")
    view = pairs._new(Where(pairs.plan, asked)).materialize("large")
    pairs.add((2, "x"))
    assert list(view) == [(2, "x")]
    assert "where 6 // p[0] > 1" in str(view.explain())
    with pytest.raises(ZeroDivisionError) as raised:
        pairs.add((0, "y"))
    assert "in where of view 'large' (SQL, line 3, column 17)" in raised.value.__notes__[0]
    with pytest.raises(
        PlanError, match=r"in where: 6 // p.a > 1 \(SQL, line 3, column 17\) reads p.b"
    ):
        orders = db.table(Order, name="orders")
        wrong = state_expression(
            Attribute(Parameter(0), "b"), ("p",), place, "where", "6 // p.a > 1"
        )
        orders._new(Where(orders.plan, wrong))
