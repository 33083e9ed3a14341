"""Views of nests: their rows, their deltas, and the cost of a change."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from reactive import Bag, Count, Database, Delta, Edit, check, col, iterate, live
from reactive.api.comprehending import plain
from reactive.engine.collections.zset import canonical
from reactive.engine.dataflow.merge_deltas import DeltaAccumulator
from reactive.errors import MissingKeyError, PlanError


class Customer(NamedTuple):
    id: int
    name: str


class Order(NamedTuple):
    id: int
    customer: int
    date: int


class Line(NamedTuple):
    order: int
    what: str


class Shop:
    """Customers with orders with lines."""

    def __init__(self, size: int = 0) -> None:
        self.db = Database()
        self.customers = self.db.table(Customer, name="customers", key="id")
        self.orders = self.db.table(Order, name="orders", key="id")
        self.lines = self.db.table(Line, name="lines")
        self.customers.add_all([Customer(n, f"c{n}") for n in range(size)])
        self.orders.add_all([Order(n, n % max(1, size), n) for n in range(size * 5)])
        self.lines.add_all([Line(n % max(1, size * 5), f"l{n}") for n in range(size * 10)])

    def tree(self) -> Any:
        return self.customers.nest(
            orders=lambda c: (
                self.orders.where(lambda o: o.customer == c.id)
                .order_by(lambda o: o.date)
                .limit(2)
                .nest(lines=lambda o: self.lines.where(lambda line: line.order == o.id))
            )
        )

    def bags(self) -> Any:
        return self.customers.nest(
            orders=lambda c: self.orders.where(lambda o: o.customer == c.id).nest(
                lines=lambda o: self.lines.where(lambda line: line.order == o.id)
            )
        )


def filled() -> Shop:
    shop = Shop()
    shop.customers.add_all([Customer(1, "ann"), Customer(2, "bob")])
    shop.orders.add_all([Order(7, 1, 3), Order(8, 1, 2), Order(9, 1, 1)])
    shop.lines.add_all([Line(8, "tea"), Line(9, "milk"), Line(9, "milk")])
    return shop


def test_rows_read_by_key_by_name_and_through_to_what_they_begin_with() -> None:
    view = filled().tree().materialize()
    ann = view[1]
    assert (ann.name, ann.row, ann.orders[0].date, ann[0]) == ("ann", (1, "ann"), 1, (1, "ann"))
    assert ann.orders[0].lines == Bag([Line(9, "milk")] * 2)
    assert view[2].orders == () and view.get(3) is None and 1 in view and 3 not in view
    assert ann in view and sorted(view.keys()) == [1, 2] and view.columns == ["row", "orders"]
    assert pickle.loads(pickle.dumps(ann)) == ann and pickle.loads(pickle.dumps(ann)).name == "ann"
    with pytest.raises(MissingKeyError, match="no row 3"):
        view[3]
    with pytest.raises(AttributeError, match="a row of row, orders has no 'age'"):
        ann.age  # noqa: B018


def test_bags_have_no_first_row_and_say_what_does() -> None:
    view = filled().bags().materialize()
    with pytest.raises(TypeError, match="order_by"):
        view[1].orders[0]
    assert [order.id for order in view[1].orders if order.lines] == [8, 9]


def test_rows_are_plain_data_for_json() -> None:
    shop = filled()
    view = shop.tree().materialize()
    assert view.to_python()[0] == {
        "id": 1,
        "name": "ann",
        "orders": [
            {"id": 9, "customer": 1, "date": 1, "lines": [{"order": 9, "what": "milk"}] * 2},
            {"id": 8, "customer": 1, "date": 2, "lines": [{"order": 8, "what": "tea"}]},
        ],
    }
    told: list[Any] = []
    with view.subscribe(lambda delta: told.append(delta.to_dict()["edits"])):
        shop.lines.remove(Line(8, "tea"))
    gone = {"order": 8, "what": "tea"}
    assert told == [
        [{"position": None, "row": gone, "weight": -1, "path": [1, "orders", 8, "lines"]}]
    ]


def test_rows_of_several_bindings_are_a_dictionary_for_each_as_columns_are_structs() -> None:
    shop = filled()
    lines = shop.lines
    pairs = shop.orders.join(shop.customers, on=lambda o, c: o.customer == c.id)
    view = pairs.nest(lines=lambda o, c: lines.where(lambda line: line.order == o.id)).materialize()
    rows = sorted(view.to_python(), key=repr)
    assert [(row["row"]["id"], row["row1"]["id"]) for row in rows] == [(7, 1), (8, 1), (9, 1)]
    assert rows == sorted(view.to_arrow().to_pylist(), key=repr)


def test_several_bindings_orders_and_queries_of_views() -> None:
    shop = filled()
    view = shop.bags().materialize()
    both = view.nest(first=lambda c, orders: shop.orders.where(lambda o: o.customer == c.id))
    busy = both.where(lambda c, orders, first: len(orders) > 1).materialize()
    assert [(len(row.orders), len(row.first), row.name) for row in busy] == [(3, 3, "ann")]
    down = shop.tree().order_by(lambda c, orders: c.name, descending=True).limit(1).materialize()
    same = shop.customers.order_by("name").nest(n=lambda c: shop.lines).materialize()
    assert [row.name for row in down] == ["bob"] and [row.name for row in same] == ["ann", "bob"]
    pairs = shop.customers.join(shop.orders, on=lambda c, o: c.id == o.customer)
    lines = pairs.nest(
        lines=lambda c, o: shop.lines.where(lambda line: line.order == o.id)
    ).materialize()
    assert len(lines[Customer(1, "ann"), Order(9, 1, 1)].lines) == 2
    for each in (busy, down, same, lines):
        each.verify()


def test_queries_inside_may_be_whatever_can_be_asked_for_all_rows() -> None:
    shop = filled()
    orders, lines = shop.orders, shop.lines

    def mine(c: Any) -> Any:
        return orders.where(lambda o: o.customer == c.id)

    forms: dict[str, Callable[[Any], Any]] = {
        "aggregate": lambda c: mine(c).aggregate(Count()),
        "group": lambda c: mine(c).group_by(lambda o: o.date % 2).aggregate(n=Count()),
        "top": lambda c: mine(c).group_by(lambda o: o.customer).top(1, by="date"),
        "join": lambda c: orders.join(
            lines, on=lambda o, x: o.id == x.order and o.customer == c.id
        ),
        "semi": lambda c: mine(c).semi_join(lines, on=lambda o, x: o.id == x.order),
        "union": lambda c: mine(c).select(lambda o: o.id) | mine(c).select(lambda o: o.date),
        "fields": lambda c: orders.where(customer=c.id),
        "column": lambda c: orders.where(col("customer") == c.id),
        "value": lambda c: (lambda key: orders.where(lambda o: o.customer == key))(c.id),
        "text": lambda c: live(o for o in orders if o.customer == c.id),
        "list": lambda c: orders.where(lambda o: o.id in [c.id, 7]),
        "inner": lambda c: mine(c).where(lambda o: any(o.id == x.order for x in lines)),
    }
    view = shop.customers.nest(**forms).materialize()
    ann = view[1]
    assert ann.aggregate == Bag([3]) and ann.group == Bag([(0, 1), (1, 2)])
    assert ann.fields == ann.column == ann.value == ann.text and len(ann.fields) == 3
    assert len(ann.join) == 3 and len(ann.semi) == len(ann.inner) == 2
    assert view[2].aggregate == Bag([0]) and view[2].list == Bag([Order(7, 1, 3)])
    view.verify()


def looping(shop: Shop) -> Callable[[Any], Any]:
    def query(c: Any) -> Any:
        def is_mine(o: Any) -> bool:
            for _ in range(2):
                pass
            return bool(o.customer == c.id)

        return shop.orders.where(lambda o: is_mine(o))

    return query


def defaulting(shop: Shop) -> Callable[[Any], Any]:
    def query(c: Any) -> Any:
        def is_mine(o: Any, c: Any = c) -> bool:
            return bool(o.customer == c.id)

        return shop.orders.where(is_mine)

    return query


REFUSED: list[tuple[Callable[[Shop], dict[str, Any]], str]] = [
    (lambda s: {}, "nest takes callables"),
    (lambda s: {"row": lambda c: s.orders}, "there is a binding 'row' already"),
    (lambda s: {"count": lambda c: s.orders}, "names a binding 'count'"),
    (lambda s: {"x": lambda c: None}, r"<lambda> \(test_nested_views.py:\d+\) gives None"),
    (lambda s: {"x": lambda c, d: s.orders}, "takes 2: "),
    (lambda s: {"x": lambda c: s.orders if c.id else s.lines}, "is called once"),
    (lambda s: {"x": defaulting(s)}, "reads 'c', a row"),
    (lambda s: {"x": looping(s)}, "calls is_mine, which reads 'c'"),
    (
        lambda s: {
            "x": lambda c: iterate(
                lambda r: r.where(lambda o: o.id > 3),
                s.orders.where(lambda o: o.id == c.id),
                times=2,
            )
        },
        r"nest: <lambda> \(test_nested_views.py:\d+\): .* cannot do iterate",
    ),
]


@pytest.mark.parametrize(("named", "message"), REFUSED)
def test_what_cannot_be_carried_is_refused(named: Any, message: str) -> None:
    shop = Shop()
    with pytest.raises(PlanError, match=message):
        shop.customers.nest(**named(shop))


def test_a_query_that_reads_a_row_around_it_stands_nowhere_else() -> None:
    shop, kept = Shop(), list[Any]()

    def mine(c: Any) -> Any:
        kept.append(shop.orders.where(customer=c.id))
        return kept[0]

    shop.customers.nest(x=mine)
    with pytest.raises(PlanError, match="reads the row around it"):
        kept[0].materialize()


def test_a_row_that_raises_inside_undoes_the_commit() -> None:
    shop = filled()
    view = shop.customers.nest(
        few=lambda c: shop.orders.where(lambda o: o.customer == c.id and 6 // (o.date - 5) < 9)
    ).materialize()
    before = list(view)
    with pytest.raises(ZeroDivisionError):
        shop.orders.add(Order(1, 1, 5))
    assert list(view) == before
    view.verify()


def test_a_nest_is_the_plan_of_its_comprehension() -> None:
    shop = filled()
    customers, orders, lines = shop.customers, shop.orders, shop.lines
    text = shop.db.query(
        lambda: [
            (c, [(o, [x for x in lines if x.order == o.id]) for o in orders if o.customer == c.id])
            for c in customers
        ]
    )
    view, nested = text.materialize(), shop.bags().materialize()
    check(view)
    assert view == list(nested)
    plans = [
        str(each.explain()).partition("optimized")[2].partition("runs as")[0].splitlines()[2:]
        for each in (view, nested)
    ]
    shapes = [[line.split()[0] for line in plan] for plan in plans]
    assert shapes[0] == shapes[1]
    costs: list[int] = []
    for each in (view, nested):
        before = each.stats().touched
        orders.add(Order(100 + len(costs), 1, 1))
        costs.append(each.stats().touched - before)
    assert costs[0] >= costs[1]


def test_a_third_level_is_there_below_each_parent_that_shows_it() -> None:
    """TanStack #1501, #1685: it was lost where two parents share a child."""
    db = Database()
    parts = db.table(tuple[str, str], name="parts")
    names = db.table(str, name="names")
    view = names.nest(
        parts=lambda n: parts.where(lambda p: p[0] == n).nest(
            parts=lambda p: parts.where(lambda q: q[0] == p[1]).nest(
                parts=lambda q: parts.where(lambda r: r[0] == q[1])
            )
        )
    ).materialize()
    names.add_all(["car", "bus"])
    parts.add_all([("car", "wheel"), ("bus", "wheel"), ("wheel", "rim")])
    told: list[Delta[Any]] = []
    with view.subscribe(told.append):
        parts.add(("rim", "steel"))
    assert {edit.path[0] for edit in told[0].edits} == {"car", "bus"}
    for edit in told[0].edits:
        wheel, rim = (edit.path[0], "wheel"), ("wheel", "rim")
        path = (edit.path[0], "parts", wheel, "parts", rim, "parts")
        assert edit == Edit(None, ("rim", "steel"), 1, path=path)
    parts.remove(("car", "wheel"))
    assert view["car"].parts == Bag([]) and len(view["bus"].parts) == 1
    view.verify()


def test_a_parent_comes_after_its_children_goes_and_returns() -> None:
    shop = Shop()
    view = shop.bags().materialize()
    shop.lines.add(Line(7, "tea"))
    shop.orders.add(Order(7, 1, 1))
    assert not view
    shop.customers.add(Customer(1, "ann"))
    (order,) = view[1].orders
    assert order.lines == Bag([Line(7, "tea")])
    shop.orders.delete(7)
    assert view[1].orders == Bag([])
    shop.customers.delete(1)
    shop.orders.add(Order(7, 1, 1))
    shop.customers.add(Customer(1, "ann"))
    assert len(view[1].orders) == 1
    view.verify()


CHANGES: dict[str, Callable[[Shop], object]] = {
    "a line": lambda shop: shop.lines.add(Line(7, "new")),
    "an order": lambda shop: shop.orders.add(Order(-1, 3, -1)),
    "an order goes": lambda shop: shop.orders.delete(4),
    "a customer": lambda shop: shop.customers.add(Customer(-1, "new")),
    "a name": lambda shop: shop.customers.upsert(Customer(3, "new")),
}
FORMS: dict[str, Callable[[Shop], Any]] = {
    "tree": Shop.tree,
    "bags": Shop.bags,
    "join": lambda shop: shop.customers.nest(
        lines=lambda c: shop.orders.where(lambda o: o.customer == c.id).join(
            shop.lines, on=lambda o, line: o.id == line.order
        )
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_a_change_touches_as_many_rows_whatever_there_is(form: str) -> None:
    """TanStack #1709: a join inside scanned its source."""
    touched = []
    for size in (10, 200):
        shop = Shop(size)
        view = FORMS[form](shop).materialize()
        shop.customers.add(Customer(-2, "first"))  # the first look-up builds an index
        shop.orders.add(Order(-2, -2, 1))
        shop.lines.add(Line(-2, "first"))
        for change in CHANGES.values():
            before = view.stats().touched
            change(shop)
            touched.append(view.stats().touched - before)
        view.verify()
    half = len(CHANGES)
    assert touched[:half] == touched[half:] and max(touched) < 25


FOLDS: list[Callable[[Any, Any], Any]] = [
    lambda c, orders: (c.id, len(orders), sum(o.date for o in orders)),
    lambda c, orders: (c.id, any(o.date > 2 for o in orders), all(o.date > 1 for o in orders)),
    lambda c, orders: (c.id, Order(6, 1, 6) in orders, max((o.date for o in orders), default=0)),
    lambda c, orders: (c.id, sorted(orders, key=lambda o: o.id)[:1] if orders else None),
    lambda c, orders: c.name,
]


@pytest.mark.parametrize("fold", FOLDS)
def test_what_is_computed_of_rows_inside_is_computed_without_a_bag(fold: Any) -> None:
    shop = Shop(5)
    nest = shop.customers.nest(orders=lambda c: shop.orders.where(lambda o: o.customer == c.id))
    whole, made = nest.materialize(), nest.select(fold)
    view = made.materialize()
    assert "Collect(row)" not in str(made.explain())
    for change in CHANGES.values():
        change(shop)
        expected = [canonical(plain(fold(row.row, row.orders))) for row in whole]
        assert view == expected
        view.verify()


def test_conditions_and_groups_of_what_is_inside() -> None:
    shop = filled()
    nest = shop.customers.nest(orders=lambda c: shop.orders.where(lambda o: o.customer == c.id))
    some = nest.where(lambda c, orders: any(o.date > 2 for o in orders))
    names = some.select(lambda c, orders: c.name)
    counts = nest.group_by(lambda c, orders: len(orders)).aggregate(n=Count())
    assert "Collect" not in f"{names.explain()}{counts.explain()}"
    views = [each.materialize() for each in (some, names, counts)]
    assert views[0][1].orders and views[1] == ["ann"] and views[2] == {3: 1, 0: 1}
    shop.orders.delete(7)
    assert not views[0] and not views[1] and views[2] == {2: 1, 0: 1}
    for view in views:
        view.verify()


def test_unnest_of_nest_is_the_join() -> None:
    shop = Shop(5)
    nest = shop.customers.nest(orders=lambda c: shop.orders.where(lambda o: o.customer == c.id))
    pairs = nest.unnest(lambda c, orders: orders).select(lambda c, orders, o: (c.name, o.id))
    join = shop.customers.join(shop.orders, on=lambda c, o: c.id == o.customer)
    flat = join.select(lambda c, o: (c.name, o.id)).materialize()
    view = pairs.materialize()
    for change in CHANGES.values():
        change(shop)
        assert view == list(flat)
    assert "Collect" not in str(pairs.explain()).partition("optimized")[2]


def test_subscribing_to_a_path_hears_of_nothing_else() -> None:
    shop = filled()
    view, heard = shop.tree().materialize(), list[Delta[Any]]()
    with view.subscribe(heard.append, path=(1, "orders", 9, "lines"), snapshot=True):
        shop.lines.add(Line(8, "rum"))
        shop.customers.add(Customer(3, "cem"))
        shop.lines.add(Line(9, "rum"))
        shop.orders.delete(9)
    assert [dict(delta) for delta in heard] == [
        {Line(9, "milk"): 2},
        {Line(9, "rum"): 1},
        {Line(9, "milk"): -2, Line(9, "rum"): -1},
    ]
    for path in ((1,), (1, "lines"), (1, "orders", 9), ()):
        with pytest.raises(PlanError, match="path"):
            view.subscribe(print, path=path)


def test_merged_deltas_have_the_edits_of_both() -> None:
    shop = filled()
    view, told = shop.bags().materialize(), list[Delta[Any]]()
    with view.subscribe(told.append):
        shop.lines.add(Line(8, "rum"))
        shop.lines.add(Line(8, "gin"))
        shop.lines.remove(Line(8, "rum"))
    merged = DeltaAccumulator(told[0])
    for delta in told[1:]:
        merged.add(delta)
    both = merged.delta()
    assert both is not None
    assert both.edits == (Edit(None, Line(8, "gin"), 1, path=(1, "orders", 8, "lines")),)
    assert pickle.loads(pickle.dumps(both)).edits == both.edits
