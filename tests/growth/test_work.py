"""Work is proportional to the change: a table 100 times larger touches as many rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reactive import Avg, Count, Database, Max, Min, Sum

Rel = Any
BY: dict[str, Any] = {"left_key": lambda r: r[0], "right_key": lambda r: r[0]}

QUERIES: dict[str, Callable[[Rel, Rel], Rel]] = {
    "where": lambda a, b: a.where(lambda r: r[1] > 0).select(lambda r: r[1]),
    "distinct": lambda a, b: a.select(lambda r: r[0]).distinct(),
    "union": lambda a, b: a.union(b),
    "difference": lambda a, b: a.difference(b),
    "intersection_all": lambda a, b: a.intersection_all(b),
    "join": lambda a, b: a.join(b, **BY),
    "full_join": lambda a, b: a.full_join(b, **BY),
    "semi_join": lambda a, b: a.semi_join(b, **BY),
    "anti_join": lambda a, b: a.anti_join(b, on=lambda x, y: x[1] == y[1], **BY),
    "aggregate": lambda a, b: a.group_by(lambda r: r[0]).aggregate(
        Count(), Sum(lambda r: r[1]), Avg(lambda r: r[1]), Min(lambda r: r[1]), Max(lambda r: r[1])
    ),
    "order_by": lambda a, b: a.order_by(lambda r: r[1]).limit(10, 3),
}


def touched(query: Callable[[Rel, Rel], Rel], size: int) -> list[int]:
    """Return the rows touched by insert, update, delete in `a`, and by insert, delete in `b`."""
    db = Database()
    a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
    a.add_all((n, n) for n in range(size))
    b.add_all((n, n + 1) for n in range(0, size, 2))
    view = query(a, b).materialize()
    a.add((7, 2))  # the first row that is looked up on the other side has an index made of that
    b.add((7, 2))
    counts = []
    before = view.stats().touched
    changes: list[Callable[[], None]] = [
        lambda: a.add((7, 3)),
        lambda: a.update((7, 3), (8, 4)),
        lambda: a.remove((8, 4)),
        lambda: b.add((7, 3)),
        lambda: b.remove((7, 3)),
    ]
    for change in changes:
        change()
        after = view.stats().touched
        counts.append(after - before)
        before = after
    view.verify()
    return counts


@pytest.mark.parametrize("name", QUERIES)
def test_one_change_touches_as_much_in_a_table_100_times_larger(name: str) -> None:
    assert touched(QUERIES[name], 20) == touched(QUERIES[name], 2000)


@pytest.mark.parametrize("name", QUERIES)
def test_one_change_touches_a_handful(name: str) -> None:
    assert max(touched(QUERIES[name], 200)) <= 16


def test_a_product_touches_the_other_side() -> None:
    small, large = (touched(lambda a, b: a.join(b), size) for size in (20, 200))
    assert large[0] - small[0] == 2 * 90  # the join, and the view above it


def test_an_index_holds_a_row_once_and_nothing_after_it_went() -> None:
    db = Database()
    a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
    view = a.join(b, **BY).materialize()
    empty = view.stats().bytes
    a.add_all((n % 5, n) for n in range(100))
    assert view.stats().rows == 0  # no index is built before the first look-up
    b.add((9, 9))
    b.remove((9, 9))
    assert view.stats().rows == 100
    a.clear()
    assert view.stats().rows == 0
    assert view.stats().bytes <= empty + 400


def test_a_change_of_what_a_select_drops_does_not_go_through_a_joins_matches() -> None:
    db = Database()
    a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
    b.add_all((1, n) for n in range(100))
    view = a.select(lambda r: (r[0],)).join(b, **BY).materialize()
    a.add((1, "old"))
    before = view.stats().touched
    a.update((1, "old"), (1, "new"))
    assert view.stats().touched - before <= 4
    view.verify()
