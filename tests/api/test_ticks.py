"""Conditions of a row and the clock are as plain Python says after each tick, in any spelling."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import FunctionType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, now
from tests.budget import examples, sampled
from tests.thresholds import thresholds


@dataclass(frozen=True)
class Lease:
    id: int
    at: datetime
    life: timedelta
    n: int
    share: float
    day: date
    price: Decimal = Decimal("1.5")
    until: datetime | None = None
    grace: timedelta | None = None
    rate: float = 1.0


START = datetime(2024, 2, 28, 23, 59, 50, tzinfo=UTC)
SECOND = timedelta(seconds=1)
Test = Callable[[Lease], object]
CONDITIONS: dict[str, Test] = {
    "life": lambda x: now() - x.at < x.life,
    "life, closed": lambda x: x.life >= now() - x.at,
    "life, not": lambda x: not now() - x.at < x.life,
    "half a life": lambda x: now() - x.at <= x.life / 2,
    "end": lambda x: x.at + x.life > now(),
    "seconds": lambda x: now() - x.at < timedelta(seconds=x.n),
    "parts of seconds": lambda x: now() < x.at + timedelta(seconds=x.share),
    "times": lambda x: now() - x.n * SECOND <= x.at,
    "share": lambda x: x.at + x.share * SECOND > now(),
    "total seconds": lambda x: (now() - x.at).total_seconds() * 1.1 < x.share,
    "timestamps": lambda x: now().timestamp() - x.at.timestamp() < x.share,
    "quotient": lambda x: (now() - x.at) / SECOND >= x.n,
    "whole quotient": lambda x: (now() - x.at) // SECOND < x.n,
    "part of life": lambda x: (now() - x.at) / x.life < 0.5,
    "any rate": lambda x: x.share * (now() - x.at).total_seconds() < x.n,
    "rate of a span": lambda x: (now() - x.at) * x.n > x.life,
    "days": lambda x: now().date() - x.day < timedelta(days=x.n),
    "days as numbers": lambda x: (now().date() - x.day).days >= x.n,
    "whole days": lambda x: (now() - x.at).days < x.n,
    "years": lambda x: now().year - x.n > 2020,
    "rounded": lambda x: round((now() - x.at).total_seconds()) <= x.n,
    "decimal": lambda x: Decimal((now() - x.at) // SECOND) * x.price < x.n,
    "chain": lambda x: x.at <= now() < x.at + timedelta(seconds=x.n),
    "chain of spans": lambda x: timedelta(seconds=1) <= now() - x.at < x.life * x.share,
    "near": lambda x: abs(now() - x.at) < x.life,
    "near by seconds": lambda x: abs(now() - x.at) <= timedelta(seconds=x.n),
    "far": lambda x: not abs(now() - x.at) <= timedelta(seconds=x.n),
    "outside": lambda x: now() < x.at or now() - x.at > x.life,
    "not inside": lambda x: not (x.at <= now() < x.at + timedelta(seconds=x.n)),
    "not inside a life": lambda x: not (x.at <= now() < x.at + x.life),
    "or by number": lambda x: x.n == 3 or now() - x.at < timedelta(seconds=x.share),
    "conditional": lambda x: now() - x.at < (x.life if x.n > 2 else 4 * SECOND),
    "least": lambda x: now() < min(x.at + x.life, x.at + x.n * SECOND),
    "until": lambda x: x.until is not None and x.at <= now() < x.until + x.n * SECOND,
    "grace": lambda x: now() - x.at < (x.grace or x.life),
    "guarded": lambda x: x.grace is not None and now() - x.at < x.grace * x.n,
    "none or grace": lambda x: x.grace is None or now() - x.at < x.grace / 3,
    "two of one end": lambda x: now() > x.at and now() - x.at > timedelta(seconds=x.n),
    "any rate of a rate": lambda x: x.share * (x.rate * (now() - x.at).total_seconds()) <= x.n,
    "any part of a rate": lambda x: x.share * ((now() - x.at).total_seconds() / x.rate) <= x.n,
    "a great rate": lambda x: x.share * (1e308 * (now() - x.at).total_seconds()) <= x.n,
    "negative": lambda x: -(now() - x.at) > -x.life,
    "at": lambda x: now() == x.at + timedelta(seconds=x.n),
}
SPANS = st.one_of(
    st.integers(-3, 12).map(lambda n: n * SECOND),
    st.sampled_from([timedelta(days=2), timedelta.max, timedelta.min, SECOND / 3]),
)
MOMENTS = st.one_of(
    st.integers(-6, 12).map(lambda n: START + n * SECOND),
    st.sampled_from([START + SECOND / 7, datetime(9999, 12, 31, tzinfo=UTC)]),
)
LEASES = st.builds(
    Lease,
    id=st.integers(0, 3),
    at=MOMENTS,
    life=SPANS,
    n=st.integers(-2, 9),
    share=st.sampled_from([-1.5, 0.0, 0.1, 1 / 3, 2.5, 7.0, 1e300, math.nan, math.inf]),
    day=st.integers(-2, 2).map(lambda n: START.date() + timedelta(days=n)),
    price=st.sampled_from([Decimal("0.1"), Decimal(-2), Decimal("1E+3")]),
    until=st.none() | MOMENTS,
    grace=st.none() | SPANS,
    rate=st.sampled_from([1.0, -0.5, 1e308, 1e-310, math.inf]),
)
STEPS = st.lists(
    st.one_of(
        LEASES,
        st.tuples(st.just("drop"), st.integers(0, 9)),
        st.tuples(st.just("tick"), st.sampled_from([0.1, 1, 1, 1, 2, 3, 5, 90_000])),
        st.tuples(st.just("fail"), st.integers(0, 5)),
        st.tuples(st.just("both"), LEASES),
    ),
    min_size=3,
    max_size=14,
)


def rows_of(test: Test, rows: Any, moment: datetime) -> list[str] | None:
    """Return the rows that pass a test; None if it raises."""
    names = {**test.__globals__, "now": lambda: moment}
    plain = FunctionType(test.__code__, names)
    try:
        return sorted(repr(row) for row in rows if plain(row))
    except Exception:
        return None


def changes(run: Callable[[], object]) -> bool:
    try:
        run()
    except (ArithmeticError, TypeError, ValueError):
        return False
    return True


@sampled
@pytest.mark.long
@pytest.mark.parametrize("is_naive", [False, True])
@pytest.mark.parametrize("name", CONDITIONS)
@examples(60)
@given(STEPS)
def test_a_condition_is_as_in_plain_python(name: str, is_naive: bool, steps: list[Any]) -> None:
    test = CONDITIONS[name]

    def moved(row: Lease) -> Lease:
        if not is_naive:
            return row
        given = {**row.__dict__, "at": row.at.replace(tzinfo=None)}
        given["until"] = row.until and row.until.replace(tzinfo=None)
        return Lease(**given)

    with thresholds({"reactive.engine.collections.key_orders.MANY": 1}):
        db = Database()
        leases = db.table(Lease, name="leases")
        db.clock.advance(START.replace(tzinfo=None) if is_naive else START)
        view = leases.where(test).materialize()
        for step in steps:
            kept, moment = [*leases], db.clock.now
            match step:
                case Lease() as row:
                    made, at = [*kept, moved(row)], moment
                    change = lambda: leases.add(made[-1])  # noqa: E731
                case "drop", int(place):
                    made, at = [*kept[:place], *kept[place + 1 :]], moment
                    change = lambda: leases.remove_all(kept[place : place + 1])  # noqa: E731
                case "tick", seconds:
                    made, at = kept, moment + seconds * SECOND
                    change = lambda: db.clock.advance(at)  # noqa: E731
                case "both", row:
                    made, at = [*kept, moved(row)], moment + SECOND

                    def change() -> None:
                        with db.transaction():
                            leases.add(made[-1])
                            db.clock.advance(at)

                case _, seconds:
                    made, at = kept, moment
                    with pytest.raises(KeyError), db.transaction():
                        db.clock.advance(moment + seconds * SECOND)
                        raise KeyError
                    change = lambda: None  # noqa: E731
            expected = rows_of(test, made, at)
            assert changes(change) is (expected is not None), (step, expected)
            if expected is None:
                made, at = kept, moment
                expected = rows_of(test, made, at)
            assert sorted(map(repr, view)) == expected, (step, made)
            due = db.clock.next
            assert due is None or due >= at
            if due is None:
                due = at + timedelta(days=5)
            if due > at:
                before = max(at, due - timedelta(microseconds=1))
                assert rows_of(test, made, before) in (expected, None)
