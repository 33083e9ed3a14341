"""Views over containers in objects equal the objects, and cost as much as the edit."""

from __future__ import annotations

import bisect
import copy
import heapq
import sys
from collections import Counter
from contextlib import suppress
from random import Random
from threading import Thread
from typing import Any

import pytest

from reactive import Database, Sum, TableError, TransactionError
from tests.borders.objects.containers.orders import (
    PRICES,
    Box,
    Line,
    Order,
    changed,
    drawn_order,
    queries,
)
from tests.borders.objects.containers.play import in_order
from tests.budget import seeds
from tests.thresholds import LOWEST, SHIPPED, thresholds


class Broken(Exception):
    """The transaction is broken off."""


def state(order: Order) -> Any:
    """All that an order has."""
    boxes = [(box.weight, list(box.seals)) for box in order.boxes]
    lists = [list(order.lines), boxes, list(order.tags.items()), set(order.kinds)]
    return order.town, lists, in_order(order.free)


def play(seed: int, steps: int) -> None:
    random = Random(seed)
    db = Database()
    table = db.table(Order, key="id", name="orders")
    prices = db.table(tuple, name="prices")
    prices.add_all(PRICES.items())
    orders = [drawn_order(random, number) for number in range(3)]
    every = queries(table, prices)
    views = [(relation.materialize(), of) for relation, of in every]
    table.add_all(orders)
    for _ in range(steps):
        before = [state(order) for order in orders]
        if random.random() < 0.5:
            with suppress(LookupError, TypeError, ValueError):
                changed(random, random.choice(orders))
        else:
            is_broken = random.random() < 0.4
            with suppress(Broken), db.transaction():
                for _ in range(random.choice((1, 3, 30))):
                    with suppress(LookupError, TypeError, ValueError):
                        changed(random, random.choice(orders))
                if is_broken:
                    raise Broken
            assert not is_broken or [state(order) for order in orders] == before
        for view, of in views:
            assert Counter(view) == Counter(of(orders)), view
        assert db.check_silent() == []
    db.close()


@pytest.mark.parametrize("settings", [SHIPPED, LOWEST])
def test_views_are_what_the_objects_are(settings: Any) -> None:
    with thresholds(settings):
        for seed in seeds(16):
            play(seed, 25)


def calls(edit: Any) -> int:
    """Return the number of calls of an edit, after a few similar edits."""
    for _ in range(4):
        edit()
    count = 0

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        edit()
    finally:
        sys.setprofile(None)
    return count


EDITS: dict[str, Any] = {
    "append": lambda o: o.lines.append(Line("b", 3)),
    "insert": lambda o: o.lines.insert(0, Line("b", 3)),
    "assign": lambda o: o.lines.__setitem__(5, Line("c", len(o.lines))),
    "delete": lambda o: o.lines.__delitem__(5),
    "extend": lambda o: o.lines.extend([Line("a", 1), Line("b", 2)]),
    "inside": lambda o: setattr(o.boxes[2], "weight", o.boxes[2].weight + 1),
    "put": lambda o: o.tags.__setitem__(len(o.tags), 4),
    "remove": lambda o: o.tags.__delitem__(min(o.tags)),
    "add": lambda o: o.kinds.add(-len(o.kinds)),
    "discard": lambda o: o.kinds.discard(max(o.kinds)),
}


def calls_of_edits(size: int) -> dict[str, int]:
    """Return the calls per edit of an order with lists of `size` items, in several views."""
    db = Database()
    table = db.table(Order, key="id", name="orders")
    unnested = table.unnest(lambda o: o.lines)
    relations = [
        unnested.select(lambda o, x: (o.town, x.what, x.qty)),
        unnested.select(lambda o, x: x).group_by(lambda x: x.what).aggregate(Sum(lambda x: x.qty)),
        table.select(lambda o: (o.id, sum(x.qty for x in o.lines), len(o.lines))),
        table.select(lambda o: (o.id, max(x.qty for x in o.lines))),
        table.unnest(lambda o: o.boxes).select(lambda o, b: (o.id, b.weight)),
        table.unnest(lambda o: o.tags.items()).select(lambda o, item: (o.id, item)),
        table.select(lambda o: (o.id, sum(n for n in o.tags.values()))),
        table.unnest(lambda o: o.kinds).select(lambda o, k: (o.id, k)),
    ]
    views = [relation.materialize() for relation in relations]
    order = Order(
        *(1, "Bonn", [Line("a", n % 7) for n in range(size)]),
        [Box(n, []) for n in range(size)],
        *({n: n % 5 for n in range(size)}, set(range(size)), []),
    )
    table.add(order)
    found = {name: calls(lambda edit=edit: edit(order)) for name, edit in EDITS.items()}
    assert len(views[0]) == len(order.lines)
    db.close()
    return found


def test_an_edit_is_as_many_calls_in_a_long_list_as_in_a_short_one() -> None:
    short, long = calls_of_edits(100), calls_of_edits(6_000)
    assert {name: count for name, count in long.items() if count > 1.7 * short[name]} == {}


def test_an_element_that_cannot_be_held_is_refused_and_all_is_as_before() -> None:
    db = Database()
    table = db.table(Order, key="id", name="orders")
    view = table.select(lambda o: len(o.free) + len(o.lines)).materialize()
    order = Order(1, "Bonn", [Line("a", 1)], [], {}, set(), [])
    table.add(order)
    with pytest.raises(TableError, match="may change in place"):
        order.free.append(bytearray())
    with pytest.raises(TableError, match="'free' of an object of Order"), db.transaction():
        order.lines.append(Line("b", 1))
        order.free.append([bytearray()])
    assert order.free == [] and order.lines == [Line("a", 1)] and list(view) == [1]
    assert db.check_silent() == []


def test_a_callable_that_raises_takes_an_edit_back() -> None:
    db = Database()
    table = db.table(Order, key="id", name="orders")
    view = table.unnest(lambda o: o.lines).select(lambda o, x: 6 // x.qty).materialize()
    order = Order(1, "Bonn", [Line("a", 1), Line("b", 2)], [], {}, set(), [])
    table.add(order)
    edits: list[Any] = [
        lambda: order.lines.append(Line("c", 0)),
        lambda: order.lines.__setitem__(0, Line("c", 0)),
        lambda: order.lines.extend([Line("d", 3), Line("c", 0)]),
    ]
    for edit in edits:
        with pytest.raises(ZeroDivisionError):
            edit()
        assert order.lines == [Line("a", 1), Line("b", 2)] and sorted(view) == [3, 6]
    order.lines.append(Line("e", 6))
    assert sorted(view) == [1, 3, 6]


def test_an_edit_in_a_callable_is_refused() -> None:
    db = Database()
    table = db.table(Order, key="id", name="orders")
    other = Order(2, "Rome", [], [], {}, set(), [])
    table.add(other)

    def edit(order: Any) -> Any:
        return other.lines.append(Line("a", 1)) if order.id == 1 else 1

    view = table.select(edit).materialize()
    with pytest.raises(TransactionError, match="a callable of a query"):
        table.add(Order(1, "Bonn", [], [], {}, set(), []))
    assert other.lines == [] and len(table) == len(view) == 1


def test_one_list_in_two_objects_of_two_databases_tells_both() -> None:
    lines = [Line("a", 1)]
    views: list[Any] = []
    orders: list[Order] = []
    for number in range(2):
        db = Database()
        table = db.table(Order, key="id", name="orders")
        views.append(
            table.unnest(lambda o: o.lines).select(lambda o, x: (o.id, x.qty)).materialize()
        )
        order = Order(number, "Bonn", orders[0].lines if orders else lines, [], {}, set(), [])
        table.add(order)
        orders.append(order)
    assert orders[0].lines is orders[1].lines and orders[0].lines is not lines
    orders[0].lines.append(Line("b", 2))
    lines.append(Line("c", 3))
    assert [sorted(view) for view in views] == [[(0, 1), (0, 2)], [(1, 1), (1, 2)]]
    orders[1].lines = []
    orders[0].lines.append(Line("b", 4))
    assert [len(view) for view in views] == [3, 0]


def test_functions_that_change_a_list_by_its_methods_tell() -> None:
    db = Database()
    table = db.table(Order, key="id", name="orders")
    view = table.unnest(lambda o: o.free).select(lambda o, x: x).materialize()
    order = Order(1, "Bonn", [], [], {}, set(), [1, 4, 9])
    table.add(order)
    bisect.insort(order.free, 5)
    Random(1).shuffle(order.free)
    order.free += [7]
    order.free *= 2
    assert sorted(view) == sorted([1, 4, 5, 9, 7] * 2) == sorted(order.free)
    assert db.check_silent() == []
    heapq.heapify(order.free)
    heapq.heappush(order.free, 0)
    found = db.check_silent()
    assert [silent.attributes for silent in found] == [("free",)]
    db.touch(order)
    assert sorted(view) == sorted(order.free) and db.check_silent() == []


def test_threads_that_append_to_one_list_lose_nothing() -> None:
    db = Database()
    table = db.table(Order, key="id", name="orders")
    view = table.unnest(lambda o: o.free).select(lambda o, x: x).materialize()
    order = Order(1, "Bonn", [], [], {}, set(), [])
    table.add(order)

    def append(first: int) -> None:
        for number in range(first, first + 50):
            if number % 7:
                order.free.append(number)
            else:
                with db.transaction():
                    order.free.insert(0, number)
                    order.tags[number] = 1

    threads = [Thread(target=append, args=(first * 50,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(view) == sorted(order.free) == list(range(200))
    assert list(table[1].free) == order.free and len(order.tags) == 29
    assert db.check_silent() == []


def test_an_object_that_comes_and_goes_is_followed_while_it_is_there() -> None:
    db = Database()
    table = db.table(Order, key="id", name="orders")
    view = table.unnest(lambda o: o.lines).select(lambda o, x: x.what).materialize()
    order = Order(1, "Bonn", [Line("a", 1)], [], {}, set(), [])
    lines = order.lines
    lines.append(Line("b", 1))
    for _ in range(2):
        table.add(order)
        order.lines.append(Line("c", 1))
        assert sorted(view) == sorted(line.what for line in order.lines)
        table.remove(order)
        order.lines.append(Line("d", 1))
        assert list(view) == []
    copied = copy.deepcopy(order)
    assert type(copied.lines) is list and copied.lines == order.lines and copied.lines is not lines


def test_what_is_taken_out_of_an_object_is_put_back_as_it_was() -> None:
    db = Database()
    table = db.table(Order, key="id", name="orders")
    weights = table.unnest(lambda o: o.boxes).select(lambda o, box: box.weight).materialize()
    tags = table.select(lambda o: tuple(o.tags.items())).materialize()
    box = Box(3, [])
    order = Order(1, "Bonn", [], [box], {7: 1}, set(), [])
    elsewhere = Order(2, "Rome", [], [], {}, set(), [])
    table.add(order)
    elsewhere.tags = order.tags
    with pytest.raises(Broken), db.transaction():
        order.boxes.clear()
        box.weight = 4
        order.tags = {}
        elsewhere.tags.pop(7)
        elsewhere.tags[8] = 2
        raise Broken
    assert (box.weight, order.boxes, order.tags) == (3, [box], {7: 1})
    assert (list(weights), list(tags)) == ([3], [((7, 1),)])
    with db.transaction():
        taken, order.tags = order.tags, {}
    taken[9] = 3
    version = db.version
    taken[10] = 4
    assert db.version == version and list(tags) == [()] and db.check_silent() == []
