"""Alternatives of conditions that may raise, under `on_error="drop"`: keys are found, rows and
errors stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Database
from tests.budget import TIMES, drawing, sampled


class Order(NamedTuple):
    key: int
    qty: Any
    name: Any


class Customer(NamedTuple):
    key: int
    tier: Any
    name: Any


Condition = Callable[[Any, Any], Any]
CONDITIONS: dict[str, Condition] = {
    "key first": lambda o, c: (o.key == c.key and o.qty < 3) or (o.key == c.key and c.tier > 2),
    "key last": lambda o, c: (o.qty < 3 and o.key == c.key) or (c.tier > 2 and o.key == c.key),
    "computed key": lambda o, c: (
        (o.qty < 3 and o.qty + 1 == c.tier) or (c.tier > 2 and o.qty + 1 == c.tier)
    ),
    "two keys": lambda o, c: (o.key == c.key and o.qty < 3) or (o.name == c.name and c.tier > 2),
    "two computed keys": lambda o, c: (
        (o.qty + 1 == c.tier and o.name < c.name) or (o.qty - 1 == c.tier and o.name > c.name)
    ),
    "three keys": lambda o, c: (
        (o.key == c.key and o.qty < c.tier) or o.qty * 2 == c.tier or o.name == c.name
    ),
    "two keys and a common test": lambda o, c: (
        (o.qty < c.tier and o.key == c.key) or (o.name == c.name and o.qty < c.tier)
    ),
    "common part decides": lambda o, c: o.key == c.key and (o.qty < 3 or (o.qty < 3 and o.name)),
    "no key": lambda o, c: (o.qty < 3 and o.key == c.key) or c.tier > 2,
    "difference": lambda o, c: o.qty - c.tier == 1,
    "less, then a difference": lambda o, c: o.name < c.name and o.qty - c.tier - o.key == 0,
    "not unequal": lambda o, c: not (o.qty != c.tier or o.key < c.key),
    "near": lambda o, c: abs(o.qty - c.tier) < 2 and o.name < c.name,
    "between": lambda o, c: -2 < o.qty - c.tier < 1,
    "in a tuple": lambda o, c: c.tier in (o.qty, o.key + 1) and o.name < c.name,
    "nested": lambda o, c: (
        o.key > 0 and ((o.qty < 3 and o.key == c.key) or (o.qty > c.tier and o.key == c.key))
    ),
}
RANGES = ("no key", "near", "between")
KEYED = tuple(name for name in CONDITIONS if name not in RANGES)
FOREIGN = (None, "x", 2.5, float("nan"))
KINDS = ("join", "left_join", "right_join", "full_join", "semi_join", "anti_join", "where")


def _orders(random: Random) -> Order:
    return Order(random.randrange(4), _value(random, random.randrange(5)), _text(random))


def _customers(random: Random) -> Customer:
    return Customer(random.randrange(4), _value(random, random.randrange(5)), _text(random))


def _text(random: Random) -> Any:
    return _value(random, random.choice("abc"))


def _value(random: Random, usual: Any) -> Any:
    return random.choice(FOREIGN) if random.random() < 0.1 else usual


def _query(kind: str, orders: Any, customers: Any, on: Condition) -> Any:
    if kind == "where":
        return orders.join(customers).where(on)
    return getattr(orders, kind)(customers, on=on)


def _outcome(on: Condition, o: Any, c: Any) -> Any:
    """Return the truth of a condition, or the class of what it raises."""
    try:
        return bool(on(o, c))
    except TypeError as raised:
        return type(raised).__name__


def _expected(kind: str, orders: list[Any], customers: list[Any], on: Condition) -> Counter[str]:
    pairs = [(o, [c for c in customers if _outcome(on, o, c) is True]) for o in orders]
    if kind in ("join", "where"):
        return Counter(repr((o, c)) for o, partners in pairs for c in partners)
    if kind in ("left_join", "right_join", "full_join"):
        found = Counter(repr((o, c)) for o, partners in pairs for c in partners)
        met = [c for _, partners in pairs for c in partners]
        if kind != "right_join":
            found.update(repr((o, None)) for o, partners in pairs if not partners)
        if kind != "left_join":
            alone = (c for c in customers if not any(c is other for other in met))
            found.update(repr((None, c)) for c in alone)
        return found
    return Counter(repr(o) for o, partners in pairs if bool(partners) is (kind == "semi_join"))


def _errors(orders: list[Any], customers: list[Any], on: Condition) -> set[str]:
    return {
        repr((o, c, outcome))
        for o in orders
        for c in customers
        if isinstance(outcome := _outcome(on, o, c), str)
    }


@sampled
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CONDITIONS)
def test_rows_and_errors_are_those_of_nested_loops(name: str, kind: str) -> None:
    random, on = drawing(), CONDITIONS[name]
    for _ in range(20 if TIMES else 1):
        db = Database()
        orders, customers = db.table(Order, name="orders"), db.table(Customer, name="customers")
        view = _query(kind, orders, customers, on).materialize(on_error="drop")
        errors = view.errors
        rows: tuple[list[Any], list[Any]] = ([], [])
        for _ in range(20):
            with db.transaction():
                for side in random.choice(((0,), (1,), (0, 1), (0, 1, 1))):
                    table: Any = (orders, customers)[side]
                    if rows[side] and random.random() < 0.4:
                        table.remove(rows[side].pop(random.randrange(len(rows[side]))))
                    else:
                        rows[side].append((_orders, _customers)[side](random))
                        table.add(rows[side][-1])
            is_one = kind in ("semi_join", "anti_join")
            shown = Counter(repr(row if is_one else tuple(row)) for row in view)
            assert shown == _expected(kind, *rows, on), (name, kind)
            found = {repr((*error.row, error.error.kind)) for error in errors}
            assert found == _errors(*rows, on), (name, kind)
            view.verify()


@sampled
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", KEYED)
def test_partners_are_looked_up(name: str, kind: str) -> None:
    db = Database()
    orders, customers = db.table(Order, name="orders"), db.table(Customer, name="customers")
    view = _query(kind, orders, customers, CONDITIONS[name]).materialize(on_error="drop")
    assert "every pair" not in view.explain()


def test_a_change_touches_partners_only() -> None:
    touched = []
    for count in (200, 2000):
        db = Database()
        db.execute("create table a (k int, x int)")
        db.execute("create table b (k int, y int)")
        tables: dict[str, Any] = {table.name: table for table in db.tables()}
        a, b = tables["a"], tables["b"]
        a.add_all(a.row_type(n, n % 7) for n in range(count))
        b.add_all(b.row_type(n, n % 5) for n in range(count))
        view = db.sql(
            "select x, y from a, b where (a.x < 3 and a.k = b.k) or (a.k = b.k and b.y < 1)"
        ).materialize()
        for key in (1, 2):  # the first changes build indexes
            before = view.stats().touched
            with db.transaction():
                a.add(a.row_type(key, 1))
                b.remove(b.row_type(key, key))
        touched.append(view.stats().touched - before)
    assert touched[0] == touched[1] > 0


@pytest.mark.parametrize("name", ["no key", "nested", "three keys"])
def test_errors_are_searched_among_rows_that_may_raise(name: str) -> None:
    touched = []
    for count in (200, 2000):
        db = Database()
        orders, customers = db.table(Order, name="orders"), db.table(Customer, name="customers")
        orders.add_all(Order(n, n % 5, "b") for n in range(count))
        customers.add_all(Customer(n, n % 5, "c") for n in range(count))
        view = orders.join(customers, on=CONDITIONS[name]).materialize(on_error="drop")
        errors = view.errors
        for key in (1, 2):  # the first changes build indexes
            before = errors.stats().touched
            orders.add(Order(-key, 1, "b"))
            customers.remove(Customer(key, key, "c"))
        touched.append(errors.stats().touched - before)
        orders.add(Order(1, None, "b"))
        assert errors
    assert touched[0] == touched[1]


def test_integers_out_of_bounds_are_errors_and_no_partners() -> None:
    db = Database()
    db.execute("create table a (k smallint)")
    db.execute("create table b (k smallint)")
    tables: dict[str, Any] = {table.name: table for table in db.tables()}
    a, b = tables["a"], tables["b"]
    view = db.sql("select a.k as n, b.k as m from a, b where a.k - b.k = 40000").materialize()
    near = db.sql("select a.k as n, b.k as m from a, b where a.k - b.k = 1").materialize()
    a.add_all([a.row_type(30000), a.row_type(2)])
    b.add_all([b.row_type(-10000), b.row_type(1)])
    assert [*map(tuple, view)] == [] and [*map(tuple, near)] == [(2, 1)]
    assert {(e.row[0].k, e.row[1].k) for e in near.errors} == {(30000, -10000)}
    view.verify()
    near.verify()


NEAR: dict[str, Callable[[int, int], bool]] = {
    "abs(a.k - b.k) < 3": lambda k, n: abs(_small(abs(_small(k - n)))) < 3,
    "a.k - b.k > -2 and a.k - b.k < 2": lambda k, n: -2 < _small(k - n) < 2,
    "a.k + b.k < 10": lambda k, n: _small(k + n) < 10,
    "b.k - a.k >= 2": lambda k, n: _small(n - k) >= 2,
}
FROM = {
    "join": "select a.k as k, b.k as n from a join b on {}",
    "left_join": "select a.k as k, b.k as n from a left join b on {}",
    "semi_join": "select a.k as k, 0 as n from a where exists (select 1 from b where {})",
    "anti_join": "select a.k as k, 0 as n from a where not exists (select 1 from b where {})",
}


def _small(value: int) -> int:
    """Return a value that is a small integer of SQL; raise for others."""
    if not -32768 <= value <= 32767:
        raise OverflowError
    return value


def _passes(on: Callable[[int, int], bool], k: int | None, n: int | None) -> bool:
    try:
        return k is not None and n is not None and on(k, n)
    except OverflowError:
        return False


@sampled
@pytest.mark.parametrize("kind", FROM)
@pytest.mark.parametrize("text", NEAR)
def test_integers_that_are_near_are_found_by_ranges(text: str, kind: str) -> None:
    random, on = drawing(), NEAR[text]
    usual = (None, 0, 1, 2, 3, 7, 32767, 32766, -32768, -32767, 30000, -20000)
    for _ in range(20 if TIMES else 3):
        db = Database()
        db.execute("create table a (k smallint)")
        db.execute("create table b (k smallint)")
        tables: dict[str, Any] = {table.name: table for table in db.tables()}
        rows: dict[str, list[int | None]] = {"a": [], "b": []}
        view = db.sql(FROM[kind].format(text)).materialize()
        assert "every pair" not in view.explain()
        for _ in range(25):
            name = random.choice("ab")
            table, present = tables[name], rows[name]
            if present and random.random() < 0.4:
                table.remove(table.row_type(present.pop(random.randrange(len(present)))))
            else:
                present.append(random.choice(usual))
                table.add(table.row_type(present[-1]))
            pairs = [(k, [n for n in rows["b"] if _passes(on, k, n)]) for k in rows["a"]]
            if kind in ("join", "left_join"):
                alone: list[Any] = [None] if kind == "left_join" else []
                expected = Counter((k, n) for k, found in pairs for n in found or alone)
            else:
                is_semi = kind == "semi_join"
                expected = Counter((k, 0) for k, found in pairs if bool(found) is is_semi)
            assert Counter(map(tuple, view)) == expected
            view.verify()
