"""Aggregates of whole partitions: rows beside their groups, as windows say them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import Database


@dataclass(frozen=True)
class Line:
    id: int
    a: int | None
    f: float
    n: int | None
    t: str


def draw_line(random: Random, number: int) -> Line:
    return Line(
        number,
        random.choice([None, 0, 1, 2]),
        random.choice([0.5, 1.5, math.nan]),
        random.choice([None, 1, 2, 3]),
        random.choice("xyz"),
    )


def values_of(lines: list[Line]) -> list[int]:
    return [line.n for line in lines if line.n is not None]


def mean(values: list[int]) -> float | None:
    return sum(values) / len(values) if values else None


AGGREGATES: dict[str, Callable[[list[Line]], Any]] = {
    "sum(n)": lambda lines: sum(values_of(lines)) if values_of(lines) else None,
    "count(*)": len,
    "count(n)": lambda lines: len(values_of(lines)),
    "count(distinct n)": lambda lines: len(set(values_of(lines))),
    "avg(n)": lambda lines: mean(values_of(lines)),
    "min(t)": lambda lines: min(line.t for line in lines),
    "max(n)": lambda lines: max(values_of(lines), default=None),
    "count(*) filter (where n > 1)": lambda lines: sum(n > 1 for n in values_of(lines)),
}
PARTITIONS: dict[str, Callable[[Line], Any]] = {
    "": lambda line: (),
    "partition by a": lambda line: line.a,
    "partition by f": lambda line: str(line.f),
    "partition by a, f": lambda line: (line.a, str(line.f)),
    "partition by t order by id rows between unbounded preceding and unbounded following": (
        lambda line: line.t
    ),
}


def rows_of(lines: list[Line], aggregate: str, partition: str) -> Counter[tuple[Any, ...]]:
    """Return each id with the aggregate of all lines of its partition."""
    key, of = PARTITIONS[partition], AGGREGATES[aggregate]
    return Counter((x.id, of([y for y in lines if key(y) == key(x)])) for x in lines)


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_every_row_has_the_aggregate_of_its_partition(aggregate: str, partition: str) -> None:
    random = Random(f"{aggregate} {partition}")
    db = Database()
    lines = db.table(Line, name="lines")
    view = db.sql(f"select id, {aggregate} over ({partition}) as s from lines").materialize()
    held: list[Line] = []
    for number in range(12):
        with db.transaction():
            held.append(draw_line(random, number))
            lines.add(held[-1])
            if random.random() < 0.4:
                lines.remove(held.pop(random.randrange(len(held))))
        view.verify()
        assert Counter(map(tuple, view)) == rows_of(held, aggregate, partition)


TEXTS = (
    "select id, sum(n) over (partition by 6 // a) as s, rank() over (order by t) from lines",
    "select id, rank() over (order by t), sum(n // a) over (partition by a) as s from lines",
    "select id, row_number() over (partition by t), sum(n // a) over (partition by t) from lines",
    "select id, sum(n) over (), avg(n) over (partition by a), lag(n) over (order by id) from lines",
    "select id from lines qualify sum(n) over (partition by a) > 4",
    "select a, sum(sum(n)) over () from lines group by a",
    "select (select max(s) from (select sum(n) over () as s from lines i where i.a = o.a))"
    " from lines o",
    "select n * 1.0 / sum(n) over (partition by a) as s, string_agg(t, ',') over () from lines",
)


@pytest.mark.parametrize("text", TEXTS)
def test_totals_beside_other_functions(text: str) -> None:
    random = Random(text)
    db = Database()
    lines = db.table(Line, name="lines")
    view = db.sql(text).materialize()
    held: list[Line] = []
    for number in range(15):
        held.append(draw_line(random, number))
        lines.add(held[-1])
        if random.random() < 0.4:
            lines.remove(held.pop(random.randrange(len(held))))
        view.verify()


def test_rows_are_stored_once_and_share_their_total() -> None:
    db = Database()
    db.table(Line, name="lines")
    plan = db.sql(
        "select id, sum(n) over (partition by a), count(*) over (partition by a) from lines"
    ).explain()
    assert "reduce" not in plan
    made = plan.split("runs as")[1]
    assert (made.count("join"), made.count("aggregate")) == (1, 1), made


def test_an_unchanged_extreme_touches_no_row_of_its_partition() -> None:
    db = Database()
    lines = db.table(Line, name="lines")
    lines.add_all(Line(n, 1, 1.5, n, "x") for n in range(1000))
    view = db.sql("select id, max(n) over (partition by a) as s from lines").materialize()
    before = view.stats().touched
    lines.add(Line(2000, 1, 1.5, 5, "x"))
    assert view.stats().touched - before < 20
    lines.add(Line(2001, 1, 1.5, 5000, "x"))
    assert view.stats().touched - before > 1000
