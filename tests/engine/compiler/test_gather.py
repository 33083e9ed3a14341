"""Older queries use an index of their field that is built later, with the same results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import Count, Database, Delta, Sum
from reactive.engine.operators.join import IndexLookup
from tests.counted_calls import calls_of
from tests.thresholds import thresholds


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: Any
    amount: Any


Query = Callable[[Any, Any], Any]
QUERIES: dict[str, Query] = {
    "equation": lambda t, c: t.where(lambda o: o.customer == c),
    "with a residual": lambda t, c: t.where(lambda o: o.amount > 1 and o.customer == c),
    "range": lambda t, c: t.where(lambda o: o.amount > c),
    "one of two": lambda t, c: t.where(lambda o: o.customer in (c, -c)),
    "selected": lambda t, c: t.where(lambda o: o.customer == c).select(lambda o: o.amount),
    "distinct": lambda t, c: t.where(lambda o: o.amount > c).select(lambda o: o.id % 3).distinct(),
    "summed": lambda t, c: t.where(lambda o: o.customer == c).aggregate(Sum(lambda o: o.amount)),
    "grouped": lambda t, c: (
        t.where(lambda o: o.amount < c).group_by(lambda o: o.id % 3).aggregate(Count())
    ),
    "ordered": lambda t, c: t.where(lambda o: o.customer == c).order_by(lambda o: -o.id),
    "joined": lambda t, c: t.where(lambda o: o.customer == c).join(
        t, on=lambda a, b: a.amount == b.amount
    ),
    "raises": lambda t, c: t.where(lambda o: o.customer == c).where(lambda o: 6 // (o.id - 7 * c)),
}
FEW, ALL = 3, 8
MADE_AT = range(0, 10 * ALL, 10)


SETTINGS = {
    "reactive.engine.compiler.queries.MANY_READERS": FEW,
    "reactive.engine.compiler.queries.MANY_RANGES": FEW,
}


class Side:
    """A table, views that are made one after the other, and the deltas of their subscribers."""

    def __init__(self, query: Query, *, optimize: bool) -> None:
        self.orders = Database(optimize=optimize).table(Order, name="orders")
        self._query = query
        self.views: list[Any] = []
        self.heard: list[tuple[int, list[str]]] = []
        self._subscriptions: list[Any] = []

    def one_more(self) -> None:
        number = len(self.views)
        view = self._query(self.orders, number).materialize(f"view {number}")
        self.views.append(view)
        self._subscriptions.append(view.subscribe(lambda delta: self._hear(number, delta)))

    def _hear(self, view: int, delta: Delta[Any]) -> None:
        self.heard.append((view, sorted(map(repr, delta))))

    def shown(self) -> list[list[str]]:
        return [sorted(map(repr, view)) for view in self.views]


def outcome(side: Side, rows: list[Order]) -> str:
    """Insert each row, or delete it if present; return the error with its notes, if any."""
    try:
        for row in rows:
            (side.orders.remove if row in side.orders else side.orders.add)(row)
    except ZeroDivisionError as error:
        return "\n".join([str(error), *error.__notes__])
    return ""


@pytest.mark.long
@pytest.mark.parametrize("name", QUERIES)
def test_views_and_subscribers_see_what_they_would_without_rules(name: str) -> None:
    random = Random(name)
    sides = [Side(QUERIES[name], optimize=optimize) for optimize in (True, False)]
    raised = False
    with thresholds(SETTINGS):
        for number in range(160):
            rows = [
                Order(random.randrange(30), random.randrange(ALL), random.randrange(ALL))
                for _ in range(random.choice([1, 1, 3]))
            ]
            if number % 10 == 0 and len(sides[0].views) < ALL:
                for side in sides:
                    side.one_more()
            ours, plain = (outcome(side, rows) for side in sides)
            assert ours == plain
            raised |= bool(ours)
            assert sides[0].shown() == sides[1].shown()
    assert sides[0].heard == sides[1].heard
    assert raised == (name == "raises")
    for view in sides[0].views:
        view.verify()


@pytest.mark.parametrize("name", sorted(QUERIES.keys() - {"joined", "raises"}))
def test_those_that_came_first_are_found_by_the_index(name: str) -> None:
    side = Side(QUERIES[name], optimize=True)
    with thresholds(SETTINGS):
        for _ in range(FEW):
            side.one_more()
        graph = side.orders._engine.graph
        assert not any(isinstance(node.operator, IndexLookup) for node in graph.nodes())
        for _ in range(FEW, ALL):
            side.one_more()
    found = [node for node in graph.nodes() if isinstance(node.operator, IndexLookup)]
    assert len({node.at for node in found}) == len(found) >= ALL - 1
    assert [reader in found for (reader, _) in side.orders._node.consumers] == [False]


def test_a_change_costs_no_more_for_the_views_that_came_before_the_index() -> None:
    def calls(views: int) -> int:
        side = Side(QUERIES["range"], optimize=True)
        for _ in range(views):
            side.one_more()
        for number in range(views):
            side.orders.add(Order(number, 0, -1))
        return calls_of(lambda: side.orders.add(Order(views, 0, 0.5)))

    assert calls(60) < calls(12)
