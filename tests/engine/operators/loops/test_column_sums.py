"""Sums over columns equal those of the loop: same values, of the same classes, in one order."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Avg, Count, Database, Sum
from reactive.engine.collections.zset import UniformDelta
from reactive.engine.operators.loops.columns import ColumnSums
from reactive.engine.operators.loops.grouped import when_large
from tests.budget import seeds
from tests.counted_calls import calls_of
from tests.thresholds import NEVER, thresholds

COLUMNS = "reactive.engine.operators.loops.columns"
LARGE = "reactive.engine.operators.loops.grouped"
ROWS = 300


@dataclass(frozen=True, slots=True)
class Order:
    id: Any
    customer: Any
    town: Any
    amount: Any
    price: Any
    paid: Any


@dataclass(frozen=True, slots=True)
class Declared:
    """An order with declared types, so that a view with a policy need not check each value."""

    id: int
    customer: int
    town: str
    amount: int
    price: float
    paid: bool


class Named(NamedTuple):
    id: Any
    customer: Any
    town: Any
    amount: Any
    price: Any
    paid: Any


class Client(NamedTuple):
    id: Any
    nation: int


INTEGERS = [lambda r: r.randrange(-9, 9), lambda r: r.choice([2**31, 5]), lambda r: 2**60 + 1]
FLOATS = [
    lambda r: r.random() * 100,
    lambda r: r.choice([0.1, -0.0, 0.0, -1e-7, 1e9, 3.0]),
    lambda r: r.choice([1e-20, 1.0, -1e20]),
    lambda r: r.choice([1e300, -1e300, 1.0]),
    lambda r: r.choice([float("inf"), 1.0]),
    lambda r: 5e-324,
    lambda r: r.choice([1.0, 2, None][: r.randrange(2, 4)]),
]
TOWNS = [lambda r: r.choice(["Bonn", "Rome", ""]), lambda r: r.choice(["Bonn", None]), lambda r: 1]
KEYS = [lambda r: r.randrange(7), lambda r: r.choice([-(2**62), 3, 2**40]), lambda r: True]
MADE = [
    (integer, floating, town, key)
    for integer in INTEGERS
    for floating in FLOATS
    for town in TOWNS
    for key in KEYS
]


def rows_of(kind: Callable[..., Any], makes: Any, random: Random) -> list[Any]:
    integer, floating, town, key = makes
    return [
        kind(n, key(random), town(random), integer(random), floating(random), random.random() < 0.5)
        for n in range(ROWS)
    ]


QUERIES: list[Callable[[Any, Any], Any]] = [
    lambda o, c: o.group_by(lambda o: o.town).aggregate(Sum(lambda o: o.amount), Count()),
    lambda o, c: o.group_by(lambda o: o.customer).aggregate(
        Avg(lambda o: o.price), Sum(lambda o: o.price), Sum(lambda o: o.amount * 2 - o.id)
    ),
    lambda o, c: (
        o.where(lambda o: o.id > 7 and (o.town == "Bonn" or not o.paid))
        .select(lambda o: (o.customer, o.price * o.amount))
        .group_by(lambda pair: pair[0])
        .aggregate(Sum(lambda pair: pair[1]))
    ),
    lambda o, c: o.where(lambda o: o.price < 50.5).aggregate(Count(), Sum(lambda o: o.id)),
    lambda o, c: (
        o.where(lambda o: o.town != "Rome" and o.paid)
        .group_by(lambda o: o.customer)
        .aggregate(Count(), Sum(lambda o: o.price))
    ),
    lambda o, c: o.where(lambda o: o.id < 0).group_by(lambda o: o.town).aggregate(Count()),
    lambda o, c: (
        o.join(c, on=lambda o, c: o.customer == c.id)
        .group_by(lambda o, c: c.nation)
        .aggregate(Sum(lambda o, c: o.amount), Sum(lambda o, c: o.price), Count())
    ),
    lambda o, c: (
        o.join(c, on=lambda o, c: o.customer == c.id)
        .group_by(lambda o, c: o.town)
        .aggregate(Sum(lambda o, c: o.price), Count())
    ),
    lambda o, c: o.group_by(lambda o: o.town).aggregate(Sum(lambda o: 1 // o.id), Count()),
]
NOT_TAKEN = {5: "few rows pass", 7: "the rows are kept", 8: "it may raise"}


def played(query: Callable[[Any, Any], Any], rows: list[Any], random: Random) -> list[Any]:
    """Return the rows of the view, as text, after each of some changes; or the raised error."""
    db = Database()
    orders: Any = db.table(object, name="orders")
    clients = db.table(Client)
    clients.add_all([Client(key, n % 3) for n, key in enumerate([*range(7), 2**40, -(2**62)])])
    view = query(orders, clients).materialize()
    seen: list[Any] = []
    for rows_now in (rows[:-9], rows[-9:]):
        try:
            orders.add_all(rows_now)
        except Exception as error:
            seen.append((type(error), str(error)))
        seen.append(repr(list(view)))
    for row in random.sample(list(orders), min(9, len(orders))):
        orders.remove(row)
        seen.append(repr(list(view)))
    if len(orders):
        view.verify()
    orders.clear()
    assert list(view) in ([], list(query(orders, clients).materialize()))
    return seen


@pytest.mark.long
@pytest.mark.parametrize("kind", [Order, Named, lambda *values: Named(*values)])
@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_sums_over_columns_are_those_of_the_loop(number: int, kind: Any) -> None:
    for seed in seeds(40):
        random = Random(seed)
        rows = rows_of(kind, random.choice(MADE), random)
        found = []
        for many in (1, NEVER):
            with thresholds({f"{LARGE}.MANY": many, f"{COLUMNS}.UNLOADED": 1}):
                found.append(played(QUERIES[number], rows, Random(seed)))
        assert found[0] == found[1]


TAKEN = (INTEGERS[0], FLOATS[0], TOWNS[0], KEYS[0])


@pytest.mark.parametrize("number", range(len(QUERIES)))
@pytest.mark.parametrize("kind", [Order, Named])
def test_a_load_of_integers_floats_and_texts_is_taken(
    number: int, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[bool] = []
    of = ColumnSums.sum_delta

    def noted(self: ColumnSums, delta: Any) -> Any:
        found = of(self, delta)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(ColumnSums, "sum_delta", noted)
    with thresholds({f"{LARGE}.MANY": 100, f"{COLUMNS}.UNLOADED": 1}):
        played(QUERIES[number], rows_of(kind, TAKEN, Random(1)), Random(1))
    assert taken.count(True) == (number not in NOT_TAKEN)  # the later batches have few rows


@pytest.mark.parametrize("of", [lambda o: o.amount, lambda o: o.amount * 2])
def test_a_load_into_a_view_that_leaves_rows_out_is_taken(
    of: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[bool] = []
    of_columns = ColumnSums.sum_delta

    def noted(self: ColumnSums, delta: Any) -> Any:
        found = of_columns(self, delta)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(ColumnSums, "sum_delta", noted)
    table: Any = Database().table(Declared)
    query = table.where(lambda o: o.amount != 3 and o.price < 60)
    query = query.group_by("town").aggregate(Sum(of), Count())
    views = [query.materialize(on_error=policy) for policy in ("raise", "drop")]
    with thresholds({f"{LARGE}.MANY": 100, f"{COLUMNS}.UNLOADED": 1}):
        table.add_all(rows_of(Declared, TAKEN, Random(1)))
    assert taken == [True, True]
    assert dict(views[0]) == dict(views[1]) and len(views[1]) == 3
    for row in rows_of(Declared, TAKEN, Random(2))[:20]:
        table.add(row)
    for view in views:
        view.verify()


def test_calls_over_columns_grow_with_groups_and_not_with_rows() -> None:
    def load(number: int) -> int:
        table: Any = Database().table(Order)
        view = QUERIES[1](table, None).materialize()
        rows = rows_of(Order, TAKEN, Random(1))
        rows = [Order(n, *astuple(rows[n % ROWS])) for n in range(number)]
        found = calls_of(lambda: table.add_all(rows))
        assert len(view) == 7
        return found

    with thresholds({f"{LARGE}.MANY": 100, f"{COLUMNS}.UNLOADED": 1}):
        load(200)
        assert load(4_000) < load(2_000) + 2_000 + 500  # a look at the field that tells rows apart


def astuple(row: Order) -> tuple[Any, ...]:
    return row.customer, row.town, row.amount, row.price, row.paid


def test_without_numpy_the_loop_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    rows = rows_of(Order, TAKEN, Random(1))
    batch = UniformDelta(rows, 1)
    batch.fields = {"id": int}
    with thresholds({f"{LARGE}.MANY": 1, f"{COLUMNS}.UNLOADED": 1}):
        assert ColumnSums((), (), (), ()).sum_delta(batch) is None
        assert when_large(lambda: ColumnSums((), (), (), ()).sum_delta)(batch) is None
        assert played(QUERIES[0], rows, Random(1))
