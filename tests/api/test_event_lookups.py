"""Look-ups of events in commits of all sizes, beside lists of what each commit pairs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from reactive import Database
from reactive.engine.collections import zset
from tests.budget import SEED


class Sale(NamedTuple):
    item: Any
    at: int
    pieces: int


class Price(NamedTuple):
    item: Any
    euros: int


class Opaque:
    """A callable that is not lifted."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *row: Any) -> Any:
        return self._function(*row)


NAN = float("nan")
Pairs = Iterator[tuple[Any, int]]
Paired = Callable[[Sale, list[tuple[Price, int]]], Pairs]


def _pairs(sale: Sale, prices: list[tuple[Price, int]]) -> Pairs:
    for price, times in prices:
        yield (sale, price), times


def _padded(sale: Sale, prices: list[Any]) -> Pairs:
    if sale.pieces > 1:
        for price, times in prices or [(None, 1)]:
            yield (sale.at, price), times


def _letters(sale: Sale, prices: list[tuple[Price, int]]) -> Pairs:
    for price, times in prices:
        for letter in "xy"[: sale.pieces]:
            yield (sale.pieces * price.euros, letter), times


def _costs(sale: Sale, prices: list[tuple[Price, int]]) -> Pairs:
    for price, times in prices:
        if price.euros > 40:
            yield (sale.at + 1, -price.euros), times


QUERIES: dict[str, tuple[Callable[[Any, Any], Any], Paired]] = {
    "pairs": (lambda sales, prices: sales.lookup(prices, on="item"), _pairs),
    "padded": (
        lambda sales, prices: (
            sales.where(lambda s: s.pieces > 1)
            .left_lookup(prices, left_key="item", right_key="item")
            .select(lambda s, p: (s.at, p))
        ),
        _padded,
    ),
    "several rows": (
        lambda sales, prices: (
            sales.lookup(prices, on="item")
            .unnest(lambda s, p: "xy"[: s.pieces])
            .select(lambda s, p, letter: (s.pieces * p.euros, letter))
        ),
        _letters,
    ),
    "rows made of both": (
        lambda sales, prices: (
            sales.select(lambda s: (s.item, s.at + 1))
            .lookup(
                prices.where(lambda p: p.euros > 40).select(lambda p: (p.item, -p.euros)),
                on=lambda s, p: s[0] == p[0],
            )
            .select(lambda s, p: (s[1], p[1]))
        ),
        _costs,
    ),
    "opaque": (
        lambda sales, prices: (
            sales.where(Opaque(lambda s: s.pieces > 1))
            .left_lookup(prices, left_key=Opaque(lambda s: s.item), right_key="item")
            .select(Opaque(lambda s, p: (s.at, p)))
        ),
        _padded,
    ),
}
ITEMS = ("a", "b", 1, 2.5, NAN, None, ("a", NAN))


def _equal(one: Any, other: Any) -> bool:
    return one == other and "nan" not in repr(one)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("way", ["keyed", "bag", "unstored"])
def test_each_commit_pairs_its_events_with_the_rows_after_it(way: str, optimize: bool) -> None:
    rnd, db = random.Random(f"{way} {SEED}"), Database(optimize=optimize)
    sales: Any = db.stream(Sale, at="at", lateness=10, name="sales")
    options: dict[str, Any] = {"key": "item"} if way == "keyed" else {"stored": way == "bag"}
    prices: Any = db.table(Price, name="prices", **options)
    found: dict[str, Counter[Any]] = {name: Counter() for name in QUERIES}

    def hear(name: str) -> Callable[[Any], None]:
        def add(delta: Any) -> None:
            assert not delta.removed and not delta.updated
            assert Counter(delta.added) == dict(delta.items())
            found[name].update(delta.added)

        return add

    kept = [ask(sales, prices).subscribe(hear(name)) for name, (ask, _) in QUERIES.items()]
    items = [item for item in ITEMS if way != "keyed" or "nan" not in repr(item)]
    held: Counter[Price] = Counter()
    expected: dict[str, Counter[Any]] = {name: Counter() for name in QUERIES}
    for now in range(40):
        batch = [
            Sale(rnd.choice(ITEMS), now + rnd.randrange(9), rnd.randrange(3))
            for _ in range(rnd.choice([0, 1, 1, 3, 80, 700]))
        ]
        is_apart, by_one = rnd.random() < 0.5, rnd.random() < 0.3
        with db.transaction():
            for _ in range(rnd.choice([0, 1, 4])):
                _change(prices, held, Price(rnd.choice(items), rnd.randrange(99)), way, rnd)
            for sale in batch if by_one and not is_apart else ():
                sales.add(sale)
            if not is_apart and not by_one:
                sales.add_all(batch)
        if is_apart:
            sales.add_all(batch)
        for name, (_, pair) in QUERIES.items():
            for sale in batch:
                fitting = [(p, n) for p, n in held.items() if n > 0 and _equal(p.item, sale.item)]
                for row, times in pair(sale, fitting):
                    expected[name][row] += times
            assert found[name] == expected[name]
    assert all(expected.values()) and kept


def _change(prices: Any, held: Counter[Price], price: Price, way: str, rnd: random.Random) -> None:
    """Change the prices, and the number of copies of each that the model has."""
    old = [each for each in held if _equal(each.item, price.item)]
    if way == "keyed":
        prices.upsert(price)
        for each in old:
            del held[each]
    elif (old or way == "unstored") and rnd.random() < 0.4:
        price = rnd.choice(old) if old else price
        prices.remove(price)
        held[price] -= 1
        if not held[price]:
            del held[price]
        return
    else:
        prices.add(price)
    held[price] += 1
    if not held[price]:
        del held[price]


class Reading(NamedTuple):
    sensor: str
    at: int


def test_a_batch_is_told_without_hashing_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database()
    readings: Any = db.stream(Reading, at="at", lateness=10)
    sensors: Any = db.table(Price, key="item")
    sensors.add(Price("a", 1))
    told: list[Any] = []
    joined = readings.lookup(sensors, on=lambda r, s: r.sensor == s.item)
    with joined.subscribe(lambda delta: told.append((delta.added, delta.removed, delta.updated))):
        for size in (2, 100, 1_000):
            batch = [Reading("a", size + n) for n in range(size)]
            with monkeypatch.context() as patch:
                patch.setattr(zset, "Counter", None)
                readings.add_all(batch)
            assert told.pop() == (tuple((each, Price("a", 1)) for each in batch), (), ())


def test_a_batch_of_equal_events_has_each_once_among_its_items() -> None:
    readings: Any = Database().stream(Reading, at="at", lateness=10)
    told: list[Any] = []
    with readings.where(lambda r: r.at > 0).subscribe(told.append):
        readings.add_all([Reading("a", 1), Reading("b", 1), Reading("a", 1)])
    assert told[0].added == (Reading("a", 1), Reading("b", 1), Reading("a", 1))
    assert len(told[0]) == 2
    assert told[0].items() == ((Reading("a", 1), 2), (Reading("b", 1), 1))
