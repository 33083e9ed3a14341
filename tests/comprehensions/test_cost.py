"""The cost of a change equals the cost in the best equivalent chain of methods."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from asv_benchmarks.comprehensions.pairs import Shop, pairs
from reactive import Database, check

SIZE, CHANGES = 600, 40
MOST = 1.1
NAMES = tuple(pairs(Shop(200)))


def changed(name: str, side: int) -> tuple[int, Counter[Any]]:
    """Return the number of rows that changes touch, and the final rows of the view."""
    shop = Shop(SIZE)
    shop.choose(CHANGES)
    query: Any = pairs(shop)[name][side]
    view = (query if side else shop.db.query(query)).materialize()
    random, before = Random(3), view.stats().touched
    for number in range(CHANGES):
        shop.change(number, random)
    rows = [tuple(row) if isinstance(row, tuple) else (row,) for row in view]
    return view.stats().touched - before, Counter(rows)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_change_touches_as_many_rows(name: str) -> None:
    mine, rows = changed(name, 0)
    other, same = changed(name, 1)
    assert rows == same
    assert mine <= MOST * other


def test_there_are_thirty_pairs() -> None:
    assert len(set(NAMES)) >= 30


def test_plain_tuples_are_asked_by_an_equation_too() -> None:
    """Unpacking a tuple may raise, but then raises for all values or for none."""
    db = Database()
    left, right = db.table(tuple, name="left"), db.table(tuple, name="right")
    asked = db.query(lambda: [(a, len([1 for k, _ in right if k == a])) for a, _ in left])
    view = asked.materialize()
    assert "distinct" not in str(asked.explain()).partition("runs as")[0]
    left.add_all([(n, n) for n in range(50)])
    right.add_all([(n % 50, n) for n in range(200)])
    before = view.stats().touched
    left.add((3, 0))
    right.add((3, 0))
    assert view.stats().touched - before <= 25
    check(view)


def test_what_unpacks_raises_only_if_somebody_asks() -> None:
    db = Database()
    left, right = db.table(tuple, name="left"), db.table(tuple, name="right")
    asked = db.query(lambda: [(a, len([1 for k, _ in right if k == a])) for a, _ in left])
    view = asked.materialize()
    right.add((1, 2, 3))
    assert list(view) == []
    with pytest.raises(ValueError, match="cannot unpack"):
        left.add((1, 2))
    right.replace_all([(1, 2)])
    left.add((1, 2))
    check(view)
    assert list(view) == [(1, 1)]
