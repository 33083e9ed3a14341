"""Names of fields where a query takes a callable, and names of columns."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.rewriting import columns
from reactive import (
    Aggregate,
    Avg,
    Collect,
    Count,
    CountDistinct,
    Database,
    Max,
    Min,
    Monoid,
    PlanError,
    Sum,
    asc,
    desc,
)
from reactive.engine.dataflow.merge_deltas import DeltaAccumulator
from tests.budget import examples


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: str
    total: int | None


@dataclass(frozen=True, slots=True)
class Customer:
    name: str
    town: str


class OrderTuple(NamedTuple):
    id: int
    customer: str
    total: int | None


class OrderStruct(msgspec.Struct, frozen=True):
    id: int
    customer: str
    total: int | None


@attrs.frozen
class OrderAttrs:
    id: int
    customer: str
    total: int | None


class OrderModel(pydantic.BaseModel, frozen=True):
    id: int
    customer: str
    total: int | None

    def __init__(self, id: int, customer: str, total: int | None) -> None:
        super().__init__(id=id, customer=customer, total=total)


KINDS: list[Any] = [Order, OrderTuple, OrderStruct, OrderAttrs, OrderModel]
Shop = tuple[Database, Any, Any]


def shop(kind: Any = Order, *, optimize: bool = True) -> Shop:
    db = Database(optimize=optimize)
    orders = db.table(kind, name="orders")
    customers = db.table(Customer, name="customers")
    orders.add_all([kind(1, "ann", 20), kind(2, "bob", 5), kind(3, "ann", 7)])
    customers.add_all([Customer("ann", "Bonn"), Customer("bob", "Kiel"), Customer("eve", "Bonn")])
    return db, orders, customers


# Each query by names, and by callables. `t` are tables of orders and customers.

JOINED = ("customer", "name")


def xor(a: int, b: int) -> int:
    return a ^ b


def larger(a: str, b: str) -> str:
    return max(a, b)


SAME: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "where": (
        lambda o, c: o.where(customer="ann"),
        lambda o, c: o.where(lambda r: r.customer == "ann"),
    ),
    "where two": (
        lambda o, c: o.where(customer="ann", total=None),
        lambda o, c: o.where(lambda r: r.customer == "ann" and r.total == None),  # noqa: E711
    ),
    "where both": (
        lambda o, c: o.where(lambda r: r.id > 1, customer="ann"),
        lambda o, c: o.where(lambda r: r.id > 1).where(lambda r: r.customer == "ann"),
    ),
    "group_by": (
        lambda o, c: o.group_by("customer").aggregate(Sum("id")),
        lambda o, c: o.group_by(lambda r: r.customer).aggregate(Sum(lambda r: r.id)),
    ),
    "aggregates": (
        lambda o, c: o.aggregate(
            Avg("id"), Min("id"), Max("customer"), CountDistinct("customer"), Collect("total")
        ),
        lambda o, c: o.aggregate(
            Avg(lambda r: r.id),
            Min(lambda r: r.id),
            Max(lambda r: r.customer),
            CountDistinct(lambda r: r.customer),
            Collect(lambda r: r.total),
        ),
    ),
    "own aggregates": (
        lambda o, c: o.aggregate(
            Aggregate(0, xor, xor, of="id"), Monoid("", larger, of="customer")
        ),
        lambda o, c: o.aggregate(
            Aggregate(0, xor, xor, of=lambda r: r.id),
            Monoid("", larger, of=lambda r: r.customer),
        ),
    ),
    "order_by": (
        lambda o, c: o.order_by("customer", desc("id"), asc("total", nulls="last")).limit(2),
        lambda o, c: o.order_by(
            lambda r: r.customer, desc(lambda r: r.id), asc(lambda r: r.total, nulls="last")
        ).limit(2),
    ),
    "join": (
        lambda o, c: o.join(c, on=JOINED),
        lambda o, c: o.join(c, on=lambda r, k: r.customer == k.name),
    ),
    "join of itself": (
        lambda o, c: o.join(o, on=["customer", "total"]),
        lambda o, c: o.join(o, on=lambda a, b: a.customer == b.customer and a.total == b.total),
    ),
    "join by keys": (
        lambda o, c: o.join(c, left_key="customer", right_key="name"),
        lambda o, c: o.join(c, left_key=lambda r: r.customer, right_key=lambda k: k.name),
    ),
    "joins": (
        lambda o, c: o.join(c, on=JOINED).join(c, on="town"),
        lambda o, c: o.join(c, on=lambda r, k: r.customer == k.name).join(
            c, on=lambda r, k, n: k.town == n.town
        ),
    ),
    "join of a join": (
        lambda o, c: c.join(o.join(c, on=JOINED), on="town"),
        lambda o, c: c.join(
            o.join(c, on=lambda r, k: r.customer == k.name),
            on=lambda k, pair: k.town == pair[1].town,
        ),
    ),
    "left_join": (
        lambda o, c: c.left_join(o, on=("name", "customer")),
        lambda o, c: c.left_join(o, on=lambda k, r: k.name == r.customer),
    ),
    "semi_join": (
        lambda o, c: c.semi_join(o, on=("name", "customer")),
        lambda o, c: c.semi_join(o, on=lambda k, r: k.name == r.customer),
    ),
    "anti_join": (
        lambda o, c: c.anti_join(o, on=("name", "customer")),
        lambda o, c: c.anti_join(o, on=lambda k, r: k.name == r.customer),
    ),
    "of a join": (
        lambda o, c: o.join(c, on=JOINED).where(town="Bonn").group_by("town").aggregate(Sum("id")),
        lambda o, c: (
            o.join(c, on=lambda r, k: r.customer == k.name)
            .where(lambda r, k: k.town == "Bonn")
            .group_by(lambda r, k: k.town)
            .aggregate(Sum(lambda r, k: r.id))
        ),
    ),
}


def plan_of(relation: Any) -> Any:
    return relation._engine.queries.optimize(relation.plan).plan


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("query", SAME)
def test_a_name_is_the_callable_that_reads_the_field(query: str, kind: Any) -> None:
    by_name, by_callable = SAME[query]
    _, orders, customers = shop(kind)
    named, called = by_name(orders, customers), by_callable(orders, customers)
    assert plan_of(named) == plan_of(called), f"{named.explain()}\n{called.explain()}"
    view = named.materialize()
    assert view._node is called.materialize()._node or view == called.materialize().snapshot()
    orders.add(kind(4, "eve", None))
    orders.remove(kind(1, "ann", 20))
    view.verify()


@pytest.mark.parametrize("query", SAME)
def test_names_mean_the_same_without_the_optimizer(query: str) -> None:
    by_name, by_callable = SAME[query]
    _, orders, customers = shop(optimize=False)
    named = by_name(orders, customers).materialize()
    called = by_callable(orders, customers).materialize()
    orders.add(Order(4, "eve", None))
    orders.remove(Order(1, "ann", 20))
    assert named == called.snapshot()
    named.verify()


def test_what_is_named_is_pushed_and_factored() -> None:
    _, orders, customers = shop()
    joined = orders.join(customers, on=JOINED).where(town="Bonn")
    text = str(joined.group_by("town").aggregate(orders=Count(), total=Sum("id")).explain())
    assert "groups of sums" in text and " | index by " in text
    assert "opaque" not in text
    view = joined.group_by("town").aggregate(total=Sum("id")).materialize()
    assert "getattr" not in str(view.explain(code=True))


def test_fields_are_known_behind_what_makes_records() -> None:
    _, orders, _ = shop()
    made = orders.select(lambda o: Customer(o.customer, "Bonn")).where(lambda c: c.name > "")
    assert made.group_by("town").aggregate(Count()).materialize() == {"Bonn": 3}
    unread = orders.select(lambda o: [Customer(o.customer, "Bonn")][0])
    with pytest.raises(PlanError, match="binding 1 may be anything"):
        unread.group_by("town")


def test_a_long_chain_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    original: Any = vars(columns)["read_callables"]

    def reading(node: Any) -> Any:
        read.append(node)
        return original(node)

    monkeypatch.setattr(columns, "read_callables", reading)
    _, orders, _ = shop()
    relation = orders.select(lambda o: o)
    for _ in range(60):
        relation = relation.where(customer="ann")
    assert relation.materialize() == [Order(1, "ann", 20), Order(3, "ann", 7)]
    assert len(read) < 70


MISTAKES: dict[str, tuple[Callable[..., Any], str]] = {
    "none": (
        lambda o, c: o.group_by("totl"),
        "group_by: no binding has a field 'totl'; did you mean 'total'?\n"
        "  Order has id, customer, total",
    ),
    "none of two": (
        lambda o, c: o.join(c).order_by("x"),
        "order_by: no binding has a field 'x'\n"
        "  Order has id, customer, total\n  Customer has name, town",
    ),
    "several": (
        lambda o, c: o.join(c).join(c).group_by("town"),
        "group_by: 2 bindings have a field 'town'\n"
        "  Customer has name, town\n  Customer has name, town\n"
        "  say which: lambda row, row1, row2: row2.town",
    ),
    "in an aggregate": (
        lambda o, c: o.aggregate(Sum("price")),
        "Sum: no binding has a field 'price'\n  Order has id, customer, total",
    ),
    "in where": (
        lambda o, c: o.where(custmer="ann"),
        "where: no binding has a field 'custmer'; did you mean 'customer'?\n"
        "  Order has id, customer, total",
    ),
    "in join": (
        lambda o, c: o.join(c, on="town"),
        "join, left side: no binding has a field 'town'\n  Order has id, customer, total",
    ),
    "on the right": (
        lambda o, c: o.join(c, on="customer"),
        "join, right side: no binding has a field 'customer'\n  Customer has name, town",
    ),
    "ambiguous pair": (
        lambda o, c: o.join(o, on=("id", "total")),
        "join: on=('id', 'total') may mean two things, since both sides have both fields\n"
        "  left_key='id', right_key='total': 'id' of the left equals 'total' of the right\n"
        "  on=['id', 'total']: each equals itself on the other side",
    ),
    "no names": (
        lambda o, c: o.join(c, on=()),
        "join: on=() are no names of fields\n"
        '  on="c" of both sides, on=("a", "b") of the left and of the right',
    ),
    "where nothing": (
        lambda o, c: o.where(),
        "where takes a predicate, or values of fields\n"
        '  where(lambda row: ...), where(town="Bonn")',
    ),
    "where a lambda": (
        lambda o, c: o.where(id=lambda i: i > 3),
        "where: id= takes the value that the field has to equal, not a lambda\n"
        "  where(lambda row: ... row.id ...) takes one",
    ),
    "where a table": (
        lambda o, c: o.where(id=c),
        "where: id= is a Table\n  a query would not notice its changes; join it instead",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_name_is_told_when_the_query_is_made(mistake: str) -> None:
    make, text = MISTAKES[mistake]
    _, orders, customers = shop()
    with pytest.raises(PlanError) as caught:
        make(orders, customers)
    assert str(caught.value) == text


@pytest.mark.parametrize("kind", [str, tuple, object, dict[str, int]])
def test_rows_without_declared_fields_have_no_names(kind: Any) -> None:
    table = Database().table(kind, name="rows") if kind in (str, tuple, object) else None
    relation: Any = table if table is not None else Database().table(tuple[int, str])
    makes: list[Callable[[], Any]] = [
        lambda: relation.group_by("x"),
        lambda: relation.where(x=1),
        lambda: relation.order_by("x"),
        lambda: relation.aggregate(Sum("x")),
    ]
    for make in makes:
        with pytest.raises(PlanError, match=r"no binding has a field 'x'(.|\n)*lambda row: row\.x"):
            make()


def test_the_missing_side_of_an_outer_join_has_no_names() -> None:
    _, orders, customers = shop()
    with pytest.raises(PlanError, match="binding 2 may be anything"):
        orders.left_join(customers, on=JOINED).group_by("town")


def test_a_name_that_the_missing_side_of_an_outer_join_has_too_is_not_that_of_the_other() -> None:
    _, orders, _ = shop()
    same: Any = lambda a, b: a.id == b.id  # noqa: E731
    for both in (orders.left_join(orders, on=same), orders.right_join(orders, on=same)):
        with pytest.raises(PlanError, match="2 bindings have a field 'id'"):
            both.where(id=1)
        with pytest.raises(PlanError, match="2 bindings have a field 'id'"):
            both.aggregate(Sum("id"))
    assert len(orders.left_join(orders, on="id").materialize()) == len(orders)


def test_a_property_is_read_by_a_callable() -> None:
    class Sale(NamedTuple):
        price: int

        @property
        def double(self) -> int:
            return 2 * self.price

    with pytest.raises(PlanError, match=r"read by a callable: lambda sale: sale\.double"):
        Database().table(Sale).group_by("double")


def test_values_are_those_of_now() -> None:
    _, orders, _ = shop()
    tags = ["a"]
    view = orders.where(id=tags, customer="x").materialize()
    tags.append("b")
    assert "['a']" in str(view.relation.explain())


def test_readers_by_name_share_with_readers_by_callable() -> None:
    _, orders, _ = shop()
    by_name = orders.where(customer="ann").materialize()
    by_callable = orders.where(lambda o: o.customer == "ann").materialize()
    assert by_name._node.inputs[0] is by_callable._node.inputs[0]


# Columns.


def test_named_rows_are_named_tuples() -> None:
    _, orders, _ = shop()
    view = orders.group_by("customer").aggregate(orders=Count(), total=Sum("id")).materialize()
    row = next(r for r in view if r.customer == "ann")
    assert row == ("ann", 2, 4) and (row.orders, row.total) == (2, 4)
    assert repr(row) == "Row(customer='ann', orders=2, total=4)"
    assert hash(row) == hash(("ann", 2, 4)) and ("ann", 2, 4) in view and row in view
    assert view["ann"] == (2, 4) and view["ann"].total == 4 and view.get("x") is None
    assert view == {"ann": (2, 4), "bob": (1, 2)} and view.columns == [
        "customer",
        "orders",
        "total",
    ]


def test_there_is_one_class_per_columns_and_rows_pickle() -> None:
    _, orders, customers = shop()
    one = orders.aggregate(a=Count(), b=Sum("id")).materialize().value
    two = customers.aggregate(a=Count(), b=Max("name")).materialize().value
    other = customers.aggregate(b=Count(), a=Count()).materialize().value
    assert type(one) is type(two) is not type(other)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(one, protocol))
        assert again == one and type(again) is type(one)
    assert copy.copy(one) == copy.deepcopy(one) == one and type(copy.copy(one)) is type(one)


def test_a_single_named_aggregate_is_a_row_too() -> None:
    _, orders, _ = shop()
    assert orders.aggregate(total=Sum("id")).materialize().value.total == 6
    by_name = orders.group_by("customer").aggregate(total=Sum("id")).materialize()
    assert by_name["ann"] == 4 and by_name == {"ann": 4, "bob": 2}


KEYS: list[tuple[Any, str]] = [
    ("customer", "customer"),
    (lambda o: o.customer, "customer"),
    (attrgetter("customer"), "customer"),
    (lambda o: o.customer.upper(), "key"),
    (lambda o: (o.customer, o.id), "key"),
    (lambda o: "x", "key"),
    (hash, "key"),
]


@pytest.mark.parametrize("key", range(len(KEYS)))
def test_the_key_is_called_as_its_field_or_key(key: int) -> None:
    _, orders, _ = shop()
    by, name = KEYS[key]
    assert orders.group_by(by).aggregate(n=Count()).materialize().columns == [name, "n"]


def test_the_key_of_a_join_is_called_as_its_field() -> None:
    _, orders, customers = shop()
    groups = orders.join(customers, on=JOINED).group_by(lambda o, c: c.town)
    assert groups.aggregate(n=Count()).materialize().columns == ["town", "n"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["customer"], "names two columns 'customer'"),
        (["class"], "names a column 'class', which is a keyword"),
        (["_total"], "names a column '_total', which is no name"),
        (["a b"], "names a column 'a b', which is no name"),
        ([""], "names a column '', which is no name"),
    ],
)
def test_a_name_that_no_field_can_have_is_refused(names: list[str], message: str) -> None:
    _, orders, _ = shop()
    with pytest.raises(PlanError, match=message):
        orders.group_by("customer").aggregate(**{name: Count() for name in names})


def test_a_clash_with_key_is_refused() -> None:
    _, orders, _ = shop()
    with pytest.raises(PlanError, match="names two columns 'key'"):
        orders.group_by(lambda o: o.id % 2).aggregate(key=Count())


def test_aggregates_have_names_or_not() -> None:
    _, orders, _ = shop()
    with pytest.raises(PlanError, match="with names, or without"):
        orders.aggregate(Count(), total=Sum("id"))
    with pytest.raises(PlanError, match="with names, or without"):
        orders.aggregate(Count(), as_=Order)
    with pytest.raises(PlanError, match="takes aggregates, not 3"):
        orders.aggregate(total=3)


def test_names_of_tuples_methods_are_good_names() -> None:
    _, orders, _ = shop()
    view = orders.aggregate(count=Count(), index=Max("id")).materialize()
    assert (view.value.count, view.value.index) == (3, 3)


def test_named_rows_are_one_binding_with_fields() -> None:
    _, orders, customers = shop()
    totals = orders.group_by("customer").aggregate(orders=Count(), total=Sum("id"))
    dear = totals.where(lambda r: r.total > 2).materialize()
    assert dear == {"ann": (2, 4)} and dear["ann"].orders == 2
    assert totals.where(customer="bob").materialize() == [("bob", 1, 2)]
    assert list(totals.order_by(desc("total")).limit(1).materialize()) == [("ann", 2, 4)]
    joined = totals.join(customers, on=JOINED).select(lambda t, c: (c.town, t.total))
    assert joined.materialize() == [("Bonn", 4), ("Kiel", 2)]
    by_orders = totals.group_by("orders").aggregate(total=Sum("total")).materialize()
    assert by_orders == {2: 4, 1: 2}
    assert dear.group_by("orders").aggregate(n=Count()).materialize() == [(2, 1)]


def test_unnamed_rows_are_as_they_were() -> None:
    _, orders, _ = shop()
    view = orders.group_by("customer").aggregate(Count(), Sum("id")).materialize()
    assert sorted(map(repr, view)) == ["('ann', 2, 4)", "('bob', 1, 2)"]
    assert view.columns == ["key", "Count", "Sum"]
    assert type(view["ann"]) is tuple


def test_what_is_made_of_a_named_view_shares_its_groups() -> None:
    _, orders, _ = shop()
    view = orders.group_by("customer").aggregate(orders=Count(), total=Sum("id")).materialize()
    large = view.where(lambda r: r.total > 2).materialize()
    assert large._node.inputs[0].inputs[0] is view._node.inputs[0]


def test_names_cost_no_operator() -> None:
    _, orders, _ = shop()
    groups = orders.group_by("customer")
    named = groups.aggregate(orders=Count(), total=Sum("id")).materialize()
    unnamed = groups.aggregate(Count(), Sum("id")).materialize()
    assert len(named.stats().operators) == len(unnamed.stats().operators)
    assert "made(Row, (key, " in str(named.explain(code=True))


def test_where_of_the_key_is_pushed_below_the_names() -> None:
    _, orders, _ = shop()
    totals = orders.group_by("customer").aggregate(total=Sum("id"))
    assert "push_where_below_aggregate" in str(totals.where(customer="ann").explain())


def test_explain_shows_the_names() -> None:
    _, orders, _ = shop()
    totals = orders.group_by("customer").aggregate(orders=Count(), total=Sum("id"))
    assert str(totals.explain()) == (
        "as written\n"
        "  select Row(customer, orders, total)\n"
        "    aggregate Count(), Sum(order.id) by order.customer\n"
        "      table orders\n"
        "runs as\n"
        "  pipeline aggregate Count(), Sum(order.id) by order.customer\n"
        "    table orders\n"
        "rules: none"
    )


def test_tables_of_text_and_html_show_the_names(capsys: pytest.CaptureFixture[str]) -> None:
    _, orders, _ = shop()
    view = orders.group_by("customer").aggregate(n=Count()).materialize()
    assert re.findall(r"<th[^>]*>(\w+)", view._repr_html_()) == ["customer", "n"]
    view.show()
    assert "customer" in capsys.readouterr().out
    value = orders.aggregate(n=Count()).materialize()
    assert re.findall(r"<th[^>]*>(\w+)", value._repr_html_()) == ["n"]


# Rows of a class of one's own.


@dataclass(frozen=True, slots=True)
class Total:
    total: int
    customer: str
    orders: int = 0


class TotalTuple(NamedTuple):
    total: int
    customer: str
    orders: int


class TotalStruct(msgspec.Struct, frozen=True):
    customer: str
    orders: int
    total: int


@pytest.mark.parametrize("kind", [Total, TotalTuple, TotalStruct])
def test_rows_can_be_of_a_class_of_ones_own(kind: Any) -> None:
    _, orders, _ = shop()
    totals = orders.group_by("customer").aggregate(orders=Count(), total=Sum("id"), as_=kind)
    view = totals.materialize()
    ann = kind(customer="ann", orders=2, total=4)
    assert view["ann"] == ann and type(view["ann"]) is kind and ann in view and "ann" in view
    assert view == {"ann": ann, "bob": kind(customer="bob", orders=1, total=2)}
    assert sorted(view.keys()) == ["ann", "bob"] and view.columns == ["customer", "orders", "total"]
    deltas: list[Any] = []
    watching = view.subscribe(deltas.append)
    bad = orders.select(lambda o: 1 // (o.id - 4)).materialize()
    with pytest.raises(ZeroDivisionError):
        orders.add(Order(4, "ann", 1))
    assert view["ann"] == ann and not deltas
    bad.close()
    orders.add(Order(5, "ann", 1))
    assert deltas[-1].updated == ((ann, kind(customer="ann", orders=3, total=9)),)
    orders.remove(Order(2, "bob", 5))
    assert view.get("bob") is None and len(view) == 1
    assert totals.where(lambda t: t.orders > 1).materialize()["ann"].total == 9
    assert totals.order_by(desc("total")).first() == view["ann"]
    view.verify()
    watching.close()
    value = orders.aggregate(customer=Max("customer"), orders=Count(), total=Sum("id"), as_=kind)
    assert value.materialize().value == kind(customer="ann", orders=3, total=9)


def test_a_class_has_to_take_the_columns() -> None:
    _, orders, _ = shop()
    groups: Any = orders.group_by("customer")
    with pytest.raises(PlanError, match=r"as_=Order: .*'total'|as_=Order: .*unexpected"):
        groups.aggregate(id=Count(), as_=Order)
    with pytest.raises(PlanError, match=r"as_=Order: .*'id'(.|\n)*columns are customer, n"):
        groups.aggregate(n=Count(), as_=Order)
    with pytest.raises(PlanError, match="as_ takes the class of the rows, not 'Order'"):
        groups.aggregate(n=Count(), as_="Order")
    with pytest.raises(PlanError, match=r"have no hash"):
        groups.aggregate(n=Count(), as_=dict)


# Deltas as data.


def test_deltas_as_data_have_the_names() -> None:
    _, orders, customers = shop()
    found: list[Any] = []
    with (
        orders.group_by("customer")
        .aggregate(n=Count())
        .subscribe(lambda d: found.append(d.to_dict())),
        orders.join(customers, on=JOINED).subscribe(lambda d: found.append(d.to_dict())),
        orders.select(lambda o: (o.id, o.total)).subscribe(lambda d: found.append(d.to_dict())),
        orders.order_by("id").limit(1).subscribe(lambda d: found.append(d.to_dict())),
    ):
        orders.replace_all([*orders, Order(0, "bob", None), Order(9, "eve", 1)])
    grouped, joined, pairs, first = found
    zero = {"id": 0, "customer": "bob", "total": None}
    assert grouped["updated"] == [
        {"old": {"customer": "bob", "n": 1}, "new": {"customer": "bob", "n": 2}}
    ]
    assert grouped["added"] == [{"customer": "eve", "n": 1}] and grouped["version"] == 3
    assert [zero, {"name": "bob", "town": "Kiel"}] in joined["added"]
    assert [0, None] in pairs["added"] and not pairs["is_snapshot"] and "edits" not in pairs
    assert {"position": 0, "row": zero, "weight": 1} in first["edits"]


# Named is unnamed.

ROWS = st.builds(
    Order, st.integers(0, 3), st.sampled_from(["ann", "bob", "eve"]), st.integers(0, 3)
)
PEOPLE = st.builds(
    Customer, st.sampled_from(["ann", "bob", "eve"]), st.sampled_from(["Bonn", "Kiel"])
)
CHANGES = st.lists(st.tuples(st.booleans(), ROWS | PEOPLE), max_size=12)


@dataclass(frozen=True, slots=True)
class Stat:
    town: str = field(compare=True)
    n: int
    total: int
    top: int


@pytest.mark.long
@pytest.mark.parametrize("optimize", [True, False])
@examples(20)
@given(CHANGES, CHANGES)
def test_a_named_query_equals_the_unnamed_one(
    optimize: bool, before: list[Any], after: list[Any]
) -> None:
    db = Database(optimize=optimize)
    orders, customers = db.table(Order, name="orders"), db.table(Customer, name="customers")

    def play(changes: list[Any]) -> None:
        for comes, row in changes:
            table: Any = orders if isinstance(row, Order) else customers
            table.add(row) if comes else table.discard(row)
            for named, unnamed in pairs:
                compare(named, unnamed)

    def compare(named: Any, unnamed: Any) -> None:
        assert named == unnamed.snapshot() or [tuple(r) for r in named] == [(v,) for v in unnamed]
        named.verify()

    pairs: list[Any] = []
    play(before)
    joined: Any = orders.join(customers, on=lambda o, c: o.customer == c.name)
    by_name: Any = orders.join(customers, on=JOINED)
    aggregates: dict[str, Any] = {"n": Count(), "total": Sum("id"), "top": Max("total")}
    for key in ("town", "customer"):
        for where in ({}, {"town": "Bonn"}, {"id": 2, "customer": "ann"}):
            named = by_name.where(**where) if where else by_name
            plain = joined
            for name, value in where.items():
                index = 0 if name in ("id", "customer") else 1
                plain = plain.where(
                    lambda o, c, n=name, i=index, v=value: getattr((o, c)[i], n) == v
                )
            place = 0 if key == "customer" else 1
            groups = plain.group_by(lambda o, c, k=key, i=place: getattr((o, c)[i], k))
            unnamed = groups.aggregate(Count(), Sum(lambda o, c: o.id), Max(lambda o, c: o.total))
            with_names = named.group_by(key).aggregate(**aggregates)
            pairs.append((with_names.materialize(), unnamed.materialize()))
            large = with_names.where(lambda r: r.n > 1)
            pairs.append(
                (large.materialize(), unnamed.where(lambda k, n, t, m: n > 1).materialize())
            )
            in_order = with_names.order_by(desc("total"), key).limit(2)
            by = unnamed.order_by(desc(lambda k, n, t, m: t), lambda k, n, t, m: k).limit(2)
            pairs.append((in_order.materialize(), by.materialize()))
            every = named.aggregate(**aggregates)
            pairs.append((every.materialize(), plain.aggregate(*unnamed_of()).materialize()))
    own = by_name.group_by("town").aggregate(**aggregates, as_=Stat).materialize()
    play(after)
    plain_rows = {(r.town, r.n, r.total, r.top) for r in own}
    assert plain_rows == set(pairs[0][1]) and len(own) == len(plain_rows)
    own.verify()


def unnamed_of() -> list[Any]:
    return [Count(), Sum(lambda o, c: o.id), Max(lambda o, c: o.total)]


@pytest.mark.parametrize("way", ["compiled", "snapshot", "merged", "pickled", "named"])
def test_deltas_as_data_have_the_names_of_bindings(way: str) -> None:
    db, orders, _ = shop()
    found: list[Any] = []
    made: dict[str, Any] = {
        "bind": orders.bind(number="id", total=lambda o: o.total),
        "one": orders.bind(number="id"),
        "extend": orders.extend(double=lambda o: 2 * o.id),
        "order": orders.bind(number="id").order_by(lambda n: -n),
        "sql": db.sql("select id as number, total from orders"),
        "where": orders.bind(number="id", total=lambda o: o.total).where(lambda n, t: n > 0),
    }
    for name, query in made.items():
        found.clear()
        row = Order(100, "ann", 7)
        options: dict[str, Any] = {"name": name} if way == "named" else {}
        with query.subscribe(found.append, snapshot=way == "snapshot", **options) as subscription:
            if way != "snapshot":
                orders.add(row)
                if way == "named":
                    subscription.flush()
        delta = found[-1]
        if way == "pickled":
            delta = pickle.loads(pickle.dumps(delta))
        if way == "merged":
            delta = DeltaAccumulator(delta).delta()
        parts = delta.to_dict()
        if way != "snapshot":
            orders.remove(row)
        expected = query.materialize().to_python() if way == "snapshot" else None
        if way == "snapshot":
            assert sorted(map(repr, parts["added"])) == sorted(map(repr, expected or ()))
        else:
            number = {"number": 100}
            plain = {"id": 100, "customer": "ann", "total": 7}
            wanted = {"extend": {"0": plain, "double": 200}}.get(name, number)
            wanted = {**wanted, **({"total": 7} if name in ("bind", "sql", "where") else {})}
            assert parts["added"] == [wanted]
            assert all(edit["row"] == wanted for edit in parts.get("edits", ()))
