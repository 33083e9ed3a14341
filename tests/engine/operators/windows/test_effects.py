"""Claims of `explain(costs=True)` about a window's columns, beside what changes do."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Database
from reactive.engine.operators.windows.frames import CURRENT, UNBOUNDED, WHOLE, Edge, Frame
from reactive.engine.operators.windows.function import Asked
from reactive.engine.operators.windows.window import Window

TO_HERE = Frame("rows", UNBOUNDED, CURRENT)
FROM_HERE = Frame("rows", CURRENT, UNBOUNDED)


def frame(start: int, end: int) -> Frame:
    return Frame("rows", edge(start), edge(end))


def edge(offset: int) -> Edge:
    return ("following", offset) if offset >= 0 else ("preceding", -offset)


def most_changed(asked: Asked, size: int) -> tuple[int, int, int]:
    """Return the most rows that an inserted row changes: before it, behind it, and all."""
    random, found = Random(1), [0, 0, 0]
    kept = Window(((False, False),), (asked,), (None, None)).kept()()
    kept.step([(row_of(2 * n, random.randrange(1, 9)), 1) for n in range(size)])
    kept.commit()
    for place in range(-1, 2 * size, 2):
        row = row_of(place, random.choice([-50, 3, 90]))
        changed = {out[0] for out, weight in kept.step([(row, 1)]) if weight < 0}
        kept.undo()
        before = sum(number < place for number in changed)
        for at, count in enumerate((before, len(changed) - before, len(changed))):
            found[at] = max(found[at], count)
    return found[0], found[1], found[2]


def row_of(number: int, value: int) -> tuple[Any, ...]:
    return ((number,), (), (number,), (value,))


FEW = {
    "lag: up to 2 rows": Asked("shifted", 0, WHOLE, (-1, None)),
    "lead: up to 4 rows": Asked("shifted", 0, WHOLE, (3, None)),
    "sum: up to 3 rows": Asked("sum", 0, frame(-2, 0), ("sum",)),
    "max: up to 4 rows": Asked("max", 0, frame(-1, 2), ("max",)),
    "first: up to 3 rows": Asked("nth", 0, frame(1, 2), (1,)),
}


@pytest.mark.parametrize("said", FEW)
def test_as_many_rows_change_as_is_said(said: str) -> None:
    (told,) = Window(((False, False),), (FEW[said],)).describe_costs()
    assert told == said
    (most,) = map(int, re.findall(r"\d+", said))
    assert 0 < most_changed(FEW[said], 60)[2] <= most  # the inserted row itself is one of them


BEHIND = {
    "row_number: all rows behind it": Asked("row_number", None, WHOLE),
    "rank: all rows behind its peers": Asked("rank", None, WHOLE),
    "sum: all rows behind it": Asked("sum", 0, TO_HERE, ("sum",)),
    "min: the rows behind it, up to the first whose answer stays": Asked(
        "min", 0, TO_HERE, ("min",)
    ),
}


@pytest.mark.parametrize("said", BEHIND)
def test_rows_behind_a_row_change(said: str) -> None:
    assert Window(((False, False),), (BEHIND[said],)).describe_costs()[0] == said
    before, behind, _ = most_changed(BEHIND[said], 60)
    assert before == 0
    assert behind >= 58


def test_rows_before_a_row_change() -> None:
    asked = Asked("sum", 0, FROM_HERE, ("sum",))
    assert Window(((False, False),), (asked,)).describe_costs() == ["sum: all rows before it"]
    before, behind, _ = most_changed(asked, 60)
    assert (before, behind) == (60, 0)


def test_all_rows_change() -> None:
    for asked in (
        Asked("percent_rank", None, WHOLE),
        Asked("cume_dist", None, WHOLE),
        Asked("sum", 0, WHOLE, ("sum",)),
    ):
        (told,) = Window(((False, False),), (asked,)).describe_costs()
        assert ": all rows of the partition" in told
        assert most_changed(asked, 60)[2] >= 59


class Price(NamedTuple):
    id: int
    product: int
    amount: int


Query = Callable[[Any], Any]
LIMITED: dict[str, Query] = {
    "where": lambda r: r.where(lambda p, w: w.rank() <= 2).select(lambda p, w: p.id),
    "less": lambda r: r.where(lambda p, w: w.row_number() < 3).select(lambda p, w: p.id),
    "equal": lambda r: r.where(lambda p, w: w.row_number() == 1).select(lambda p, w: p.id),
    "extend": lambda r: (
        r.extend(n=lambda p, w: w.dense_rank())
        .where(lambda p, w, n: n <= 2)
        .select(lambda p, w, n: p.id)
    ),
}
SQL = [
    "select id from prices qualify row_number() over (partition by product order by amount) <= 2",
    "select id from (select id, rank() over (partition by product order by amount) as n"
    " from prices) as t where n <= 2",
    "with t as (select id, row_number() over (order by amount) as n from prices)"
    " select id from t where n < 3",
]


def test_the_first_rows_of_each_key_are_known_in_any_spelling() -> None:
    db = Database()
    prices = db.table(Price, name="prices")
    for query in LIMITED.values():
        told = str(query(prices.over(by="product", order="amount")).explain(costs=True))
        assert "all columns: rows up to" in told, told
        assert "not efficiently" not in told
    for text in SQL:
        told = str(db.sql(text).explain(costs=True))
        assert "all columns: rows up to" in told, told


def test_for_places_the_remedy_is_said() -> None:
    ranked = Database().table(Price, name="prices").over(order="amount")
    told = str(ranked.select(lambda p, w: (w.row_number(), w.sum(p.id))).explain(costs=True))
    assert "row_number: all rows behind it" in told
    assert "view.index(row)" in told


def test_places_that_are_read_say_who_pays() -> None:
    ranked = Database().table(Price, name="prices").over(order="amount")
    query = ranked.select(lambda p, w: (p.id, w.rank()))
    told = str(query.explain(costs=True))
    assert "places are computed when the view is read" in told
    assert "rank: all rows behind its peers" in told
    assert "not efficiently" not in told
    above = str(query.where(lambda r: r[1] % 2 == 0).explain(costs=True))
    assert "not efficiently" in above
