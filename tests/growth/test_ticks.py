"""A tick touches the rows that enter or leave, in any spelling, in a table four times larger, too.

The clock stands in the middle of the rows, so that half of them are over and half are to come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from reactive import Count, Database, live, now
from tests.budget import share_of

START = datetime(2024, 5, 1, 12)
SECOND = timedelta(seconds=1)
TICKS = 6
MOST = 100


@dataclass(frozen=True)
class Lease:
    id: int
    at: datetime
    life: timedelta
    n: int
    share: float
    day: date
    key: int
    until: datetime


def lease(number: int) -> Lease:
    at = START + number * SECOND
    day = START.date() + timedelta(days=number)
    life, share = (number % 7 + 2) * SECOND, number % 5 + 0.5
    return Lease(number, at, life, number % 5 + 1, share, day, number % 3, at + 5 * SECOND)


Make = Callable[[Any, Any, Any], Any]
METHODS: dict[str, Make] = {
    "life": lambda db, x, y: x.where(lambda r: now() - r.at < r.life),
    "life, closed": lambda db, x, y: x.where(lambda r: now() - r.at <= r.life),
    "life, from the other side": lambda db, x, y: x.where(lambda r: r.life > now() - r.at),
    "life, not": lambda db, x, y: x.where(lambda r: not now() - r.at < r.life),
    "life, not or": lambda db, x, y: x.where(lambda r: not (r.key == 7 or now() - r.at < r.life)),
    "end": lambda db, x, y: x.where(lambda r: now() < r.at + r.life),
    "two columns": lambda db, x, y: x.where(lambda r: r.at <= now() < r.until),
    "chain": lambda db, x, y: x.where(lambda r: r.at <= now() < r.at + r.life),
    "chain, not": lambda db, x, y: x.where(lambda r: not (r.at <= now() < r.at + r.life)),
    "outside": lambda db, x, y: x.where(lambda r: now() < r.at or now() - r.at > r.life),
    "near": lambda db, x, y: x.where(lambda r: abs(now() - r.at) < r.life),
    "far": lambda db, x, y: x.where(lambda r: not abs(now() - r.at) < r.life),
    "negative": lambda db, x, y: x.where(lambda r: -(now() - r.at) > -r.life),
    "half": lambda db, x, y: x.where(lambda r: now() - r.at < r.life / 2),
    "seconds": lambda db, x, y: x.where(lambda r: now() - r.at < timedelta(seconds=r.n)),
    "chain of seconds": lambda db, x, y: x.where(
        lambda r: timedelta(0) <= now() - r.at < timedelta(seconds=r.n)
    ),
    "outside of seconds": lambda db, x, y: x.where(
        lambda r: now() < r.at or now() - r.at > timedelta(seconds=r.n)
    ),
    "times": lambda db, x, y: x.where(lambda r: now() < r.at + r.n * SECOND),
    "times a float": lambda db, x, y: x.where(lambda r: now() < r.at + r.share * SECOND),
    "timestamps": lambda db, x, y: x.where(
        lambda r: now().timestamp() - r.at.timestamp() < r.share
    ),
    "total seconds": lambda db, x, y: x.where(lambda r: (now() - r.at).total_seconds() < r.share),
    "quotient": lambda db, x, y: x.where(lambda r: (now() - r.at) / SECOND < r.n),
    "quotient of a life": lambda db, x, y: x.where(lambda r: (now() - r.at) / r.life < 1),
    "whole quotient": lambda db, x, y: x.where(lambda r: (now() - r.at) // SECOND < r.n),
    "rate": lambda db, x, y: x.where(lambda r: r.share * (now() - r.at).total_seconds() < r.n),
    "rate of any sign": lambda db, x, y: x.where(lambda r: (r.key - 1) * (now() - r.at) < r.life),
    "rounded": lambda db, x, y: x.where(lambda r: round((now() - r.at).total_seconds()) < r.n),
    "whole days": lambda db, x, y: x.where(lambda r: (now() - r.at).days < r.n),
    "days": lambda db, x, y: x.where(lambda r: now().date() - r.day < timedelta(days=r.n)),
    "years": lambda db, x, y: x.where(lambda r: now().year - r.at.year < r.n),
    "least": lambda db, x, y: x.where(lambda r: now() < min(r.until, r.at + r.life)),
    "conditional": lambda db, x, y: x.where(
        lambda r: now() - r.at < (5 * SECOND if r.key else 9 * SECOND)
    ),
    "or": lambda db, x, y: x.where(lambda r: r.key == 7 or now() - r.at < r.n * SECOND),
    "expiring": lambda db, x, y: x.expire_after(5 * SECOND, at="at"),
    "comprehension": lambda db, x, y: live(r for r in x if now() - r.at < r.life),
    "count": lambda db, x, y: (
        x.where(lambda r: now() - r.at < r.life).group_by("key").aggregate(Count())
    ),
    "select": lambda db, x, y: x.select(
        lambda r: (r.id, "new" if now() - r.at < timedelta(seconds=r.n) else "old")
    ),
    "any": lambda db, x, y: y.where(
        lambda s: any(now() - r.at < timedelta(seconds=r.n) for r in x)
    ),
    "any by key": lambda db, x, y: y.where(
        lambda s: any(r.key == s.key and now() - r.at < r.life for r in x)
    ),
    "any by key and seconds": lambda db, x, y: y.where(
        lambda s: any(r.key == s.key and now() - r.at < timedelta(seconds=r.n) for r in x)
    ),
    "not any": lambda db, x, y: y.where(
        lambda s: not any(r.key == s.key and now() - r.at < timedelta(seconds=r.n) for r in x)
    ),
    "all": lambda db, x, y: y.where(
        lambda s: all(now() - r.at < r.life for r in x if r.key == s.key)
    ),
    "sum": lambda db, x, y: y.select(
        lambda s: (s.id, sum(r.n for r in x if r.key == s.key and now() - r.at < r.life))
    ),
    "join": lambda db, x, y: x.join(
        y, on=lambda r, s: r.key == s.key and now() - r.at < timedelta(seconds=r.n)
    ),
    "join, a life of the other": lambda db, x, y: x.join(
        y, on=lambda r, s: r.id == s.id and now() - r.at < s.life
    ),
    "left join": lambda db, x, y: y.left_join(
        x, on=lambda s, r: r.key == s.key and now() - r.at < timedelta(seconds=r.n)
    ),
    "full join": lambda db, x, y: y.full_join(
        x, on=lambda s, r: r.key == s.key and now() - r.at < timedelta(seconds=r.n)
    ),
    "semi join": lambda db, x, y: x.semi_join(
        y, on=lambda r, s: r.key == s.key and now() - r.at < timedelta(seconds=r.n)
    ),
    "anti join": lambda db, x, y: x.anti_join(
        y, on=lambda r, s: r.key == s.key and now() - r.at < r.life
    ),
}
SQL = {
    "postgres": (
        "select id from x where now() - at < life",
        "select id from x where now() between at and until",
        "select id from x where not (now() between at and at + n * interval '1 second')",
        "select id from x where now() - at < n * interval '1 second'",
        "select id from x where extract(epoch from now() - at) < n",
        "select id from x where extract(epoch from now()) - extract(epoch from at) < n",
        "select id from x where date_part('epoch', now() - at) <= 5",
        "select id from x where extract(day from now() - at) < n",
        "select id from x where current_date - day < n",
        "select id from x where age(now(), at) < interval '5 seconds'",
        "select id, case when now() - at < life then 1 else 0 end as c from x",
        "select y.id, x.id as o from y left join x on x.key = y.key and now() - x.at < x.life",
        "select id from y where not exists"
        " (select 1 from x where x.key = y.key and now() - x.at < x.life)",
    ),
    "duckdb": (
        "select id from x where now() - at < to_seconds(n)",
        "select id from x where date_diff('second', at, now()) < n",
        "select id from x where date_diff('day', at, now()) < 2",
        "select id from x where epoch(now()) - epoch(at) < n",
    ),
}


def _asked(text: str, db: Database, x: Any, y: Any) -> Any:
    return db.sql(text)


QUERIES: dict[str, tuple[str, Make]] = {name: ("postgres", make) for name, make in METHODS.items()}
QUERIES |= {
    text: (dialect, partial(_asked, text)) for dialect, texts in SQL.items() for text in texts
}


def touched(name: str, size: int) -> int:
    """Return the rows that some ticks touch; the clock knows when the next row changes."""
    dialect: Any
    dialect, make = QUERIES[name]
    db = Database(dialect=dialect)
    x, y = db.table(Lease, name="x"), db.table(Lease, name="y")
    x.add_all(map(lease, range(size)))
    y.add_all(map(lease, range(3)))
    begin = START + size // 2 * SECOND
    db.clock.advance(begin)
    view = make(db, x, y).materialize()
    for second in (1, 2):  # the first one may make an order
        db.clock.advance(begin + second * SECOND)
    before = view.stats().touched
    for second in range(TICKS):
        db.clock.advance(begin + (3 + second) * SECOND)
        assert db.clock.next != db.clock.now
    view.verify()
    return int(view.stats().touched - before)


@pytest.mark.long
@pytest.mark.parametrize("name", share_of([*QUERIES], "ticks", 3))
def test_a_tick_touches_what_crosses(name: str) -> None:
    assert max(touched(name, 300), touched(name, 1_200)) <= MOST


@pytest.mark.parametrize("name", ["life", "seconds", "chain, not", "any by key and seconds"])
def test_a_tick_touches_what_crosses_in_a_small_table(name: str) -> None:
    assert touched(name, 60) == touched(name, 240) <= MOST
