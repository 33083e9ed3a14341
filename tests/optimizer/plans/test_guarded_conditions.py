"""Conditions of comprehensions over three tables: the first two are joined in guards.

Python evaluates no condition while the third table is empty, so that a condition over the first two
that may raise is asked once more above.
"""

from __future__ import annotations

import linecache
from collections import Counter, defaultdict
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Database
from tests.budget import TIMES, drawing, sampled


class Order(NamedTuple):
    key: int
    qty: int
    name: str


class Customer(NamedTuple):
    key: int
    tier: int
    last: int
    name: str


CONDITIONS = (
    "o.key == c.key",
    "o.qty < c.tier and o.key == c.key",
    "o.qty * 2 < c.tier and o.name < c.name and o.key == c.key",
    "o.key == c.key and o.qty < c.tier",
    "not o.key != c.key",
    "o.qty < c.tier and not o.key != c.key",
    "o.qty < c.tier and o.key - c.key == 0",
    "o.qty / c.tier < 1 and o.key == c.key",
    "o.qty < c.tier",
    "c.key <= o.qty and o.qty < c.last",
    "c.key <= o.qty < c.tier + c.last",
    "o.name < c.name and c.key <= o.qty and o.qty < c.last",
    "abs(o.qty - c.tier) < 2",
    "abs(o.qty - c.tier) < 2 and o.key == c.key",
    "o.qty in range(c.key, c.last)",
    "not o.qty < c.tier",
    "o.qty != 0 and 4 // o.qty == c.tier and o.key == c.key",
    "c.key in (o.key, o.qty)",
    "c.key in (o.key, o.qty + 1)",
    "o.key == c.key or o.qty + 1 == c.tier",
    "(o.key == c.key and o.qty > 1) or (o.qty == c.key and c.tier > 2)",
    "(o.qty < c.tier and o.key == c.key) or o.name == c.name",
    "o.qty < c.tier and (o.key == c.key or o.name == c.name)",
    "o.key == c.key or c.tier > 2",
    "o.qty > 1 and 1 == 2",
)
ROWS = """\
def found():
    return [(o.key, c.tier, n) for o in orders for c in customers for n in names
            if {condition} if c.name == n]
"""
GROUPS = """\
def found():
    groups = defaultdict(list)
    for o in orders:
        for c in customers:
            for n in names:
                if {condition}:
                    if c.name == n:
                        groups[n].append(c.tier)
    return {{n: len(values) for n, values in groups.items()}}
"""
FOREIGN = (None, "x", 2.5, float("nan"))


def _value(random: Random, usual: Any) -> Any:
    """Return a usual value, or rarely one of another class."""
    return random.choice(FOREIGN[1:]) if random.random() < 0.06 else usual


def _new(random: Random, table: str) -> Any:
    name = random.choice("abc")
    if table == "names":
        return name
    if table == "orders":
        return Order(_value(random, random.randrange(3)), _value(random, random.randrange(4)), name)
    low = random.randrange(3)
    tier = _value(random, random.randrange(4))
    return Customer(_value(random, low), tier, low + random.randrange(3), name)


def _query(text: str, condition: str, tables: dict[str, Any]) -> Any:
    """Return the function of a text, whose names are the tables."""
    text = text.format(condition=condition)
    file = f"<guarded {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = {"defaultdict": defaultdict, **tables}
    exec(compile(text, file, "exec"), names)
    return names["found"]


def _expected(text: str, condition: str, rows: dict[str, Counter[Any]]) -> Any:
    """Run the same text over lists; return an exception that is raised."""
    try:
        return _query(text, condition, {name: [*r.elements()] for name, r in rows.items()})()
    except Exception as raised:
        return raised


def _errors(condition: str, rows: dict[str, Counter[Any]]) -> set[type]:
    """Return the classes of what a condition raises for any rows."""
    found = set()
    for one in rows["orders"]:
        for other in rows["customers"]:
            lists = {"orders": [one], "customers": [other], "names": [*rows["names"]][:1]}
            try:
                _query(ROWS, condition, lists)()
            except Exception as raised:
                found.add(type(raised))
    return found


@sampled
@pytest.mark.parametrize("text", [ROWS, GROUPS], ids=["rows", "groups"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_views_and_exceptions_are_those_of_the_loops(condition: str, text: str) -> None:
    random = drawing()
    for _ in range(12 if TIMES else 3):
        db = Database()
        tables: dict[str, Any] = {
            "orders": db.table(Order, name="orders"),
            "customers": db.table(Customer, name="customers"),
            "names": db.table(str, name="names"),
        }
        rows: dict[str, Counter[Any]] = {name: Counter() for name in tables}
        view = db.query(_query(text, condition, tables)).materialize()
        for _ in range(30):
            name = random.choices([*tables], [4, 4, 2])[0]
            after = {each: counted.copy() for each, counted in rows.items()}
            present = [*rows[name].elements()]
            is_new = not present or random.random() < 0.6
            row = _new(random, name) if is_new else random.choice(present)
            after[name][row] += 1 if is_new else -1
            expected = _expected(text, condition, {each: +found for each, found in after.items()})
            try:
                (tables[name].add if is_new else tables[name].remove)(row)
            except Exception as raised:
                assert isinstance(expected, Exception), (condition, row, raised)
                assert type(raised) in _errors(condition, after)
                continue
            assert not isinstance(expected, Exception), (condition, row, expected)
            rows = {each: +found for each, found in after.items()}
            if text is ROWS:
                assert Counter(map(repr, view)) == Counter(map(repr, expected))
            else:
                assert dict(view) == expected


@pytest.mark.parametrize(
    ("condition", "plan"),
    [
        ("o.qty < c.tier and o.key == c.key", "index by o.key"),
        ("o.qty < c.tier and not o.key != c.key", "index by o.key"),
        ("c.key <= o.qty and o.qty < c.last", "interval index by c.key, c.last"),
        ("abs(o.qty - c.tier) < 2", "interval index by c.tier - 2, c.tier + 2"),
        ("c.key in (o.key, o.qty)", "index by o.qty"),
        ("(o.key == c.key and o.qty > 1) or (o.qty == c.key and c.tier > 2)", "index by o.qty"),
        ("(o.qty < c.tier and o.key == c.key) or o.name == c.name", "index by o.key"),
    ],
)
@pytest.mark.parametrize("text", [ROWS, GROUPS], ids=["rows", "groups"])
def test_partners_are_looked_up(condition: str, plan: str, text: str) -> None:
    db = Database()
    tables = {
        "orders": db.table(Order, name="orders"),
        "customers": db.table(Customer, name="customers"),
        "names": db.table(str, name="names"),
    }
    shown = str(db.query(_query(text, condition, tables)).materialize().explain())
    assert plan in shown
    assert "index of all" not in shown
