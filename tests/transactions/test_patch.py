"""Bags inside of rows are changed by paths: views over them do what the change asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import attrs
import msgspec
import pydantic
import pytest

from reactive import Bag, Collect, Count, Database, Patch, Sum, Table, TableError, View, live


class Part(NamedTuple):
    name: str
    price: Any


class Line(NamedTuple):
    what: str
    amount: int
    parts: Bag[Part] = Bag()


class Order(NamedTuple):
    id: int
    day: int
    lines: Bag[Line] = Bag()


class Customer(NamedTuple):
    id: int
    town: str
    orders: Bag[Order] = Bag()
    tags: Bag[str] = Bag()


Customers = Iterable[Customer]
VIEWS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Customers], Iterable[Any]]]] = {
    "fields": (
        lambda t, days: t.unnest(lambda c: c.orders).select(lambda c, o: (c.town, o.day)),
        lambda rows: [(c.town, o.day) for c in rows for o in c.orders],
    ),
    "whole": (
        lambda t, days: t.unnest(lambda c: c.orders),
        lambda rows: [(c, o) for c in rows for o in c.orders],
    ),
    "inner whole": (
        lambda t, days: t.unnest(lambda c: c.orders).select(lambda c, o: (c.id, o)),
        lambda rows: [(c.id, o) for c in rows for o in c.orders],
    ),
    "two levels": (
        lambda t, days: (
            t.unnest(lambda c: c.orders)
            .unnest(lambda c, o: o.lines)
            .where(lambda c, o, line: line.amount > 1)
            .select(lambda c, o, line: (c.town, o.day, line.what))
        ),
        lambda rows: [
            (c.town, o.day, line.what)
            for c in rows
            for o in c.orders
            for line in o.lines
            if line.amount > 1
        ],
    ),
    "three levels": (
        lambda t, days: (
            t.unnest(lambda c: c.orders)
            .unnest(lambda c, o: o.lines)
            .unnest(lambda c, o, line: line.parts)
            .select(lambda c, o, line, part: (c.id, str(part.price)))
        ),
        lambda rows: [
            (c.id, str(part.price))
            for c in rows
            for o in c.orders
            for line in o.lines
            for part in line.parts
        ],
    ),
    "two bags": (
        lambda t, days: (
            t.unnest(lambda c: c.orders)
            .unnest(lambda c, o: c.tags)
            .select(lambda c, o, tag: (o.day, tag))
        ),
        lambda rows: [(o.day, tag) for c in rows for o in c.orders for tag in c.tags],
    ),
    "asked": (
        lambda t, days: (
            t.where(lambda c: len(c.orders) > 1)
            .unnest(lambda c: c.orders)
            .select(lambda c, o: (c.town, o.id))
        ),
        lambda rows: [(c.town, o.id) for c in rows if len(c.orders) > 1 for o in c.orders],
    ),
    "distinct": (
        lambda t, days: t.select_many(lambda c: c.orders).select(lambda o: o.day).distinct(),
        lambda rows: {o.day for c in rows for o in c.orders},
    ),
    "join": (
        lambda t, days: (
            t.unnest(lambda c: c.orders)
            .join(days, on=lambda c, o, d: d[0] == o.day)
            .select(lambda c, o, d: (c.town, d[1]))
        ),
        lambda rows: [(c.town, f"d{o.day}") for c in rows for o in c.orders if o.day < 3],
    ),
    "of a join": (
        lambda t, days: (
            t.join(days, on=lambda c, d: d[0] == c.id)
            .unnest(lambda c, d: c.orders)
            .select(lambda c, d, o: (d[1], o.day))
        ),
        lambda rows: [(f"d{c.id}", o.day) for c in rows if c.id < 3 for o in c.orders],
    ),
    "groups": (
        lambda t, days: (
            t.unnest(lambda c: c.orders)
            .group_by(lambda c, o: c.town)
            .aggregate(Count(), Sum(lambda c, o: o.day), Collect(lambda c, o: o.day))
        ),
        lambda rows: [
            (town, len(found), sum(found), Bag(found))
            for town in {c.town for c in rows}
            if (found := [o.day for c in rows if c.town == town for o in c.orders])
        ],
    ),
    "read": (
        lambda t, days: t.select(lambda c: (c.id, len(c.orders), "a" in c.tags)),
        lambda rows: [(c.id, len(c.orders), "a" in c.tags) for c in rows],
    ),
    "comprehension": (
        lambda t, days: live((c.town, x.what) for c in t for o in c.orders for x in o.lines),
        lambda rows: [(c.town, line.what) for c in rows for o in c.orders for line in o.lines],
    ),
}


NAMES = "ab"
PRICES = (1, 1.0, True, 2, None, float("nan"))


def parts(random: Random) -> Bag[Part]:
    return Bag(
        [Part(random.choice(NAMES), random.choice(PRICES)) for _ in range(random.randrange(3))]
    )


def lines(random: Random) -> Bag[Line]:
    return Bag([line(random) for _ in range(random.randrange(3))])


def line(random: Random) -> Line:
    return Line(random.choice(NAMES), random.randrange(4), parts(random))


def order(random: Random) -> Order:
    return Order(random.randrange(4), random.randrange(4), lines(random))


def customer(random: Random) -> Customer:
    orders = Bag([order(random) for _ in range(random.choice((0, 1, 3, 70)))])
    return Customer(random.randrange(4), random.choice(NAMES), orders, Bag(random.choice(NAMES)))


def drawn_patch(random: Random, row: Any, key: Any) -> Patch:
    """A patch of some bag of the row that may be: of all depths, with values that are there."""
    at, field = row, random.choice(("orders", "orders", "tags"))
    path: list[Any] = [field]
    inner = {"orders": "lines", "lines": "parts"}
    while field in inner and getattr(at, field) and random.random() < 0.6:
        at = random.choice(list(getattr(at, field)))
        field = inner[field]
        path += [at, field]
    make: Any = {"orders": order, "lines": line, "tags": lambda r: r.choice(NAMES)}.get(
        field, lambda r: Part(r.choice(NAMES), r.choice(PRICES))
    )
    held = list(getattr(at, field))
    removed = random.sample(held, min(len(held), random.randrange(3)))
    return Patch(
        key,
        path[0] if len(path) == 1 else tuple(path),
        [make(random)] * random.randrange(3),
        removed,
    )


def by_hand(row: Any, path: tuple[Any, ...], added: Any, removed: Any) -> Any:
    """The row that a patch makes, of lists."""
    field, *rest = path
    values = list(getattr(row, field))
    if rest:
        values.remove(rest[0])
        values.append(by_hand(rest[0], tuple(rest[1:]), added, removed))
    else:
        values += added
        for value in removed:
            values.remove(value)
    return row._replace(**{field: Bag(values)})


def agree(table: Table[Customer], views: dict[str, View[Any]]) -> None:
    rows = list(table)
    for name, view in views.items():
        expected = Counter(map(repr_of, VIEWS[name][1](rows)))
        assert Counter(map(repr_of, view.snapshot())) == expected, name


def repr_of(value: Any) -> Any:
    """A value that tells 1 from 1.0, but in bags, where these are one."""
    if isinstance(value, tuple):
        return tuple(map(repr_of, value))
    return value if isinstance(value, Bag) else (type(value), value)


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_views_over_patched_rows_equal_their_queries(seed: int, keyed: bool) -> None:
    random = Random(seed)
    db = Database()
    table: Table[Customer] = db.table(Customer, key="id" if keyed else None)
    days = db.table(tuple, name="days")
    days.add_all([(n, f"d{n}") for n in range(3)])
    views: dict[str, View[Any]] = {
        name: make(table, days).materialize() for name, (make, _) in VIEWS.items()
    }
    for _ in range(25):
        rows = list(table)
        kind = random.randrange(8) if rows else 0
        row = random.choice(rows) if rows else None
        if kind == 0:
            new = customer(random)
            table.upsert(new) if keyed else table.add(new)
        elif row is None or kind == 1:
            assert row is not None
            table.remove(row)
        elif kind == 2:  # another town, or the same values anew
            new = row._replace(town=random.choice(NAMES), orders=Bag(list(row.orders)))
            table.update(row, new)
        elif kind == 3:
            with pytest.raises(ZeroDivisionError), db.transaction():
                patched(random, table, row)
                raise ZeroDivisionError
            assert sorted(map(repr, table)) == sorted(map(repr, rows))
        elif kind == 4:
            with db.transaction():
                for _ in range(3):
                    row = patched(random, table, row)
        elif kind == 5:
            patches = [drawn_patch(random, each, each.id if keyed else each) for each in set(rows)]
            table.patch_all(patches)
        else:
            patched(random, table, row)
        agree(table, views)
    for view in views.values():
        view.verify()
    table.clear()
    agree(table, views)


def patched(random: Random, table: Table[Customer], row: Customer) -> Customer:
    patch = drawn_patch(random, row, row.id if table._keyed is not None else row)
    path = patch.path if isinstance(patch.path, tuple) else (patch.path,)
    made = table.patch(patch.key, patch.path, added=patch.added, removed=patch.removed)
    assert made == by_hand(row, path, patch.added, patch.removed)
    assert table.count(made) > 0
    return made


@pytest.mark.parametrize(
    "name", sorted(VIEWS.keys() - {"whole", "inner whole", "of a join", "asked"})
)
def test_a_view_is_told_only_what_changed_in_a_bag(name: str) -> None:
    touched: list[int] = []
    for size in (100, 2_000):
        db = Database()
        table = db.table(Customer, key="id")
        days = db.table(tuple, name="days")
        days.add_all([(n, f"d{n}") for n in range(3)])
        view = VIEWS[name][0](table, days).materialize()
        inner = Bag([Line("a", n, Bag([Part("a", n)])) for n in range(size)])
        orders = Bag([Order(n, n % 3, inner if n == 0 else Bag()) for n in range(size)])
        table.add(Customer(1, "a", orders))
        first = Order(0, 0, inner)
        before = view.stats().touched
        with db.transaction():
            table.patch(1, "orders", added=[Order(-1, 1)])
            table.patch(1, ("orders", first, "lines"), added=[Line("b", 2)])
        touched.append(view.stats().touched - before)
        agree(table, {name: view})
    assert touched[0] == touched[1] < 40, touched


def test_patches_of_a_commit_are_one_change_of_a_row() -> None:
    db = Database()
    table = db.table(Customer, key="id")
    table.add(Customer(1, "a", Bag([Order(1, 1)]), Bag("x")))
    told: list[Any] = []
    with table.subscribe(told.append):
        with db.transaction():
            table.patch(1, "orders", added=[Order(2, 2)])
            table.patch(1, "tags", added={"y": 2}, removed=["x"])
        table.patch_all([Patch(1, "tags", ["z"]), Patch(1, "tags", (), ["z"])])
    ((old, new),) = told[0].updated
    assert (len(old.orders), len(new.orders), new.tags) == (1, 2, Bag("yy"))
    assert len(told) == 1  # what is added and removed is no change


def test_rows_inside_are_named_by_callables_and_patched_together() -> None:
    table = Database().table(Customer, key="id")
    table.add(Customer(1, "a", Bag([Order(7, 1), Order(8, 1)])))
    path = ("orders", lambda o: o.id == 7, "lines")
    table.patch_all([Patch(1, path, [Line("tea", 1)]), Patch(1, path, [Line("rum", 1)])])
    (found,) = [o for o in table[1].orders if o.id == 7]
    assert found.lines == Bag([Line("tea", 1), Line("rum", 1)])


@dataclass(frozen=True)
class Frozen:
    id: int
    tags: Bag[str]
    size: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", len(self.tags))


@attrs.frozen
class Attrs:
    id: int
    tags: Bag[str]


class Struct(msgspec.Struct, frozen=True):
    id: int
    tags: Any


class Model(pydantic.BaseModel, frozen=True):
    id: int
    tags: Any


@pytest.mark.parametrize("kind", [Frozen, Attrs, Struct, Model])
def test_rows_of_all_classes_are_patched(kind: Any) -> None:
    table = Database().table(kind, key="id")
    view = table.unnest(lambda r: r.tags).select(lambda r, tag: (r.id, tag)).materialize()
    table.add(kind(id=1, tags=Bag("ab")))
    made = table.patch(1, "tags", added="cc", removed="a")
    assert made == kind(id=1, tags=Bag("bcc")) and type(made) is kind
    assert Counter(view) == Counter([(1, "b"), (1, "c"), (1, "c")])


def test_plain_tuples_are_patched_by_places() -> None:
    table = Database().table(tuple, name="pairs", key=lambda r: r[0])
    view = table.unnest(lambda r: r[1]).select(lambda r, tag: (r[0], tag)).materialize()
    table.add((1, Bag("ab")))
    assert table.patch(1, 1, added="c") == (1, Bag("abc"))
    assert sorted(view) == [(1, "a"), (1, "b"), (1, "c")]


@pytest.mark.parametrize(
    ("key", "path", "change", "message"),
    [
        (2, "orders", {}, "no row with key 2"),
        (1, "order", {}, "has no field 'order'\n  its fields are id, town, orders, tags"),
        (1, "town", {}, "it is a str, no Bag\n  make it a Bag"),
        (1, ("orders", 7), {}, "is no path to a bag"),
        (1, ("orders", 7, "lines"), {}, "cannot patch orders of a row .*: 7 is not in it"),
        (1, ("orders", lambda o: o.id > 0, "lines"), {}, "true of 2 rows in it"),
        (1, "tags", {"removed": "xx"}, "2 of 'x' are to go, and it has 1"),
        (1, "tags", {"added": [["list"]]}, "a list is not hashable"),
        (1, "tags", {"added": {"x": -1}}, "a count is 0 or more"),
    ],
)
def test_refused_patches_change_nothing(key: Any, path: Any, change: Any, message: str) -> None:
    table = Database().table(Customer, name="customers", key="id")
    row = Customer(1, "a", Bag([Order(7, 1), Order(8, 1)]), Bag("x"))
    table.add(row)
    with pytest.raises(TableError, match=message):
        table.patch_all([Patch(1, "tags", "y"), Patch(key, path, **change)])
    assert list(table) == [row]


def test_tables_that_cannot_patch_say_so() -> None:
    db = Database()
    with pytest.raises(TableError, match="rows are not stored\n  make the table with stored=True"):
        db.table(Customer, name="flow", stored=False).patch(Customer(1, "a"), "tags", added="x")
    with pytest.raises(TableError, match="it is not there\n  the table holds 0 rows"):
        db.table(Customer, name="bag").patch(Customer(1, "a"), "tags", added="x")
