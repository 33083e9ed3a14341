"""Objects that are tracked are followed wherever they are, or else refused."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import attrs
import msgspec
import pytest

from reactive import Bag, Database, Table, TableError, tracked
from reactive.engine.storage.rows import TRACKED_CLASSES
from tests.counted_calls import calls_of

In = Callable[[Any], Any]


@tracked
class Line:
    id: int
    total: float = 0.0


@dataclass(frozen=True)
class Record:
    id: int
    held: Any


class Named(NamedTuple):
    id: int
    held: Any


class Structure(msgspec.Struct, frozen=True):
    id: int
    held: Any


@attrs.frozen
class Attributes:
    id: int
    held: object


@tracked
class Order:
    id: int
    held: Any = None


def total(value: Any) -> float:
    """Return the sum of all numbers in a value."""
    if isinstance(value, Line):
        return value.total
    if hasattr(value, "held"):
        return total(value.held)
    if hasattr(value, "items"):
        return sum(total(each) for item in value.items() for each in item)
    return 0.0 if isinstance(value, int) else sum(total(each) for each in value)


ROWS: list[In] = [
    *(lambda line, kind=kind: kind(1, line) for kind in (Record, Named, Structure, Attributes)),
    lambda line: (1, line),
    lambda line: Record(1, (2, (line,))),
    lambda line: Record(1, frozenset([line])),
    lambda line: Record(1, Record(2, Named(3, line))),
    lambda line: Record(1, Bag([line])),
]
FOLLOWED: list[In] = [
    lambda line: line,
    lambda line: (line,),
    lambda line: Named(1, line),
    lambda line: (1, (2, line)),
    lambda line: [line, 1],
    lambda line: {line},
    lambda line: {1: line},
    lambda line: [[line]],
]
REFUSED: list[In] = [
    lambda line: Record(1, line),
    lambda line: frozenset([line]),
    lambda line: (1, Record(1, line)),
    lambda line: [1, (line, 1)],
    lambda line: [Named(1, line)],
    lambda line: [[Record(1, line)]],
    lambda line: {(line, 1)},
    lambda line: {line: 1},
    lambda line: {(1, line): 1},
    lambda line: {1: (line,)},
]


@pytest.mark.parametrize("row", ROWS)
def test_no_row_holds_an_object(row: In) -> None:
    db = Database()
    line, table = Line(1), db.table(object, name="rows")
    table.add("a")
    found = row(line)
    keyed = db.table(type(found), name="keyed", key=lambda row: 1)
    statements: list[Callable[[], object]] = [
        lambda: table.add(found),
        lambda: table.add_all(["b", found]),
        lambda: table.update("a", found),
        lambda: table.replace_all([found]),
        lambda: keyed.upsert(found),
        lambda: keyed.upsert_all([found]),
    ]
    for statement in statements:
        with pytest.raises(TableError, match=r"it holds Line\(id=1.*\n.*its row, table\[key\]"):
            statement()
    assert (list(table), list(keyed)) == (["a"], [])
    db.table(type(found), name="trusted", identity=True).add(found)


def test_no_patch_puts_an_object_into_a_bag() -> None:
    rows = Database().table(Record, key="id")
    rows.add(Record(1, Bag(range(100))))
    with pytest.raises(TableError, match="it holds Line"):
        rows.patch(1, path=("held",), added=[Line(1)])
    assert len(rows[1].held) == 100


def test_rows_may_hold_rows_of_objects() -> None:
    db = Database()
    lines, records = db.table(Line, key="id"), db.table(Record)
    line = Line(1, 5.0)
    lines.add(line)
    records.add(Record(1, (lines[1],)))
    line.total = 6.0
    assert [total(row) for row in records] == [5.0]


@pytest.mark.parametrize("held", FOLLOWED)
def test_what_an_object_holds_is_followed(held: In) -> None:
    db = Database()
    orders = db.table(Order, key="id")
    totals = orders.select(lambda o: total(o.held)).materialize()
    line = Line(1, 5.0)
    order = Order(1, held(line))
    orders.add(order)
    before = orders[1]
    line.total = 6.0
    assert (list(totals), total(before.held), db.check_silent()) == ([6.0], 5.0, [])
    order.held = held(line)
    line.total = 7.0
    assert (list(totals), total(orders[1].held), db.check_silent()) == ([7.0], 7.0, [])


@pytest.mark.parametrize("held", REFUSED)
def test_what_would_not_be_followed_is_refused(held: In) -> None:
    db = Database()
    orders = db.table(Order, key="id")
    line = Line(1, 5.0)
    with pytest.raises(TableError, match=r"cannot take .*: it holds Line"):
        orders.add(Order(1, held(line)))
    order = Order(1, [])
    orders.add(order)
    with pytest.raises(TableError, match=r"cannot take .*: it holds Line"):
        order.held = held(line)
    with pytest.raises(TableError, match=r"cannot take .*: it holds Line"):
        order.held.append(held(line))
    assert (order.held, list(orders[1].held), len(orders)) == ([], [], 1)


@pytest.mark.parametrize("is_read", [False, True])
def test_a_list_goes_on_after_a_value_was_refused(is_read: bool) -> None:
    db = Database()
    orders = db.table(Order, key="id")
    sizes = orders.select(lambda o: len(o.held) if is_read else o.id).materialize()
    order = Order(1, [0])
    orders.add(order)
    for bad in (bytearray(), (Line(1),)):
        with pytest.raises(TableError):
            order.held.append(bad)
    with db.transaction():
        order.held.append(bytearray())
        order.held.pop()
    order.held.append(1)
    assert (list(orders[1].held), list(sizes)) == ([0, 1], [2 if is_read else 1])


class Truck(NamedTuple):
    id: int
    town: Any
    items: Bag[Any] = Bag()


def trucks(size: int) -> Table[Truck, int]:
    """A table of one truck of `size` items, each with a bag of five lines."""
    table = Database().table(Truck, name="trucks", key="id")
    table.add(Truck(1, "Rome", Bag([Named(n, Bag(range(5))) for n in range(size)])))
    return table


def without_tracked_classes(run: Callable[[], object]) -> int:
    """Count the calls of a function as in a process without tracked classes."""
    noted = dict(TRACKED_CLASSES)
    TRACKED_CLASSES.clear()
    try:
        return calls_of(run)
    finally:
        TRACKED_CLASSES.update(noted)


@pytest.mark.parametrize("size", [10, 60, 1_000])
def test_a_patch_looks_for_objects_in_the_added_values_only(size: int) -> None:
    table = trucks(size)

    def item(number: int) -> Named:
        return Named(number, Bag(range(5)))

    def patch(number: int) -> None:
        table.patch(1, "items", added=[item(number)], removed=[item(number - 1)])

    def patch_inside(number: int) -> None:
        path = ("items", table[1].items and item(number), "held")
        table.patch(1, path, added=[number], removed=[number])
        table.patch(1, path, added=[7])
        table.patch(1, ("items", Named(number, Bag([*range(5), 7])), "held"), removed=[7])

    for number in range(size, size + 20):
        patch(number)
    last = size + 19
    for run in (partial(patch_inside, last), partial(table.update, 1, town="Bonn")):
        run()
        beside = calls_of(run)
        assert beside <= without_tracked_classes(run) + 150
    beside = calls_of(partial(patch, last + 1))
    assert beside <= without_tracked_classes(partial(patch, last + 2)) + 60


def test_updates_refuse_objects_in_every_part_that_they_change() -> None:
    table, line = trucks(3), Line(1, 2.0)
    item = Named(0, Bag(range(5)))
    same = Truck(1, "Rome", table[1].items)
    refused: list[Callable[[], object]] = [
        lambda: table.patch(1, "items", added=[line]),
        lambda: table.patch(1, "items", added=[Named(9, (line,))]),
        lambda: table.patch(1, ("items", item, "held"), added=[(line, 1)]),
        lambda: table.update(1, town=(line,)),
        lambda: table.update(1, items=Bag([line])),
        lambda: table.update(same, same._replace(town=("Bonn", Record(1, line)))),
        lambda: table.upsert(same._replace(items=Bag([Attributes(1, line)]))),
        lambda: table.remove(same._replace(town=(line,))),
    ]
    for run in refused:
        with pytest.raises(TableError, match=r"cannot take .*: it holds Line"):
            run()
    assert list(table) == [same]


def test_a_tracked_class_is_forgotten_when_it_is_dropped() -> None:
    def number_of_one() -> int:
        @tracked
        class Passing:
            id: int

        assert TRACKED_CLASSES[id(Passing)]() is Passing
        return id(Passing)

    number = number_of_one()
    gc.collect()
    kept = TRACKED_CLASSES.get(number)
    assert kept is None or kept() is not None  # another class may be in its place
