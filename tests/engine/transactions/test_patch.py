"""Patches change bags inside rows by paths; views over them do only the work of the change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from random import Random
from typing import Any, NamedTuple

import attrs
import msgspec
import pydantic
import pytest

from reactive import (
    Bag,
    Collect,
    Count,
    Database,
    Delta,
    Edit,
    Patch,
    PlanError,
    Sum,
    Table,
    TableError,
    View,
    fixpoint,
    live,
)
from tests.thresholds import thresholds


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
    "of a left join": (
        lambda t, days: (
            days.where(lambda d: d[0] != 1)
            .right_join(t, on=lambda d, c: d[0] == c.id)
            .unnest(lambda d, c: c.orders)
            .select(lambda d, c, o: (d and d[1], c.town, o.day))
        ),
        lambda rows: [
            (f"d{c.id}" if c.id in (0, 2) else None, c.town, o.day) for c in rows for o in c.orders
        ],
    ),
    "of many joins": (
        lambda t, days: (
            t.join(days, on=lambda c, d: d[0] == c.id)
            .join(days, on=lambda c, d, e: e[1] == d[1])
            .join(days, on=lambda c, d, e, f: f[0] == e[0])
            .unnest(lambda c, d, e, f: c.orders)
            .unnest(lambda c, d, e, f, o: o.lines)
            .select(lambda c, d, e, f, o, n: (f[1], o.day, n.what, c.town))
        ),
        lambda rows: [
            (f"d{c.id}", o.day, n.what, c.town)
            for c in rows
            if c.id < 3
            for o in c.orders
            for n in o.lines
        ],
    ),
    "groups of a join": (
        lambda t, days: (
            t.join(days, on=lambda c, d: d[0] == c.id)
            .unnest(lambda c, d: c.orders)
            .group_by(lambda c, d, o: d[1])
            .aggregate(Count(), Sum(lambda c, d, o: o.day))
        ),
        lambda rows: [
            (f"d{n}", len(found), sum(found))
            for n in range(3)
            if (found := [o.day for c in rows if c.id == n for o in c.orders])
        ],
    ),
    "of a semi join": (
        lambda t, days: (
            t.semi_join(days, on=lambda c, d: d[0] == c.id)
            .extend(size=lambda c: c.town + "!")
            .unnest(lambda c, size: c.orders)
            .select(lambda c, size, o: (size, o.day))
        ),
        lambda rows: [(c.town + "!", o.day) for c in rows if c.id < 3 for o in c.orders],
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
    "folds": (
        lambda t, days: t.select(
            lambda c: (
                c.id,
                sum(o.day for o in c.orders if o.id != c.id),
                len([o for o in c.orders if o.day > 1]),
                any(o.day == 3 for o in c.orders),
                all(o.day for o in c.orders),
                max((o.day for o in c.orders), default=None),
                min([o.id for o in c.orders], default=c.town),
                Bag(o.day for o in c.orders if o.day),
                sum(n.amount for o in c.orders for n in o.lines if n.what == c.town),
            )
        ),
        lambda rows: [
            (
                c.id,
                sum([o.day for o in c.orders if o.id != c.id]),
                len([o for o in c.orders if o.day > 1]),
                3 in [o.day for o in c.orders],
                0 not in [o.day for o in c.orders],
                max([o.day for o in c.orders], default=None),
                min([o.id for o in c.orders], default=c.town),
                Bag([o.day for o in c.orders if o.day]),
                sum([n.amount for o in c.orders for n in o.lines if n.what == c.town]),
            )
            for c in rows
        ],
    ),
    "folds of numbers": (
        lambda t, days: t.unnest(lambda c: c.orders).select(
            lambda c, o: (
                o.id,
                repr(sum(p.price or 0 for n in o.lines for p in n.parts)),
                str(
                    max((float(p.price) for n in o.lines for p in n.parts if p.price), default=None)
                ),
                sum(sum(n.amount for p in n.parts if p.name == n.what) for n in o.lines),
            )
        ),
        lambda rows: [
            (
                o.id,
                repr(sum([p.price or 0 for n in o.lines for p in n.parts])),
                str(greatest([float(p.price) for n in o.lines for p in n.parts if p.price])),
                sum(sum([n.amount for p in n.parts if p.name == n.what]) for n in o.lines),
            )
            for c in rows
            for o in c.orders
        ],
    ),
    "asked by a fold": (
        lambda t, days: t.where(lambda c: sum(o.day for o in c.orders) > 3).select(lambda c: c.id),
        lambda rows: [c.id for c in rows if sum(o.day for o in c.orders) > 3],
    ),
    "lists": (
        lambda t, days: live(
            (c.town, [(o.id, [n for n in o.lines if n.amount > o.id]) for o in c.orders if o.day])
            for c in t
        ),
        lambda rows: [
            (
                c.town,
                Bag(
                    [
                        (o.id, Bag([n for n in o.lines if n.amount > o.id]))
                        for o in c.orders
                        if o.day
                    ]
                ),
            )
            for c in rows
        ],
    ),
    "comprehension": (
        lambda t, days: live((c.town, x.what) for c in t for o in c.orders for x in o.lines),
        lambda rows: [(c.town, line.what) for c in rows for o in c.orders for line in o.lines],
    ),
}


def greatest(values: list[Any]) -> Any:
    """NaN is greater than all numbers."""
    return next((v for v in values if v != v), max(values, default=None))


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


@pytest.fixture(params=["as ever", "early"])
def trees(request: pytest.FixtureRequest) -> Iterator[None]:
    """Bags of three values are trees, too."""
    early = {
        "reactive.engine.collections.weight_tree.LARGEST": 2,
        "reactive.engine.collections.bag_folds.MOST_KEPT": 3,
    }
    with thresholds(early if request.param == "early" else {}):
        yield


@pytest.mark.long
@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_views_over_patched_rows_equal_their_queries(seed: int, keyed: bool, trees: None) -> None:
    random = Random(seed)
    db = Database(optimize=seed != 1)
    table: Table[Customer] = db.table(Customer, key="id" if keyed else None)
    days = db.table(tuple, name="days")
    days.add_all([(n, f"d{n}") for n in range(3)])
    views: dict[str, View[Any]] = {
        name: make(table, days).materialize() for name, (make, _) in VIEWS.items()
    }
    copy: Table[Customer] = db.table(Customer, key="id" if keyed else None, name="copy")
    told: list[Delta[Customer]] = []
    subscription = table.subscribe(told.append)
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
        elif kind == 2:  # another town, or equal values again
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
        for delta in told:
            follow(db, copy, delta.edits)
        told.clear()
        assert Counter(copy) == Counter(table)
    subscription.close()
    for view in views.values():
        view.verify()
    table.clear()
    agree(table, views)


def follow(db: Database, copy: Table[Customer], edits: Iterable[Edit]) -> None:
    """Apply edits to another table."""
    with db.transaction():
        for edit in edits:
            if not edit.path and edit.weight < 0:
                copy.remove(edit.row, -edit.weight)
        copy.patch_all(
            [
                Patch(
                    edit.path[0],
                    edit.path[1:],
                    {edit.row: max(edit.weight, 0)},
                    {edit.row: max(-edit.weight, 0)},
                )
                for edit in edits
                if edit.path
            ]
        )
        for edit in edits:
            if not edit.path and edit.weight > 0:
                copy.add(edit.row, edit.weight)


def test_one_bag_is_heard_by_its_path() -> None:
    table = Database().table(Customer, key="id")
    told: list[tuple[Any, Any]] = []
    lines: list[tuple[Any, Any]] = []
    one = table.subscribe(lambda d: told.append((d.added, d.removed)), path=(1, "orders"))
    path = (1, "orders", lambda o: o.id == 7, "lines")
    two = table.subscribe(lambda d: lines.append((d.added, d.removed)), path=path, snapshot=True)
    old, new = Order(7, 1), Order(7, 1, Bag([Line("tea", 2)]))
    table.add(Customer(1, "a", Bag([old])))
    table.add(Customer(2, "a", Bag([old])))
    table.patch(1, ("orders", old, "lines"), added=[Line("tea", 2)])
    table.patch(1, "tags", added="x")
    table.patch(2, "orders", added=[Order(8, 1)])
    table.delete(1)
    assert told == [((old,), ()), ((new,), (old,)), ((), (new,))]
    assert lines == [((), ()), ((Line("tea", 2),), ()), ((), (Line("tea", 2),))]
    one.close()
    two.close()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ((1,), "does not end with the field"),
        ((1, "order"), "no field 'order'\n  there is id, to"),
        ((1, "town"), "'town' is declared as str, not as a Bag"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(path: Any, message: str) -> None:
    table = Database().table(Customer, key="id")
    with pytest.raises(PlanError, match=message):
        table.subscribe(print, path=path)


def patched(random: Random, table: Table[Customer], row: Customer) -> Customer:
    patch = drawn_patch(random, row, row.id if table._keyed is not None else row)
    path = patch.path if isinstance(patch.path, tuple) else (patch.path,)
    made = table.patch(patch.key, patch.path, added=patch.added, removed=patch.removed)
    assert made == by_hand(row, path, patch.added, patch.removed)
    assert table.count(made) > 0
    return made


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(VIEWS.keys() - {"whole", "asked", "folds of numbers"}))
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


@pytest.mark.parametrize("on_error", ["drop", "null"])
def test_a_view_that_drops_what_raises_is_told_only_what_changed(on_error: Any) -> None:
    touched: list[int] = []
    for size in (100, 2_000):
        table = Database().table(Customer, key="id")
        inverse = table.unnest(lambda c: c.orders).select(lambda c, o: (c.town, 12 // o.day))
        view = inverse.materialize(on_error=on_error)
        table.add(Customer(1, "a", Bag([Order(n, n) for n in range(size)])))
        before = view.stats().touched
        table.patch(1, "orders", added=[Order(-1, 3), Order(-2, 0)], removed=[Order(0, 0)])
        touched.append(view.stats().touched - before)
        wanted = Counter(("a", 12 // o.day) for o in table[1].orders if o.day)
        found = Counter(row for row in view if row is not None)
        assert found == wanted and len(view.errors) == 1
    assert touched[0] == touched[1] < 12, touched


def test_explain_says_what_goes_over_a_bag_by_value() -> None:
    table = Database().table(Customer, key="id", name="customers")
    folded = table.select(lambda c: (c.id, sum(o.day for o in c.orders)))
    costs = str(folded.explain(costs=True))
    assert "by what changed in a bag: sum((o.day for o in c.orders))" in costs
    assert "of a bag that was changed it goes over what changed" in str(folded.explain())
    whole = table.select(lambda c: (c.id, tuple(sorted(o.day for o in c.orders))))
    assert "by value: sorted((o.day" in str(whole.explain(costs=True))
    again = fixpoint(
        lambda some: table.union(
            some.unnest(lambda c: c.orders).select(lambda c, o: Customer(o.id, c.town))
        )
    )
    assert "by value: unnest c.orders goes over all" in str(again.explain(costs=True))


def test_nests_of_a_bag_of_the_row_are_patched_inside() -> None:
    table = Database().table(Customer, key="id", name="customers")
    late = table.nest(late=lambda c: [(o.id, [n.what for n in o.lines]) for o in c.orders if o.day])
    view = late.materialize()
    table.add(Customer(1, "a", Bag([Order(n, n % 2) for n in range(100)])))
    told: list[Any] = []
    with view.subscribe(lambda delta: told.extend(delta.edits)):
        table.patch(1, "orders", added=[Order(-1, 1)])
    assert [(edit.path, edit.row, edit.weight) for edit in told] == [
        ((1, "orders"), Order(-1, 1), 1),
        ((1, "late"), (-1, Bag()), 1),
    ]
    assert len(view[1].late) == 51
    view.verify()


@pytest.mark.parametrize("name", ["folds", "folds of numbers", "asked by a fold", "lists"])
def test_a_fold_is_asked_only_for_what_changed_in_a_bag(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Test also rows without a key, a failed commit, and several patches of one row."""
    asked: list[int] = []
    folded = import_module("reactive.engine.collections.bag_folds")
    changes, states = Bag._changed_since, folded._compute_state
    monkeypatch.setattr(
        Bag, "_changed_since", lambda a, b: counted(asked, len(changes(a, b)), changes(a, b))
    )
    monkeypatch.setattr(
        folded, "_compute_state", lambda bag, *more: counted(asked, len(bag), states(bag, *more))
    )
    db = Database()
    table = db.table(Customer)
    view = VIEWS[name][0](table, None).materialize()
    inner = Bag([Line("a", n, Bag([Part("a", n)])) for n in range(500)])
    row = Customer(1, "a", Bag([Order(n, n % 3, inner if n == 0 else Bag()) for n in range(500)]))
    table.add(row)
    for number in range(4):
        first = Order(0, 0, inner)
        asked.clear()
        with db.transaction():
            row = table.patch(row, "orders", added=[Order(-1 - number, 1)])
            row = table.patch(row, "orders", added=[Order(-7, 5)])
            row = table.patch(row, "orders", removed=[Order(-7, 5)])
            row = table.patch(row, ("orders", first, "lines"), added=[Line("b", 2 + number)])
        assert 0 < sum(asked) < 100, asked
        inner = inner.plus({Line("b", 2 + number): 1})
        agree(table, {name: view})
    with pytest.raises(ZeroDivisionError), db.transaction():
        table.patch(row, "orders", added=[Order(-9, 1)])
        raise ZeroDivisionError
    view.verify()


def counted(numbers: list[int], number: int, result: Any) -> Any:
    numbers.append(number)
    return result


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
    assert len(told) == 1  # a row that is added and removed is no change


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
        (1, "tags", {"added": 5}, "5 is one value\n  give a list of values"),
        (1, "orders", {"removed": Order(7, 1)}, "Order.* is one value\n  give a list of values"),
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
