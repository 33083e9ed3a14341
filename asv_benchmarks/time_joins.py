"""Time as-of joins, look-ups of events and sessions beside hand-written programs, in one process.

    as-of, a trade      bisect the quotes of its symbol
    as-of, a quote      bisect the trades up to the next quote, and pair them again
    look-up             a dictionary of the relation, for each event that is not late
    session             bisect the times of a user; the session around the changed one, again

python -m asv_benchmarks.time_joins [--rows 20000] [--part 100]

Both sides keep what they show, and give a listener the rows that come and go; of look-ups, nothing
is kept but the relation. The figures are of one row, in commits of one and of many rows. Targets:
as-of 3 times, look-ups 2 times, sessions 4 times.
"""

from __future__ import annotations

import argparse
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from random import Random
from statistics import quantiles
from time import perf_counter
from typing import Any, NamedTuple

from asv_benchmarks.measure import SEED
from asv_benchmarks.table import machine, markdown
from asv_benchmarks.turns import TwoSides, beside, times, unwatched
from reactive import Count, Database, session

START = datetime(2024, 1, 1)
SECOND = timedelta(seconds=1)
GAP = timedelta(minutes=30)


class Trade(NamedTuple):
    id: int
    symbol: Any
    at: Any
    size: int


class Quote(NamedTuple):
    id: int
    symbol: Any
    at: Any
    price: int


class Click(NamedTuple):
    id: int
    user: int
    at: datetime


KEYS: dict[str, Callable[[int], Any]] = {
    "ints": int,
    "strings": "symbol {}".format,
    "floats": lambda n: n / 8,
}
MOMENTS: dict[str, Callable[[int], Any]] = {
    "ints": int,
    "floats": lambda n: n / 8,
    "datetimes": lambda n: START + n * SECOND,
}


class Calls:
    """Counts the calls of both listeners."""

    def __init__(self) -> None:
        self.of_engine = self.of_twin = 0

    def hear(self, delta: Any) -> None:
        self.of_engine += 1

    def hear_twin(self, gone: Any, came: Any) -> None:
        self.of_twin += 1


class AsofTwin:
    """Pairs by symbol: sorted times of both sides, and the trades and quotes at these.

    The listener hears what several changes of one commit replace when all are done.
    """

    def __init__(self, listener: Callable[[Any, Any], None]) -> None:
        self.trades: dict[Any, list[tuple[Any, int, Trade]]] = {}
        self.quotes: dict[Any, list[tuple[Any, int, Quote]]] = {}
        self.shown: dict[int, tuple[Trade, Quote]] = {}
        self._listener = listener
        self._gone: list[Any] = []
        self._came: list[Any] = []

    def commit(self) -> None:
        """Tell the listener what the changes replace."""
        if self._gone or self._came:
            gone, came = self._gone, self._came
            self._gone, self._came = [], []
            self._listener(gone, came)

    def add_trade(self, trade: Trade) -> None:
        insort(self.trades.setdefault(trade.symbol, []), (trade.at, trade.id, trade))
        quotes = self.quotes.get(trade.symbol, ())
        place = bisect_right(quotes, (trade.at, END))
        if place:
            pair = self.shown[trade.id] = (trade, quotes[place - 1][2])
            self._came.append(pair)

    def remove_trade(self, trade: Trade) -> None:
        trades = self.trades[trade.symbol]
        del trades[bisect_left(trades, (trade.at, trade.id))]
        pair = self.shown.pop(trade.id, None)
        if pair is not None:
            self._gone.append(pair)

    def add_quote(self, quote: Quote) -> None:
        quotes = self.quotes.setdefault(quote.symbol, [])
        place = bisect_left(quotes, (quote.at, -quote.id))
        quotes.insert(place, (quote.at, -quote.id, quote))
        self._pair(quote.symbol, quotes, place)

    def remove_quote(self, quote: Quote) -> None:
        quotes = self.quotes[quote.symbol]
        place = bisect_left(quotes, (quote.at, -quote.id))
        del quotes[place]
        self._pair(quote.symbol, quotes, place, quote.at)

    def _pair(self, symbol: Any, quotes: list[Any], place: int, start: Any = None) -> None:
        """Pair the trades from a changed quote, at `start` if it is gone, up to the next one."""
        trades = self.trades.get(symbol, [])
        first = bisect_left(trades, (quotes[place][0] if start is None else start,))
        after = place + 1 if start is None else place
        last = bisect_left(trades, (quotes[after][0],)) if after < len(quotes) else len(trades)
        partner = place if start is None else place - 1
        for _, number, trade in trades[first:last]:
            old = self.shown.pop(number, None)
            if old is not None:
                self._gone.append(old)
            if partner >= 0:
                pair = self.shown[number] = (trade, quotes[partner][2])
                self._came.append(pair)


END = float("inf")


class Asof:
    """Trades with the last quote of their symbol, of quotes at one time the least.

    A commit adds `batch` rows, and the next one removes them.
    """

    def __init__(
        self, keys: str, moments: str, batch: int, rows: int, part: int, *, of_quotes: bool
    ) -> None:
        self.random = Random(SEED)
        self.batch = batch
        self._key, self._moment = KEYS[keys], MOMENTS[moments]
        self._symbols, self._days, self._of_quotes = max(rows // part, 1), part * 8, of_quotes
        self._number = rows
        calls = Calls()
        db = Database()
        self.trades: Any = db.table(Trade, name="trades")
        self.quotes: Any = db.table(Quote, name="quotes")
        self.view = self.trades.asof_join(
            self.quotes,
            on=lambda t, q: t.symbol == q.symbol,
            at=lambda t: t.at,
            of=lambda q: q.at,
        ).materialize()
        self.twin = AsofTwin(calls.hear_twin)
        quotes = [self._quote(n) for n in range(rows)]
        trades = [self._trade(n) for n in range(rows)]
        self.quotes.add_all(quotes)
        self.trades.add_all(trades)
        for quote in quotes:
            self.twin.add_quote(quote)
        for trade in trades:
            self.twin.add_trade(trade)
        self.twin.commit()
        self._subscription = self.view.subscribe(calls.hear)

    def _quote(self, number: int) -> Quote:
        symbol, place = number % self._symbols, number // self._symbols
        return Quote(number, self._key(symbol), self._moment(8 * (place % self._days)), number % 97)

    def _trade(self, number: int) -> Trade:
        symbol = self.random.randrange(self._symbols)
        at = self._moment(self.random.randrange(self._days))
        return Trade(number, self._key(symbol), at, number % 89)

    def changes(self, count: int) -> list[Any]:
        """Return rows that come and go again."""
        found = []
        for _ in range(max(count // self.batch // 2, 1)):
            rows = [self._changed_row() for _ in range(self.batch)]
            found += [(rows, 1), (rows, -1)]
        return found

    def _changed_row(self) -> Any:
        self._number += 1
        row = self._trade(self._number)
        if not self._of_quotes:
            return row
        at = self._moment(8 * self.random.randrange(self._days // 8) + 3)
        return Quote(self._number, row.symbol, at, row.size)

    def engine(self, changes: Sequence[Any]) -> None:
        table = self.quotes if self._of_quotes else self.trades
        if self.batch == 1:
            add, remove = table.add, table.remove
            for (row,), weight in changes:
                add(row) if weight > 0 else remove(row)
        else:
            for rows, weight in changes:
                table.add_all(rows) if weight > 0 else table.remove_all(rows)

    def by_hand(self, changes: Sequence[Any]) -> None:
        twin = self.twin
        add: Any = twin.add_quote if self._of_quotes else twin.add_trade
        remove: Any = twin.remove_quote if self._of_quotes else twin.remove_trade
        for rows, weight in changes:
            change = add if weight > 0 else remove
            for row in rows:
                change(row)
            twin.commit()

    def check(self) -> None:
        assert sorted(self.view) == sorted(self.twin.shown.values())


class LookUpTwin:
    """Events with the row of their symbol in a dictionary; `late` are those before the watermark.

    `add` and `add_all` take the events of one commit, all judged by the watermark before it.
    """

    def __init__(self, listener: Callable[[Any, Any], None]) -> None:
        self.rows: dict[Any, Quote] = {}
        self.late: list[Trade] = []
        self.watermark = START - GAP
        self._listener = listener

    def put_quote(self, quote: Quote) -> None:
        self.rows[quote.symbol] = quote

    def add(self, event: Trade) -> None:
        at = event.at
        if at < self.watermark:
            self.late.append(event)
            return
        if at - SECOND > self.watermark:
            self.watermark = at - SECOND
        row = self.rows.get(event.symbol)
        if row is not None:
            self._listener((), ((event, row),))

    def add_all(self, events: Sequence[Trade]) -> None:
        watermark, find, came = self.watermark, self.rows.get, []
        last = watermark + SECOND
        for event in events:
            at = event.at
            if at < watermark:
                self.late.append(event)
                continue
            if at > last:
                last = at
            row = find(event.symbol)
            if row is not None:
                came.append((event, row))
        self.watermark = last - SECOND
        if came:
            self._listener((), came)


class LookUp:
    """Events with the row of a relation, in commits of `batch` events."""

    def __init__(self, keys: str, batch: int, rows: int, part: int) -> None:
        self.random = Random(SEED)
        self._key, self._rows, self.batch, self._number = KEYS[keys], rows, batch, 0
        self.sums = [0, 0]
        db = Database()
        self.quotes: Any = db.table(Quote, name="quotes", key="symbol")
        self.stream: Any = db.stream(Trade, at=lambda t: t.at, lateness=SECOND, name="trades")
        joined = self.stream.lookup(self.quotes, on=lambda t, q: t.symbol == q.symbol)
        self._subscription = joined.subscribe(self._hear)
        self.twin = LookUpTwin(self._hear_twin)
        held = [Quote(n, self._key(n), START, n % 97) for n in range(rows)]
        self.quotes.add_all(held)
        for quote in held:
            self.twin.put_quote(quote)

    def changes(self, count: int) -> list[Any]:
        found = []
        for _ in range(max(count // self.batch, 2)):
            commit = []
            for _ in range(self.batch):
                self._number += 1
                symbol = self._key(self.random.randrange(self._rows))
                commit.append(Trade(self._number, symbol, START + self._number * SECOND, 1))
            found.append(commit)
        return found

    def engine(self, changes: Sequence[Any]) -> None:
        self._add(self.stream, changes)

    def by_hand(self, changes: Sequence[Any]) -> None:
        self._add(self.twin, changes)

    def _add(self, side: Any, changes: Sequence[Any]) -> None:
        if self.batch == 1:
            add = side.add
            for (event,) in changes:
                add(event)
        else:
            for commit in changes:
                side.add_all(commit)

    def check(self) -> None:
        assert self.sums[0] == self.sums[1] > 0
        assert self.stream.watermark.first() == self.twin.watermark

    def _hear(self, delta: Any) -> None:
        self.sums[0] += len(delta.added)

    def _hear_twin(self, gone: Any, came: Any) -> None:
        self.sums[1] += len(came)


class SessionTwin:
    """Sessions by user: sorted times, and the number of clicks of each session."""

    def __init__(self, listener: Callable[[Any, Any], None]) -> None:
        self.times: dict[int, list[datetime]] = {}
        self.shown: dict[tuple[int, datetime, datetime], int] = {}
        self._listener = listener

    def change(self, click: Click, weight: int) -> None:
        times = self.times.setdefault(click.user, [])
        place = bisect_left(times, click.at)
        first, last = self._around(times, place, click.at)
        gone = self._sessions(click.user, times, first, last)
        if weight > 0:
            times.insert(place, click.at)
        else:
            del times[place]
        came = self._sessions(click.user, times, first, last + weight)
        for each in gone:
            del self.shown[each]
        self.shown.update(came)
        self._listener(gone, came)

    def _around(self, times: list[datetime], place: int, at: datetime) -> tuple[int, int]:
        """Return the places of the sessions that a click at a time belongs to, or joins."""
        first = last = place
        before = at
        while first and before - times[first - 1] < GAP:
            first -= 1
            before = times[first]
        before = at
        while last < len(times) and times[last] - before < GAP:
            before = times[last]
            last += 1
        return first, last

    def _sessions(self, user: int, times: list[datetime], first: int, last: int) -> dict[Any, int]:
        """Return the sessions of the times of a slice, which begins and ends with sessions."""
        found: dict[Any, int] = {}
        while first < last:
            end = first + 1
            while end < last and times[end] - times[end - 1] < GAP:
                end += 1
            found[user, times[first], times[end - 1] + GAP] = end - first
            first = end
        return found


class Sessions:
    """The number of clicks of each session, of `part` clicks per user in sessions of some ten."""

    batch = 1

    def __init__(self, rows: int, part: int) -> None:
        self.random = Random(SEED)
        self._users, self._number = max(rows // part, 1), rows
        self._span = part * 120 + 1
        calls = Calls()
        self.clicks: Any = Database().table(Click, name="clicks")
        windows = self.clicks.window(session(GAP, by=lambda c: c.user), at=lambda c: c.at)
        self.view = windows.group_by(lambda c, w: (c.user, w)).aggregate(Count()).materialize()
        self.twin = SessionTwin(calls.hear_twin)
        held = [self._click(n) for n in range(rows)]
        self.clicks.add_all(held)
        for click in held:
            self.twin.change(click, 1)
        self._subscription = self.view.subscribe(calls.hear)

    def _click(self, number: int) -> Click:
        burst, user = self.random.randrange(self._span), self.random.randrange(self._users)
        at = START + (burst // 1_200 * 60 + burst % 50) * timedelta(minutes=1)
        return Click(number, user, at)

    def changes(self, count: int) -> list[Any]:
        found = []
        for _ in range(count // 2):
            self._number += 1
            click = self._click(self._number)
            found += [(click, 1), (click, -1)]
        return found

    def engine(self, changes: Sequence[Any]) -> None:
        add, remove = self.clicks.add, self.clicks.remove
        for click, weight in changes:
            add(click) if weight > 0 else remove(click)

    def by_hand(self, changes: Sequence[Any]) -> None:
        change = self.twin.change
        for click, weight in changes:
            change(click, weight)

    def check(self) -> None:
        shown = [((user, (start, end)), n) for (user, start, end), n in self.twin.shown.items()]
        assert sorted(self.view) == sorted(shown)


Make = Callable[[int, int], TwoSides]
CASES: dict[str, tuple[float, Make]] = {
    **{
        f"as-of, {batch:,} {what}s in a commit: keys {keys}, times {moments}": (
            3,
            partial(Asof, keys, moments, batch, of_quotes=what == "quote"),
        )
        for what in ("trade", "quote")
        for batch in (1, 100, 1_000, 10_000)
        for keys, moments in (
            ("ints", "ints"),
            ("ints", "floats"),
            ("strings", "ints"),
            ("strings", "datetimes"),
        )
        if batch == 1 or (keys, moments) == ("ints", "ints")
    },
    **{
        f"look-up, {batch:,} in a commit: keys {keys}": (2, partial(LookUp, keys, batch))
        for batch in (1, 100, 1_000, 10_000)
        for keys in KEYS
    },
    "sessions, a click": (4, Sessions),
}


def slowest(sides: TwoSides, count: int) -> tuple[float, float]:
    """Return the microseconds of the change that 99 of 100 are faster than, of both sides."""
    found: tuple[list[float], list[float]] = ([], [])
    with unwatched():
        for change in sides.changes(count):
            for place, side in enumerate((sides.engine, sides.by_hand)):
                began = perf_counter()
                side([change])
                found[place].append((perf_counter() - began) * 1e6)
    engine, twin = (quantiles(each, n=100)[-1] if len(each) > 1 else each[0] for each in found)
    return engine, twin


def table(rows: int, part: int, turns: int = 15, chunk: int = 1_000, only: str = "") -> list[str]:
    """Return the table of all cases, or of those with a word in their names."""
    lines = []
    for name, (asked, make) in CASES.items():
        if only not in name:
            continue
        sides = make(rows, part)
        found = beside(times(sides, turns, chunk))
        engine, twin = slowest(sides, chunk)
        medians = [f"{found.engine:.2f}", f"{found.twin:.2f}", f"{found.ratio:.1f}"]
        lines.append([name, f"{asked:g}", *medians, f"{engine:.1f}", f"{twin:.1f}"])
    heads = ["one change of", "asked", "engine, us", "by hand, us", "times"]
    return markdown([*heads, "engine p99, us", "by hand p99, us"], lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--part", type=int, default=100)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    print("\n".join([machine(), "", *table(given.rows, given.part, only=given.only)]))


if __name__ == "__main__":
    main()
