"""Windows: a change touches the rows whose answers it changes, whatever the number of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from reactive import Database


class Price(NamedTuple):
    id: int
    product: int
    day: int
    amount: int


def _bounded(level: int, amount: int) -> int:
    return min(10, level + amount)


Query = Callable[[Any], Any]
PLACES: dict[str, Query] = {
    "places": lambda r: r.select(lambda p, w: (p.id, w.row_number(), w.rank(), w.ntile(3))),
    "shares": lambda r: r.select(lambda p, w: (p.id, w.percent_rank(), w.cume_dist())),
    "dense_rank": lambda r: r.select(lambda p, w: (p.id, w.dense_rank())),
}
NEAR: dict[str, Query] = {
    "lag": lambda r: r.select(lambda p, w: (p.id, w.lag(p.amount))),
    "lead 2": lambda r: r.select(lambda p, w: (p.id, w.lead(p.amount, 2))),
    "sum of rows": lambda r: r.select(lambda p, w: (p.id, w.sum(p.amount, rows=(-2, 1)))),
    "median of rows": lambda r: r.select(lambda p, w: w.quantile(p.amount, 0.5, rows=(-2, 2))),
    "range": lambda r: r.select(lambda p, w: (p.id, w.count(range=(-3, 0)))),
    "first rows": lambda r: r.where(lambda p, w: w.row_number() <= 3).select(
        lambda p, w: (p.id, w.row_number())
    ),
    "first of an order": lambda r: (
        r.select(lambda p, w: (w.rank(), p.id)).order_by(lambda r: r[0]).limit(3)
    ),
    "ntile": lambda r: r.select(lambda p, w: (p.id, w.ntile(4), w.lag(p.id))),
    "scan": lambda r: r.select(lambda p, w: (p.id, w.scan(p.amount, _bounded, 0))),
    "max so far": lambda r: r.select(lambda p, w: (p.id, w.max(p.day))),
    **PLACES,
}
FAR: dict[str, Query] = {
    "row_number and lag": lambda r: r.select(lambda p, w: (p.id, w.row_number(), w.lag(p.amount))),
    "ema": lambda r: r.select(lambda p, w: (p.id, w.ema(p.amount, alpha=0.001))),
    "sum so far": lambda r: r.select(lambda p, w: (p.id, w.sum(p.amount))),
}


def touched(query: Query, size: int) -> int:
    """Return the rows touched by a row that comes, changes and goes, near the front."""
    prices = Database().table(Price, name="prices")
    prices.add_all([Price(n, 0, n * 2, n % 7) for n in range(size)])
    view = query(prices.over(by="product", order="day")).materialize()
    before = view.stats().touched
    prices.add(Price(-1, 0, 9, 50))
    prices.update(Price(-1, 0, 9, 50), Price(-1, 0, 9, 60))
    prices.remove(Price(-1, 0, 9, 60))
    view.verify()
    return int(view.stats().touched - before)


@pytest.mark.parametrize("name", NEAR)
def test_a_change_touches_the_rows_beside_it(name: str) -> None:
    assert touched(NEAR[name], 3_000) == touched(NEAR[name], 100) < 80


@pytest.mark.parametrize("at", [-1, 1_001, 10**6])
@pytest.mark.parametrize("size", [1_000, 10_000])
@pytest.mark.parametrize("name", PLACES)
def test_a_row_that_comes_is_one_edit_of_places(name: str, size: int, at: int) -> None:
    prices = Database().table(Price, name="prices")
    prices.add_all([Price(n, 0, n * 2, n % 7) for n in range(size)])
    view = PLACES[name](prices.over(order="day")).materialize()
    edits: list[Any] = []
    with view.subscribe(lambda delta: edits.extend(delta.places)):
        before = view.stats().touched
        prices.add(Price(-1, 0, at, 50))
        assert view.stats().touched - before < 5
    place = sum(2 * n < at for n in range(size))
    assert [(edit.position, edit.row[0], edit.path) for edit in edits] == [(place, -1, ())]
    assert len(view) == size + 1


@pytest.mark.parametrize("name", FAR)
def test_a_number_of_each_row_changes_with_all_rows_before_it(name: str) -> None:
    """The costs of them in `explain(costs=True)` and docs/windows.md."""
    assert touched(FAR[name], 1_000) > 5 * touched(FAR[name], 100)


@pytest.mark.parametrize(("name", "query"), [*NEAR.items(), *FAR.items()])
def test_costs_tell_which_windows_touch_all_rows_behind(name: str, query: Query) -> None:
    prices = Database().table(Price, name="prices")
    told = str(query(prices.over(by="product", order="day")).explain(costs=True))
    assert ("[group]" in told) == (name in FAR or name in ("max so far", "scan"))
    folds = name in ("scan", "ema")
    assert ("the rows behind it, up to all rows" in told) == ("[group]" in told and not folds)
    assert ("up to the first whose state stays" in told) == folds
