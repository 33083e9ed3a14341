"""Many views, each of one value of a field, beside other conditions.

Together they show and raise the same as one by one, and the cost of a change does not depend on the
number of views.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import Count, Database, StaleCaptureWarning
from tests.budget import TIMES
from tests.counted_calls import calls_of


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: Any
    amount: Any


Query = Callable[[Any, int], Any]
KINDS: dict[str, Query] = {
    "alone": lambda t, c: t.where(lambda o: o.customer == c),
    "before": lambda t, c: t.where(lambda o: o.customer == c and o.amount > 3),
    "behind": lambda t, c: t.where(lambda o: o.amount > 3 and o.customer == c),
    "in two": lambda t, c: t.where(lambda o: o.amount > 3).where(lambda o: o.customer == c),
    "one of": lambda t, c: t.where(lambda o: o.customer in (c, c + 1) and o.amount > 3),
    "either of three": lambda t, c: t.where(lambda o: o.customer in [c, 3, 1.0]),
    "above": lambda t, c: t.where(lambda o: o.amount > c),
    "up to": lambda t, c: t.where(lambda o: c / 3 >= o.amount and o.id >= 0),
    "between": lambda t, c: t.where(lambda o: c / 4 < o.amount <= c),
    "between, behind": lambda t, c: t.where(
        lambda o: o.id >= c and o.customer != 3 and o.amount >= c and o.id < 3 * c
    ),
    "none of them": lambda t, c: t.where(lambda o: o.amount > c and o.amount < 1),
    "exactly": lambda t, c: t.where(lambda o: o.amount == c / 2 and o.id > 5),
    "ranges of words": lambda t, c: t.where(lambda o: o.amount > "abcxyz"[c % 6]),
    "summed": lambda t, c: t.where(lambda o: o.amount > 3 and o.customer == c).select(
        lambda o: o.amount
    ),
}
VALUES = (0, 1, 2, 5, 7.5, True, float("nan"), None, "x")
COMMITS = 200 if TIMES else 60
"""Number of commits; after each, all rows of all views are compared, and these grow."""


@pytest.mark.long
@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("name", KINDS)
def test_they_show_and_raise_what_they_would_as_written(name: str, stored: bool) -> None:
    random = Random(name)
    sides = []
    for optimize in (True, False):
        db = Database(optimize=optimize)
        table = db.table(Order, stored=stored)
        views = [KINDS[name](table, c).materialize() for c in range(30)]
        sides.append((table, views))
    refused = 0
    for number in range(COMMITS):
        few = VALUES if number % 5 == 0 else VALUES[:6]
        rows = [
            Order(number, random.choice([random.randrange(32), 1.0, "c"]), random.choice(few))
            for _ in range(random.choice([1, 1, 2, 20]))
        ]
        outcomes = []
        for table, _ in sides:
            try:
                table.add_all(rows)
                outcomes.append("")
            except TypeError as error:
                outcomes.append(str(error).partition("\n")[0])
        assert outcomes[0] == outcomes[1]
        refused += bool(outcomes[0])
        (_, ours), (_, plain) = sides
        assert [sorted(map(repr, view)) for view in ours] == [
            sorted(map(repr, view)) for view in plain
        ]
    assert refused or name in ("alone", "either of three", "exactly")


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(KINDS.keys() - {"up to", "ranges of words"}))
def test_a_change_costs_as_much_among_many_as_among_few(name: str) -> None:
    found = [_calls(name, count) for count in (40, 400)]
    assert found[1] <= 1.3 * found[0], found


def test_a_variable_of_any_of_them_is_looked_at_in_time() -> None:
    table: Any = Database().table(Order)

    def view(customer: int, least: list[int]) -> Any:
        return table.where(lambda o: o.customer == customer and o.amount > least[0]).materialize()

    bounds = [[3] for _ in range(60)]
    views = [view(customer, bounds[customer]) for customer in range(60)]
    table.add(Order(0, 1, 5))
    bounds[57][0] = 9
    with pytest.warns(StaleCaptureWarning, match="'least'"):
        for number in range(1, 20):
            table.add(Order(number, 1, 5))
    assert len(views[1]) == 20


def _calls(name: str, count: int) -> int:
    """Return the calls of a change of one of `count` views."""
    table: Any = Database().table(Order)
    views = [KINDS[name](table, customer).materialize() for customer in range(count)]
    table.add_all(Order(n, n % 50, 5) for n in range(200))
    row = Order(-1, 7, 5)
    table.add(row)
    table.remove(row)
    calls = calls_of(lambda: table.add(row))
    assert any(map(len, views)) or name in ("none of them", "between, behind", "exactly")
    return calls


def of_many(views: int) -> tuple[Any, list[Any]]:
    orders = Database().table(Order, name="orders")
    return orders, [KINDS["alone"](orders, c).materialize() for c in range(views)]


@pytest.mark.long
def test_a_commit_of_many_views_calls_as_little_for_a_thousand_as_for_a_hundred() -> None:
    def calls(views: int) -> tuple[int, int]:
        orders, made = of_many(views)
        for number in range(3):
            orders.add(Order(number, -1, 1))
        wanted = calls_of(lambda: orders.add(Order(9, 7, 1)))
        assert list(made[7]) == [Order(9, 7, 1)]
        return wanted, calls_of(lambda: orders.add(Order(9, -1, 1)))

    few, many = calls(100), calls(1_000)
    assert few == many
    assert max(many) < 170


def test_what_raises_for_one_of_many_views_changes_none() -> None:
    orders, made = of_many(40)
    failing = orders.where(lambda o: o.customer == 50 and 1 / o.amount > 0).materialize()
    other = orders.where(lambda o: o.customer == 50).aggregate(Count()).materialize()
    for number in range(1, 4):
        orders.add(Order(number, 50, number))
    with pytest.raises(ZeroDivisionError) as caught:
        orders.add(Order(0, 50, 0))
    assert any("rolled back" in note for note in caught.value.__notes__)
    assert (len(orders), len(failing), other.value) == (3, 3, 3)
    orders.add(Order(9, 3, 1))
    assert [len(view) for view in made[:5]] == [0, 0, 0, 1, 0]
    for view in (failing, other, *made):
        view.verify()
