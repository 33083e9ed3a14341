"""Objects that change as rows: effects of an assignment, refusals, and unchanged parts."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
import threading
import weakref
from abc import ABC, abstractmethod
from collections import Counter, deque
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypedDict

import attrs
import msgspec
import pydantic
import pytest

from reactive import Count, Database, PlanError, Sum, TableError, TransactionError, of, tracked
from tests.borders.objects.kinds import KINDS, Data, Described, Plain, Special, Struct


class Shop:
    def __init__(self, kind: Any = Plain) -> None:
        self.db = Database()
        self.orders = self.db.table(kind, name="orders", key="id")
        self.sums = self.orders.group_by(lambda o: o.customer).aggregate(
            Sum(lambda o: o.total)
        ).materialize()  # fmt: skip
        self.one, self.two = kind(id=1, total=5.0), kind(id=2, total=7.0)
        self.orders.add_all([self.one, self.two])


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_a_snapshot_with_the_methods_of_the_class(kind: Any) -> None:
    shop = Shop(kind)
    row = shop.orders[1]
    assert isinstance(row, kind)
    assert row is not shop.one
    assert row.with_tax() == 7.5
    assert not row.is_large
    assert of(row) is shop.one
    shop.one.total = 20.0
    assert (row.total, shop.orders[1].total) == (5.0, 20.0)
    assert shop.orders[1].is_large
    with pytest.raises(TableError, match="would change it"):
        row.total = 3.0
    with pytest.raises(TableError, match="would change it"):
        del row.total
    assert copy.copy(row) is copy.deepcopy(row) is row
    again = pickle.loads(pickle.dumps(row))
    assert (again.id, again.total) == (1, 5.0)
    with pytest.raises(LookupError, match="no object belongs to"):
        of(again)


@pytest.mark.parametrize("kind", KINDS)
def test_copies_and_pickles_of_an_object_are_in_no_table(kind: Any) -> None:
    shop = Shop(kind)
    for other in (copy.copy(shop.one), pickle.loads(pickle.dumps(shop.one))):
        other.total = 100.0
        assert shop.orders[1].total == shop.one.total == 5.0
    assert shop.db.check_silent() == []


def test_repr_of_a_row_is_that_of_the_object_and_init_runs_once() -> None:
    made = []

    @tracked
    @dataclass
    class Counted:
        id: int

        def __post_init__(self) -> None:
            made.append(self.id)

    @tracked
    class Built(msgspec.Struct, kw_only=True):
        id: int

        def __post_init__(self) -> None:
            made.append(self.id)

    for kind in (Counted, Built):
        table = Database().table(kind, key="id")
        o = kind(id=1)
        table.add(o)
        o.id = 2
        assert repr(table[2]) == repr(o)
    assert made == [1, 1]


def test_objects_of_equal_values_are_two_rows_and_one_object_is_one() -> None:
    orders = Database().table(Data)
    view = orders.distinct().materialize()
    one, two = Data(1, 5.0), Data(1, 5.0)
    assert one == two
    orders.add_all([one, two])
    assert len(view) == 2
    assert one in orders
    assert Data(1, 5.0) not in orders
    with pytest.raises(TableError, match="there already"):
        orders.add(one)
    with pytest.raises(TableError, match="times"):
        orders.add(Data(1, 5.0), 2)
    orders.remove(two)
    assert [of(row) for row in view] == [one]
    with pytest.raises(TableError, match="it is not there"):
        orders.remove(two)
    two.total = 9.0
    assert [row.total for row in view] == [5.0]


def test_eq_and_hash_of_the_class_stay_and_rows_of_it_need_none() -> None:
    assert Data.__hash__ is None
    shop = Shop(Data)
    assert shop.one == dataclasses.replace(shop.one)
    assert hash(shop.orders[1]) == hash(shop.orders[1])


def test_an_assignment_is_a_commit_and_several_in_a_transaction_are_one() -> None:
    shop = Shop()
    told: list[Any] = []
    subscription = shop.orders.where(lambda o: o.total > 1).subscribe(told.append)
    version = shop.db.version
    shop.one.total = 6.0
    assert shop.db.version == version + 1
    with shop.db.transaction():
        shop.one.total = 1.5
        shop.one.customer = "ann"
        shop.two.total = 100.0
        assert shop.sums[None] == (13.0 if isinstance(shop.sums[None], float) else shop.sums[None])
        assert shop.orders[1].customer == "ann"
    assert shop.db.version == version + 2
    assert [len(delta.updated) for delta in told] == [1, 2]
    old, new = told[0].updated[0]
    assert (old.total, new.total, of(old) is of(new)) == (5.0, 6.0, True)
    shop.one.total = 1.5
    assert shop.db.version == version + 2
    subscription.close()


def test_what_a_view_raises_puts_the_value_back() -> None:
    shop = Shop()

    def small(total: float) -> float:
        if total > 50:
            raise ArithmeticError(total)
        return total

    view = shop.orders.select(lambda o: small(o.total)).materialize()
    with pytest.raises(ArithmeticError):
        shop.one.total = 60.0
    assert shop.one.total == shop.orders[1].total == 5.0
    with pytest.raises(ArithmeticError), shop.db.transaction():
        shop.two.total = 8.0
        shop.one.total = 60.0
    assert (shop.one.total, shop.two.total) == (5.0, 7.0)
    assert sorted(view) == [5.0, 7.0]
    assert shop.db.check_silent() == []


def test_without_undo_objects_stay_and_the_next_commit_takes_them() -> None:
    @tracked(undo=False)
    class Order:
        id: int
        total: float

    db = Database()
    orders = db.table(Order, key="id")
    totals = orders.select(lambda o: o.total).materialize()
    one = Order(1, 5.0)
    orders.add(one)
    with pytest.raises(KeyError), db.transaction():
        one.total = 6.0
        raise KeyError
    assert (one.total, list(totals), db.check_silent()) == (6.0, [5.0], [])
    with db.transaction():
        pass
    orders.add(Order(2, 1.0))
    with db.transaction():
        one.id = 3
    assert sorted(totals) == [1.0, 6.0]


def test_keys_are_assigned_and_exchanged_but_not_taken() -> None:
    shop = Shop()
    with pytest.raises(TableError, match=r"its key is taken by Plain\(id=2"):
        shop.one.id = 2
    assert (shop.one.id, of(shop.orders[1])) == (1, shop.one)
    with shop.db.transaction():
        shop.one.id, shop.two.id = 2, 1
    assert of(shop.orders[1]) is shop.two
    with pytest.raises(TableError, match="its key is taken"), shop.db.transaction():
        shop.one.total, shop.one.id = 9.0, 1
    assert (shop.one.id, shop.one.total) == (2, 5.0)
    shop.one.id = 8
    assert [row.id for row in shop.orders] == [1, 8]
    with pytest.raises(TableError, match="NaN"):
        shop.one.id = float("nan")
    assert shop.one.id == 8


def test_callables_of_queries_may_not_assign() -> None:
    shop = Shop()

    def spoil(o: Any) -> Any:
        shop.two.total = 1.0
        return o.id

    view = shop.orders.select(lambda o: o.total).materialize()
    with pytest.raises(TransactionError, match="cannot change tables"):
        shop.orders.select(spoil).materialize()
    assert (shop.two.total, sorted(view)) == (7.0, [5.0, 7.0])


def test_a_subscriber_may_assign() -> None:
    shop = Shop()

    def follow(delta: Any) -> None:
        if shop.one.note != "seen":
            shop.one.note = "seen"

    subscription = shop.orders.subscribe(follow)
    shop.one.total = 6.0
    assert shop.orders[1].note == "seen"
    subscription.close()


def test_an_assignment_waits_for_the_transaction_of_another_thread() -> None:
    shop = Shop()
    order: list[str] = []

    def assign() -> None:
        shop.one.total = 9.0
        order.append("assigned")

    thread = threading.Thread(target=assign)
    with shop.db.transaction():
        shop.two.total = 8.0
        thread.start()
        thread.join(0.05)
        assert shop.one.total == 5.0
        order.append("ended")
    thread.join()
    assert order == ["ended", "assigned"]
    assert dict(shop.sums) == {None: 17.0}


def test_threads_that_assign_to_the_same_objects_lose_nothing() -> None:
    shop = Shop()

    def assign(which: Any, name: str) -> None:
        for number in range(200):
            setattr(which, name, number)

    each = [(shop.one, "total"), (shop.one, "note"), (shop.two, "total"), (shop.one, "customer")]
    threads = [threading.Thread(target=assign, args=of) for of in each]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    row = shop.orders[1]
    assert (row.total, row.note, row.customer) == (199, 199, 199)
    assert dict(shop.sums) == {199: 199, None: 199}
    assert shop.db.check_silent() == []


def test_an_object_in_several_tables_and_databases() -> None:
    one, other = Database(), Database()
    a, b, c = one.table(Plain, name="a", key="id"), one.table(Plain, name="b"), other.table(Plain)
    totals = [t.select(lambda o: o.total).materialize() for t in (a, b, c)]
    pairs = a.join(b, on=lambda x, y: x.id == y.id and x.total == y.total).materialize()
    o = Plain(1, 5.0)
    for table in (a, b, c):
        table.add(o)
    version = one.version
    o.total = 6.0
    assert [list(view) for view in totals] == [[6.0]] * 3
    assert (len(pairs), one.version) == (1, version + 1)
    assert a[1] is next(iter(b))
    taken = Plain(2, 0.0)
    a.add(taken)
    with pytest.raises(TableError, match="taken"):
        o.id = 2
    assert (o.id, next(iter(c)).id) == (1, 1)
    a.remove(o)
    o.total = 7.0
    assert [list(view) for view in totals] == [[0.0], [7.0], [7.0]]
    one.close()
    o.total = 8.0
    assert (list(totals[2]), o.total) == ([8.0], 8.0)


def test_objects_without_a_table_are_free_again() -> None:
    shop = Shop()
    one = shop.one
    shop.orders.remove(one)
    row = weakref.ref(shop.orders[2])
    one.total = 100.0
    assert dict(shop.sums) == {None: 7.0}
    shop.db.drop(shop.orders, views=True)
    shop.two.total = 1.0
    gone = weakref.ref(shop.db._engine)
    del shop
    gc.collect()
    assert (row(), gone()) == (None, None)


def test_the_last_reference_does_not_remove_the_row() -> None:
    shop = Shop()
    seen = weakref.ref(shop.one)
    del shop.one
    gc.collect()
    assert shop.orders[1].total == 5.0
    shop.orders.delete(1)
    gc.collect()
    assert seen() is None


def test_statements_take_objects_or_rows_that_stand_for_them() -> None:
    shop = Shop()
    orders, one, two = shop.orders, shop.one, shop.two
    orders.upsert(one)
    three = Plain(1, 9.0)
    orders.upsert(three)
    assert of(orders[1]) is three
    orders.update(three, one)
    assert of(orders[1]) is one
    orders.remove(orders[1])
    assert [of(row) for row in orders] == [two]
    orders.replace_all([one, orders[2]])
    assert {of(row).id for row in orders} == {1, 2}
    orders.replace_where(lambda o: o.total > 6, [Plain(2, 8.0)])
    assert orders[2].total == 8.0
    orders.discard(two)
    orders.upsert_all([two, one])
    assert of(orders[2]) is two
    with pytest.raises(TableError, match="change the object"):
        orders.patch(1, "note", added=["x"])
    with pytest.raises(TableError, match="takes rows of Plain, not the int"):
        orders.add(3)
    with pytest.raises(PlanError, match="must be stored"):
        shop.db.table(Plain, name="flow", stored=False)
    orders.clear()
    one.total = 77.0
    assert dict(shop.sums) == {}


def test_rows_of_an_object_are_restored_with_it() -> None:
    shop = Shop()
    with pytest.raises(KeyError), shop.db.transaction():
        shop.orders.remove(shop.one)
        shop.one.total = 50.0
        new = Plain(3, 1.0)
        shop.orders.add(new)
        new.total = 2.0
        shop.orders.upsert(Plain(2, 3.0))
        raise KeyError
    assert (shop.one.total, new.total, shop.orders[1].total) == (5.0, 1.0, 5.0)
    assert of(shop.orders[2]) is shop.two
    new.total = 4.0
    shop.two.total = 8.0
    assert dict(shop.sums) == {None: 13.0}


def test_attributes_that_are_deleted_are_in_no_row() -> None:
    shop = Shop(Data)
    customers = shop.orders.select(lambda o: getattr(o, "note", "gone")).materialize()
    del shop.one.note
    assert sorted(customers) == ["", "gone"]
    with pytest.raises(KeyError), shop.db.transaction():
        del shop.two.note
        shop.one.note = "x"
        raise KeyError
    assert not hasattr(shop.one, "note")
    assert shop.two.note == ""
    with pytest.raises(AttributeError):
        del shop.one.note


def test_only_and_exclude_leave_attributes_out() -> None:
    @tracked(exclude=["socket"])
    class Player:
        id: int
        hp: int
        socket: Any = None

    @tracked(only=("id",))
    class Named:
        id: int
        other: list[int] = field(default_factory=list)

    db = Database()
    players, names = db.table(Player, key="id"), db.table(Named)
    view = players.select(lambda p: p.hp).materialize()
    ann = Player(1, 10, object())
    players.add(ann)
    names.add(Named(1))
    version = db.version
    ann.socket = object()
    assert (db.version, list(view), repr(players[1])) == (version, [10], "Player(id=1, hp=10)")
    with pytest.raises(AttributeError, match="says so"):
        _ = players[1].socket
    for options in ({"only": ["id"]}, {"exclude": ["no"]}):
        with pytest.raises(PlanError, match=r"no attribute|declares no"):
            tracked(**options)(type("Empty", (), {}))  # type: ignore[call-overload]


class Address(NamedTuple):
    town: str
    numbers: Any


def test_values_that_may_change_unseen_are_refused() -> None:
    class Opaque:
        def __init__(self) -> None:
            self.x = 1

    shop = Shop()
    for value in (Opaque(), (1, Opaque()), Address("Bonn", bytearray())):
        with pytest.raises(TableError, match="which may change in place"):
            shop.one.customer = value
        assert shop.one.customer is None
    with pytest.raises(TableError, match="which may change in place"):
        shop.orders.add(Plain(3, 1.0, Opaque()))  # type: ignore[arg-type]
    assert len(shop.orders) == 2
    trusting = Database().table(Plain, identity=True)
    trusting.add(Plain(3, 1.0, Opaque()))  # type: ignore[arg-type]
    shop.one.customer = ("Bonn", 7)
    assert shop.orders[1].customer == ("Bonn", 7)


@tracked
class Customer:
    name: str
    town: str


@tracked
class Sale:
    id: int
    customer: Customer | None
    total: float = 1.0


def test_objects_that_are_values_of_attributes_change_the_rows_of_their_owners() -> None:
    db = Database()
    sales = db.table(Sale, key="id")
    towns = sales.group_by(lambda s: s.customer.town).aggregate(Count()).materialize()  # type: ignore[union-attr]
    ann = Customer("ann", "Bonn")
    one, two = Sale(1, ann), Sale(2, ann)
    sales.add_all([one, two])
    assert dict(towns) == {"Bonn": 2}
    version = db.version
    ann.town = "Ulm"
    assert (dict(towns), db.version) == ({"Ulm": 2}, version + 1)
    assert sales[1].customer is sales[2].customer
    assert of(sales[1].customer) is ann
    two.customer = Customer("bob", "Rom")
    ann.town = "Bonn"
    assert dict(towns) == {"Bonn": 1, "Rom": 1}
    with pytest.raises(KeyError), db.transaction():
        ann.town = "Ulm"
        raise KeyError
    assert (ann.town, db.check_silent()) == ("Bonn", [])
    vars(ann)["town"] = "Ulm"
    assert [(s.object, s.attributes) for s in db.check_silent()] == [(one, ("customer",))]
    db.touch(ann)
    assert (dict(towns), db.check_silent()) == ({"Ulm": 1, "Rom": 1}, [])


def test_objects_that_lead_back_to_themselves_are_refused() -> None:
    @tracked
    class Node:
        id: int
        next: Any = None

    nodes = Database().table(Node, key="id")
    one, two = Node(1), Node(2)
    nodes.add(one)
    one.next = two
    gc.collect()  # no row has read the second one yet
    with pytest.raises(TableError, match="leads back to the object"):
        two.next = one
    with pytest.raises(TableError, match="may change in place"):
        two.next = bytearray()
    assert two.next is None
    two.next = [Node(3)]
    gc.collect()
    with pytest.raises(TableError, match="leads back to the object"):
        two.next[0].next = one
    two.next = None
    with pytest.raises(TableError, match="leads back to the object"):
        one.next = one
    one.next = None
    two.next = one
    nodes.add(two)
    one.id = 7
    assert nodes[2].next.id == 7


def test_methods_that_keep_what_they_computed_do_so_per_row() -> None:
    @tracked
    @dataclass
    class Cached:
        id: int
        total: float

        @cached_property
        def double(self) -> float:
            return self.total * 2

    table = Database().table(Cached, key="id")
    view = table.select(lambda c: c.double).materialize()
    one = Cached(1, 2.0)
    table.add(one)
    assert one.double == 4.0
    one.total = 5.0
    assert list(view) == [10.0]
    assert table[1].double == 10.0


def test_abstract_classes_subclasses_and_generics() -> None:
    @tracked
    @dataclass
    class Shape(ABC):
        id: int

        @abstractmethod
        def area(self) -> float: ...

    @dataclass
    class Square(Shape):
        side: float

        def area(self) -> float:
            return self.side**2

    @tracked
    @dataclass
    class Circle(Shape):
        radius: float

        def area(self) -> float:
            return 3 * self.radius**2

    shapes = Database().table(Shape, key="id")  # type: ignore[type-abstract]
    areas = shapes.select(lambda s: s.area()).materialize()
    square, circle = Square(1, 2.0), Circle(2, 1.0)
    shapes.add_all([square, circle])
    square.side, circle.radius = 3.0, 2.0
    assert sorted(areas) == [9.0, 12.0]
    assert isinstance(shapes[1], Square)
    table = Database().table(Special, key="id")
    with pytest.raises(TableError, match="takes rows of Special"):
        table.add(Data(1, 2.0))  # type: ignore[arg-type]


def test_validation_of_the_class_goes_on() -> None:
    @tracked
    @attrs.define
    class Checked:
        id: int
        total: float = attrs.field(converter=float, validator=attrs.validators.gt(0))

    @tracked
    class Model(pydantic.BaseModel, validate_assignment=True):
        id: int
        total: float = pydantic.Field(gt=0)

    for kind in (Checked, Model):
        db = Database()
        table: Any = db.table(kind, key="id")
        totals = table.select(lambda o: o.total).materialize()
        o: Any = kind(id=1, total=2)
        table.add(o)
        o.total = 3
        assert (list(totals), type(table[1].total)) == ([3.0], float)
        with pytest.raises(ValueError):
            o.total = -1
        with db.transaction():
            with pytest.raises(ValueError):
                o.total = -1
            o.total = 4
        assert (o.total, list(totals), db.check_silent()) == (4.0, [4.0], [])
    described = Described(1, 5.0)
    orders = Database().table(Described, key="id")
    orders.add(described)
    with pytest.raises(TypeError):
        described.total = "x"  # type: ignore[assignment]
    assert orders[1].total == 5.0


def test_what_cannot_be_tracked_is_refused() -> None:
    frozen: list[Any] = [
        dataclass(frozen=True)(type("A", (), {"__annotations__": {"x": int}})),
        attrs.frozen(type("B", (), {"__annotations__": {"x": int}})),
        msgspec.defstruct("C", [("x", int)], frozen=True),
        pydantic.create_model("D", __config__=pydantic.ConfigDict(frozen=True), x=(int, 1)),
        Address,
        int,
    ]
    for kind in frozen:
        with pytest.raises(PlanError, match="there is nothing to track"):
            tracked(kind)
    for given in (3, lambda: 3):
        with pytest.raises(PlanError, match="tracked takes a class"):
            tracked(given)  # type: ignore[call-overload]
    with pytest.raises(PlanError, match="declares no attributes"):
        tracked(type("Nothing", (), {"__init__": lambda self: None}))
    shop = Shop()
    with pytest.raises(PlanError, match="the class of snapshots"):
        tracked(type(shop.orders[1]))
    for row in (3, shop.one):
        with pytest.raises(TableError, match="no snapshot"):
            of(row)
    with pytest.raises(TableError, match="in no table"):
        shop.db.touch(Plain(1, 2.0))


def test_queries_of_all_kinds_read_rows() -> None:
    shop = Shop(Struct)
    sql = shop.db.sql("select sum(total) as total from orders").materialize()
    live = shop.db.query(lambda: [o.id for o in shop.orders if o.total > 6]).materialize()
    ordered = shop.orders.order_by(lambda o: -o.total).limit(1).materialize()
    assert (next(iter(sql))[0], list(live), ordered[0].id) == (12.0, [2], 2)
    shop.one.total = 10.0
    assert (next(iter(sql))[0], sorted(live), ordered[0].id) == (17.0, [1, 2], 1)
    assert {o.id for o in shop.orders if o.total > 6} == {1, 2}
    for view in (sql, live, ordered):
        view.verify()
    assert Shop(Data).orders.where(lambda o: o.total > 6).materialize().to_arrow().num_rows == 1


def test_what_is_made_again_with_other_plans_keeps_what_was_assigned() -> None:
    """A NaN among the values of sums by key has the commit be made again."""
    for together in (False, True):
        db = Database()
        a, b = db.table(Plain, name="a"), db.table(Plain, name="b")
        view = (
            a.join(b, on=lambda x, y: x.customer == y.customer)
            .group_by(lambda x, y: x.customer)
            .aggregate(Sum(lambda x, y: x.total * y.total))
            .materialize()
        )
        one, two = Plain(1, 2, "ann"), Plain(2, 3, "ann")
        a.add(one)
        b.add(two)
        assert dict(view) == {"ann": 6}
        if together:
            with db.transaction():
                one.note = "x"
                one.total = float("nan")
        else:
            one.total = float("nan")
        assert one.total != one.total
        assert view["ann"] != view["ann"]
        view.verify()
        assert db.check_silent() == []
        one.total = 4.0
        view.verify()
        assert (db.check_silent(), one.total) == ([], 4.0)
        again = db.version
        with pytest.raises(KeyError), db.transaction():
            one.total = 5.0
            raise KeyError
        assert (one.total, db.version) == (4.0, again)


def test_signals_of_psygnal_go_on() -> None:
    psygnal = pytest.importorskip("psygnal")

    @tracked
    @psygnal.evented
    @dataclass
    class Level:
        id: int
        depth: float

    levels = Database().table(Level, key="id")
    depths = levels.select(lambda o: o.depth).materialize()
    level = Level(1, 5.0)
    heard: list[Any] = []
    level.events.depth.connect(heard.append)  # type: ignore[attr-defined]
    levels.add(level)
    level.depth = 7.0
    assert (heard, list(depths)) == ([7.0], [7.0])


@pytest.mark.parametrize(
    ("name", "values"), [("EventedList", [1]), ("EventedDict", {1: 2}), ("EventedSet", {1})]
)
def test_containers_of_psygnal_are_refused_with_the_reason(name: str, values: Any) -> None:
    containers = pytest.importorskip("psygnal.containers")

    @tracked
    class Level:
        id: int
        marks: Any

    levels = Database().table(Level, key="id")
    level = Level(1, values)
    levels.add(level)
    kept = level.marks
    with pytest.raises(TableError, match=f"hold a {type(values).__name__}, which is followed"):
        level.marks = getattr(containers, name)(values)
    assert level.marks is kept and levels[1].marks == values


def test_nan_is_the_same_in_all_rows() -> None:
    @tracked
    class Point:
        id: int
        x: float = 0.0
        pair: tuple[Any, ...] = ()

    db = Database()
    points = db.table(Point, key="id")
    one, two = Point(1), Point(2)
    points.add_all([one, two])
    views = [
        points.select(lambda p: p.x).distinct().materialize(),
        points.select(lambda p: p.pair).distinct().materialize(),
        points.select(lambda p: p.x).materialize(),
    ]
    for point in (one, two, one):
        point.x, point.pair = float("nan"), (1, float("nan"))
        assert db.check_silent() == []
        for view in views:
            view.verify()
    assert [len(view) for view in views] == [1, 1, 2]
    version = db.version
    one.x = float("nan")
    assert db.version == version


def test_what_a_row_shows_of_a_list_may_be_assigned_to_an_object() -> None:
    @tracked
    class Order:
        id: int
        lines: list[Any]
        tags: dict[str, list[int]]
        kinds: set[str]

    db = Database()
    orders = db.table(Order, key="id")
    order = Order(1, ["tea", ["hot"]], {"a": [1]}, {"k"})
    orders.add(order)
    before = orders[1]
    order.lines[1].append("sweet")
    order.tags.clear()
    order.kinds.add("z")
    order.lines, order.tags, order.kinds = before.lines, before.tags, before.kinds
    assert (order.lines, order.tags, order.kinds) == (["tea", ["hot"]], {"a": [1]}, {"k"})
    order.lines[1].append("black")
    order.tags["a"].append(2)
    assert orders[1].lines == ["tea", ["hot", "black"]]
    assert orders[1].tags == {"a": [1, 2]}
    assert before.lines == ["tea", ["hot"]]
    assert db.check_silent() == []


def test_a_call_of_the_class_of_a_row_makes_an_object() -> None:
    db = Database()
    drawn: Any = attrs.define(
        type("Drawn", (), {"__annotations__": {"id": int, "tags": list[str]}})
    )
    listed: Any = dataclass(type("Listed", (), {"__annotations__": {"id": int, "tags": list[str]}}))
    for kind, replace in ((tracked(drawn), attrs.evolve), (tracked(listed), dataclasses.replace)):
        table = db.table(kind, key="id")
        table.add(kind(1, ["a"]))
        other = replace(table[1], id=2)
        assert type(other) is kind
        table.add(other)
        other.tags.append("b")
        assert (table[1].tags, table[2].tags) == (["a"], ["a", "b"])


def test_rows_of_pydantic_models_are_dumped_and_copied_as_models() -> None:
    @tracked
    class Line(pydantic.BaseModel):
        sizes: list[int] = []

    @tracked
    class Order(pydantic.BaseModel):
        id: int
        count: int = pydantic.Field(default=0, alias="Count")
        lines: list[Line] = []
        tags: dict[str, set[int]] = {}
        _private: int = 3

    orders = Database().table(Order, key="id")
    order = Order(id=1, Count=2, lines=[Line(sizes=[1])], tags={"a": {1}})
    orders.add(order)
    row = orders[1]
    assert row.model_dump() == order.model_dump()
    assert row.model_dump_json(by_alias=True) == order.model_dump_json(by_alias=True)
    changed = row.model_copy(update={"count": 5})
    assert (changed.count, row.count, type(changed)) == (5, 2, Order)
    orders.upsert(changed)
    changed.lines[0].sizes.append(2)
    assert (orders[1].count, orders[1].lines[0].sizes) == (5, [1, 2])
    with pytest.raises(AttributeError, match="_private"):
        _ = row._private


def test_fields_that_no_row_has_are_refused_when_a_query_is_made() -> None:
    orders = Database().table(Plain, key="id")
    with pytest.raises(PlanError, match="has no field 'totl'; did you mean 'total'"):
        orders.where(lambda o: o.totl > 3)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        (deque(), "put in a list"),
        (bytearray(), "put in bytes"),
        (Counter(), "only a dict itself is followed"),
        ((1, [2]), "put in a tuple"),
    ],
)
def test_what_is_refused_names_what_to_put_in_its_place(value: Any, remedy: str) -> None:
    shop = Shop()
    with pytest.raises(TableError, match=remedy):
        shop.one.customer = value
    assert shop.one.customer != value


def test_rows_that_stand_for_nothing_and_equal_objects_are_told_as_such() -> None:
    shop = Shop()
    with pytest.raises(TableError, match="came from elsewhere, such as a pickle"):
        shop.orders.add(pickle.loads(pickle.dumps(shop.orders[1])))
    with pytest.raises(TableError, match="an object of equal values is another one"):
        shop.orders.remove(Plain(id=1, total=5.0))


def test_structs_without_garbage_collection_have_snapshots() -> None:
    kind: Any = tracked(msgspec.defstruct("Light", [("id", int), ("n", int)], gc=False))
    table = Database().table(kind, key="id")
    light = kind(1, 2)
    table.add(light)
    light.n = 3
    assert table[1].n == 3


class Table(TypedDict):
    x: int


class Listed(list[int]):
    x: int


@pytest.mark.parametrize("kind", [Table, Listed])
def test_classes_of_containers_are_refused(kind: Any) -> None:
    with pytest.raises(PlanError, match="whose items are no attributes"):
        tracked(kind)


def test_a_path_to_a_list_of_an_object_is_refused_where_one_subscribes() -> None:
    @tracked
    class Order:
        id: int
        lines: list[str]

    orders = Database().table(Order, key="id")
    with pytest.raises(PlanError, match="not as a Bag\n  subscribe to a view of its values"):
        orders.subscribe(print, path=(1, "lines"))
