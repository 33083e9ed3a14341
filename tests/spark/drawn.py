"""Random queries over two tables of rows of all plain types, and rows that come and go."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random
from typing import Any

from reactive import (
    Avg,
    Collect,
    Count,
    CountDistinct,
    Max,
    Min,
    Sum,
    desc,
)
from reactive.engine.collections.zset import NAN
from tests.spark.fragments import Tables

DAY = date(2000, 1, 1)


@dataclass(frozen=True, slots=True)
class Left:
    id: int
    part: int | None
    amount: float
    tag: str | None
    day: date


@dataclass(frozen=True, slots=True)
class Right:
    id: int
    part: int | None
    amount: float
    tag: str | None
    day: date


OF: Tables = (Left, Right)
Rel = Any
"""A relation of rows (whole, whole or None, float, text or None, day)."""
FLOATS = (0.1, 0.2, 0.0, -0.0, 1.0, 2.0, 2.5, 1e16, -1e16)
ODD = (NAN, 1e300, -1e300, 5e-324, math.inf)


def of_table(table: Any) -> Rel:
    return table.select(lambda r: (r.id, r.part, r.amount, r.tag, r.day))


def where_of_table(table: Any) -> Rel:
    return table.where(lambda r: r.id != 3).select(lambda r: (r.id, r.part, r.amount, r.tag, r.day))


def stretched(row: Any) -> list[tuple[int, int | None, float, str | None, date]]:
    return [(row[0] % 100 + n, row[1], row[2], row[3], row[4]) for n in range(row[0] % 3)]


def word(tag: str | None) -> str | None:
    """A callable that no column can express, because of its loop."""
    for name in ("x", "y"):
        if tag == name:
            return name * 2
    return None


STARTS: tuple[Callable[[Any], Rel], ...] = (of_table, of_table, where_of_table)
ONE: dict[str, Callable[[Rel], Rel]] = {
    "where": lambda a: a.where(lambda r: r[3] is not None and r[0] > 0),
    "where none": lambda a: a.where(lambda r: r[1] is None or r[1] < 2),
    "select": lambda a: a.select(lambda r: (r[0] % 4, r[1], r[2], r[3], r[4])),
    "select floats": lambda a: a.select(lambda r: (r[0], r[1], r[2] * 0.5, "t", r[4])),
    "opaque": lambda a: a.select(lambda r: (r[0], r[1], r[2], word(r[3]), r[4])),
    "select_many": lambda a: a.select_many(stretched),
    "distinct": lambda a: a.distinct(),
    "sums": lambda a: (
        a.group_by(lambda r: (r[1], r[3]))
        .aggregate(
            *(Count(), Sum(lambda r: r[2]), Sum(lambda r: r[0]), Min(lambda r: r[4])),
            *(Avg(lambda r: r[0]), CountDistinct(lambda r: r[2])),
        )
        .select(lambda k, n, s, i, d, a, c: (n + c, k[0], s, k[1], d))
    ),
    "sums by floats": lambda a: (
        a.group_by(lambda r: r[2])
        .aggregate(Sum(lambda r: r[1], skip_none=True), Max(lambda r: r[4]), Count())
        .select(lambda k, s, d, n: (s, n, k, "f", d))
    ),
    "sums by days": lambda a: (
        a.group_by(lambda r: r[4])
        .aggregate(
            *(Max(lambda r: r[2]), Max(lambda r: r[3], skip_none=True)),
            *(Avg(lambda r: r[1], skip_none=True), Count()),
        )
        .select(lambda d, m, t, a, n: (n, n, m, t, d))
    ),
    "sums by a computed key": lambda a: (
        a.group_by(lambda r: (r[0] * 3 + 1) % 5)
        .aggregate(
            *(Count(), Min(lambda r: r[2]), Min(lambda r: r[4])),
            *(Min(lambda r: r[1], skip_none=True), Max(lambda r: (r[0], r[4]))),
        )
        .select(lambda k, n, m, d, p, t: (k, p, m, None, t[1]))
    ),
    "sums by text": lambda a: (
        a.group_by(lambda r: word(r[3]))
        .aggregate(Count(), Avg(lambda r: r[2]), Min(lambda r: r[4]), Collect(lambda r: r[1]))
        .select(lambda k, n, m, d, c: (n, None, m, k, d))
    ),
    "top": lambda a: (
        a.distinct()
        .group_by(lambda r: r[3])
        .top(2, by=(lambda r: (r[2], r[0]), desc(lambda r: r[1], nulls="last"), lambda r: r[4]))
    ),
    "first": lambda a: a.group_by(lambda r: (r[1], r[4])).first(by=lambda r: (r[2], r[0], r[4])),
    "last": lambda a: a.group_by(lambda r: r[2]).last(by=lambda r: r[3], nulls="first"),
    "limit": lambda a: a.order_by(lambda r: (r[2], r[0]), descending=True).limit(4, offset=1),
}
TWO: dict[str, Callable[[Rel, Rel], Rel]] = {
    "join by numbers": lambda a, b: a.join(b, on=lambda x, y: x[0] == y[0]).select(
        lambda x, y: (x[0], y[1], x[2], y[3], x[4])
    ),
    "join by number and float": lambda a, b: a.join(b, on=lambda x, y: x[1] == y[2]).select(
        lambda x, y: (x[0] + y[0], y[1], y[2], x[3], x[4])
    ),
    "join by floats and text": lambda a, b: a.join(
        b, on=lambda x, y: x[2] == y[2] and x[3] == y[3]
    ).select(lambda x, y: (y[0], x[1], x[2], y[3], y[4])),
    "join by days": lambda a, b: a.join(b, on=lambda x, y: x[4] == y[4] and x[2] < y[2]).select(
        lambda x, y: (x[0], y[1], y[2], x[3], x[4])
    ),
    "join by computed keys": lambda a, b: a.join(
        b, on=lambda x, y: x[0] % 3 == (y[0] + 1) % 3 and x[4] == y[4]
    ).select(lambda x, y: (x[0], y[1], y[2], x[3], x[4])),
    "join of text": lambda a, b: a.join(b, on=lambda x, y: x[3] == y[3] and x[0] > y[0]).select(
        lambda x, y: (x[0], y[1], x[2], x[3], y[4])
    ),
    "semi": lambda a, b: a.semi_join(b, on=lambda x, y: x[1] == y[1]),
    "semi, more": lambda a, b: a.semi_join(b, on=lambda x, y: x[3] == y[3] and x[2] < y[2]),
    "anti": lambda a, b: a.anti_join(b, on=lambda x, y: x[2] == y[2]),
    "anti, more": lambda a, b: a.anti_join(
        b, on=lambda x, y: x[4] == y[4] and x[0] < y[0] and x[0] > 2
    ),
    "left": lambda a, b: a.left_join(b, on=lambda x, y: x[1] == y[1] and x[4] == y[4]).select(
        lambda x, y: (x[0], None if y is None else y[1], x[2], "n" if y is None else y[3], x[4])
    ),
    "full": lambda a, b: a.full_join(b, on=lambda x, y: x[2] == y[2] and x[0] < y[0]).select(
        lambda x, y: (
            -1 if x is None else x[0],
            None if y is None else y[1],
            (0.5 if y is None else y[2]) if x is None else x[2],
            None if x is None else x[3],
            (DAY if y is None else y[4]) if x is None else x[4],
        )
    ),
    "union": lambda a, b: a.union(b),
    "union_all": lambda a, b: a.union_all(b),
    "difference": lambda a, b: a.difference(b),
    "difference_all": lambda a, b: a.difference_all(b),
    "intersection": lambda a, b: a.intersection(b),
    "intersection_all": lambda a, b: a.intersection_all(b),
}
TOPS: dict[str, Callable[[Rel], Rel]] = {
    "itself": lambda a: a,
    "by group": lambda a: a.group_by(lambda r: r[1]).aggregate(
        Count(), Sum(lambda r: r[2]), Avg(lambda r: r[2]), Collect(lambda r: r[3])
    ),
    "by float": lambda a: a.group_by(lambda r: r[2]).aggregate(Count(), Max(lambda r: r[0])),
    "by day": lambda a: a.group_by(lambda r: r[4]).aggregate(Count()),
    "by pair": lambda a: a.group_by(lambda r: (r[3], r[0])).aggregate(Min(lambda r: r[2])),
    "of all": lambda a: a.aggregate(Count(), Sum(lambda r: r[2]), Max(lambda r: r[0])),
    "one": lambda a: a.aggregate(Max(lambda r: (r[0], r[4]))),
    "order": lambda a: a.order_by(lambda r: r[2]).limit(3, offset=1),
}


def drawn(random: Random, depth: int = 3) -> tuple[str, Callable[[Any, Any], Rel]]:
    """A query, and what it is made of."""
    name, below = _drawn(random, depth)
    top = random.choice([*TOPS, "itself", "itself"])
    return f"{top} of {name}", lambda l, r: TOPS[top](below(l, r))  # noqa: E741


def _drawn(random: Random, depth: int) -> tuple[str, Callable[[Any, Any], Rel]]:
    if not depth:
        side, start = random.randrange(2), random.choice(STARTS)
        return f"{start.__name__} {side}", lambda *of: start(of[side])
    if random.random() < 0.45:
        one = random.choice(list(ONE))
        name, below = _drawn(random, depth - 1)
        return f"{one}({name})", lambda *of: ONE[one](below(*of))
    two = random.choice(list(TWO))
    left, a = _drawn(random, depth - 1)
    right, b = _drawn(random, random.randrange(depth))
    return f"{two}({left}, {right})", lambda *of: TWO[two](a(*of), b(*of))


class Rows:
    """Two tables with changing rows, some of which change several times in one flush."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.bags: tuple[Counter[Any], Counter[Any]] = (Counter(), Counter())

    def changes(self, count: int, *, odd: bool) -> list[tuple[int, Any, int]]:
        return [self._change(FLOATS + ODD * odd) for _ in range(count)]

    def _change(self, floats: tuple[float, ...]) -> tuple[int, Any, int]:
        draw, place = self._random, self._random.randrange(2)
        bag = self.bags[place]
        if bag and draw.random() < 0.45:
            row = draw.choice(list(bag))
            weight = draw.choice([-1, -bag[row], 2])
        else:
            row, weight = self._row(OF[place], floats), draw.choice([1, 1, 1, 3])
        bag[row] += weight
        if not bag[row]:
            del bag[row]
        return place, row, weight

    def _row(self, kind: type[Any], floats: tuple[float, ...]) -> Any:
        draw = self._random
        large = 2**60 * (len(floats) > len(FLOATS) and draw.random() < 0.1)
        return kind(
            draw.randrange(7) + large,
            draw.choice([None, 0, 1, 2, 3]),
            draw.choice(floats),
            draw.choice(["x", "y", "", None]),
            DAY + timedelta(draw.randrange(3)),
        )
