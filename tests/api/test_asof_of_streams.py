"""As-of joins of two streams beside brute force over all events, and the state that they keep."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, NamedTuple

import pytest

from reactive import Count, Database, UnboundedStateWarning, tumbling
from tests.budget import SEED


class Trade(NamedTuple):
    """A left event."""

    symbol: str
    at: Any
    n: int


class Quote(NamedTuple):
    """A right event."""

    symbol: str
    at: Any
    cents: int


def _partner(trade: Trade, quotes: list[Quote], options: dict[str, Any]) -> Quote | None:
    """Return the nearest quote of a trade, by comparing all."""
    best: tuple[Any, ...] | None = None
    for quote in quotes:
        if trade.at is None or quote.at is None or quote.symbol != trade.symbol:
            continue
        ahead = quote.at - trade.at
        direction = options.get("direction", "backward")
        if (direction == "backward" and ahead > 0) or (direction == "forward" and ahead < 0):
            continue
        if not options.get("allow_equal", True) and ahead == 0:
            continue
        if abs(ahead) > options.get("tolerance", abs(ahead)):
            continue
        found = (abs(ahead), ahead > 0, quote)
        best = found if best is None or found < best else best
    return None if best is None else best[-1]


class Joined:
    """Two streams, all their events in time, and as-of joins of them."""

    def __init__(self, db: Database, options: dict[str, Any]) -> None:
        self.db, self._options = db, options
        self.trades = db.stream(Trade, at="at", lateness=3, name="trades")
        self.quotes = db.stream(Quote, at="at", lateness=5, name="quotes")
        self.seen: tuple[list[Any], list[Any]] = ([], [])
        named: dict[str, Any] = {"on": "symbol", "at": "at", "of": "at", **options}
        self.all = self.trades.left_asof_join(self.quotes, **named)
        self.priced = self.trades.asof_join(self.quotes, **named)
        windows = self.all.window(tumbling(10), at=lambda t, q: t.at)
        self.views: dict[str, Any] = {
            "all": self.all.select(lambda t, q: (t, q)).materialize(),
            "priced": self.priced.select(lambda t, q: (t, q)).materialize(),
            "counts": windows.group_by(lambda t, q, w: w.start).aggregate(Count()).materialize(),
        }

    def add(self, trades: list[Trade], quotes: list[Quote], *, fails: bool) -> None:
        """Add events in one commit, or in one that is rolled back."""
        streams: tuple[Any, Any] = (self.trades, self.quotes)
        marks = [stream.watermark.first() for stream in streams]
        try:
            with self.db.transaction():
                for stream, batch in zip(streams, (trades, quotes), strict=True):
                    stream.add_all(batch)
                if fails:
                    raise KeyError
        except KeyError:
            return
        each: Any = zip(self.seen, (trades, quotes), marks, strict=True)
        for seen, batch, mark in each:
            seen += [e for e in batch if mark is None or e.at is None or e.at >= mark]

    def check(self) -> None:
        trades, quotes = self.seen
        pairs = [(t, _partner(t, quotes, self._options)) for t in trades]
        assert Counter(self.views["all"]) == Counter(pairs)
        assert Counter(self.views["priced"]) == Counter(p for p in pairs if p[1] is not None)
        counts = Counter(t.at // 10 * 10 for t in trades if t.at is not None)
        assert dict(self.views["counts"]) == counts

    def state(self) -> int:
        operators = {id(e): e for view in self.views.values() for e in view.stats().operators}
        return sum(e.rows for e in operators.values() if not e.name.startswith("rows of"))


OPTIONS: list[dict[str, Any]] = [
    {},
    {"allow_equal": False},
    {"tolerance": 4},
    {"direction": "forward", "tolerance": 4},
    {"direction": "forward", "tolerance": 4, "allow_equal": False},
    {"direction": "nearest", "tolerance": 6},
]


def _batches(draw: random.Random, now: int) -> tuple[list[Trade], list[Quote]]:
    def at() -> Any:
        return None if draw.random() < 0.02 else now + draw.randrange(-9, 4)

    trades = [Trade(draw.choice("abc"), at(), 1) for _ in range(draw.choice([0, 1, 1, 3]))]
    quotes = [Quote(draw.choice("abc"), at(), n) for n in range(draw.choice([0, 1, 2]))]
    return trades, quotes


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_pairs_are_those_of_all_events(options: dict[str, Any]) -> None:
    draw, joined = random.Random(SEED), Joined(Database(), options)
    now = 0
    for _ in range(120):
        now += draw.choice([0, 1, 1, 2, 30 * (draw.random() < 0.05)])
        joined.add(*_batches(draw, now), fails=draw.random() < 0.1)
        joined.check()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_state_is_bounded_and_said_to_be(options: dict[str, Any]) -> None:
    draw, joined = random.Random(SEED), Joined(Database(), options)
    assert joined.all.explain().bounded and joined.priced.explain().bounded
    sizes = []
    for now in range(1_000):
        joined.add(*_batches(draw, now), fails=False)
        if now % 200 == 199:
            sizes.append(joined.state())
    assert max(sizes) < 150


def test_a_side_that_waits_keeps_what_it_may_find() -> None:
    """The watermark of both sides decides: trades far ahead drop no quotes."""
    joined = Joined(Database(), {})
    joined.add([Trade("a", 1000, 1)], [Quote("a", 1, 1)], fails=False)
    joined.add([], [Quote("a", 2, 2), Quote("a", 999, 3)], fails=False)
    joined.check()
    joined.add([Trade("a", 997, 1)], [Quote("a", 995, 4)], fails=False)
    joined.check()


@pytest.mark.filterwarnings("ignore::reactive.UnboundedStateWarning")
def test_joins_that_are_not_bounded_name_the_remedy() -> None:
    db = Database()
    trades, quotes = (db.stream(Trade, at="at", lateness=0, name=name) for name in ("one", "two"))
    table = db.table(Quote, name="quotes")
    options: dict[str, Any] = {"on": "symbol", "at": "at", "of": "at"}
    ahead = trades.asof_join(quotes, direction="forward", **options).explain().bounded
    beside = trades.asof_join(table, **options).explain().bounded
    assert next(remedy for _, remedy in ahead.unbounded).startswith("tolerance=")
    assert next(remedy for _, remedy in beside.unbounded).startswith("lookup(...)")
    with pytest.warns(UnboundedStateWarning, match="tolerance="):
        trades.asof_join(quotes, direction="forward", **options).materialize()
