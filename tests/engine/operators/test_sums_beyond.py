"""Conditions of sums over the rows beyond a row: results as from scratch, and only the rows whose
condition changes are visited."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database
from reactive.engine.compiler.chooser import Chooser
from reactive.engine.transactions.transaction import Transaction
from tests.budget import examples, sampled
from tests.engine.operators.test_moved_bounds import touched_by


@dataclass(frozen=True)
class Bid:
    id: int
    broker: int
    price: float
    volume: float


@dataclass(frozen=True)
class Nullable:
    """A bid whose values may be None."""

    id: int
    broker: int | None
    price: float | None
    volume: int | None


BEYOND = "(select sum(c.volume) from bids c where c.price > b.price"
SQL = {
    "vwap": f"select sum(b.price * b.volume) as s from bids b where {BEYOND}) < 0.25 * "
    "(select sum(d.volume) from bids d)",
    "vwap, other way": "select sum(b.price * b.volume) as s from bids b where 0.25 * "
    f"(select sum(d.volume) from bids d) > {BEYOND})",
    "rows": f"select b.id from bids b where {BEYOND}) <= 3",
    "large sums": f"select b.id from bids b where {BEYOND}) > 3",
    "of a broker": f"select b.id from bids b where {BEYOND} and c.broker = b.broker) < 3",
    "up to": "select b.id from bids b where (select sum(c.volume) from bids c "
    "where c.price <= b.price) > 3 and b.volume > 1",
    "counts": "select b.id from bids b where (select count(*) from bids c "
    "where c.price < b.price) >= 2",
    "counts, few": "select b.id from bids b where (select count(*) from bids c "
    "where c.price < b.price) < 2",
    "none is 0": f"select b.id from bids b where coalesce({BEYOND}), 0) < 3",
    "grouped": f"select b.broker, sum(b.volume) as s from bids b where {BEYOND}) < 3 "
    "group by b.broker",
    "distinct": f"select distinct b.price from bids b where {BEYOND}) < 3",
}


def written(bids: Any) -> dict[str, Callable[[], Any]]:
    """Queries of all bids, as comprehensions."""
    return {
        "sum": lambda: (b.id for b in bids if sum(c.volume for c in bids if c.price > b.price) < 3),
        "at least": lambda: (
            b.id for b in bids if sum(c.volume for c in bids if c.price >= b.price) >= 3
        ),
        "of a broker, later": lambda: (
            b.id
            for b in bids
            if sum(c.volume for c in bids if c.price < b.price and c.broker == b.broker) < 3
            and b.volume > 1
        ),
        "a share": lambda: (
            b
            for b in bids
            if sum(c.volume for c in bids if c.price > b.price) < 0.25 * sum(c.volume for c in bids)
        ),
        "a number of them": lambda: (
            (b.id, b.price) for b in bids if len([c for c in bids if c.price > b.price]) < 2
        ),
        "a factor": lambda: (
            b.id for b in bids if 7 - sum(c.volume for c in bids if c.price > b.price) * 2 < 3
        ),
        "two bounds": lambda: (
            b.id for b in bids if 1 < sum(c.volume for c in bids if c.price > b.price) < 4
        ),
    }


ALL = [*SQL, *written(None)]
INTEGERS = [0, 1, 2, 3, -1, -2, 5]
ODD = [*INTEGERS, True, 0.5, 0.1, 0.2, 1e300, math.nan, math.inf, None, Decimal("0.1"), "a"]
FEW_PRICES = [1, 2, 2.0, 3, 5]
ODD_PRICES = [*FEW_PRICES, None, math.nan, "a", date(2024, 1, 1), Decimal(2), math.inf]


def view_of(db: Database, bids: Any, name: str, on_error: Any = "drop") -> Any:
    query = db.sql(SQL[name]) if name in SQL else db.query(written(bids)[name])
    return query.materialize(on_error=on_error)


def histories(
    kind: Any, prices: list[Any], volumes: list[Any]
) -> st.SearchStrategy[list[list[Any]]]:
    def of(values: list[Any]) -> st.SearchStrategy[Any]:
        return st.sampled_from([v for v in values if v is not None or kind is Nullable])

    bid = st.builds(kind, st.integers(0, 9), of([None, 0, 1]), of(prices), of(volumes))
    return st.lists(st.lists(bid, max_size=5), min_size=2, max_size=8)


def check_history(name: str, kind: Any, commits: list[list[Any]], on_error: Any) -> None:
    """Upsert rows by their ids, or delete a row that is there.

    Each commit does the same to a view that pairs rows; if it drops errors, both are verified.
    """
    sides = []
    for has_sums in (True, False):
        db = Database()
        bids = db.table(kind, name="bids", key="id")
        with nullcontext() if has_sums else patch.object(Chooser, "sums", False):
            sides.append((db, bids, view_of(db, bids, name, on_error)))
    for commit in commits:
        ends = [outcome(db, bids, commit) for db, bids, _ in sides]
        assert bool(ends[0]) == bool(ends[1]), ends  # if several sums raise, any may be first
        rows = [Counter(view) for _, _, view in sides]  # 2 and 2.0 are equal
        assert rows[0] == rows[1]
        for _, _, view in sides if on_error == "drop" else ():
            view.verify()


def outcome(db: Database, bids: Any, commit: list[Any]) -> str:
    """Return the exception of a commit as a text; "" if it stands."""
    try:
        with db.transaction():
            for row in commit:
                bids.discard(row) if row in bids else bids.upsert(row)
    except (TypeError, ValueError, ArithmeticError) as error:
        return f"{type(error).__name__} {error}"
    return ""


@sampled
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("volumes", [INTEGERS, [0.5, 0.1, 2, -0.3], [Decimal("0.1"), 3]])
@examples(10)
@given(st.data())
def test_a_view_of_numbers_is_as_from_scratch(
    name: str, volumes: list[Any], data: st.DataObject
) -> None:
    check_history(name, Bid, data.draw(histories(Bid, FEW_PRICES, volumes)), "raise")


@sampled
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", [Bid, Nullable])
@pytest.mark.parametrize("on_error", ["raise", "drop"])
@examples(10)
@given(st.data())
def test_a_view_of_odd_values_is_as_from_scratch(
    name: str, kind: Any, on_error: Any, data: st.DataObject
) -> None:
    check_history(name, kind, data.draw(histories(kind, ODD_PRICES, ODD)), on_error)


@dataclass(frozen=True)
class Dated:
    id: int
    broker: int
    price: date
    volume: int


@pytest.mark.parametrize("name", ["rows", "sum", "of a broker"])
def test_keys_may_be_dates(name: str) -> None:
    db = Database()
    bids = db.table(Dated, name="bids", key="id")
    view, random = view_of(db, bids, name), Random(1)
    for number in range(60):
        day = date(2024, 1, 1) + timedelta(random.randrange(30))
        bids.upsert(Dated(number % 20, number % 3, day, random.randrange(3)))
        view.verify()
    assert "sums beyond" in view.explain()


@dataclass(frozen=True)
class Order:
    id: int
    broker: int
    price: int
    volume: int


COSTLY = {"two bounds"}
"""A sum between two bounds is read by two conditions."""


@pytest.mark.parametrize("name", sorted({*ALL} - COSTLY))
def test_a_change_visits_the_rows_whose_condition_changes(name: str) -> None:
    """An order in the middle comes, changes and goes; the rows before it have other sums."""
    touched = []
    for count in (200, 4_000):
        db = Database()
        bids = db.table(Order, name="bids", key="id")
        bids.add_all(Order(n, n % 3, n, 1) for n in range(count))
        view = view_of(db, bids, name)
        assert "sums beyond" in view.explain(), view.explain()
        new = Order(count, 0, count // 2, 1)
        steps = (
            lambda bids=bids, new=new: bids.add(new),
            lambda bids=bids, new=new: bids.update(new, replace(new, volume=2)),
            lambda bids=bids, new=new: bids.remove(replace(new, volume=2)),
        )
        touched.append([touched_by(view, step) for step in steps])
        if count == 200:
            view.verify()  # looks at all pairs
    assert max(*touched[0], *touched[1]) < 150, touched


def refuse() -> None:
    raise KeyError


@pytest.mark.parametrize("name", ["vwap", "of a broker"])
def test_a_refused_commit_leaves_no_trace(name: str) -> None:
    """The hook refuses a commit after all operators have stepped, so that each undoes its step."""
    db = Database()
    bids = db.table(Order, name="bids", key="id")
    view = view_of(db, bids, name)
    bids.add_all(Order(n, n % 3, n % 7, n % 5) for n in range(40))
    rows = Counter(view)
    for number in range(12):
        with pytest.raises(KeyError), Transaction(db._engine, refuse):
            bids.remove(next(iter(bids)))
            bids.add(Order(100 + number, 1, number % 9, number))
        assert db._engine.broken is None  # undone, not repaired
        assert Counter(view) == rows
        bids.upsert(Order(number, 0, number % 4, 3))
        view.verify()
        rows = Counter(view)
    assert "sums beyond" in view.explain()


@pytest.mark.parametrize("name", ["up to", "large sums"])
def test_a_key_that_a_refused_commit_drops_from_the_order_is_put_back(name: str) -> None:
    """Many new keys build a part of the order again, without the keys that have no rows left."""
    random = Random(1)
    db = Database()
    bids = db.table(Order, name="bids", key="id")
    view = view_of(db, bids, name)
    for number in range(12):
        first = 100 * number
        bids.add_all(Order(first + n, 0, random.randrange(40), n % 3) for n in range(6))
        with pytest.raises(KeyError), Transaction(db._engine, refuse):
            bids.remove_all(random.sample(list(bids), len(bids) // 2))
            bids.add_all(Order(first + n, 0, random.randrange(100), 1) for n in range(20, 40))
        assert db._engine.broken is None
        view.verify()
        bids.remove_all(random.sample(list(bids), 3))
        view.verify()
